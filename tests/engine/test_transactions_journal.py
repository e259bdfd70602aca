"""Transactions and duplicate ids on a journal: what they need stays on the disk, and not longer."""

from random import Random

import pytest

from delosmq.engine.queues.credit import OpenCredit
from delosmq.engine.routing.send_result import DUPLICATE, ROUTED
from delosmq.engine.transactions.transaction import Transaction
from delosmq.model.message import MULTICAST, Home, Message
from delosmq.model.settings import QueueSettings
from tests.engine.test_transactions import Waiter
from tests.simulation.disk import SimDisk
from tests.storage.on_disk import RESERVE, open_segment
from tests.storage.test_compaction import Life, Reader

FILES_AT_MOST = 14
MANY = 300


def message(life: Life, body: str, duplicate_id: bytes = b"", padding: int = 500) -> Message:
    return Message(
        "dead",
        "stomp/12",
        b"",
        body.encode() + bytes(padding),
        durable=True,
        timestamp_ms=life.clock.wall_ms(),
        duplicate_id=duplicate_id,
    )


def fill(life: Life, transaction: Transaction, count: int) -> None:
    """Acknowledges all that 'dead' holds, and sends new messages there."""
    reader = Reader()
    consumer = life.broker.consumers.subscribe("dead", reader, OpenCredit())
    while life.broker.queues["dead"].pending.count:
        life.turn()
    if reader.slots:
        assert life.broker.consumers.acknowledge_through(consumer, reader.slots[-1].sequence, transaction)
    life.broker.consumers.close(consumer)
    for k in range(count):
        life.broker.transactions.send(transaction, message(life, f"{k} "))


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
    transaction = life.broker.transactions.begin("session")
    fill(life, transaction, MANY)
    life.broker.transactions.commit(transaction, waiter)
    while not waiter.ended:
        life.turn()
    expected = [f"{k} " for k in range(MANY)]
    life = crashed(life)
    assert bodies(life) == expected
    life.flow(30)
    life = crashed(life)
    assert bodies(life) == expected
    emptying = life.broker.transactions.begin("session")
    fill(life, emptying, 0)
    life.broker.transactions.commit(emptying, waiter)
    while len(waiter.ended) < 2:
        life.turn()
    assert life.flow(30) > 0
    assert len(life.disk.files) <= FILES_AT_MOST
    assert bodies(crashed(life)) == []


def test_a_prepared_branch_outlives_every_segment_and_its_end_frees_them() -> None:  # ACK-5
    life = Life(SimDisk(Random(2)))
    life.send("dead", b"old")
    fill(life, life.broker.branches.start(b"x"), MANY)
    life.broker.branches.end(b"x")
    waiter = Waiter()
    life.broker.branches.prepare(b"x", waiter)
    while not waiter.ended:
        life.turn()
    for _ in range(2):
        life.flow(10)
        life = crashed(life)
        assert life.broker.branches.recover() == [b"x"]
        assert bodies(life) == []
        assert life.broker.queues["dead"].delivering.count == 1
    life.broker.branches.commit(b"x", False, waiter)
    while len(waiter.ended) < 2:
        life.turn()
    life = crashed(life)
    assert bodies(life) == [f"{k} " for k in range(MANY)]
    emptying = life.broker.transactions.begin("session")
    fill(life, emptying, 0)
    life.broker.transactions.commit(emptying, waiter)
    while len(waiter.ended) < 3:
        life.turn()
    life.flow(30)
    assert len(life.disk.files) <= FILES_AT_MOST


def test_a_rolled_back_branch_leaves_nothing_on_the_disk() -> None:  # ACK-5
    life = Life(SimDisk(Random(3)))
    life.send("dead", b"old")
    fill(life, life.broker.branches.start(b"x"), MANY)
    life.broker.branches.end(b"x")
    waiter = Waiter()
    life.broker.branches.prepare(b"x", waiter)
    while not waiter.ended:
        life.turn()
    life = crashed(life)
    life.broker.branches.rollback(b"x")
    for _ in range(20):
        life.turn()
    life = crashed(life)
    assert bodies(life) == ["old"]
    life.flow(30)
    assert len(life.disk.files) <= FILES_AT_MOST
    assert bodies(crashed(life)) == ["old"]


def test_an_id_is_known_after_fifty_segments_that_it_does_not_keep() -> None:
    life = Life(SimDisk(Random(4)))
    assert life.broker.producers.send(message(life, "a", b"1")) == ROUTED
    reader = Reader()
    consumer = life.broker.consumers.subscribe("dead", reader, OpenCredit())
    life.turn()
    life.broker.consumers.acknowledge(consumer, reader.slots[0].sequence)
    assert life.flow(50) <= FILES_AT_MOST
    life = crashed(life)
    assert life.broker.producers.send(message(life, "a", b"1")) == DUPLICATE


def test_a_commit_of_few_messages_that_no_batch_takes_goes_in_parts() -> None:  # ACK-5
    for count, size, with_ids in ((190, 0, True), (190, 100, False), (3, 20_000, False)):
        life = Life(SimDisk(Random(5)))
        transaction = life.broker.transactions.begin("session")
        for k in range(count):
            sent = message(life, f"{k} ".ljust(size), b"%036d" % k if with_ids else b"", padding=0)
            assert life.broker.transactions.send(transaction, sent) == ROUTED
        waiter = Waiter()
        if not life.broker.transactions.commit(transaction, waiter):
            while not waiter.ended:
                life.turn()
        assert waiter.ended in ([], [None])
        life.turn()
        life = crashed(life)
        assert [body.split()[0] for body in bodies(life)] == [str(k) for k in range(count)]


