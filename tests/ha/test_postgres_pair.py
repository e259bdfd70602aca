"""A primary and its backup on PostgreSQL: who is active after a kill, a pause, a stop, a return."""

# HA-2

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from delosmq.client import ClientConnection, connect
from delosmq.testing import BrokerHealth, BrokerPair, BrokerProcess
from tests.chance import tries
from tests.chaos.broker_process import PASSWORD as CLIENT_PASSWORD
from tests.chaos.clients import Gone, StompPeer
from tests.postgres_server import PASSWORD, USER, PostgresServer

MakePair = Callable[..., BrokerPair]


@pytest.fixture
def make_pair(tmp_path: Path, postgres: PostgresServer) -> Iterator[MakePair]:
    made: list[BrokerPair] = []

    def make(primary: str = "", backup: str = "", server: PostgresServer = postgres) -> BrokerPair:
        store = (
            f"<store><database-store><jdbc-connection-url>{server.url(server.schema())}</jdbc-connection-url>"
            f"<jdbc-user>{USER}</jdbc-user><jdbc-password>{PASSWORD}</jdbc-password></database-store></store>"
        )
        changes = [("<addresses>", f"{store}<addresses>")]
        made.append(BrokerPair(tmp_path, changes, primary=primary, backup=backup, password=CLIENT_PASSWORD))
        return made[-1]

    yield make
    for pair in made:
        pair.end()


def client(broker: BrokerProcess) -> ClientConnection:
    return connect(f"tcp://127.0.0.1:{broker.openwire_port}", user="admin", password=CLIENT_PASSWORD)


def send(broker: BrokerProcess, body: str) -> None:
    with client(broker) as connection:
        connection.send("orders", body)


def received(broker: BrokerProcess) -> str:
    with client(broker) as connection:
        for message in connection.messages("orders", timeout_s=30):
            message.acknowledge()
            return message.text
    raise AssertionError("no message came")


def test_a_backup_waits_and_takes_over_what_a_killed_primary_had_confirmed(make_pair: MakePair) -> None:
    pair = make_pair()
    pair.start()
    assert pair.primary.health() == BrokerHealth(True, "primary", "")
    health = pair.backup.health()
    assert health is not None
    assert (health.ready, health.role) == (False, "backup")
    assert f"process {pair.primary.pid}" in health.detail
    send(pair.primary, "before the kill")
    pair.primary.kill()
    pair.backup.await_ready()
    assert received(pair.backup) == "before the kill"


def test_a_clean_stop_pauses_the_pair_until_the_primary_is_back(make_pair: MakePair) -> None:
    pair = make_pair()
    pair.start()
    send(pair.primary, "before the stop")
    assert pair.primary.stop() == 0
    pair.backup.await_log("was stopped cleanly, which pauses the pair")
    pair.primary.start()
    assert received(pair.primary) == "before the stop"


def test_with_failover_on_shutdown_a_backup_takes_over_after_a_clean_stop(make_pair: MakePair) -> None:
    pair = make_pair(primary="<failover-on-shutdown>true</failover-on-shutdown>")
    pair.start()
    send(pair.primary, "before the stop")
    assert pair.primary.stop() == 0
    pair.backup.await_ready()
    assert received(pair.backup) == "before the stop"


def test_a_backup_makes_way_for_a_primary_and_waits_again(make_pair: MakePair) -> None:
    pair = make_pair()
    pair.start()
    send(pair.primary, "before the kill")
    pair.primary.kill()
    pair.backup.await_ready()
    pair.primary.start()
    assert received(pair.primary) == "before the kill"
    pair.backup.await_log("DMQ7023")
    pair.backup.await_log("active is primary")


@pytest.mark.parametrize("turn", range(tries(2)))
def test_a_paused_primary_wakes_up_fenced_and_confirms_nothing(turn: int, make_pair: MakePair) -> None:
    pair = make_pair()
    pair.start()
    send(pair.primary, "before the pause")
    peer = StompPeer(pair.primary.stomp_port)
    pair.primary.pause()
    # What the old one finds in its sockets when it wakes up.
    for number in range(20):
        durable = "true" if number % 2 else "false"
        peer.send("SEND", {"destination": "/queue/orders", "persistent": durable, "receipt": str(number)}, b"lost")
    peer.send("SUBSCRIBE", {"id": "s", "destination": "/queue/orders", "receipt": "subscribed"})
    pair.backup.await_ready()
    pair.primary.resume()
    assert pair.primary.await_end() != 0
    with pytest.raises(Gone):
        next(peer.frames())
    assert "DMQ3071" in pair.primary.log or "DMQ3050" in pair.primary.log
    assert received(pair.backup) == "before the pause"
    peer.close()
