"""``delosmq run`` on PostgreSQL: broker and database are killed under load, and nothing that was confirmed is lost.

``DELOSMQ_KILLS=50`` runs the long form; ``DELOSMQ_SEED`` chooses the moments.
"""

# HA-2

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.chaos.broker_process import BrokerProcess
from tests.chaos.clients import END, Memory, StompPeer, Worker, consume, number_of, produce
from tests.patience import PATIENCE_S
from tests.postgres_server import PostgresServer, on_postgres

KILLS = int(os.environ.get("DELOSMQ_KILLS", "3"))
SEED = int(os.environ.get("DELOSMQ_SEED", "1"))


def instance(directory: Path, url: str, *lines: str) -> BrokerProcess:
    """One whose messages lie in this database."""
    process = BrokerProcess(directory, "64K")
    process.configure(on_postgres(url, *lines))
    return process


@pytest.fixture
def broker(tmp_path: Path, own_postgres: PostgresServer) -> Iterator[BrokerProcess]:
    process = instance(tmp_path / "instance", own_postgres.url(own_postgres.schema()))
    yield process
    process.end()


def new_memory() -> Memory:
    memory = Memory()
    memory.leased = 1 << 40  # producers wait for no reader of leases: there is none
    return memory


def wait_for_receipts(broker: BrokerProcess, memory: Memory, more: int) -> None:
    wanted = memory.receipts + more
    assert memory.wait(lambda: memory.receipts >= wanted), f"no progress: {broker.log}"


def begin(broker: BrokerProcess, memory: Memory, random: Random) -> list[Worker]:
    seeds = [random.random() for _ in range(2)]
    return [
        Worker(memory, lambda: consume(memory, broker.stomp_port, individual=True, random=Random(seeds[0]))),
        Worker(memory, lambda: consume(memory, broker.stomp_port, individual=False, random=Random(seeds[1]))),
        *[Worker(memory, lambda: produce(memory, broker.stomp_port)) for _ in range(2)],
    ]


def end(workers: list[Worker], memory: Memory) -> None:
    for worker in workers:
        worker.join(PATIENCE_S)
        assert not worker.is_alive()
    assert not memory.wrong, memory.wrong


def archived(broker: BrokerProcess) -> set[int]:
    """What lies in orders.archive, which nobody reads until now."""
    peer = StompPeer(broker.stomp_port)
    try:
        subscription = {"id": "s", "destination": "orders::orders.archive", "ack": "auto"}
        peer.send("SUBSCRIBE", subscription)
        found: set[int] = set()
        for command, _, body in peer.frames():
            if command == "MESSAGE":
                if number_of(body) == END:
                    return found
                found.add(number_of(body))
    finally:
        peer.close()
    raise AssertionError("the connection ended")


def check_nothing_lost(broker: BrokerProcess, memory: Memory) -> None:
    """In a life without other producers: once the last message is there, all before it are."""
    memory.sent.add(END)
    worker = Worker(memory, lambda: produce(memory, broker.stomp_port, [END]))
    end([worker], memory)
    lost = {number for number in memory.confirmed if number != END} - archived(broker)
    assert not lost, f"confirmed and lost: {sorted(lost)[:10]} of {len(memory.confirmed)}"


def test_what_was_confirmed_survives_kills_of_the_broker(broker: BrokerProcess) -> None:
    random = Random(SEED)
    memory = new_memory()
    for _ in range(KILLS):
        broker.start()
        workers = begin(broker, memory, random)
        wait_for_receipts(broker, memory, random.randrange(50, 400))
        broker.kill()
        end(workers, memory)
    broker.start()
    check_nothing_lost(broker, memory)
    assert broker.stop() == 0


def test_what_was_confirmed_survives_kills_of_the_database_and_the_broker_goes_on(
    broker: BrokerProcess, own_postgres: PostgresServer
) -> None:
    random = Random(SEED)
    memory = new_memory()
    broker.start()
    workers = begin(broker, memory, random)
    for _ in range(KILLS):
        wait_for_receipts(broker, memory, random.randrange(50, 200))
        own_postgres.kill()
        own_postgres.start()
    wait_for_receipts(broker, memory, 100)
    assert "DMQ3081" in broker.log
    assert "DMQ3082" in broker.log
    broker.kill()
    end(workers, memory)
    broker.start()
    check_nothing_lost(broker, memory)
    assert broker.stop() == 0


def readiness(broker: BrokerProcess) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{broker.http_port}/health/ready", timeout=PATIENCE_S) as answer:
            return str(json.load(answer))
    except urllib.error.HTTPError as error:
        return error.read().decode()


def test_a_broker_alone_on_its_tables_waits_for_its_database_keeps_others_out_and_leaves_no_lease(
    tmp_path: Path, broker: BrokerProcess, own_postgres: PostgresServer
) -> None:
    broker.start()
    url = (broker.directory / "etc" / "broker.xml").read_text("utf-8").partition("<jdbc-connection-url>")[2]
    second = instance(tmp_path / "second", url.partition("<")[0])
    with pytest.raises(RuntimeError, match=r"DMQ3070: the tables in the database at .* are in use by the broker of "):
        second.start()
    second.end()
    # While the database is away nothing is confirmed, and health says why.
    assert "DMQ6041" not in readiness(broker)
    own_postgres.kill()
    peer = StompPeer(broker.stomp_port)
    peer.send("SEND", {"destination": "/topic/orders", "persistent": "true", "receipt": "1"}, b"x")
    while "DMQ6041" not in readiness(broker):
        pass
    own_postgres.start()
    assert next(peer.frames())[0] == "RECEIPT"
    peer.close()
    # After a clean stop nobody waits for the end of the lease.
    assert broker.stop() == 0
    broker.start()
    assert "DMQ3078" in broker.log
    assert broker.stop() == 0
