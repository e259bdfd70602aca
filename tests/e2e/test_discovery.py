"""Two brokers find each other by UDP, on loopback."""

import time
from dataclasses import replace

from delosmq.model.declared.router import ConnectorSettings
from delosmq.model.settings import BroadcastGroupSettings, DiscoveryGroupSettings
from delosmq.storage.memory import MemoryStore
from tests.e2e.conftest import SETTINGS
from tests.e2e.support import HOST, RunningBroker
from tests.patience import PATIENCE_S
from tests.server.test_discovery_groups import GROUP
from tests.server.test_discovery_groups import port as port

CONNECTOR = ConnectorSettings("netty", HOST, 61613)


def test_a_broker_announces_itself_while_it_serves_and_is_missed_after(port: int) -> None:  # CLUS-1
    finder = replace(SETTINGS, discovery_groups=(DiscoveryGroupSettings("dg", GROUP, port, HOST, 300),))
    announcer = replace(
        SETTINGS,
        broadcast_groups=(BroadcastGroupSettings("bg", GROUP, port, (CONNECTOR,), HOST, broadcast_period_ms=20),),
    )
    with RunningBroker(finder, MemoryStore) as finds:
        assert finds.composed is not None
        group = finds.composed.discovery.by_name["dg"]

        def wait_for(count: int) -> None:
            end = time.monotonic() + PATIENCE_S
            while len(group.nodes) != count:
                assert time.monotonic() < end, group.nodes
                finds.get("/health/live")

        with RunningBroker(announcer, MemoryStore) as other:
            wait_for(1)
            assert other.composed is not None
            assert group.nodes[0].node_id == other.composed.node_id()
            assert (group.nodes[0].host, group.nodes[0].port) == (HOST, 61613)
        wait_for(0)
