"""A connection router with a persisted cache is killed: each client that was told where it belongs belongs there ever
after."""

# ROUTE-5

from collections.abc import Sequence
from pathlib import Path

import pytest

from delosmq.testing import BrokerProcess
from tests.chaos.test_router_targets import where
from tests.e2e.support import ADMIN, HOST, RunningBroker
from tests.e2e.test_router_pools import place, targets
from tests.postgres_server import PostgresServer, on_postgres

KILLS = 3
CLIENTS = 12
ROUTER = """<connectors><connector name="t0">tcp://{host}:{ports[0]}</connector>
<connector name="t1">tcp://{host}:{ports[1]}</connector></connectors>
<connection-routers><connection-router name="r*"><key-type>CLIENT_ID</key-type><policy name="ROUND_ROBIN"/>
<cache><persisted>true</persisted></cache><pool><username>{user}</username><password>{password}</password>
<check-period>100</check-period><quorum-size>2</quorum-size><quorum-timeout>9000</quorum-timeout>
<static-connectors><connector-ref>t0</connector-ref><connector-ref>t1</connector-ref></static-connectors></pool>
</connection-router></connection-routers>
<acceptors>"""


def changes(brokers: Sequence[RunningBroker]) -> list[tuple[str, str]]:
    routed = ROUTER.format(host=HOST, ports=[one.port for one in brokers], user=ADMIN.name, password=ADMIN.password)
    return [("<acceptors>", routed), ("?protocols=STOMP;", "?protocols=STOMP;router=r*;")]


@pytest.mark.parametrize("store", ["journal", "PostgreSQL"])
def test_a_key_stays_with_its_broker_when_the_router_is_killed(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    more = []
    if store == "PostgreSQL":
        server: PostgresServer = request.getfixturevalue("postgres")
        more.append(on_postgres(server.url(server.schema())))
    with (
        targets(2) as brokers,
        BrokerProcess(tmp_path / "router", [*changes(brokers), *more], password=ADMIN.password) as router,
    ):
        belongs: dict[str, str] = {}
        for life in range(KILLS):
            router.start()
            for client, at in belongs.items():
                assert where(router.stomp_port, client) == at, f"life {life}"
            for number in range(CLIENTS):
                client = f"client-{life}-{number}"
                belongs[client] = where(router.stomp_port, client)
            router.kill()
        assert set(belongs.values()) == {place(one) for one in brokers}
        router.configure(("<persisted>true<", "<persisted>false<"))
        router.start()
        anew = [where(router.stomp_port, client) for client in list(belongs)[:5]]
        assert set(anew) == set(belongs.values())
        router.kill()
