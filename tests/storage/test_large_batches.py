"""Batches that take most of a journal file: they wait for their place, and never take what removals need."""

import logging
from collections.abc import Callable
from random import Random

import pytest

from delosmq.engine.addresses.address import SpaceWaiter
from delosmq.engine.base.jobs import JobWaiter
from delosmq.engine.leases.lease import ROOM as NEEDS_ROOM
from delosmq.engine.leases.lease import Lease, LeaseWaiter
from delosmq.engine.log.batch_limits import FITS, NO_ROOM, WAITS, largest_batch_bytes, ordinary_batch_bytes
from delosmq.engine.queues.credit import OpenCredit
from delosmq.engine.routing.parts import record_room_bytes
from delosmq.engine.routing.send_result import BLOCKED, ROUTED
from delosmq.engine.transactions.staging_errors import NO_ROOM_NOW, StagingError
from delosmq.model.errors import BrokerError, LimitError, StorageError
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.message import ANY_ROUTING, Home, Message
from delosmq.model.settings import MOST_SEGMENT_BYTES, AddressFullPolicy, JournalSettings
from delosmq.security.access import AccessControl, Login
from delosmq.sessions.lease.session import LeaseRequest, LeaseSession
from delosmq.storage.journal.records import DATA_START, TRAILER_SIZE
from delosmq.storage.journal.spares import STATE_SHARE
from delosmq.storage.journal.store import JournalStore
from delosmq.storage.memory import MemoryStore
from tests.sessions.support import EVERYTHING
from tests.simulation.disk import SimDisk
from tests.simulation.syncer import StepSyncer
from tests.storage.bench import Bench
from tests.storage.on_disk import RESERVE, ready_files
from tests.storage.support import NODE, Kept, Listener, note, release, store_message
from tests.storage.test_compaction import FILE_BYTES, Life, Reader

ORDINARY = ordinary_batch_bytes(FILE_BYTES)
LARGEST = largest_batch_bytes(FILE_BYTES)
LARGEST_MESSAGE = LARGEST - record_room_bytes(JournalSettings("journal", file_size_bytes=FILE_BYTES))
ALL = frozenset({"all"})
ROOM = 200
"""What a batch takes beside a body, at most."""


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


def keeps_reserve(bench: Bench) -> bool:
    return bench.ready > 0 or bench.room >= RESERVE


def fill_half(bench: Bench) -> None:
    while bench.room > ORDINARY:
        bench.put(bytes(2000))


# -- the journal -------------------------------------------------------------------------------------------------


def test_a_file_of_the_default_size_takes_50_mib() -> None:
    assert largest_batch_bytes(JournalSettings().file_size_bytes) > 51 << 20


@pytest.mark.parametrize("size", [64 << 10, 1 << 20, 64 << 20, MOST_SEGMENT_BYTES])
def test_the_largest_batch_leaves_room_for_the_largest_state_and_lists(size: int) -> None:
    assert size - DATA_START - TRAILER_SIZE - size // STATE_SHARE - largest_batch_bytes(size) >= size // 16


def test_the_largest_batch_is_kept_and_read_again(bench: Bench) -> None:
    bench.sync()
    body = bench.disk.random.randbytes(LARGEST - ROOM)
    bench.listener.source.now = b"state of the batch in hand"
    assert bench.store.ask_large(len(body) + ROOM) == FITS
    home = bench.put(body)
    assert bench.store.read(home) == body
    bench.sync()
    bench.start()
    assert bench.kept.states == [(1, b"state of the batch in hand")]
    assert [bench.store.read(home) for home in bench.kept.homes] == [body]


