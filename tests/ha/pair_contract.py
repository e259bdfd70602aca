"""What any pair of brokers does, whatever the store that they share: `PairContract`, for a class of tests per store."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from delosmq.client import ClientConnection, connect
from delosmq.testing import BrokerHealth, BrokerPair, BrokerProcess
from tests.chaos.broker_process import PASSWORD
from tests.postgres_server import PostgresServer, on_postgres

MakePair = Callable[..., BrokerPair]


@contextmanager
def pairs_in(directory: Path, server: PostgresServer | None = None) -> Iterator[MakePair]:
    """Makes pairs that end with the block: on a shared directory, or on new tables of ``server``."""
    made: list[BrokerPair] = []

    def make(primary: str = "", backup: str = "") -> BrokerPair:
        changes: Sequence[tuple[str, str]] = ()
        if server is not None:
            changes = [on_postgres(server.url(server.schema()))]
        made.append(BrokerPair(directory, changes, primary=primary, backup=backup, password=PASSWORD))
        return made[-1]

    try:
        yield make
    finally:
        for pair in made:
            pair.end()


def client(broker: BrokerProcess) -> ClientConnection:
    return connect(f"tcp://127.0.0.1:{broker.openwire_port}", user="admin", password=PASSWORD)


def send(broker: BrokerProcess, body: str) -> None:
    with client(broker) as connection:
        connection.send("orders", body)


def received(broker: BrokerProcess) -> str:
    with client(broker) as connection:
        for message in connection.messages("orders", timeout_s=30):
            message.acknowledge()
            return message.text
    raise AssertionError("no message came")


class PairContract:
    """Its tests ask for a fixture ``make_pair``."""

    def test_a_backup_takes_over_makes_way_waits_and_takes_over_again(self, make_pair: MakePair) -> None:
        pair = make_pair()
        pair.start()
        assert pair.primary.health() == BrokerHealth(True, "primary", "")
        health = pair.backup.health()
        assert health is not None
        assert (health.ready, health.role) == (False, "backup")
        assert "active is primary on" in health.detail
        assert f"process {pair.primary.pid}" in health.detail
        send(pair.primary, "before the kill")
        pair.primary.kill()
        pair.backup.await_ready()
        assert "with epoch 2, after primary on" in pair.backup.log
        assert received(pair.backup) == "before the kill"
        send(pair.backup, "while the primary was away")
        process = pair.backup.pid
        pair.primary.start()
        assert received(pair.primary) == "while the primary was away"
        pair.backup.await_log("DMQ7023")
        pair.backup.await_waiting()
        assert pair.backup.pid == process
        send(pair.primary, "before the second kill")
        pair.primary.kill()
        pair.backup.await_ready()
        assert received(pair.backup) == "before the second kill"

    def test_a_clean_stop_pauses_the_pair_or_with_failover_on_shutdown_does_not(self, make_pair: MakePair) -> None:
        pair = make_pair()
        pair.start()
        send(pair.primary, "before the stop")
        assert pair.primary.stop() == 0
        pair.backup.await_log("was stopped cleanly, which pauses the pair")
        pair.primary.configure(("<primary>", "<primary><failover-on-shutdown>true</failover-on-shutdown>"))
        pair.primary.start()
        assert received(pair.primary) == "before the stop"
        send(pair.primary, "before the second stop")
        assert pair.primary.stop() == 0
        pair.backup.await_ready()
        assert received(pair.backup) == "before the second stop"
