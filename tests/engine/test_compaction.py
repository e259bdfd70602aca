"""Moving what lives in a segment: found wherever it is, whole, in slices; a store that refuses changes nothing."""

from collections.abc import Generator

import pytest

from delosmq.engine.base.jobs import Jobs, PhasedJob
from delosmq.engine.base.slots import Slot
from delosmq.engine.compaction.compactor import MESSAGES_PER_SLICE, Compactor, LivePlace, Restoration, compaction
from delosmq.engine.compaction.live_messages import LiveMessages
from delosmq.engine.log.log import Batch
from delosmq.engine.log.records import COUNTED, REMOVED, STORED, encode_stored
from delosmq.engine.queues.credit import OpenCredit
from delosmq.engine.queues.queue import Queue
from delosmq.engine.recovery.stored_messages import StoredMessages
from delosmq.model.errors import TMSUCCESS, TMSUSPEND, StorageError
from delosmq.model.ids import WallMs
from delosmq.model.message import MULTICAST, Home, Message
from delosmq.model.settings import QueueSettings
from tests.engine.support import Bench, Collector, RecordingStore, anycast, stood_on

OLD = 1
NEW = 2
FILE_BYTES = 1024 * 1024
NEWS = (QueueSettings("news.a", "news", MULTICAST), QueueSettings("news.b", "news", MULTICAST))