def test_the_largest_batch_fits_beside_the_largest_state(bench: Bench) -> None:
    bench.sync()
    bench.listener.source.now = bytes(FILE_BYTES // 8 - 4 * ROOM)
    fill_half(bench)
    bench.sync()
    for _ in range(5):
        home = bench.put(bytes(LARGEST - ROOM))
        assert home.segment
        bench.sync()
    assert bench.listener.failures == []


def test_a_large_batch_leaves_the_reserve_in_its_segment_when_no_file_is_ready(bench: Bench) -> None:
    most = bench.room - RESERVE
    assert most > ORDINARY
    assert (bench.store.ask_large(most), bench.store.takes(most)) == (FITS, True)
    assert (bench.store.ask_large(most + 1), bench.store.takes(most + 1)) == (WAITS, False)


@pytest.mark.parametrize("spares", [0, 1])
def test_a_large_batch_waits_for_a_file_and_for_another_one_behind_it(bench: Bench, spares: int) -> None:
    bench.make_ready(spares)
    fill_half(bench)
    assert bench.ready == spares
    assert bench.store.ask_large(LARGEST) == WAITS
    assert (bench.listener.space, bench.listener.full) == ([True], [])
    bench.sync()
    assert bench.listener.space == [True, False]
    assert bench.store.ask_large(LARGEST) == FITS
    bench.put(bytes(LARGEST - ROOM))
    assert keeps_reserve(bench)
    bench.sync()
    assert bench.listener.failures == []


def test_what_was_said_to_fit_is_taken_and_leaves_the_reserve_alone(bench: Bench) -> None:
    bench.sync()
    waited = 0
    for number in range(200):
        size = bench.disk.random.randrange(ORDINARY, LARGEST - ROOM)
        before = bench.ready
        while bench.store.ask_large(size + ROOM) == WAITS:
            waited += 1
            bench.syncer.step_order()
            bench.store.on_readable()
        assert before == 0 or bench.put(bytes(size)).segment
        assert keeps_reserve(bench)
        if number % 3 == 0:
            bench.sync()
    assert waited > 20


class Anything:
    """A journal to which anything happens, and somebody who looks each time before he stores."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.disk = SimDisk(Random(seed))
        self.syncer = StepSyncer(self.disk)
        journal = JournalSettings(file_size_bytes=FILE_BYTES, spare_files=self.rng.choice([1, 2, 3]))
        self.store = JournalStore(
            self.disk, journal, node_id=NODE, syncer=self.syncer, entropy=self.disk.random.randbytes
        )
        self.listener = Listener()
        self.store.attach(self.listener, self.listener.source)
        self.position: int = self.store.recover(Kept())
        self.homes: list[Home] = []
        self.stored = 0

    def put(self, size: int) -> None:
        self.position += 1
        batch, home = store_message(self.position, bytes(size - ROOM))
        self.store.append(batch)
        assert home.segment
        self.homes.append(home)
        self.stored += 1

    def do(self) -> None:
        rng = self.rng
        store = self.store
        kind = rng.random()
        if kind < 0.25:
            size = rng.choice([ROOM, rng.randrange(ROOM, 4_000), rng.randrange(ROOM, ORDINARY)])
            if not any(self.listener.space[-1:]) or store.takes(size):
                self.put(size)
        elif kind < 0.4:
            size = rng.randrange(ORDINARY, LARGEST)
            if store.ask_large(size) == FITS:
                self.put(size)
        elif kind < 0.65:
            ended = [self.homes.pop(rng.randrange(len(self.homes))) for _ in self.homes[:5] if rng.random() < 0.5]
            self.position += 1
            store.append(release(self.position, *ended) if ended else note(self.position, bytes(rng.randrange(2_000))))
        elif kind < 0.7:
            self.listener.source.now = bytes(rng.randrange(FILE_BYTES // 8 - 300))
        elif kind < 0.74:
            self.disk.free_bytes = None if self.disk.free_bytes is not None else rng.randrange(4) * FILE_BYTES
        else:
            self.turn(lambda: rng.random() < 0.6)

    def turn(self, happens: Callable[[], bool]) -> None:
        store = self.store
        store.flush()
        for step in (self.syncer.step_sync, self.syncer.step_order, store.on_readable):
            if happens():
                step()
        if happens():
            store.tick(MonotonicNs(0))
        if happens():
            store.catch_up(store.put_off())


@pytest.mark.parametrize("seed", range(20))
def test_a_batch_for_which_there_was_room_is_never_refused(seed: int) -> None:
    journal = Anything(seed)
    for _ in range(200):
        journal.do()
    assert journal.stored > 10
    journal.disk.free_bytes = None
    for _ in range(30):
        journal.turn(lambda: True)
    assert journal.listener.failures == []
    assert journal.listener.synced[-1] == journal.position
    assert not any(journal.listener.space[-1:]), "low for ever"


def test_a_large_batch_that_was_not_asked_for_is_refused_and_has_its_place_the_next_time(bench: Bench) -> None:
    bench.make_ready(1)
    fill_half(bench)
    batch, home = store_message(bench.position + 1, bytes(LARGEST - ROOM))
    with pytest.raises(StorageError, match="DMQ3004"):
        bench.store.append(batch)
    assert (home.segment, bench.listener.space) == (0, [True])
    bench.sync()
    assert bench.put(bytes(LARGEST - ROOM)).segment


def test_small_batches_go_on_when_the_disk_has_no_room_for_a_large_one(bench: Bench) -> None:
    bench.make_ready(1)
    fill_half(bench)
    bench.disk.free_bytes = 0
    assert bench.store.ask_large(LARGEST) == WAITS, "nobody knows yet"
    bench.sync()
    assert (bench.listener.space, bench.listener.full) == ([True, False], [])
    assert bench.store.ask_large(LARGEST) == NO_ROOM
    assert bench.put(bytes(ORDINARY - ROOM)).segment
    bench.disk.free_bytes = 10 * FILE_BYTES
    bench.store.tick(MonotonicNs(0))
    bench.sync()
    assert bench.store.ask_large(LARGEST) == FITS


def test_a_journal_of_one_spare_makes_another_one_for_it() -> None:
    disk = SimDisk(Random(1))
    journal = JournalSettings(file_size_bytes=FILE_BYTES, spare_files=1)
    syncer = StepSyncer(disk)
    store = JournalStore(disk, journal, node_id=NODE, syncer=syncer)
    listener = Listener()
    store.attach(listener, listener.source)
    position: int = store.recover(Kept())
    for size in (20_000, 20_000):
        position = position + 1
        store.append(store_message(position, bytes(size))[0])
    syncer.run_all()
    store.on_readable()
    assert store.ask_large(LARGEST) == WAITS
    syncer.run_all()
    store.on_readable()
    assert store.ask_large(LARGEST) == FITS
    assert listener.space[-2:] == [True, False]


def test_other_messages_may_use_the_file_that_is_there_while_one_waits(bench: Bench) -> None:
    bench.make_ready(1)
    fill_half(bench)
    assert bench.store.ask_large(LARGEST) == WAITS
    assert bench.store.takes(ORDINARY - ROOM)
    assert bench.put(bytes(ORDINARY - ROOM)).segment, "as what a transaction writes does"
    assert bench.put(bytes(100)).segment
    bench.sync()
    assert bench.listener.space[-1] is False


def test_a_store_without_segments_has_room_for_all() -> None:
    assert MemoryStore().ask_large(1 << 40) == FITS


# -- with the engine ---------------------------------------------------------------------------------------------


class Waiter(SpaceWaiter):
    def __init__(self) -> None:
        self.woken = 0

    def on_space(self) -> None:
        self.woken += 1


class Told(JobWaiter):
    def __init__(self) -> None:
        self.ended: list[BrokerError | None] = []

    def on_ended(self, error: BrokerError | None) -> None:
        self.ended.append(error)


def large(life: Life, number: int = 0, *, address: str = "jobs", expires_at_ms: int = 0) -> Message:
    body = Random(number).randbytes(LARGEST_MESSAGE)
    return Message(
        address,
        "stomp/12",
        b"",
        body,
        durable=True,
        timestamp_ms=life.clock.wall_ms(),
        expires_at_ms=WallMs(expires_at_ms),
    )


def one_spare_left(life: Life) -> None:
    """The open segment is half full, and one file is ready: what is made next comes with the next turn."""
    life.turn(0)
    while life.room > ORDINARY or len(ready_files(life.syncer)) != 1:
        life.send("dead", bytes(1500))
        if life.broker.storage_low:
            life.turn(0)


def test_the_sender_of_a_large_message_waits_and_is_woken() -> None:
    life = Life(SimDisk(Random(1)))
    one_spare_left(life)
    waiter = Waiter()
    assert life.broker.producers.send(large(life)) == BLOCKED
    life.broker.blocked_producers.wait("jobs", waiter)
    assert life.broker.storage_low
    assert life.broker.queues["jobs"].message_count == 0
    life.turn(0)
    life.turn(0)
    assert (waiter.woken, life.broker.storage_low) == (1, False)
    assert life.broker.producers.send(large(life)) == ROUTED
    life.turn(0)
    life.disk.process_crash()
    (slot,) = Life(life.disk).broker.queues["jobs"].pending.in_order()
    assert slot.message.body == large(life).body


class InOrder(SpaceWaiter):
    def __init__(self, name: str, woken: list[str]) -> None:
        self.name = name
        self.woken = woken

    def on_space(self) -> None:
        self.woken.append(self.name)


def test_senders_of_large_messages_are_woken_first() -> None:
    # Or each time the others would use up what was made ready for them.
    life = Life(SimDisk(Random(1)))
    one_spare_left(life)
    woken: list[str] = []

    def wait(name: str, message: Message) -> InOrder:
        assert life.broker.producers.send(message) == BLOCKED
        waiter = InOrder(name, woken)
        life.broker.blocked_producers.wait(message.address, waiter, size_bytes=message.encoded_size_bytes)
        return waiter

    def small(address: str) -> Message:
        return Message(address, "stomp/12", b"", b"small", durable=True, timestamp_ms=life.clock.wall_ms())

    assert life.broker.producers.send(large(life, address="jobs")) == BLOCKED, "and whoever sent it goes away"
    wait("small to jobs", small("jobs"))
    wait("small to dead", small("dead"))
    wait("large to dead", large(life, address="dead"))
    gone = wait("gone", large(life, address="jobs"))
    wait("large to jobs", large(life, address="jobs"))
    wait("second large to dead", large(life, address="dead"))
    life.broker.blocked_producers.cancel("jobs", gone)
    life.turn(0)
    life.turn(0)
    assert woken == ["large to dead", "second large to dead", "small to dead", "large to jobs", "small to jobs"]


class SendsNext(SpaceWaiter):
    """Finds no room again, elsewhere, as it is woken."""

    def __init__(self, life: Life, waiter: SpaceWaiter) -> None:
        self.life = life
        self.waiter = waiter

    def on_space(self) -> None:
        self.life.broker.set_storage_low(True)
        message = large(self.life, address="dead")
        assert self.life.broker.producers.send(message) == BLOCKED
        self.life.broker.blocked_producers.wait("dead", self.waiter, size_bytes=message.encoded_size_bytes)


def test_a_sender_that_comes_while_others_are_woken_is_woken_as_well() -> None:
    life = Life(SimDisk(Random(1)))
    life.turn(0)
    woken: list[str] = []
    life.broker.set_storage_low(True)
    for address, waiter in (("jobs", SendsNext(life, InOrder("large", woken))), ("dead", InOrder("small", woken))):
        life.broker.blocked_producers.wait(address, waiter)
    life.broker.set_storage_low(False)
    life.broker.tick()
    assert woken == ["large", "small"]


def test_the_sender_of_a_large_message_is_told_when_the_disk_has_no_room() -> None:
    life = Life(SimDisk(Random(1)))
    one_spare_left(life)
    life.disk.free_bytes = 0
    assert life.broker.producers.send(large(life)) == BLOCKED
    life.turn(0)
    with pytest.raises(LimitError, match=r"DMQ3027.*free some space or consume"):
        life.broker.producers.send(large(life))
    assert life.broker.queues["jobs"].message_count == 0
    life.send("jobs", b"small")
    life.turn(0)
    life.disk.process_crash()
    (slot,) = Life(life.disk).broker.queues["jobs"].pending.in_order()
    assert slot.message.body == b"small"


def commit(life: Life, *numbers: int, turns: int = 20) -> Told:
    transaction = life.broker.transactions.begin("me")
    told = Told()
    for number in numbers:
        assert life.broker.transactions.send(transaction, large(life, number)) == ROUTED
    assert not life.broker.transactions.commit(transaction, told)
    for _ in range(turns):
        life.turn(20)
    return told


def prepared_part(life: Life, uuid: str) -> Told:
    part = life.broker.staging.begin("app", 0, uuid, "me")
    told = Told()
    assert life.broker.staging.add(part, large(life), ANY_ROUTING) == ROUTED
    assert not life.broker.staging.prepare(part, told)
    for _ in range(20):
        life.turn(20)
    return told


def test_a_part_waits_while_the_disk_has_no_room_for_its_row() -> None:  # PIPE-1
    life = Life(SimDisk(Random(1)))
    one_spare_left(life)
    life.disk.free_bytes = 0
    (error,) = prepared_part(life, "a").ended
    assert isinstance(error, StagingError)
    assert error.condition == NO_ROOM_NOW
    assert "most of a journal file" in str(error)
    life.disk.free_bytes = None
    life.store.tick(MonotonicNs(0))
    life.turn(0)
    assert prepared_part(life, "b").ended == [None]


def test_but_not_where_a_full_address_fails() -> None:  # PIPE-1
    life = Life(SimDisk(Random(1)), address_full_policy=AddressFullPolicy.FAIL)
    one_spare_left(life)
    life.disk.free_bytes = 0
    (error,) = prepared_part(life, "a").ended
    assert not isinstance(error, StagingError)
    assert "most of a journal file" in str(error)


def test_a_transaction_waits_for_the_place_of_each() -> None:  # ACK-5
    life = Life(SimDisk(Random(1)))
    one_spare_left(life)
    told = commit(life, 1, 2, 3)
    assert told.ended == [None]
    life.disk.process_crash()
    slots = Life(life.disk).broker.queues["jobs"].pending.in_order()
    assert [slot.message.body for slot in slots] == [large(life, number).body for number in (1, 2, 3)]


def test_a_transaction_fails_as_a_whole_when_the_disk_has_no_room() -> None:  # ACK-5
    life = Life(SimDisk(Random(1)))
    one_spare_left(life)
    life.disk.free_bytes = 0
    (error,) = commit(life, 1, 2).ended
    assert isinstance(error, BrokerError)
    assert "DMQ2661" in str(error)
    assert "most of a journal file" in str(error), "the sender is told why"
    assert life.broker.queues["jobs"].message_count == 0
    life.disk.process_crash()
    assert Life(life.disk).broker.queues["jobs"].message_count == 0


def sent_large(life: Life, expires_at_ms: int = 0) -> None:
    life.turn(0)
    while life.broker.producers.send(large(life, 1, expires_at_ms=expires_at_ms)) == BLOCKED:
        life.turn(0)
    life.turn(0)


def assert_is_dead_letter(life: Life) -> None:
    for _ in range(40):
        life.turn(1_000)
    assert life.broker.queues["jobs"].message_count == 0
    life.disk.process_crash()
    again = Life(life.disk)
    assert again.broker.queues["jobs"].message_count == 0
    assert again.broker.queues["dead"].pending.in_order()[-1].message.body == large(life, 1).body


def test_a_dead_letter_waits_for_the_place_of_its_copy() -> None:  # ACK-4
    life = Life(SimDisk(Random(1)), dead_letter_address="dead", max_delivery_attempts=1)
    sent_large(life)
    one_spare_left(life)
    before = life.broker.queues["dead"].message_count
    reader = Reader()
    consumer = life.broker.consumers.subscribe("jobs", reader, OpenCredit())
    life.broker.tick()
    life.broker.consumers.reject(consumer, reader.slots[0].sequence)
    assert (life.broker.queues["dead"].message_count, life.broker.storage_low) == (before, True)
    assert_is_dead_letter(life)


def test_a_message_that_expires_waits_for_the_place_of_its_copy() -> None:
    life = Life(SimDisk(Random(1)), expiry_address="dead")
    sent_large(life, expires_at_ms=life.clock.wall_ms() + 50)
    one_spare_left(life)
    before = life.broker.queues["dead"].message_count
    life.clock.now_ms += 40_000
    life.broker.tick()
    assert (life.broker.queues["dead"].message_count, life.broker.storage_low) == (before, True)
    assert_is_dead_letter(life)


def test_compaction_moves_a_large_message() -> None:
    life = Life(SimDisk(Random(1)), compact_min_files=2, compact_percentage=95)
    life.turn(0)
    life.send("jobs", bytes(2000))
    assert life.broker.producers.send(large(life, address="dead")) == ROUTED
    life.turn()
    (slot,) = life.broker.queues["dead"].pending.in_order()
    home: Home | None = slot.message.home
    assert home is not None
    life.flow(12)
    for _ in range(20):
        life.turn(10_000)
    moved = slot.message.home
    assert moved is not None
    assert moved.segment > home.segment
    assert home.segment not in life.segments
    life.disk.process_crash()
    (again,) = Life(life.disk).broker.queues["dead"].pending.in_order()
    assert again.message.body == slot.message.body


# -- leases ------------------------------------------------------------------------------------------------------


class Poll(LeaseWaiter):
    def __init__(self) -> None:
        self.told = 0

    def on_messages(self) -> None:
        self.told += 1


class LeaseReader:
    """A run that reads the queue ``jobs``."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.group = life.broker.lease_groups.open("g", queue="jobs", topic="", run="run", incarnation=None)

    def next(self, after: int = 0) -> Lease | None:
        return self.life.broker.leases.request(
            "g", after=after, max_rows=10, max_bytes=1 << 30, epoch=self.group.epoch, until=None
        )


def not_durable(life: Life, size: int) -> None:
    message = Message("jobs", "stomp/12", b"", bytes(size), durable=False, timestamp_ms=life.clock.wall_ms())
    assert life.broker.producers.send(message) == ROUTED


def test_a_lease_waits_for_the_place_of_a_message_that_is_stored_with_it() -> None:
    life = Life(SimDisk(Random(1)))
    reader = LeaseReader(life)
    one_spare_left(life)
    not_durable(life, LARGEST_MESSAGE)
    assert reader.next() is None
    assert (reader.group.waits_for == NEEDS_ROOM, life.broker.storage_low) == (True, True)
    session = LeaseSession(life.broker, AccessControl({}, {}, (EVERYTHING,), cache_key=b"k"), Login("me", ALL))
    step = session.request("g", LeaseRequest(after=0, max_rows=1, max_bytes=1, epoch=reader.group.epoch, until=1 << 40))
    assert (step.lease, step.collecting) == (None, True), "or a reader that wants what is there now would go away"
    poll = Poll()
    life.broker.leases.wait("g", poll)
    life.broker.tick()
    assert poll.told == 0, "there is nothing to ask for yet"
    life.turn(0)
    life.turn(0)
    assert poll.told == 1
    lease = reader.next()
    assert lease is not None
    life.turn(0)
    life.disk.process_crash()
    assert Life(life.disk).broker.queues["jobs"].message_count == 1


@pytest.mark.parametrize("free_bytes", [None, 0])
def test_a_lease_waits_with_what_it_has_and_ends_there_on_a_full_disk(free_bytes: int | None) -> None:
    life = Life(SimDisk(Random(1)))
    reader = LeaseReader(life)
    one_spare_left(life)
    life.disk.free_bytes = free_bytes
    life.send("jobs", b"small")
    not_durable(life, LARGEST_MESSAGE)
    assert reader.next() is None
    assert len(reader.group.building) == 1
    life.turn(0)
    life.turn(0)
    lease = reader.next()
    assert lease is not None
    assert len(lease.slots) == (2 if free_bytes is None else 1)


def test_a_lease_is_refused_when_the_disk_has_no_room_for_its_first_message() -> None:
    life = Life(SimDisk(Random(1)))
    reader = LeaseReader(life)
    one_spare_left(life)
    life.disk.free_bytes = 0
    not_durable(life, LARGEST_MESSAGE)
    assert reader.next() is None, "nobody knows yet"
    life.turn(0)
    with pytest.raises(LimitError, match="DMQ3027"):
        reader.next()
    assert life.broker.queues["jobs"].pending.count == 1
    assert not reader.group.building
    life.disk.free_bytes = None
    life.store.tick(MonotonicNs(0))
    life.turn(0)
    assert reader.next() is not None


def test_a_lease_of_small_messages_leaves_the_reserve_alone() -> None:
    life = Life(SimDisk(Random(1)))
    reader = LeaseReader(life)
    life.turn(0)
    life.disk.free_bytes = 0
    while not life.broker.storage_low:
        life.send("dead", bytes(1500))
        life.store.flush()
    for _ in range(40):
        not_durable(life, 3000)
    leased = 0
    while (lease := reader.next(reader.group.newest)) is not None:
        assert life.room >= RESERVE - 3 * ROOM
        leased += len(lease.slots)
    assert reader.group.waits_for == NEEDS_ROOM
    life.turn(0)
    assert life.broker.storage_full
    lease = reader.next(reader.group.newest)
    assert lease is not None, "what it has"
    leased += len(lease.slots)
    with pytest.raises(LimitError, match="DMQ2685"):
        reader.next(reader.group.newest)
    assert 0 < leased < 40
    assert life.broker.queues["jobs"].pending.count == 40 - leased
