"""Which segment a compaction empties, and that the disk stays bounded while one message lies for ever."""

import logging
from random import Random

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.broker import EngineBroker
from delosmq.engine.queues.consumer import ConsumerPort
from delosmq.engine.queues.credit import OpenCredit
from delosmq.model.errors import BrokerError
from delosmq.model.message import ANYCAST, Home, Message
from delosmq.model.settings import AddressMatch, BrokerSettings, JournalSettings, QueueSettings
from delosmq.server.ticker import GateEvents
from delosmq.sessions.outbox import Gate
from delosmq.storage.journal.segments import Ledger, Segment
from delosmq.storage.journal.store import JournalParts, JournalStore
from delosmq.storage.memory import MemoryStore
from tests.engine.support import CountingRandom, ManualClock
from tests.simulation.disk import SimDisk
from tests.simulation.syncer import StepSyncer
from tests.storage import on_disk
from tests.storage.bench import Bench
from tests.storage.on_disk import RESERVE
from tests.storage.support import NODE

FILE_BYTES = 64 * 1024
ALL = 1 << 40


def segment(number: int, *, stored: int, live: int, pins: tuple[int, ...] = ()) -> Segment:
    made = Segment(f"s{number}", number, mark=0, seed=0, size_bytes=FILE_BYTES, base=0)
    made.end = 4096 + 50_000
    made.stored, made.live = stored, live
    made.accounts = dict.fromkeys(pins, 0)
    made.sealed(0, stored)
    return made


def victim(*segments: Segment, percentage: int = 30, most_bytes: int = ALL) -> int:
    ledger = Ledger()
    for one in segments:
        ledger.add(one)
    open_segment = segment(1000, stored=10, live=10)
    ledger.add(open_segment)
    return ledger.victim(open_segment, percentage, most_bytes)


def test_the_segment_with_the_largest_dead_share_goes_first() -> None:
    assert victim(segment(1, stored=50, live=10), segment(2, stored=50, live=1), segment(3, stored=50, live=9)) == 2


def test_nothing_is_moved_while_enough_is_alive() -> None:
    segments = [segment(1, stored=50, live=40), segment(2, stored=50, live=1)]
    assert victim(*segments, percentage=30) == 0
    assert victim(*segments, percentage=50) == 2


def test_what_a_segment_keeps_from_being_free_counts_as_its_own_dead_share() -> None:
    # Half of the first is alive, but it keeps three that hold nothing.
    pinned = [segment(2, stored=50, live=0, pins=(1,)), segment(3, stored=50, live=0, pins=(2,))]
    assert victim(segment(1, stored=50, live=25), *pinned, segment(4, stored=50, live=10)) == 1


def test_a_segment_that_another_one_keeps_is_not_emptied_before_that() -> None:
    assert victim(segment(1, stored=50, live=5), segment(2, stored=50, live=1, pins=(1,))) == 1


def test_what_is_free_at_the_next_roll_anyway_does_not_count() -> None:
    free = [segment(1, stored=50, live=0), segment(2, stored=50, live=0, pins=(1,))]
    assert victim(*free, segment(3, stored=50, live=40)) == 0


def test_what_does_not_fit_is_not_asked_for() -> None:
    segments = [segment(1, stored=50, live=10), segment(2, stored=50, live=1)]
    assert victim(*segments, most_bytes=500) == 0
    assert victim(*segments, most_bytes=5000) == 2


def test_a_store_without_segments_never_wants_it() -> None:
    assert MemoryStore().compaction_victim() == 0


def test_compaction_begins_with_many_segments_only(bench: Bench) -> None:
    for _ in range(9):
        _, *others = bench.fill_segment()
        bench.release(*others)
    assert len(bench.segments) == 10
    assert bench.store.compaction_victim() == 1
    bench.restart(compact_min_files=11)
    assert (len(bench.segments), bench.store.compaction_victim()) == (10, 0)
    bench.restart(compact_min_files=10)
    assert (len(bench.segments), bench.store.compaction_victim()) == (10, 1)
    bench.restart(compact_min_files=0)
    assert bench.store.compaction_victim() == 0, "0 turns it off, as in Artemis"


def test_how_much_is_alive_is_estimated_well_whatever_the_size_of_messages(bench: Bench) -> None:
    ledger = Ledger()
    bench.start(parts=JournalParts(ledger=lambda: ledger))
    for body, notes in ((b"tiny", 0), (bytes(3000), 0), (b"tiny", 3)):
        number = bench.open_number
        while bench.open_number == number:
            bench.put(body)
            for _ in range(notes):
                bench.note(b"n" * 29)  # as much as a removal and its account
            bench.sync()
        sealed = ledger.find(number)
        assert sealed is not None
        row = 56 + 4 + len(body) + 6 + 20 + 6
        assert sealed.living_bytes == pytest.approx(sealed.stored * row, rel=0.3)


def test_compaction_names_no_segment_while_a_file_is_being_made(bench: Bench) -> None:
    for _ in range(9):
        _, *others = bench.fill_segment()
        bench.release(*others)
    assert bench.store.compaction_victim() == 1
    bench.fill()
    bench.sync_only()
    assert (bench.ready, bench.store.compaction_victim()) == (1, 0)


def test_on_a_full_disk_only_what_fits_beside_the_reserve_moves(bench: Bench) -> None:
    for _ in range(9):
        _, *others = bench.fill_segment()
        bench.release(*others)
    bench.sync()
    bench.disk.free_bytes = 0
    while not bench.listener.space:
        bench.put(bytes(3000))
        bench.sync()
    assert bench.store.compaction_victim() == 1
    while bench.room > RESERVE + 4000:
        bench.note(bytes(1000))
    assert bench.store.compaction_victim() == 0


