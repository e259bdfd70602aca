"""kill -9 of a real broker under load: what it had confirmed is there afterwards, what was acknowledged is not.

``DELOSMQ_KILLS=50`` runs the long form; ``DELOSMQ_SEED`` chooses the moments.
"""

# BROKER-1

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.chaos.broker_process import BrokerProcess
from tests.chaos.clients import END, LeaseReader, Memory, Worker, consume, number_of, produce
from tests.patience import PATIENCE_S

KILLS = int(os.environ.get("DELOSMQ_KILLS", "3"))
SEED = int(os.environ.get("DELOSMQ_SEED", "1"))
SEGMENTS_PER_LIFE = 3
MOST_RECEIPTS = 2_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path / "instance", "64K")
    yield process
    process.end()


def one_life(broker: BrokerProcess, memory: Memory, random: Random, life: int) -> None:
    """Load until three files have been recycled and then some random number of receipts more; then kill."""
    broker.start()
    before = broker.segments()
    workers = start_consumers(broker, memory, random, life)
    workers += [Worker(memory, lambda: produce(memory, broker.stomp_port)) for _ in range(2)]
    limit = memory.receipts + MOST_RECEIPTS
    while recycled(before, broker.segments()) < SEGMENTS_PER_LIFE:
        assert memory.receipts < limit, f"journal files are not recycled: {before} {broker.segments()}"
        wait_for_receipts(broker, memory, 25)
    wait_for_receipts(broker, memory, random.randrange(1, 300))
    broker.kill()
    for worker in workers:
        worker.join(PATIENCE_S)
        assert not worker.is_alive()
    assert not memory.wrong, memory.wrong


def wait_for_receipts(broker: BrokerProcess, memory: Memory, more: int) -> None:
    wanted = memory.receipts + more
    assert memory.wait(lambda: memory.receipts >= wanted), f"no progress: {broker.log}"


def recycled(before: dict[str, int], after: dict[str, int]) -> int:
    """Segments begun that got no new file got one that had held another segment before."""
    begun = max(after.values()) - max(before.values())
    made = max(map(slot_of, after)) - max(map(slot_of, before))
    return begun - made


def slot_of(file_name: str) -> int:
    """Files are numbered in the order in which they were made."""
    return int(file_name.removeprefix("journal-").removesuffix(".dmq"))


def start_consumers(broker: BrokerProcess, memory: Memory, random: Random, life: int) -> list[Worker]:
    seeds = [random.random() for _ in range(3)]
    workers = [
        Worker(memory, lambda: consume(memory, broker.stomp_port, individual=True, random=Random(seeds[0]))),
        Worker(memory, lambda: LeaseReader(memory, broker.http_port, f"run{life}", Random(seeds[1])).follow()),
    ]
    if END not in memory.sent:
        workers.append(
            Worker(memory, lambda: consume(memory, broker.stomp_port, individual=False, random=Random(seeds[2])))
        )
    return workers


def drain(broker: BrokerProcess, memory: Memory, random: Random) -> None:
    """A life without producers but for one last message: when that has come, everything before it has."""
    broker.start()
    memory.sent.add(END)
    workers = start_consumers(broker, memory, random, KILLS)
    workers.append(Worker(memory, lambda: produce(memory, broker.stomp_port, [END])))
    assert memory.wait(lambda: memory.drained and memory.end_is_archived()), f"never drained: {broker.log}"
    assert broker.stop() == 0
    for worker in workers:
        worker.join(PATIENCE_S)
    assert not memory.wrong, memory.wrong


@pytest.mark.timeout(60 + 30 * KILLS)
def test_nothing_confirmed_is_lost_and_nothing_acknowledged_comes_back(broker: BrokerProcess) -> None:
    random = Random(SEED)
    memory = Memory()
    for life in range(KILLS):
        one_life(broker, memory, random, life)
    drain(broker, memory, random)

    lost = memory.confirmed - memory.ack_issued
    assert not lost, f"lost: {sorted(lost)[:10]}"
    assert sorted(memory.leases) == list(range(1, len(memory.leases) + 1))
    archived = [number_of(row["body"]) for rows in memory.leases.values() for row in rows]
    assert len(archived) == len(set(archived)), "a message lies in two leases"
    assert memory.confirmed <= set(archived) <= memory.sent
    assert memory.refetched > 0
