"""Calls that wait for messages to lease: told of each change that may bring some, and of nothing else."""

from collections.abc import Callable

import pytest

from delosmq.engine.leases.lease import NEXT_TICK, ROWS_PER_SLICE
from delosmq.engine.queues.consumer import Consumer, ConsumerOptions
from delosmq.engine.queues.credit import MessageCredit, OpenCredit
from delosmq.engine.transactions.commit_steps import LINKED_PER_SLICE
from tests.engine.support import Bench, Collector
from tests.engine.test_leases import Reader, Waiter, bench_with

TICKS = 50


class Poll(Waiter):
    """A long poll: asks again whenever it is told, and waits on."""

    def __init__(self, reader: Reader, after: int = 0) -> None:
        super().__init__()
        self.reader = reader
        self.after = after
        self.asked = 0
        self.ask()

    def ask(self) -> None:
        """Goes on as a poll of HTTP does: in a turn of its own."""
        self.told = 0
        self.asked += 1
        leases = self.reader.bench.broker.leases
        epoch = self.reader.epoch
        lease = leases.request("g", after=self.after, max_rows=1 << 20, max_bytes=1 << 30, epoch=epoch, until=None)
        self.answer = "" if lease is None else " ".join(slot.message.body.decode() for slot in lease.slots)
        if lease is None:
            leases.wait("g", self)


def asked(poll: Poll, ticks: int = TICKS) -> int:
    """How often a poll asks in so many ticks."""
    before = poll.asked
    for _ in range(ticks):
        poll.reader.bench.broker.tick()
        if poll.told:
            poll.ask()
    return poll.asked - before


def owner_of(bench: Bench, *, exclusive: bool, credit: int) -> Consumer:
    consumer = bench.broker.consumers.subscribe(
        "q",
        Collector(),
        MessageCredit(credit) if credit else OpenCredit(),
        options=ConsumerOptions(exclusive=exclusive),
    )
    bench.run()
    return consumer


def grouped(bench: Bench, group: str, body: str) -> None:
    """Sends a message of a message group."""
    message = bench.message("q", body)
    message.group_id = group
    bench.broker.producers.send(message)


def paused(bench: Bench) -> Callable[[], object]:
    bench.send("q", "a")
    bench.broker.resources.update_queue("q", paused=True)
    return lambda: bench.broker.resources.update_queue("q", paused=False)


def owned(bench: Bench) -> Callable[[], object]:
    owner = owner_of(bench, exclusive=True, credit=1)
    bench.send("q", "held a")
    return lambda: (bench.broker.consumers.acknowledge(owner, 2), bench.broker.consumers.close(owner))


def owned_group(bench: Bench) -> Callable[[], object]:
    owner = owner_of(bench, exclusive=False, credit=1)
    grouped(bench, "one", "held")
    bench.run()
    grouped(bench, "one", "a")
    return lambda: bench.broker.consumers.close(owner)


def released(bench: Bench) -> Callable[[], object]:
    bench.send("q", " ".join("a" * (2 * ROWS_PER_SLICE)))
    bench.broker.lease_groups.open("other", queue="q", topic="", run="r", incarnation=None)
    leases = bench.broker.leases
    while leases.request("other", after=0, max_rows=1 << 20, max_bytes=1 << 30, epoch=1, until=None) is None:
        bench.run()
    return lambda: leases.release("other")


@pytest.mark.parametrize("hindrance", [paused, owned, owned_group, released])
def test_a_poll_on_a_queue_that_gives_nothing_sleeps_until_it_gives_something(
    hindrance: Callable[[Bench], Callable[[], object]],
) -> None:
    bench = bench_with()
    end = hindrance(bench)
    bench.run()
    poll = Poll(Reader(bench))
    assert asked(poll) <= 1
    assert asked(poll) == 0
    end()
    assert asked(poll) >= 1
    assert poll.answer.endswith("a")


def test_messages_for_the_owner_of_a_queue_wake_no_poll() -> None:
    bench = bench_with()
    owner_of(bench, exclusive=True, credit=1)
    poll = Poll(Reader(bench))
    for _ in range(TICKS):
        bench.send("q", "a")
        assert asked(poll, 1) == 0


def test_a_poll_looks_on_while_its_slices_are_not_over_and_not_afterwards() -> None:
    bench = bench_with(" ".join("x" * (2 * ROWS_PER_SLICE + 1)))
    reader = Reader(bench)
    poll = Poll(reader)
    assert (poll.answer, reader.group.waits_for) == ("", NEXT_TICK)
    assert asked(poll) == 2
    assert len(poll.answer.split()) == 2 * ROWS_PER_SLICE + 1


def test_a_poll_behind_a_large_commit_asks_once_for_each_slice_of_it() -> None:
    bench = bench_with()
    poll = Poll(Reader(bench))
    transaction = bench.broker.transactions.begin("session")
    for _ in range(2 * LINKED_PER_SLICE + 1):
        bench.broker.transactions.send(transaction, bench.message("q", "x"))
    bench.broker.transactions.commit(transaction)
    asks = asked(poll)
    assert asks <= 4
    assert poll.answer


def test_two_groups_on_one_queue_are_both_told() -> None:
    bench = bench_with()
    first = Poll(Reader(bench))
    other = Waiter()
    bench.broker.lease_groups.open("other", queue="q", topic="", run="r", incarnation=None)
    bench.broker.leases.wait("other", other)
    bench.send("q", "a")
    assert asked(first) == 1
    assert (first.answer, other.told) == ("a", 1)


def committing(bench: Bench, count: int) -> None:
    """Commits messages to ``q``, none of which is there yet."""
    transaction = bench.broker.transactions.begin("session")
    for _ in range(count):
        bench.broker.transactions.send(transaction, bench.message("q", "x"))
    bench.broker.transactions.commit(transaction)
    queue = bench.broker.queues["q"]
    while not queue.barrier_sequence:
        bench.broker.tick()


def test_until_the_newest_message_takes_all_of_a_commit_that_is_still_linked_in() -> None:
    bench = bench_with()
    reader = Reader(bench)
    count = 3 * LINKED_PER_SLICE
    committing(bench, count)
    queue = bench.broker.queues["q"]
    until = bench.broker.transactions.newest_sequence(queue)
    assert until >= count > queue.newest_sequence
    assert len(reader.take(0, until=until).split()) == count
    assert reader.take(1, until=until) == ""


def test_a_request_with_until_behind_a_commit_is_collecting_up_to_what_is_linked() -> None:
    bench = bench_with("a")
    reader = Reader(bench)
    assert reader.take(0) == "a"
    committing(bench, 3 * LINKED_PER_SLICE)
    queue = bench.broker.queues["q"]
    newest = bench.broker.transactions.newest_sequence(queue)
    assert queue.pending.count == 0
    for until, collecting in ((newest, True), (1, False), (newest, True)):
        lease = bench.broker.leases.request("g", after=1, max_rows=9, max_bytes=9, epoch=1, until=until)
        assert (lease, reader.group.building, reader.group.collecting) == (None, [], collecting)
    waiter = Waiter()
    bench.broker.leases.wait("g", waiter)
    bench.run()
    assert waiter.told == 1