# -- with the engine ---------------------------------------------------------------------------------------------


class Reader(ConsumerPort):
    """A subscription that takes everything."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []

    def deliver(self, slot: Slot) -> None:
        self.slots.append(slot)

    def has_room(self) -> bool:
        return True

    def closed_by_broker(self, reason: BrokerError) -> None:
        self.slots.clear()


class Life:
    """A broker on a simulated disk, with two queues."""

    def __init__(
        self,
        disk: SimDisk,
        *,
        compact_min_files: int = 10,
        compact_percentage: int = JournalSettings().compact_percentage,
        max_destinations: int = -1,
        max_destinations_size_per_user: int = -1,
        **address: object,
    ) -> None:
        self.disk = disk
        journal = JournalSettings(
            "journal",
            file_size_bytes=FILE_BYTES,
            compact_min_files=compact_min_files,
            compact_percentage=compact_percentage,
        )
        self.syncer = StepSyncer(disk)
        self.clock = ManualClock()
        self.store = JournalStore(disk, journal, node_id=NODE, syncer=self.syncer, entropy=disk.random.randbytes)
        settings = BrokerSettings(
            journal=journal,
            max_destinations=max_destinations,
            max_destinations_size_per_user=max_destinations_size_per_user,
            queues=(QueueSettings("jobs", "jobs", ANYCAST), QueueSettings("dead", "dead", ANYCAST)),
            address_settings=(AddressMatch("#", address),),
        )
        self.broker = EngineBroker(
            settings, self.store, clock=self.clock, random=CountingRandom(), events=EngineEvents()
        )
        self.store.attach(GateEvents(self.broker, Gate()), self.broker.state)
        self.store.wait_synced(self.broker.start(), 1)

    def send(self, address: str, body: bytes) -> None:
        message = Message(address, "stomp/12", b"", body, durable=True, timestamp_ms=self.clock.wall_ms())
        assert self.broker.producers.send(message)

    @property
    def open_number(self) -> int:
        return on_disk.open_header(self.disk)[1].number

    @property
    def segments(self) -> set[int]:
        """Those that count, as of the last sync."""
        return on_disk.segments(self.disk)

    @property
    def room(self) -> int:
        """What the open segment still takes."""
        self.store.flush()
        return on_disk.room(self.disk)

    def turn(self, passed_ms: int = 200) -> None:
        self.clock.now_ms += passed_ms
        self.broker.tick()
        self.store.flush()
        self.store.catch_up(self.store.put_off())
        self.syncer.run_all()
        self.store.on_readable()

    def flow(self, segments: int) -> int:
        """Sends and acknowledges until so many segments were begun; gives the most files there ever were."""
        reader = Reader()
        consumer = self.broker.consumers.subscribe("jobs", reader, OpenCredit())
        last = self.open_number + segments
        most = 0
        while self.open_number < last:
            # A little remains in delivery, so that each segment holds the end of messages of the one before.
            while len(reader.slots) > 5:
                assert self.broker.consumers.acknowledge(consumer, reader.slots.pop(0).sequence)
            self.send("jobs", bytes(2000))
            self.turn()
            most = max(most, len(self.disk.files))
        while reader.slots:
            self.broker.consumers.acknowledge(consumer, reader.slots.pop(0).sequence)
        self.turn()
        return most


def test_the_disk_stays_bounded_while_one_dead_letter_lies_and_fifty_segments_pass(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR)
    disk = SimDisk(Random(1))
    life = Life(disk)
    life.send("dead", b"letter")
    assert life.flow(50) <= 14, "ten segments, the open one, spares, and what waits for a sync"
    life.disk.process_crash()
    again = Life(disk)
    (slot,) = again.broker.queues["dead"].pending.in_order()
    assert slot.message.body == b"letter"
    assert again.broker.queues["jobs"].message_count == 0


def test_without_compaction_one_letter_keeps_everything() -> None:
    life = Life(SimDisk(Random(1)), compact_min_files=0)
    life.send("dead", b"letter")
    assert life.flow(50) > 50


def test_the_victim_is_freed_once_all_of_it_moved() -> None:
    life = Life(SimDisk(Random(1)), compact_min_files=2)
    life.send("dead", b"letter")
    (slot,) = life.broker.queues["dead"].pending.in_order()
    home: Home | None = slot.message.home
    assert home is not None
    first = home.segment
    life.flow(3)
    moved = slot.message.home
    assert moved is not None
    assert moved.segment > first
    assert first not in life.segments
    assert life.store.read(moved) == b"letter"


def test_a_disk_that_is_full_of_what_one_letter_keeps_empties_itself() -> None:
    disk = SimDisk(Random(1))
    life = Life(disk, compact_min_files=5)
    life.send("dead", b"letter")
    life.turn()
    disk.free_bytes = 8 * FILE_BYTES
    reader = Reader()
    consumer = life.broker.consumers.subscribe("jobs", reader, OpenCredit())
    # The clock stands still, so that nothing is compacted before the disk is full.
    while not life.broker.storage_low:
        life.send("jobs", bytes(2000))
        life.turn(0)
        while reader.slots:
            life.broker.consumers.acknowledge(consumer, reader.slots.pop(0).sequence)
    for _ in range(3):
        life.turn(0)
    assert life.broker.storage_low
    for _ in range(20):
        life.turn()
    assert not life.broker.storage_low
    assert len(life.segments) <= 3
    (slot,) = life.broker.queues["dead"].pending.in_order()
    assert slot.message.body == b"letter"
