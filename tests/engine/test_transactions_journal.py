"""Transactions and duplicate ids on a journal: what they need stays on the disk, and not longer."""

from random import Random

from delosmq.engine.credit import OpenCredit
from delosmq.engine.outcome import DUPLICATE, ROUTED
from delosmq.engine.transactions import Transaction
from delosmq.model.message import Message
from tests.engine.test_transactions import Waiter
from tests.simulation.disk import SimDisk
from tests.storage.test_compaction import Life, Reader

FILES_AT_MOST = 14
MANY = 300


def message(life: Life, body: str, duplicate_id: bytes = b"") -> Message:
    return Message(
        "dead",
        "stomp/12",
        b"",
        body.encode() + bytes(500),
        durable=True,
        timestamp_ms=life.clock.wall_ms(),
        duplicate_id=duplicate_id,
    )


def fill(life: Life, transaction: Transaction, count: int) -> None:
    """Acknowledges all that 'dead' holds, and sends new messages there."""
    reader = Reader()
    consumer = life.broker.subscribe("dead", reader, OpenCredit())
    while life.broker.queues["dead"].pending_count:
        life.turn()
    if reader.slots:
        assert life.broker.acknowledge_through(consumer, reader.slots[-1].sequence, transaction)
    life.broker.close_consumer(consumer)
    for k in range(count):
        life.broker.send(message(life, f"{k} "), transaction=transaction)


def bodies(life: Life) -> list[str]:
    slots = life.broker.queues["dead"].pending.in_order()
    return [slot.message.body.rstrip(b"\0").decode() for slot in slots]


def crashed(life: Life) -> Life:
    life.disk.process_crash()
    return Life(life.disk)


def test_a_large_commit_outlives_its_segments_and_then_lets_go_of_them() -> None:  # ACK-5
    life = Life(SimDisk(Random(1)))
    waiter = Waiter()
    for k in range(20):
        life.send("dead", b"old %d" % k)
    transaction = life.broker.begin("session")
    fill(life, transaction, MANY)
    life.broker.commit(transaction, waiter)
    while not waiter.ended:
        life.turn()
    expected = [f"{k} " for k in range(MANY)]
    life = crashed(life)
    assert bodies(life) == expected
    life.flow(30)
    life = crashed(life)
    assert bodies(life) == expected
    emptying = life.broker.begin("session")
    fill(life, emptying, 0)
    life.broker.commit(emptying, waiter)
    while len(waiter.ended) < 2:
        life.turn()
    assert life.flow(30) > 0
    assert len(life.disk.files) <= FILES_AT_MOST
    assert bodies(crashed(life)) == []


def test_a_prepared_branch_outlives_every_segment_and_its_end_frees_them() -> None:  # ACK-5
    life = Life(SimDisk(Random(2)))
    life.send("dead", b"old")
    fill(life, life.broker.xa_start(b"x"), MANY)
    life.broker.xa_end(b"x")
    waiter = Waiter()
    life.broker.xa_prepare(b"x", waiter)
    while not waiter.ended:
        life.turn()
    for _ in range(2):
        life.flow(10)
        life = crashed(life)
        assert life.broker.xa_recover() == [b"x"]
        assert bodies(life) == []
        assert life.broker.queues["dead"].delivering_count == 1
    life.broker.xa_commit(b"x", False, waiter)
    while len(waiter.ended) < 2:
        life.turn()
    life = crashed(life)
    assert bodies(life) == [f"{k} " for k in range(MANY)]
    emptying = life.broker.begin("session")
    fill(life, emptying, 0)
    life.broker.commit(emptying, waiter)
    while len(waiter.ended) < 3:
        life.turn()
    life.flow(30)
    assert len(life.disk.files) <= FILES_AT_MOST


def test_a_rolled_back_branch_leaves_nothing_on_the_disk() -> None:  # ACK-5
    life = Life(SimDisk(Random(3)))
    life.send("dead", b"old")
    fill(life, life.broker.xa_start(b"x"), MANY)
    life.broker.xa_end(b"x")
    waiter = Waiter()
    life.broker.xa_prepare(b"x", waiter)
    while not waiter.ended:
        life.turn()
    life = crashed(life)
    life.broker.xa_rollback(b"x")
    for _ in range(20):
        life.turn()
    life = crashed(life)
    assert bodies(life) == ["old"]
    life.flow(30)
    assert len(life.disk.files) <= FILES_AT_MOST
    assert bodies(crashed(life)) == ["old"]


def test_an_id_is_known_after_fifty_segments_that_it_does_not_keep() -> None:
    life = Life(SimDisk(Random(4)))
    assert life.broker.send(message(life, "a", b"1")) == ROUTED
    reader = Reader()
    consumer = life.broker.subscribe("dead", reader, OpenCredit())
    life.turn()
    life.broker.acknowledge(consumer, reader.slots[0].sequence)
    assert life.flow(50) <= FILES_AT_MOST
    life = crashed(life)
    assert life.broker.send(message(life, "a", b"1")) == DUPLICATE
