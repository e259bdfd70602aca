"""Leases in the engine: made once, readable until acknowledged, given back in order, the same after a restart."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.broker import EngineBroker
from delosmq.engine.leases.lease import (
    FENCED,
    FOREIGN_INCARNATION,
    GROUP_BUSY,
    LEASE_LOST,
    ROWS_PER_SLICE,
    Lease,
    LeaseError,
    LeaseGroup,
    LeaseWaiter,
)
from delosmq.engine.leases.lease_collector import RUNS_PER_LEASE
from delosmq.engine.leases.rows import LeaseSlots, unpack_sequences
from delosmq.engine.log.log import Batch
from delosmq.engine.log.ports import StoreEvents
from delosmq.engine.log.records import LEASE, STORED
from delosmq.engine.queues.consumer import ConsumerOptions
from delosmq.engine.queues.credit import MessageCredit, OpenCredit
from delosmq.engine.routing.send_result import BLOCKED
from delosmq.model.declared.lease_life import HEARTBEAT_MS, LIVE_WINDOW_MS
from delosmq.model.errors import BrokerError, MisuseError, NotFoundError, StorageError
from delosmq.model.ids import Position, Sequence, WallMs
from delosmq.model.message import MULTICAST, Message
from delosmq.model.settings import BrokerSettings, JournalSettings, QueueSettings
from delosmq.storage.journal import open_journal
from tests.engine.support import Bench, Collector, CountingRandom, ManualClock, RecordingStore, anycast

MANY = 1 << 30


class Waiter(LeaseWaiter):
    def __init__(self) -> None:
        self.told = 0

    def on_messages(self) -> None:
        self.told += 1


class Reader:
    """A run that reads queue ``q`` as group ``g``."""

    def __init__(self, bench: Bench, run: str = "run", incarnation: str | None = None, queue: str = "q") -> None:
        self.bench = bench
        self.group: LeaseGroup = bench.broker.lease_groups.open(
            "g", queue=queue, topic="", run=run, incarnation=incarnation
        )
        self.epoch = self.group.epoch

    def next(
        self, after: int, *, max_rows: int = MANY, max_bytes: int = MANY, until: int | None = None
    ) -> Lease | None:
        """The next lease, stepped until it is there or nothing is."""
        for _ in range(1000):
            lease = self.bench.broker.leases.request(
                "g", after=after, max_rows=max_rows, max_bytes=max_bytes, epoch=self.epoch, until=until
            )
            if lease is not None or not (self.group.collecting):
                self.bench.run()
                return lease
            self.bench.run()
        raise AssertionError("the lease is never complete")

    def take(self, after: int, **limits: int) -> str:
        lease = self.next(after, **limits)
        return "" if lease is None else words(lease)

    def ack(self, number: int) -> int:
        acked = self.bench.broker.leases.acknowledge("g", number, self.epoch)
        self.bench.run()
        return acked


def words(lease: Lease) -> str:
    return " ".join(slot.message.body.decode() for slot in lease.slots)


def bench_with(bodies: str = "", *, ring_size: int | None = None, durable: bool = True) -> Bench:
    bench = Bench(queues=(anycast("q", ring_size=ring_size),))
    bench.send("q", bodies, durable=durable)
    return bench


def condition_of(failed: pytest.ExceptionInfo[LeaseError]) -> str:
    return failed.value.condition


# -- making -------------------------------------------------------------------------------------------------------


def test_a_lease_takes_messages_in_the_order_of_the_queue():
    bench = bench_with("a b c")
    bench.send("q", "high", priority=9)
    lease = Reader(bench).next(0)
    assert lease is not None
    assert (lease.number, words(lease)) == (1, "high a b c")


def test_the_next_lease_is_given_again_unchanged_until_it_is_acknowledged():
    bench = bench_with("a b")
    reader = Reader(bench)
    first = reader.next(0)
    bench.send("q", "c")
    assert reader.next(0) is first
    assert reader.take(1) == "c"


def test_a_lease_ends_at_max_rows():
    reader = Reader(bench_with("a b c d e"))
    assert [reader.take(k, max_rows=2) for k in range(3)] == ["a b", "c d", "e"]


def test_a_lease_ends_with_the_message_that_reaches_max_bytes():
    reader = Reader(bench_with("aaaa bbbb cccc"))
    assert reader.take(0, max_bytes=5) == "aaaa bbbb"


def test_one_message_larger_than_max_bytes_makes_a_lease():
    reader = Reader(bench_with("aaaa bbbb"))
    assert reader.take(0, max_bytes=1) == "aaaa"


def test_the_size_of_a_lease_is_that_of_the_encoded_messages():
    lease = Reader(bench_with("aaaa bb")).next(0)
    assert lease is not None
    assert lease.rows.size_bytes == 6


def test_until_takes_nothing_newer():
    bench = bench_with("a b")
    newest = bench.broker.queues["q"].newest_sequence
    bench.send("q", "c")
    reader = Reader(bench)
    assert reader.take(0, until=newest) == "a b"
    assert reader.next(1, until=newest) is None


def test_a_large_lease_is_collected_in_slices_and_is_whole():
    count = 2 * ROWS_PER_SLICE + 1
    bench = bench_with(" ".join(str(i) for i in range(count)))
    reader = Reader(bench)
    step = bench.broker.leases.request("g", after=0, max_rows=MANY, max_bytes=MANY, epoch=1, until=None)
    assert step is None
    assert len(reader.group.building) == ROWS_PER_SLICE
    lease = reader.next(0)
    assert lease is not None
    assert words(lease) == " ".join(str(i) for i in range(count))


def test_what_a_reader_left_half_collected_is_the_start_of_its_next_lease():
    bench = bench_with(" ".join(str(i) for i in range(ROWS_PER_SLICE + 2)))
    reader = Reader(bench)
    bench.broker.leases.request("g", after=0, max_rows=MANY, max_bytes=MANY, epoch=1, until=None)
    bench.run()
    again = Reader(bench)
    assert again.take(0).startswith("0 1 2 ")
    assert reader.group.building == []


def test_an_empty_queue_gives_no_lease_and_tells_the_waiter_when_a_message_comes():
    bench = bench_with()
    reader = Reader(bench)
    waiter = Waiter()
    assert reader.next(0) is None
    bench.broker.leases.wait("g", waiter)
    bench.run()
    assert waiter.told == 0
    bench.send("q", "a")
    bench.run()
    assert waiter.told == 1
    assert reader.take(0) == "a"


def test_a_cancelled_wait_is_told_nothing():
    bench = bench_with()
    Reader(bench)
    waiter = Waiter()
    bench.broker.leases.wait("g", waiter)
    bench.broker.leases.cancel_wait("g", waiter)
    bench.broker.leases.cancel_wait("g", waiter)
    bench.send("q", "a")
    bench.run()
    assert waiter.told == 0


def test_leased_messages_count_as_in_delivery():
    bench = bench_with("a b c")
    reader = Reader(bench)
    reader.take(0, max_rows=2)
    queue = bench.broker.queues["q"]
    assert (queue.message_count, queue.delivering.count, queue.pending.count) == (3, 2, 1)
    assert reader.group.leased_count == 2


def test_leased_messages_are_outside_the_ring():
    bench = bench_with("a b", ring_size=2)
    reader = Reader(bench)
    assert reader.take(0) == "a b"
    bench.send("q", "c d e")
    assert bench.pending("q") == "d e"
    assert words(bench.broker.leases.find("g").leases[1]) == "a b"


def test_a_queue_that_would_not_survive_a_restart_can_not_be_leased():
    bench = Bench(queues=(anycast("q", durable=False),))
    with pytest.raises(MisuseError, match="DMQ2409"):
        Reader(bench)


# -- reading ------------------------------------------------------------------------------------------------------


def test_rows_are_read_again_and_again_without_a_trace():
    bench = bench_with("a b c d")
    Reader(bench).take(0)
    held = bench.broker.leases
    for _ in range(3):
        rows = held.rows("g", 1, 1, 3)
        assert [slot.message.body for slot in rows] == [b"b", b"c"]
        assert [slot.delivery_count for slot in rows] == [1, 1]
    assert [slot.message.body for slot in held.rows("g", 1, 3, 99)] == [b"d"]


def test_rows_of_an_acknowledged_lease_are_lost():
    bench = bench_with("a")
    reader = Reader(bench)
    reader.take(0)
    reader.ack(1)
    with pytest.raises(LeaseError) as failed:
        bench.broker.leases.rows("g", 1, 0, 1)
    assert condition_of(failed) == LEASE_LOST


def test_describe_lists_what_can_still_be_read_whatever_is_asked_for():
    bench = bench_with("a b c")
    reader = Reader(bench)
    for k in range(3):
        reader.take(k, max_rows=1)
    described = bench.broker.leases.describe("g", 0, 1 << 62)
    assert [(lease.number, len(lease.slots)) for lease in described] == [(3, 1)]


def test_a_lease_knows_its_lowest_sequence_and_oldest_message():
    bench = bench_with("a")
    before = bench.clock.now_ms
    bench.clock.now_ms += 1000
    bench.send("q", "b", priority=9)
    lease = Reader(bench).next(0)
    assert lease is not None
    assert (lease.first_sequence - 1, lease.last_sequence) == (lease.rows.lowest_sequence, lease.rows.lowest_sequence)
    assert lease.rows.oldest_ms == before


# -- acknowledging ------------------------------------------------------------------------------------------------


def test_acknowledging_is_cumulative_and_idempotent():
    bench = bench_with("a b c")
    reader = Reader(bench)
    group = reader.group
    bench.send("q", "d")
    reader.take(0, max_rows=1)
    # Leases are made one after the other only by acknowledging; two open ones come from a reader that looks ahead.
    reader.take(1, max_rows=1)
    assert group.acked == 1
    assert [reader.ack(k) for k in (2, 2, 1, 0)] == [2, 2, 2, 2]
    queue = bench.broker.queues["q"]
    assert (queue.counters.acknowledged, queue.message_count) == (2, 2)


def test_asking_for_the_next_lease_acknowledges_the_ones_before():
    bench = bench_with("a b")
    reader = Reader(bench)
    reader.take(0, max_rows=1)
    assert reader.take(1) == "b"
    assert bench.broker.queues["q"].counters.acknowledged == 1


def test_a_lease_that_was_never_made_can_not_be_acknowledged():
    bench = bench_with("a")
    reader = Reader(bench)
    reader.take(0)
    for call in (lambda: reader.ack(2), lambda: reader.next(2)):
        with pytest.raises(LeaseError) as failed:
            call()
        assert condition_of(failed) == FOREIGN_INCARNATION
    assert words(bench.broker.leases.find("g").leases[1]) == "a"


def test_a_reader_older_than_what_is_acknowledged_gets_no_later_lease_instead():
    bench = bench_with("a b c")
    reader = Reader(bench)
    reader.take(0, max_rows=1)
    reader.take(1, max_rows=1)
    reader.ack(2)
    with pytest.raises(LeaseError) as failed:
        reader.next(0)
    assert condition_of(failed) == LEASE_LOST
    assert bench.pending("q") == "c"


def test_a_large_acknowledgement_is_worked_off_in_slices():
    bench = bench_with(" ".join(str(i) for i in range(2 * ROWS_PER_SLICE + 1)))
    reader = Reader(bench)
    reader.next(0)
    bench.broker.leases.acknowledge("g", 1, reader.epoch)
    queue = bench.broker.queues["q"]
    assert queue.counters.acknowledged == 0
    bench.broker.tick()
    assert queue.counters.acknowledged == ROWS_PER_SLICE
    bench.run()
    assert (queue.counters.acknowledged, queue.message_count) == (2 * ROWS_PER_SLICE + 1, 0)
    assert bench.broker.used_bytes == 0


# -- opening ------------------------------------------------------------------------------------------------------


def test_a_new_epoch_fences_the_older_one():
    bench = bench_with("a")
    old = Reader(bench)
    new = Reader(bench, incarnation=old.group.incarnation)
    for call in (lambda: old.next(0), lambda: old.ack(0)):
        with pytest.raises(LeaseError) as failed:
            call()
        assert condition_of(failed) == FENCED
    assert new.take(0) == "a"


def test_whoever_waits_under_an_older_epoch_is_told_that_it_is_over():
    bench = bench_with()
    old = Reader(bench)
    waiter = Waiter()
    bench.broker.leases.wait("g", waiter)
    Reader(bench, incarnation=old.group.incarnation)
    assert waiter.told == 1


def test_a_second_run_is_refused_while_the_first_is_alive():
    bench = bench_with("a")
    Reader(bench, "one")
    bench.clock.now_ms += LIVE_WINDOW_MS - 1
    with pytest.raises(LeaseError, match="heard of 59999 ms ago") as failed:
        Reader(bench, "two")
    assert condition_of(failed) == GROUP_BUSY


def test_a_run_whose_queue_is_empty_keeps_its_group_though_some_of_its_heartbeats_are_lost():
    bench = bench_with()
    reader = Reader(bench, "one")
    for _ in range(3):
        bench.clock.now_ms += 3 * HEARTBEAT_MS
        with pytest.raises(LeaseError) as failed:
            Reader(bench, "two")
        assert condition_of(failed) == GROUP_BUSY
        bench.broker.leases.touch("g", reader.epoch)


def test_the_refusal_says_how_long_a_run_in_its_first_batch_keeps_its_group():
    bench = bench_with("a")
    Reader(bench, "one").take(0)
    bench.clock.now_ms += LIVE_WINDOW_MS - 1500
    with pytest.raises(LeaseError, match="free in 2 s") as failed:
        Reader(bench, "two")
    assert condition_of(failed) == GROUP_BUSY


@pytest.mark.parametrize("call", ["rows", "describe"])
def test_a_run_that_reads_its_first_lease_is_alive(call: str):
    bench = bench_with("a")
    Reader(bench, "one").take(0)
    for _ in range(3):
        bench.clock.now_ms += LIVE_WINDOW_MS - 1
        if call == "rows":
            bench.broker.leases.rows("g", 1, 0, 1, 1)
        else:
            bench.broker.leases.describe("g", 0, 1, 1)
    with pytest.raises(LeaseError) as failed:
        Reader(bench, "two")
    assert condition_of(failed) == GROUP_BUSY


def test_a_group_that_leased_nothing_yet_is_taken_over_once_its_run_is_silent():
    bench = bench_with("a")
    Reader(bench, "one")
    bench.clock.now_ms += LIVE_WINDOW_MS
    assert Reader(bench, "two").epoch == 2


def test_a_group_without_acknowledgements_is_taken_over_once_its_run_is_silent():
    bench = bench_with("a")
    first = Reader(bench, "one")
    first.take(0)
    bench.clock.now_ms += LIVE_WINDOW_MS
    second = Reader(bench, "two")
    assert second.group.incarnation == first.group.incarnation
    assert (second.epoch, second.take(0)) == (first.epoch + 1, "a")


def test_the_same_run_may_open_again_at_once():
    bench = bench_with("a")
    Reader(bench, "one")
    assert Reader(bench, "one").epoch == 2


def test_a_group_with_acknowledgements_needs_its_checkpoint():
    bench = bench_with("a")
    reader = Reader(bench)
    reader.take(0)
    reader.ack(1)
    bench.clock.now_ms += LIVE_WINDOW_MS
    with pytest.raises(LeaseError, match="checkpoint was deleted") as failed:
        Reader(bench, "two")
    assert condition_of(failed) == FOREIGN_INCARNATION


def test_the_checkpoint_of_another_life_is_foreign():
    bench = bench_with("a")
    Reader(bench)
    with pytest.raises(LeaseError) as failed:
        Reader(bench, incarnation="other")
    assert condition_of(failed) == FOREIGN_INCARNATION


def test_the_checkpoint_of_a_group_that_is_gone_is_lost():
    with pytest.raises(LeaseError) as failed:
        Reader(bench_with("a"), incarnation="gone")
    assert condition_of(failed) == LEASE_LOST


def test_one_group_reads_one_queue():
    bench = Bench(queues=(anycast("q"), anycast("other")))
    Reader(bench)
    with pytest.raises(LeaseError, match="reads another queue than 'other'") as failed:
        Reader(bench, queue="other")
    assert condition_of(failed) == FOREIGN_INCARNATION


def test_a_queue_that_is_not_there_can_not_be_leased():
    with pytest.raises(NotFoundError):
        Reader(bench_with(), queue="nothing")


def test_a_topic_is_read_through_a_durable_subscription_named_like_the_group():
    bench = Bench(queues=(QueueSettings("other", "news", MULTICAST),))
    broker = bench.broker
    broker.lease_groups.open("g", queue="", topic="news", run="r", incarnation=None)
    bench.send("news", "a")
    lease = broker.leases.request("g", after=0, max_rows=9, max_bytes=MANY, epoch=1, until=None)
    assert lease is not None
    assert words(lease) == "a"
    assert broker.queues["g"].settings.durable
    assert broker.lease_groups.open("g", queue="", topic="news", run="r", incarnation=None).epoch == 2


@pytest.mark.parametrize("why", ["DMQ2410", "DMQ2405", "DMQ2401"])
def test_a_group_that_is_refused_leaves_no_subscription_to_its_topic(why: str):
    broker = Bench(queues=(anycast("q"),), settings={"news": {"default_non_destructive": why == "DMQ2410"}}).broker
    if why == "DMQ2401":
        broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None)
    with pytest.raises(BrokerError, match=why):
        broker.lease_groups.open(
            "g", queue="", topic="news", run="r", incarnation="of another life" if why == "DMQ2405" else None
        )
    assert list(broker.queues) == ["q"]


# -- ending -------------------------------------------------------------------------------------------------------


def test_release_gives_what_is_not_acknowledged_back_in_order():
    bench = bench_with("a b c d e")
    reader = Reader(bench)
    reader.take(0, max_rows=2)
    reader.take(1, max_rows=2)
    assert bench.broker.leases.release("g") == 2
    assert bench.pending("q") == "c d e"
    assert bench.broker.queues["q"].delivering.count == 0
    slots = bench.broker.queues["q"].pending.in_order()
    assert [slot.delivery_count for slot in slots] == [1, 1, 0]
    assert bench.broker.queues["q"].holders == []


def test_release_with_an_acknowledgement_still_in_work_returns_nothing_of_it():
    bench = bench_with("a b c")
    reader = Reader(bench)
    reader.take(0, max_rows=2)
    bench.broker.leases.acknowledge("g", 1, reader.epoch)
    assert bench.broker.leases.release("g") == 0
    bench.run()
    assert bench.pending("q") == "c"
    assert bench.broker.queues["q"].counters.acknowledged == 2


def test_a_large_release_is_worked_off_in_slices_and_out_of_order_nothing_is_handed_out():
    count = 2 * ROWS_PER_SLICE + 1
    bodies = " ".join(str(i) for i in range(count))
    bench = bench_with(bodies)
    Reader(bench).next(0)
    _, port = bench.consume("q")
    queue = bench.broker.queues["q"]
    assert bench.broker.leases.release("g") == count
    assert (queue.pending.count, queue.delivering.count) == (ROWS_PER_SLICE, ROWS_PER_SLICE + 1)
    other = bench.broker.lease_groups.open("other", queue="q", topic="", run="r", incarnation=None)
    bench.broker.leases.request("other", after=0, max_rows=9, max_bytes=MANY, epoch=other.epoch, until=None)
    bench.broker.tick()
    assert (queue.pending.count, port.bodies, other.building) == (2 * ROWS_PER_SLICE, "", [])
    bench.run()
    assert (port.bodies, queue.suspensions, bench.broker.leases.settler.releasing) == (bodies, 0, [])


def test_what_a_release_has_not_returned_is_back_after_a_restart():
    bodies = " ".join(str(i) for i in range(ROWS_PER_SLICE + 1))
    bench = bench_with(bodies)
    Reader(bench).next(0)
    bench.broker.leases.release("g")
    for again in (bench.restart(), restart_from_state(bench)):
        assert again.broker.leases.groups == {}
        assert again.pending("q") == bodies


def test_a_queue_deleted_while_a_release_returns_to_it_keeps_nothing():
    bench = bench_with(" ".join(str(i) for i in range(2 * ROWS_PER_SLICE)))
    Reader(bench).next(0)
    bench.broker.leases.release("g")
    bench.broker.resources.delete_queue("q")
    bench.run()
    assert bench.broker.used_bytes == 0
    assert bench.store.released == 2 * ROWS_PER_SLICE


def subscribed_group() -> Bench:
    """Group ``g`` on topic ``news``, with a lease of one message and another one waiting."""
    bench = Bench(queues=(QueueSettings("other", "news", MULTICAST),))
    bench.broker.lease_groups.open("g", queue="", topic="news", run="r", incarnation=None)
    bench.send("news", "a b")
    bench.broker.leases.request("g", after=0, max_rows=1, max_bytes=MANY, epoch=1, until=None)
    return bench


@pytest.mark.parametrize("restarted", ["no", "records", "state"])
def test_a_group_that_ends_takes_the_subscription_made_for_it_along(restarted: str):
    bench = subscribed_group()
    if restarted == "records":
        bench = bench.restart()
    elif restarted == "state":
        bench = restart_from_state(bench)
    assert bench.broker.lease_groups.release("g") == 1
    bench.run()
    assert "g" not in bench.broker.queues
    assert bench.pending("other") == "a b"
    assert "g" not in bench.restart().broker.queues


def test_an_overdue_group_takes_its_subscription_along():
    bench = subscribed_group()
    bench.clock.now_ms += BrokerSettings().lease_retention_ms + 1
    assert bench.broker.lease_groups.end_overdue() == ["g"]
    assert "g" not in bench.broker.queues


def test_a_subscription_that_was_there_before_the_group_or_that_others_read_stays():
    bench = Bench(queues=(QueueSettings("g", "news", MULTICAST),))
    bench.broker.lease_groups.open("g", queue="", topic="news", run="r", incarnation=None)
    bench.broker.lease_groups.release("g")
    assert "g" in bench.broker.queues
    shared = subscribed_group()
    shared.broker.consumers.subscribe("news", Collector(), OpenCredit(), queue_name="g")
    shared.broker.lease_groups.release("g")
    assert "g" in shared.broker.queues


def test_a_lease_is_made_without_another_look_at_its_rows():
    bench = bench_with("a b c")
    reader = Reader(bench)
    reader.take(0)
    rows = reader.group.leases[1].rows
    assert (rows.runs, unpack_sequences(rows.packed())) == (1, [slot.sequence for slot in rows.slots])


def test_release_keeps_what_was_half_collected():
    bench = bench_with(" ".join(str(i) for i in range(ROWS_PER_SLICE + 1)))
    Reader(bench)
    bench.broker.leases.request("g", after=0, max_rows=MANY, max_bytes=MANY, epoch=1, until=None)
    assert bench.broker.leases.release("g") == ROWS_PER_SLICE
    assert bench.pending("q") == " ".join(str(i) for i in range(ROWS_PER_SLICE + 1))


def test_what_no_longer_fits_a_ring_at_release_is_the_oldest():
    bench = bench_with("a b", ring_size=2)
    Reader(bench).take(0)
    bench.send("q", "c")
    bench.broker.leases.release("g")
    assert bench.pending("q") == "b c"


def test_a_released_group_is_lost_to_its_reader_and_its_waiter_hears_of_it():
    bench = bench_with()
    reader = Reader(bench)
    waiter = Waiter()
    bench.broker.leases.wait("g", waiter)
    bench.broker.leases.release("g")
    assert waiter.told == 1
    with pytest.raises(LeaseError) as failed:
        reader.next(0)
    assert condition_of(failed) == LEASE_LOST


def test_deleting_the_queue_makes_its_leases_lost():
    bench = bench_with("a")
    reader = Reader(bench)
    reader.take(0)
    bench.broker.resources.delete_queue("q")
    with pytest.raises(LeaseError) as failed:
        bench.broker.leases.rows("g", 1, 0, 1)
    assert condition_of(failed) == LEASE_LOST
    bench.run()
    assert bench.broker.used_bytes == 0


def test_a_group_nobody_asks_for_ends_after_its_retention():
    bench = bench_with("a b")
    Reader(bench).take(0)
    bench.clock.now_ms += BrokerSettings().lease_retention_ms
    assert bench.broker.lease_groups.end_overdue() == []
    bench.clock.now_ms += 1
    assert bench.broker.lease_groups.end_overdue() == ["g"]
    assert bench.pending("q") == "a b"


def test_opening_and_ending_are_events():
    class Heard(EngineEvents):
        def __init__(self) -> None:
            self.heard: list[tuple[str, int]] = []

        def lease_group_opened(self, group: str, epoch: int) -> None:
            self.heard.append((f"opened {group}", epoch))

        def lease_group_ended(self, group: str, returned: int) -> None:
            self.heard.append((f"ended {group}", returned))

    events = Heard()
    bench = Bench(queues=(anycast("q"),), events=events)
    bench.send("q", "a b")
    Reader(bench).take(0)
    bench.broker.leases.release("g")
    assert events.heard == [("opened g", 1), ("ended g", 2)]


# -- restart ------------------------------------------------------------------------------------------------------


def reopened(bench: Bench, old: Reader) -> Reader:
    return Reader(bench.restart(), incarnation=old.group.incarnation)


def test_a_lease_is_the_same_after_a_restart():
    bench = bench_with("a b")
    bench.send("q", "high", priority=9)
    reader = Reader(bench)
    before = reader.next(0)
    bench.send("q", "c")
    again = reopened(bench, reader)
    lease = again.next(0)
    assert lease is not None
    assert before is not None
    assert (words(lease), lease.rows.size_bytes) == ("high a b", before.rows.size_bytes)
    assert [slot.delivery_count for slot in lease.slots] == [1, 1, 1]
    assert again.bench.pending("q") == "c"
    assert again.bench.broker.queues["q"].delivering.count == 3
    assert again.epoch == 2


def test_a_leased_message_that_was_not_durable_survives_with_its_lease():
    bench = bench_with("a b c", durable=False)
    reader = Reader(bench)
    assert reader.take(0, max_rows=2) == "a b"
    again = reopened(bench, reader)
    assert again.take(0) == "a b"
    assert again.bench.pending("q") == ""  # the third one was never stored
    again.ack(1)
    assert reopened(again.bench, again).take(1) == ""


def test_a_message_of_two_queues_leased_from_both_is_stored_once_and_kept_for_both():
    queues = (QueueSettings("q", "news", MULTICAST), QueueSettings("p", "news", MULTICAST))
    bench = Bench(queues=queues)
    bench.send("news", "a", durable=False)
    broker = bench.broker
    for queue in ("q", "p"):
        broker.lease_groups.open(queue, queue=queue, topic="", run="r", incarnation=None)
        broker.leases.request(queue, after=0, max_rows=9, max_bytes=MANY, epoch=1, until=None)
    broker.leases.acknowledge("q", 1, 1)
    bench.run()
    again = bench.restart()
    again.run()
    assert [len(again.broker.leases.find(name).leases) for name in ("q", "p")] == [0, 1]
    assert words(again.broker.leases.find("p").leases[1]) == "a"
    assert bench.store.released == 0
    broker.leases.acknowledge("p", 1, 1)
    bench.run()
    assert bench.store.released == 1


def test_what_was_acknowledged_does_not_come_back():
    bench = bench_with("a b c")
    reader = Reader(bench)
    reader.take(0, max_rows=2)
    bench.broker.leases.acknowledge("g", 1, reader.epoch)  # recorded, but no slice of it worked off
    again = reopened(bench, reader)
    again.bench.run()
    queue = again.bench.broker.queues["q"]
    assert (again.group.acked, queue.delivering.count, again.bench.pending("q")) == (1, 0, "c")
    assert again.take(1) == "c"
    assert again.group.newest == 2


def test_what_was_half_collected_is_back_in_the_queue_after_a_restart():
    bodies = " ".join(str(i) for i in range(ROWS_PER_SLICE + 1))
    bench = bench_with(bodies)
    reader = Reader(bench)
    bench.broker.leases.request("g", after=0, max_rows=MANY, max_bytes=MANY, epoch=1, until=None)
    assert reopened(bench, reader).bench.pending("q") == bodies


def test_released_is_released_after_a_restart():
    bench = bench_with("a b")
    Reader(bench).take(0)
    bench.broker.leases.release("g")
    again = bench.restart()
    assert again.broker.leases.groups == {}
    assert again.pending("q") == "a b"
    assert [slot.delivery_count for slot in again.broker.queues["q"].pending.in_order()] == [1, 1]


def test_the_time_a_broker_was_down_counts_against_no_group():
    bench = bench_with("a")
    reader = Reader(bench, "one")
    reader.take(0)
    bench.clock.now_ms += BrokerSettings().lease_retention_ms + 1
    again = bench.restart()
    assert again.broker.lease_groups.end_overdue() == []
    with pytest.raises(LeaseError) as failed:
        Reader(again, "two")
    assert condition_of(failed) == GROUP_BUSY


class StateStore(RecordingStore):
    """Hands out a state block in place of the records before it, as a recycled segment does."""

    def __init__(self, batches: list[tuple[int, list[bytes], list[bytes]]], state: bytes, position: int) -> None:
        super().__init__(batches)
        self.taken = state
        self.taken_at = position

    def recover(self, replay):  # type: ignore[no-untyped-def]
        replay.replay_state(self.taken_at, self.taken)
        return super().recover(replay)


def restart_from_state(bench: Bench) -> Bench:
    store = StateStore(list(bench.store.batches), bench.broker.state.state(), bench.broker.log.position)
    again = Bench(queues=bench.settings.queues, store=store)
    return again


def test_a_state_block_holds_groups_leases_and_acknowledgements():
    bench = bench_with("a b c d")
    reader = Reader(bench)
    reader.take(0, max_rows=2)
    reader.take(1, max_rows=1)
    again = restart_from_state(bench)
    again.run()
    resumed = Reader(again, incarnation=reader.group.incarnation)
    assert (resumed.group.acked, resumed.group.newest, resumed.epoch) == (1, 2, 2)
    assert resumed.take(1) == "c"
    assert again.pending("q") == "d"
    assert again.broker.queues["q"].message_count == 2


@pytest.mark.parametrize("restarted", ["", "records", "state"])
def test_a_reader_of_a_group_that_ended_is_fenced_in_its_next_life(restarted: str):
    bench = bench_with("a b")
    Reader(bench).take(0)
    incarnation = bench.broker.leases.find("g").incarnation
    zombie = Reader(bench, incarnation=incarnation)
    bench.broker.lease_groups.release("g")
    bench.run()
    if restarted:
        bench = bench.restart() if restarted == "records" else restart_from_state(bench)
    reader = Reader(bench)
    assert reader.take(0) == "a b"
    leases = bench.broker.leases
    for _ in range(2):
        for epoch in range(1, zombie.epoch + 1):
            with pytest.raises(LeaseError) as fenced:
                leases.acknowledge("g", 1, epoch)
            assert condition_of(fenced) == FENCED
        bench = restart_from_state(bench.restart())
        leases = bench.broker.leases
    assert leases.find("g").acked == 0


class LostRows(EngineEvents):
    def __init__(self) -> None:
        self.told: list[tuple[str, int, int, int]] = []

    def lease_rows_lost(self, group: str, lease: int, lost: int, of: int) -> None:
        self.told.append((group, lease, lost, of))


def without(bench: Bench, bodies: str) -> tuple[Bench, LostRows]:
    """A start on what is left when a damaged file held these messages."""
    lost = LostRows()
    gone = [body.encode() for body in bodies.split()]
    batches = [batch for batch in bench.store.batches if not any(body in gone for body in batch[2])]
    return Bench(queues=bench.settings.queues, store=RecordingStore(batches), events=lost), lost


def test_rows_of_a_lease_that_a_damaged_file_took_are_told():
    bench = bench_with("a b c d")
    reader = Reader(bench)
    reader.take(0, max_rows=1)
    reader.take(1, max_rows=2)
    again, lost = without(bench, "a b")
    assert lost.told == [("g", 2, 1, 2)]
    resumed = Reader(again, incarnation=reader.group.incarnation)
    assert resumed.take(1) == "c"
    assert resumed.take(2) == "d"


def test_a_lease_that_is_lost_as_a_whole_is_not_followed_by_another_one_in_silence():
    bench = bench_with("a b")
    reader = Reader(bench)
    reader.take(0, max_rows=1)
    again, lost = without(bench, "a")
    assert lost.told == [("g", 1, 1, 1)]
    resumed = Reader(again, incarnation=reader.group.incarnation)
    with pytest.raises(LeaseError, match="DMQ2407") as failed:
        resumed.next(0)
    assert condition_of(failed) == LEASE_LOST
    assert resumed.take(1) == "b"


def test_what_was_acknowledged_is_not_told_as_lost():
    bench = bench_with("a b")
    reader = Reader(bench)
    reader.take(0)
    reader.ack(1)
    assert without(bench, "")[1].told == []


# -- on disk ------------------------------------------------------------------------------------------------------


class Following(StoreEvents):
    def __init__(self, broker: EngineBroker) -> None:
        self.broker = broker

    def on_synced(self, position: Position) -> None:
        self.broker.log.synced = position

    def on_space(self, low: bool) -> None:
        self.broker.set_storage_low(low)

    def on_full(self, full: bool) -> None:
        self.broker.set_storage_full(full)

    def on_failure(self, error: Exception) -> None:
        raise error


class OnDisk(Bench):
    """A bench on a real journal whose segments are so small that every test rolls several."""

    def __init__(self, directory: Path) -> None:
        self.clock = ManualClock()
        self.settings = BrokerSettings(queues=(anycast("q"),))
        self.directory = directory
        self.journal = open_journal(
            directory, JournalSettings(file_size_bytes=64 * 1024, spare_files=1), node_id=bytes(16), sync_process=False
        )
        self.broker = EngineBroker(
            self.settings, self.journal, clock=self.clock, random=CountingRandom(), events=EngineEvents()
        )
        self.journal.attach(Following(self.broker), self.broker.state)
        self.broker.start()

    def send(self, address: str, bodies: str, *, durable: bool = True, **named: object) -> list[int]:
        """Waits for the next journal file as a client would, when the background lags behind."""
        outcomes = []
        for body in bodies.split():
            while (outcome := self.broker.producers.send(self.message(address, body, durable=durable))) == BLOCKED:
                self.journal.wait_synced(self.broker.log.position, 60.0)
                self.journal.on_readable()
            outcomes.append(outcome)
        return outcomes

    def run(self) -> None:
        while self.broker.storage_low:
            self.journal.wait_synced(self.broker.log.position, 60.0)
            self.journal.on_readable()
        super().run()

    def stopped(self) -> None:
        self.journal.wait_synced(self.broker.log.position, 60.0)
        self.journal.close(60.0)

    def restart(self) -> "OnDisk":
        self.stopped()
        return OnDisk(self.directory)


def test_leases_survive_restarts_on_a_journal_that_rolls_and_recycles(tmp_path: Path):
    bench = OnDisk(tmp_path)
    reader = Reader(bench)
    incarnation = reader.group.incarnation
    seen: list[str] = []
    for turn in range(12):
        sent = " ".join(f"{turn}.{i}.".ljust(400, "x") for i in range(60))
        bench.send("q", sent, durable=turn % 2 == 0)
        lease = reader.next(turn)
        assert lease is not None
        bench = bench.restart()
        bench.run()
        reader = Reader(bench, incarnation=incarnation)
        again = reader.next(turn)
        assert again is not None
        assert (again.number, words(again)) == (turn + 1, words(lease)) == (turn + 1, sent)
        assert bench.broker.queues["q"].message_count == 60
        seen += words(again).split()
    reader.ack(12)
    bench = bench.restart()
    bench.run()
    assert bench.broker.queues["q"].message_count == 0
    assert len(seen) == len(set(seen)) == 720
    bench.stopped()


# -- records ------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 1 << 62), unique=True))
def test_packed_sequences_come_back_in_order(sequences: list[int]):
    assert unpack_sequences(rows_of(sequences).packed()) == sequences


def rows_of(sequences: Iterable[int]) -> LeaseSlots:
    rows = LeaseSlots()
    for sequence in sequences:
        rows.add(slot_of(sequence))
    return rows


def slot_of(sequence: int) -> Slot:
    message = Message("q", "stomp/12", b"", b"", timestamp_ms=WallMs(0))
    message.sequence = Sequence(sequence)
    return Slot(message, True)


def test_a_lease_of_a_queue_that_shares_its_broker_has_a_small_record():
    rows = rows_of(range(1, 2 * RUNS_PER_LEASE, 2))
    assert rows.runs == RUNS_PER_LEASE
    assert len(rows.packed()) < 1024


def test_a_lease_ends_when_its_record_would_grow_too_large():
    bench = Bench(queues=(anycast("q"), anycast("p")))
    for _ in range(RUNS_PER_LEASE + 1):
        bench.send("q", "x")
        bench.send("p", "y")
    reader = Reader(bench)
    first, second = reader.next(0), reader.next(1)
    assert first is not None
    assert second is not None
    assert (len(first.slots), len(second.slots)) == (RUNS_PER_LEASE, 1)


class FullStore(RecordingStore):
    """Takes nothing of what ``refuses`` names by the kind of its record."""

    refuses = 0

    def append(self, batch: Batch) -> None:
        if any(meta[0] == self.refuses for meta in batch.metas):
            raise StorageError("DMQ3003", "too large")
        super().append(batch)


@pytest.mark.parametrize("kind", [STORED, LEASE])
def test_a_store_that_refuses_leaves_everything_as_it_was(kind: int):
    store = FullStore()
    bench = Bench(queues=(anycast("q"),), store=store)
    bench.send("q", "a b", durable=False)
    reader = Reader(bench)
    store.refuses = kind
    for _ in range(2):
        with pytest.raises(StorageError):
            reader.next(0)
        assert reader.group.newest == 0
        assert bench.broker.queues["q"].message_count == 2
    store.refuses = 0
    assert reader.take(0) == "a b"
    again = reopened(bench, reader)
    assert again.take(0) == "a b"


def test_many_messages_that_are_not_durable_are_stored_one_by_one():
    bench = bench_with("a b c", durable=False)
    reader = Reader(bench)
    before = len(bench.store.batches)
    reader.next(0)
    made = bench.store.batches[before:]
    assert [[meta[0] for meta in metas] for _, metas, _ in made] == [[STORED], [STORED], [STORED], [LEASE]]


def test_a_lease_gets_nothing_while_a_consumer_owns_the_queue() -> None:  # EXCL-1
    bench = Bench(queues=(anycast("q"),))
    owner = bench.broker.consumers.subscribe(
        "q", Collector(), MessageCredit(1), options=ConsumerOptions(exclusive=True)
    )
    bench.send("q", "a")
    bench.run()
    bench.send("q", "b")
    reader = Reader(bench)
    assert reader.take(0) == ""
    bench.broker.consumers.close(owner)
    assert reader.take(0) == "a b"


def test_a_lease_skips_groups_that_a_consumer_owns() -> None:  # EXCL-4
    bench = Bench(queues=(anycast("q"),))
    bench.consume("q", MessageCredit(1))
    for body, group in (("a", "g"), ("b", "g"), ("c", "h")):
        message = bench.message("q", body)
        message.group_id = group
        bench.broker.producers.send(message)
        bench.run()
    assert Reader(bench).take(0) == "c"


def test_what_is_never_taken_is_not_leased() -> None:
    bench = Bench(queues=(QueueSettings("q", "q", non_destructive=True),))
    with pytest.raises(MisuseError, match="DMQ2410"):
        Reader(bench)


@pytest.mark.parametrize("set_by_ms", [400 * 86_400_000, -400 * 86_400_000])
def test_a_group_is_not_overdue_because_the_wall_clock_is_set(set_by_ms: int):
    bench = Bench(queues=(anycast("q"),))
    bench.broker.leases.open("g", bench.broker.queues["q"], "run", None)
    bench.clock.set_by_ms = set_by_ms
    assert bench.broker.leases.overdue() == []
    bench.later(BrokerSettings().lease_retention_ms + 1)
    assert bench.broker.leases.overdue() == ["g"]
