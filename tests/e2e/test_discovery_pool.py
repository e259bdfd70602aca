"""Connection routers whose targets are found by UDP, on loopback: they come and go with their announcements."""

# ROUTE-3, CLUS-1

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from delosmq.cluster.datagram import FACTORY, AnnouncedConnector, Announcement, encode_announcement
from delosmq.config.broker_xml import load_broker_xml
from delosmq.model.settings import DiscoveryGroupSettings
from delosmq.server.discovery.multicast import open_sender
from delosmq.server.targets.target_monitor import MOST_DISCOVERED
from delosmq.storage.memory import MemoryStore
from tests.e2e.support import ADMIN, HOST, RunningBroker
from tests.e2e.test_router_pools import PLAIN, ask, place, targets
from tests.patience import PATIENCE_S
from tests.server.test_discovery_groups import GROUP
from tests.server.test_discovery_groups import port as port

BROKER_XML = """
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<acceptors><acceptor name="artemis">tcp://127.0.0.1:61616?router=r</acceptor></acceptors>
<discovery-groups><discovery-group name="find"><group-address>{group}</group-address><group-port>{port}</group-port>
<local-bind-address>127.0.0.1</local-bind-address><refresh-timeout>{refresh_ms}</refresh-timeout></discovery-group>
</discovery-groups>
<connection-routers><connection-router name="r"><key-type>CLIENT_ID</key-type><policy name="FIRST_ELEMENT"/>
<pool><username>{user}</username><password>{password}</password><check-period>100</check-period>
<quorum-timeout>15000</quorum-timeout><discovery-group-ref discovery-group-name="find"/></pool></connection-router>
</connection-routers>
<security-settings><security-setting match="#"/></security-settings>
</core></configuration>
"""


@contextmanager
def router(directory: Path, port: int, refresh_ms: int) -> Iterator[RunningBroker]:
    path = directory / "broker.xml"
    path.write_text(
        BROKER_XML.format(group=GROUP, port=port, refresh_ms=refresh_ms, user=ADMIN.name, password=ADMIN.password)
    )
    loaded = load_broker_xml(path, properties={}, memory_bytes=1024**3).settings
    settings = replace(
        PLAIN,
        acceptors=(replace(loaded.acceptors[0], port=0),),
        connection_routers=loaded.connection_routers,
        discovery_groups=loaded.discovery_groups,
    )
    assert isinstance(settings.discovery_groups[0], DiscoveryGroupSettings)
    with RunningBroker(settings, MemoryStore) as broker:
        yield broker


def announce(port: int, node_id: str, acceptor_port: int, host: str = HOST) -> None:
    """What a broadcast group sends."""
    connector = AnnouncedConnector("netty", FACTORY, (("host", host), ("port", str(acceptor_port))))
    with open_sender(HOST, -1) as sender:
        sender.sendto(encode_announcement(Announcement(node_id, "start", (connector,))), (GROUP, port))


def node_id_of(broker: RunningBroker) -> str:
    assert broker.composed is not None
    return broker.composed.node_id()


def ready(broker: RunningBroker) -> list[str]:
    """The node ids of the targets that are ready."""
    assert broker.composed is not None
    pool = broker.composed.connection_routers.by_name["r"].pool
    assert pool is not None
    return [one.node_id for one in pool.ready_targets()]


def test_a_broker_that_announces_itself_is_a_target_until_it_falls_silent(tmp_path: Path, port: int) -> None:
    with targets(2) as (first, second), router(tmp_path, port, 1_000) as routing:
        end = time.monotonic() + PATIENCE_S
        for found in (first, second):
            while ready(routing) != [node_id_of(found)]:
                assert time.monotonic() < end, ready(routing)
                announce(port, node_id_of(found), found.port)
            announce(port, node_id_of(found), found.port)
            assert ask(routing.port, "me") == place(found)


def test_a_broker_that_moves_is_a_target_where_it_is_now(tmp_path: Path, port: int) -> None:
    with targets(2) as (first, second), router(tmp_path, port, 60_000) as routing:
        end = time.monotonic() + PATIENCE_S
        for found in (first, second):
            while ready(routing) != [node_id_of(found)]:
                assert time.monotonic() < end, ready(routing)
                announce(port, "one-name", found.port)
            assert ask(routing.port, "me") == place(found)


def test_of_a_flood_of_announcements_few_become_targets(
    tmp_path: Path, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    with targets(1) as (found,), router(tmp_path, port, 60_000) as routing:
        assert routing.composed is not None
        pool = routing.composed.connection_routers.by_name["r"].pool
        assert pool is not None
        end = time.monotonic() + PATIENCE_S
        while not ready(routing):
            assert time.monotonic() < end
            announce(port, node_id_of(found), found.port)
        while "DMQ5517" not in caplog.text:
            assert time.monotonic() < end
            for number in range(2 * MOST_DISCOVERED):
                announce(port, f"{number:03}", 1, f"127.9.0.{number}")
        assert len(pool.targets) == MOST_DISCOVERED
        assert ready(routing) == [node_id_of(found)]
        assert ask(routing.port, "me") == place(found)