def test_a_commit_waits_for_the_next_file_and_leaves_the_reserve_alone() -> None:
    life = Life(SimDisk(Random(6)))
    life.turn()
    work = [life.broker.transactions.begin(f"s{number}") for number in range(30)]
    for transaction in work:
        for k in range(20):
            assert life.broker.transactions.send(transaction, message(life, f"{transaction.owner} {k} ")) == ROUTED
    waiters = [Waiter() for _ in work]
    left = []
    for transaction, waiter in zip(work, waiters, strict=True):
        if not life.broker.transactions.commit(transaction, waiter):
            left.append(waiter)
    assert left, "nobody makes files meanwhile"
    for _ in range(10):
        life.broker.tick()
    assert life.room >= RESERVE
    assert not any(waiter.ended for waiter in left)
    for _ in range(100):
        life.turn()
    assert [waiter.ended for waiter in left] == [[None]] * len(left)
    life = crashed(life)
    assert sorted(bodies(life)) == sorted(f"s{number} {k} " for number in range(30) for k in range(20))


@pytest.mark.parametrize("committed", [True, False])
def test_a_prepared_branch_keeps_no_segment(committed: bool) -> None:  # ACK-5
    life = Life(SimDisk(Random(7)))
    for k in range(30):
        life.send("dead", b"old %d" % k)
    branch = life.broker.branches.start(b"x")
    fill(life, branch, MANY)
    for k in range(MANY):
        life.broker.transactions.send(branch, message(life, f"id {k} ", b"%d" % k, padding=0))
    life.broker.branches.end(b"x")
    waiter = Waiter()
    life.broker.branches.prepare(b"x", waiter)
    while not waiter.ended:
        life.turn()
    for _ in range(3):
        # It takes seven. What they keep is worth moving once it is more than twice as much.
        assert life.flow(60) <= 32
        life = crashed(life)
        assert life.broker.branches.recover() == [b"x"]
        assert life.broker.queues["dead"].delivering.count == 30
    life.flow(60)
    if committed:
        life.broker.branches.commit(b"x", False, waiter)
        while len(waiter.ended) < 2:
            life.turn()
    else:
        life.broker.branches.rollback(b"x")
        for _ in range(20):
            life.turn()
    expected = [*(f"{k} " for k in range(MANY)), *(f"id {k} " for k in range(MANY))]
    if not committed:
        expected = [f"old {k}" for k in range(30)]
    for _ in range(3):
        assert bodies(life) == expected
        life = crashed(life)
        assert life.flow(60) <= 32
    duplicate = message(life, "again", b"1")
    assert life.broker.producers.send(duplicate) == (DUPLICATE if committed else ROUTED)


def test_messages_of_several_queues_move_with_what_a_branch_holds_of_them() -> None:  # ACK-5
    life = Life(SimDisk(Random(8)))
    for name in ("a", "b"):
        life.broker.resources.create_queue(QueueSettings(name, "news", MULTICAST, durable=True))
    life.send("news", b"one")
    reader = Reader()
    consumer = life.broker.consumers.subscribe("news", reader, OpenCredit(), queue_name="a")
    life.turn()
    branch = life.broker.branches.start(b"x")
    (slot,) = reader.slots
    assert life.broker.consumers.acknowledge(consumer, slot.sequence, branch)
    life.broker.branches.end(b"x")
    assert life.broker.branches.prepare(b"x")
    first = slot.message.home
    assert first is not None
    number = first.segment
    life.flow(30)
    assert number not in life.segments
    life = crashed(life)
    assert (life.broker.queues["a"].delivering.count, life.broker.queues["b"].pending.count) == (1, 1)
    life.broker.branches.commit(b"x", False)
    for _ in range(3):
        life.flow(30)
        life = crashed(life)
    assert (life.broker.queues["a"].message_count, life.broker.queues["b"].message_count) == (0, 1)


def test_what_ends_a_branch_is_about_the_segments_to_which_its_messages_moved() -> None:  # ACK-5
    life = Life(SimDisk(Random(9)))
    sent = message(life, "one")
    branch = life.broker.branches.start(b"x")
    life.broker.transactions.send(branch, sent)
    life.broker.branches.end(b"x")
    assert life.broker.branches.prepare(b"x")
    assert commit_after_moves(life, sent.home) != sent.home
    assert bodies(crashed(life)) == ["one"]


def test_and_to_which_its_ids_moved() -> None:
    life = Life(SimDisk(Random(9)))
    sent = message(life, "nobody gets it", b"1")
    sent.address = "nowhere"
    branch = life.broker.branches.start(b"x")
    life.broker.transactions.send(branch, sent, routing=MULTICAST)
    life.broker.branches.end(b"x")
    assert life.broker.branches.prepare(b"x")
    (note,) = branch.duplicate_ids
    assert commit_after_moves(life, note.home) != note.home


def commit_after_moves(life: Life, home: Home | None) -> Home:
    assert home is not None
    branch = life.broker.branches.prepared()[0]
    life.flow(30)
    assert home.segment not in life.segments
    moved_to = max(branch.segments)
    assert moved_to > home.segment
    life.broker.branches.commit(b"x", False)
    life.turn()
    assert moved_to in open_segment(life.disk).accounts
    return home