class SegmentStore(RecordingStore):
    """Says into which segment messages go, and refuses them when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.segment = OLD
        self.refusing = False
        self.moved: list[int] = []
        self.victim = 0
        self.asked = 0

    def append(self, batch: Batch) -> None:
        if self.refusing:
            raise StorageError("DMQ3004", "no room")
        assert all(any(home is target for target in batch.targets) for home in batch.released)
        super().append(batch)
        for _, home in batch.stored:
            home.segment = self.segment
        if batch.stored and self.segment == NEW:
            self.moved.append(len(batch.stored))

    def compaction_victim(self) -> int:
        self.asked += 1
        return self.victim


class Moving:
    """A bench whose messages so far lie in the old segment, and the compaction of it."""

    def __init__(self, *queues: QueueSettings, settings: dict[str, dict[str, object]] | None = None) -> None:
        self.store = SegmentStore()
        self.bench = Bench(queues=queues, store=self.store, settings=settings)
        self.broker = self.bench.broker
        self.restoring = Restoration(
            self.broker.log, self.store, self.broker.transactions.open, file_size_bytes=FILE_BYTES
        )
        self.jobs = Jobs(self.bench.clock, self.broker.timers)
        self.before = 0
        self.places: list[LivePlace] = [LiveMessages(self.broker.queues, self.restoring)]

    def begin(self) -> PhasedJob:
        self.store.segment = NEW
        return PhasedJob(self.jobs, compaction(OLD, self.places, self.restoring))

    def move(self) -> None:
        job = self.begin()
        while not job.step():
            pass

    def queue(self, name: str) -> Queue:
        return self.broker.queues[name]

    def slots(self, name: str) -> list[Slot]:
        queue = self.queue(name)
        held = [slot for consumer in queue.holders for slot in reversed(consumer.held_newest_first())]
        return queue.pending.in_order() + held

    def homes(self, name: str) -> list[int]:
        return [slot.message.home.segment for slot in self.slots(name) if slot.message.home is not None]

    def remember(self) -> None:
        """The moment before the old segment is freed."""
        self.before = len(self.store.batches)

    def after_crash(self) -> dict[str, list[tuple[int, bytes, int]]]:
        """What a restart finds when what was remembered is gone, but for bindings."""
        kept = [(at, metas, bodies) for at, metas, bodies in self.store.batches[: self.before] if is_binding(metas)]
        self.store.batches[: self.before] = kept
        again = self.bench.restart().broker
        return {
            name: [(s.sequence, s.message.head + s.message.body, s.delivery_count) for s in q.pending.in_order()]
            for name, q in again.queues.items()
        }


def is_binding(metas: list[bytes]) -> bool:
    return all(meta[0] not in {STORED, REMOVED, COUNTED} for meta in metas)


def test_pending_messages_move_and_keep_their_order_priority_and_counts() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "a b c")
    moving.bench.send("jobs", "urgent", priority=9)
    consumer, port = moving.bench.consume("jobs")
    moving.bench.run()
    moving.broker.consumers.reject(consumer, port.slots[1].sequence)
    moving.broker.consumers.close(consumer, {slot.sequence for slot in port.slots})
    moving.remember()
    moving.move()
    assert moving.homes("jobs") == [NEW] * 4
    live = [(s.sequence, s.message.body, s.delivery_count) for s in moving.slots("jobs")]
    assert [count for _, _, count in live].count(0) == 3
    assert moving.after_crash()["jobs"] == live


def test_the_delivery_under_way_is_not_recorded() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "a b")
    consumer, port = moving.bench.consume("jobs")
    moving.bench.run()
    moving.broker.consumers.reject(consumer, port.slots[0].sequence)
    moving.bench.run()
    assert [slot.delivery_count for slot in moving.slots("jobs")] == [1, 2]
    moving.remember()
    moving.move()
    assert moving.homes("jobs") == [NEW, NEW]
    assert [slot.delivery_count for slot in moving.slots("jobs")] == [1, 2]
    assert [(body, count) for _, body, count in moving.after_crash()["jobs"]] == [(b"a", 1), (b"b", 0)]


def test_the_delivery_under_way_is_recorded_where_it_was() -> None:
    moving = Moving(anycast("jobs"), settings={"jobs": {"persist_delivery_count_before_delivery": True}})
    moving.bench.send("jobs", "a b")
    consumer, port = moving.bench.consume("jobs")
    moving.bench.run()
    moving.broker.consumers.reject(consumer, port.slots[0].sequence)
    moving.bench.run()
    moving.remember()
    moving.move()
    assert moving.homes("jobs") == [NEW, NEW]
    assert [(body, count) for _, body, count in moving.after_crash()["jobs"]] == [(b"a", 2), (b"b", 1)]


@pytest.mark.parametrize("recorded_before", [False, True])
def test_the_delivery_to_a_lease_is_never_recorded_as_its_record_counts_it_again(recorded_before: bool) -> None:
    moving = Moving(anycast("jobs"), settings={"jobs": {"persist_delivery_count_before_delivery": recorded_before}})
    moving.bench.send("jobs", "a b")
    epoch = moving.broker.lease_groups.open("g", queue="jobs", topic="", run="r", incarnation=None).epoch
    moving.broker.leases.request("g", after=0, max_rows=9, max_bytes=9, epoch=epoch, until=None)
    moving.move()
    assert moving.homes("jobs") == [NEW, NEW]
    lease = moving.bench.restart().broker.leases.groups["g"].leases[1]
    assert [slot.delivery_count for slot in lease.slots] == [1, 1]


def test_what_an_open_transaction_acknowledges_moves_and_ends_with_its_commit() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "m " * 300 + "last")
    consumer, port = moving.bench.consume("jobs")
    moving.bench.run()
    transaction = moving.broker.transactions.begin("session")
    assert moving.broker.consumers.acknowledge_through(consumer, port.slots[-2].sequence, transaction)
    moving.remember()
    moving.move()
    assert [slot.message.home.segment for slot in port.slots if slot.message.home] == [NEW] * 301
    assert transaction.segments == {}
    assert len(moving.after_crash()["jobs"]) == 301
    assert not moving.broker.transactions.commit(transaction)
    moving.bench.run()
    assert moving.bench.restart().pending("jobs") == "last"


@pytest.mark.parametrize("suspended", [True, False])
def test_so_does_what_a_branch_acknowledges_that_nobody_works_in(suspended: bool) -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "a")
    consumer, port = moving.bench.consume("jobs")
    moving.bench.run()
    transaction = moving.broker.branches.start(b"x")
    moving.broker.consumers.acknowledge(consumer, port.slots[0].sequence, transaction)
    moving.broker.branches.end(b"x", TMSUSPEND if suspended else TMSUCCESS)
    moving.move()
    assert [slot.message.home.segment for slot in port.slots if slot.message.home] == [NEW]


def test_what_a_transaction_acknowledges_stays_while_that_is_recorded() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "m " * 900)
    consumer, port = moving.bench.consume("jobs")
    while len(port.slots) < 900:
        moving.broker.tick()
    transaction = moving.broker.transactions.begin("session")
    assert moving.broker.consumers.acknowledge_through(consumer, port.slots[-1].sequence, transaction)
    assert not moving.broker.transactions.commit(transaction)
    moving.broker.tick()
    moving.move()
    assert {slot.message.home.segment for slot in port.slots if slot.message.home} == {OLD}


def test_what_its_sender_scheduled_is_not_taken_for_a_redelivery_after_the_move() -> None:
    moving = Moving(anycast("jobs"), settings={"#": {"redelivery_delay": 5_000}})
    moving.bench.send("jobs", "a", due_in_ms=3_600_000)
    moving.move()
    again = moving.bench.restart()
    again.later(3_599_000)
    assert (again.scheduled("jobs"), again.pending("jobs")) == ("a", "")
    again.later(2_000)
    assert again.pending("jobs") == "a"


def test_what_is_scheduled_moves_with_its_time_and_count() -> None:
    moving = Moving(anycast("jobs"))
    now = moving.bench.clock.now_ms
    message = Message("jobs", "stomp/12", b"", b"later", durable=True, timestamp_ms=WallMs(now), due_at_ms=now + 9_000)
    moving.broker.producers.send(message)
    moving.bench.send("jobs", "returned")
    (returned,) = moving.queue("jobs").pending.in_order()
    moving.queue("jobs").pending.remove(returned)
    returned.delivery_count = 3
    moving.queue("jobs").scheduled.add(returned, now + 5_000)
    moving.remember()
    moving.move()
    moving.after_crash()
    again = moving.bench.restart().broker.queues["jobs"]
    assert [(s.message.body, s.delivery_count, s.due_at_ms - now) for s in again.scheduled.in_order()] == [
        (b"returned", 3, 5_000),
        (b"later", 0, 9_000),
    ]


def test_what_stays_scheduled_moves_while_the_rest_becomes_due() -> None:
    moving = Moving(anycast("jobs"))
    for due_in_ms in (1_000, 9_000):
        moving.bench.send("jobs", " ".join(f"{due_in_ms}-{n}" for n in range(MESSAGES_PER_SLICE)), due_in_ms=due_in_ms)
    scheduled = moving.queue("jobs").scheduled
    job = moving.begin()
    job.step()
    moving.bench.later(1_000)
    while not job.step():
        pass
    assert scheduled.count == MESSAGES_PER_SLICE
    assert {slot.message.home.segment for slot in scheduled.in_order() if slot.message.home} == {NEW}
    moving.move()
    assert set(moving.homes("jobs")) == {NEW}


def test_a_message_of_two_queues_is_stored_once_with_both() -> None:
    moving = Moving(*NEWS)
    moving.bench.send("news", "a b")
    moving.remember()
    moving.move()
    assert moving.store.moved == [2]
    found = moving.after_crash()
    assert [body for _, body, _ in found["news.a"]] == [b"a", b"b"]
    assert found["news.a"] == found["news.b"]


def test_a_queue_that_has_acknowledged_is_not_stored_again() -> None:
    moving = Moving(*NEWS)
    moving.bench.send("news", "a")
    port = Collector()
    consumer = moving.broker.consumers.subscribe("news", port, OpenCredit(), queue_name="news.a")
    moving.bench.run()
    assert moving.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    moving.remember()
    moving.move()
    assert moving.homes("news.b") == [NEW]
    found = moving.after_crash()
    assert (found["news.a"], [body for _, body, _ in found["news.b"]]) == ([], [b"a"])


def test_a_record_stored_again_on_top_of_the_old_one_changes_nothing() -> None:
    moving = Moving(*NEWS)
    moving.bench.send("news", "a b c")
    port = Collector()
    consumer = moving.broker.consumers.subscribe("news", port, OpenCredit(), queue_name="news.a")
    moving.bench.run()
    a, b, c = [slot.sequence for slot in port.slots]
    assert moving.broker.consumers.acknowledge(consumer, a)
    assert moving.broker.consumers.reject(consumer, b)
    moving.bench.run()
    moving.move()
    assert moving.broker.consumers.acknowledge(consumer, c)
    again = moving.bench.restart().broker.queues
    assert [(s.message.body, s.delivery_count) for s in again["news.a"].pending.in_order()] == [(b"b", 1)]
    assert [s.message.body for s in again["news.b"].pending.in_order()] == [b"a", b"b", b"c"]
    one, other = again["news.a"].pending.in_order()[0], again["news.b"].pending.in_order()[1]
    assert one.message is other.message
    assert one.message.recorded_references == 2


def test_the_newest_record_and_its_queues_count() -> None:
    moving = Moving(*NEWS)
    moving.bench.send("news", "a")
    ((_, metas, bodies),) = [batch for batch in moving.store.batches if batch[1][0][0] == STORED]
    first, second = StoredMessages().decode(metas[0], Home()).queue_ids
    (slot,) = moving.slots("news.a")
    position = moving.broker.log.position + 1
    slot.message.user = "newer"
    moving.store.batches.append((position, [encode_stored(slot.message, [second])], bodies))
    again = moving.bench.restart().broker
    assert again.queues["news.a"].message_count == 0
    assert [s.message.user for s in again.queues["news.b"].pending.in_order()] == ["newer"]
    assert first == moving.queue("news.a").id


def test_a_reference_that_ends_between_two_slices_does_not_come_back() -> None:
    moving = Moving(*NEWS)
    moving.bench.send("news", "a")
    (first,), (second,) = moving.slots("news.a"), moving.slots("news.b")
    place = moving.places[0]
    moving.store.segment = NEW
    moving.restoring.begin(OLD)
    moving.restoring.found(moving.queue("news.a"), first, place)
    moving.broker.resources.delete_queue("news.a")
    moving.bench.run()
    moving.restoring.found(moving.queue("news.b"), second, place)
    moving.remember()
    moving.restoring.close()
    assert second.message.home is not None
    assert second.message.home.segment == NEW
    assert [body for _, body, _ in moving.after_crash()["news.b"]] == [b"a"]


def test_what_lives_elsewhere_stays_there() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "a")
    moving.store.segment = 7
    moving.bench.send("jobs", "b")
    moving.move()
    assert moving.homes("jobs") == [NEW, 7]


def test_what_is_told_by_mistake_does_not_move() -> None:
    moving = Moving(anycast("jobs"))
    moving.store.segment = 7
    moving.bench.send("jobs", "a")
    moving.begin()
    (slot,) = moving.slots("jobs")
    moving.restoring.found(moving.queue("jobs"), slot, moving.places[0])
    moving.restoring.close()
    assert moving.homes("jobs") == [7]


def test_a_slice_is_bounded_by_messages() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "m " * 450)
    job = moving.begin()
    assert not job.step()
    assert moving.homes("jobs").count(NEW) == MESSAGES_PER_SLICE
    while not job.step():
        pass
    assert moving.homes("jobs").count(NEW) == 450
    assert max(moving.store.moved) <= MESSAGES_PER_SLICE


def test_a_slice_is_bounded_by_bytes_and_a_batch_by_an_eighth_of_a_segment() -> None:
    moving = Moving(anycast("jobs"))
    for _ in range(5):
        moving.bench.send("jobs", "x" * (FILE_BYTES // 10))
    job = moving.begin()
    assert not job.step()
    assert moving.homes("jobs").count(NEW) < 5
    while not job.step():
        pass
    assert moving.store.moved == [1] * 5


def test_messages_that_go_and_come_while_it_works_are_all_found() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "m " * 600)
    consumer, port = moving.bench.consume("jobs")
    job = moving.begin()
    turn = 0
    while not job.step():
        moving.broker.tick()
        for slot in port.slots[turn * 40 : turn * 40 + 30]:
            moving.broker.consumers.acknowledge(consumer, slot.sequence)
        turn += 1
    assert set(moving.homes("jobs")) == {NEW}


def test_held_messages_are_found_although_the_last_one_seen_is_gone() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "m " * 450)
    consumer, _ = moving.bench.consume("jobs")
    moving.bench.run()
    job = moving.begin()
    while not job.step():
        moved = [slot for slot in moving.slots("jobs") if slot.message.home is not None]
        last = [slot for slot in moved if slot.message.home is not None and slot.message.home.segment == NEW]
        if last:
            moving.broker.consumers.acknowledge(consumer, last[-1].sequence)
    assert set(moving.homes("jobs")) == {NEW}


def test_a_store_that_refuses_changes_nothing() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "a b")
    before = [slot.message.home for slot in moving.slots("jobs")]
    job = moving.begin()
    moving.store.refusing = True
    assert job.step()
    assert job.over
    assert [slot.message.home for slot in moving.slots("jobs")] == before
    moving.store.refusing = False
    consumer, port = moving.bench.consume("jobs")
    moving.bench.run()
    assert moving.broker.consumers.acknowledge_through(consumer, port.slots[1].sequence)


def test_a_broker_that_has_stopped_moves_nothing() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "a")
    (before,) = [slot.message.home for slot in moving.slots("jobs")]
    moving.broker.log.stop()
    moving.move()
    assert [slot.message.home for slot in moving.slots("jobs")] == [before]


def test_a_body_that_is_not_in_memory_is_read() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "body")
    (slot,) = moving.slots("jobs")
    slot.message.body = b""
    moving.remember()
    moving.move()
    assert moving.store.batches[-1][2] == [b"body"]


def test_a_queue_deleted_meanwhile_does_no_harm() -> None:
    moving = Moving(anycast("jobs"), anycast("more"))
    moving.bench.send("jobs", "m " * 250)
    moving.bench.send("more", "m " * 250)
    job = moving.begin()
    job.step()
    moving.broker.resources.delete_queue("more")
    while not job.step():
        moving.broker.tick()
    assert set(moving.homes("jobs")) == {NEW}


def compactor(moving: Moving) -> tuple[Compactor, Jobs]:
    return Compactor(moving.store, moving.jobs, moving.places, moving.restoring), moving.jobs


class Walks(LivePlace):
    """A place where nothing lives, that notes each walk through it."""

    def __init__(self) -> None:
        self.segments: list[int] = []

    def restore(self, segment: int) -> Generator[None, None, None]:
        self.segments.append(segment)
        yield

    def records(self, queue: Queue, slot: Slot) -> list[bytes] | None:
        return None


class Broken(LivePlace):
    """A place whose walk raises what nothing expects."""

    def restore(self, segment: int) -> Generator[None, None, None]:
        yield
        raise AssertionError("broken")

    def records(self, queue: Queue, slot: Slot) -> list[bytes] | None:
        return None


def test_one_that_raised_does_not_keep_others_from_beginning() -> None:
    moving = Moving(anycast("jobs"))
    moving.store.victim = OLD
    walks = Walks()
    moving.places = [walks, Broken()]
    subject, jobs = compactor(moving)
    subject.look(10_000)
    with pytest.raises(AssertionError, match="broken"):
        jobs.run()
    moving.places.pop()
    subject.look(100_000)
    assert not jobs.run()
    assert walks.segments == [OLD, OLD]


def test_a_store_that_refuses_ends_a_walk_that_leaves_no_mark_in_the_queue() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "m " * 450)
    job = moving.begin()
    assert not job.step()
    assert stood_on(moving.queue("jobs"))
    moving.store.refusing = True
    assert job.step()
    assert not stood_on(moving.queue("jobs"))


def test_the_store_is_asked_once_a_second_and_not_while_a_compaction_runs() -> None:
    moving = Moving(anycast("jobs"))
    moving.bench.send("jobs", "m " * 450)
    moving.store.asked = 0
    moving.store.segment = NEW
    moving.store.victim = OLD
    subject, jobs = compactor(moving)
    for now_ms in (10_000, 10_400, 10_999):
        subject.look(now_ms)
    assert moving.store.asked == 1
    subject.look(11_000)
    assert moving.store.asked == 1
    while jobs.run():
        pass
    subject.look(12_000)
    assert moving.store.asked == 2
    assert set(moving.homes("jobs")) == {NEW}


def test_a_clock_that_was_set_back_does_not_stop_it() -> None:
    moving = Moving(anycast("jobs"))
    moving.store.asked = 0
    subject, _ = compactor(moving)
    subject.look(10_000_000)
    subject.look(5_000)
    assert moving.store.asked == 2


def test_a_segment_in_which_something_stayed_is_passed_over_for_a_minute() -> None:
    moving = Moving(anycast("jobs"))
    moving.store.victim = 5
    walks = Walks()
    moving.places = [walks]
    subject, jobs = compactor(moving)
    for second in range(10, 80):
        subject.look(second * 1000)
        jobs.run()
    assert walks.segments == [5, 5]
