"""A router before a pair: when the primary is killed its clients end at the backup, and later at the primary again."""

# HA-1, ROUTE-3, ROUTE-5, CLUS-1

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from delosmq.client import connect
from delosmq.testing import BrokerPair, BrokerProcess
from tests.e2e.support import ADMIN, HOST, RunningBroker
from tests.e2e.test_discovery_pool import GROUP, router
from tests.e2e.test_router_pools import FIRST, ask, routed
from tests.patience import PATIENCE_S
from tests.server.test_discovery_groups import port as port

BOTH_PROTOCOLS = ("?protocols=OPENWIRE,CORE</acceptor>", "?protocols=OPENWIRE,STOMP</acceptor>")
PLACE = f"<local-bind-address>{HOST}</local-bind-address><group-address>{GROUP}</group-address>"


@contextmanager
def pair_in(directory: Path) -> Iterator[BrokerPair]:
    with BrokerPair(directory, [BOTH_PROTOCOLS], password=ADMIN.password) as pair:
        yield pair


class RoutedClient:
    """One that knows the router alone."""

    def __init__(self, port: int, client_id: str) -> None:
        url = f"failover:(tcp://{HOST}:{port})?initialReconnectDelay=50&useExponentialBackOff=false"
        self._port = port
        self._client_id = client_id
        self._questions = 0
        self._connection = connect(url, user=ADMIN.name, password=ADMIN.password, client_id=client_id)

    def shows_that_it_is_at(self, broker: BrokerProcess) -> None:
        """Its connection sends to this broker, and another one with its key would be sent there."""
        self._questions += 1
        question = f"question {self._questions}"
        self._connection.send(self._client_id, question)
        with connect(f"tcp://{HOST}:{broker.openwire_port}", user=ADMIN.name, password=ADMIN.password) as direct:
            assert question in (message.text for message in direct.messages(self._client_id, timeout_s=PATIENCE_S))
        end = time.monotonic() + PATIENCE_S
        while (told := ask(self._port, self._client_id)) != f"{HOST}:{broker.openwire_port}":
            assert time.monotonic() < end, told

    def close(self) -> None:
        self._connection.close()


def follows_a_kill_and_the_return(pair: BrokerPair, routers: list[RunningBroker]) -> None:
    clients = [RoutedClient(one.port, f"client{number}") for number, one in enumerate(routers)]
    for client in clients:
        client.shows_that_it_is_at(pair.primary)
    pair.primary.kill()
    pair.backup.await_ready()
    for client in clients:
        client.shows_that_it_is_at(pair.backup)
    pair.primary.start()
    for client in clients:
        client.shows_that_it_is_at(pair.primary)
        client.close()


def test_clients_of_a_router_end_at_the_backup_with_a_cache_and_without(tmp_path: Path) -> None:
    wait = "<quorum-timeout>30000</quorum-timeout>"
    with pair_in(tmp_path) as pair:
        pair.start()
        ports = [pair.primary.openwire_port, pair.backup.openwire_port]
        places = [tmp_path / "plain", tmp_path / "cached"]
        for place in places:
            place.mkdir()
        with (
            routed(places[0], ports, FIRST, wait) as plain,
            routed(places[1], ports, f"{FIRST}<cache/>", wait) as cached,
        ):
            follows_a_kill_and_the_return(pair, [plain, cached])


def test_clients_of_a_router_that_finds_the_pair_by_udp_end_at_the_backup(tmp_path: Path, port: int) -> None:
    with pair_in(tmp_path) as pair:
        for broker in (pair.primary, pair.backup):
            broker.configure(*announcing(broker, port))
        pair.start()
        place = tmp_path / "router"
        place.mkdir()
        with router(place, port, 60_000) as routing:
            follows_a_kill_and_the_return(pair, [routing])


def announcing(broker: BrokerProcess, port: int) -> list[tuple[str, str]]:
    """What to change in its broker.xml."""
    connector = f'<connector name="me">tcp://{HOST}:{broker.openwire_port}</connector>'
    group = f"{PLACE}<group-port>{port}</group-port><broadcast-period>100</broadcast-period>"
    groups = f'<broadcast-group name="bg">{group}<connector-ref>me</connector-ref></broadcast-group>'
    return [
        ("<acceptors>", f"<connectors>{connector}</connectors><acceptors>"),
        ("<security-settings>", f"<broadcast-groups>{groups}</broadcast-groups><security-settings>"),
    ]
