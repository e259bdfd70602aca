"""A whole broker without sockets: engine, journal on the simulated disk, gate and outboxes, and clients that remember.

Everything a client learned it learned through an outbox, hence through the gate: what it was told must be true after
any power cut. Beside that, `SnapshotStore` remembers the durable state at every position; a restart that ends at a
position must bring back exactly that state.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.broker import EngineBroker
from delosmq.engine.leases.lease import LeaseError
from delosmq.engine.log.log import Batch
from delosmq.engine.log.origin import ORIGINAL_QUEUE
from delosmq.engine.log.ports import Replay
from delosmq.engine.queues.consumer import Consumer, ConsumerPort
from delosmq.engine.queues.credit import MessageCredit
from delosmq.engine.routing.send_result import BLOCKED, ROUTED
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError, LimitError, StorageError
from delosmq.model.ids import Position
from delosmq.model.message import ANYCAST, MULTICAST, Message
from delosmq.model.settings import AddressMatch, BrokerSettings, JournalSettings, QueueSettings
from delosmq.server.ticker import GateEvents
from delosmq.sessions.outbox import Gate, GateWaiter, Outbox, OutboxOwner
from delosmq.sessions.stream import Stream
from delosmq.storage.journal.reserve import Reserve
from delosmq.storage.journal.segments import Ledger
from delosmq.storage.journal.spares import Spares
from delosmq.storage.journal.store import JournalParts, JournalStore
from delosmq.wire.openwire.conversion import OpenWireConversion
from delosmq.wire.stomp.conversion import StompConversion
from tests.engine.support import CountingRandom, ManualClock
from tests.simulation.disk import SimDisk
from tests.simulation.holders import Holders
from tests.simulation.syncer import StepSyncer

NODE = bytes(range(16))
JOURNAL = JournalSettings("journal", file_size_bytes=64 * 1024, spare_files=2)
SETTINGS = BrokerSettings(
    journal=JOURNAL,
    queues=(
        QueueSettings("jobs", "jobs", ANYCAST),
        QueueSettings("orders.work", "orders", MULTICAST),
        QueueSettings("orders.archive", "orders", MULTICAST),
        QueueSettings("prices", "prices", ANYCAST, ring_size=3),
        QueueSettings("DLQ", "DLQ", ANYCAST),
    ),
    address_settings=(
        AddressMatch("#", {"dead_letter_address": "DLQ", "max_delivery_attempts": 2}),
        AddressMatch("DLQ", {"dead_letter_address": "", "max_delivery_attempts": -1}),
    ),
)
QUEUES_OF = {"jobs": ("jobs",), "orders": ("orders.work", "orders.archive"), "prices": ("prices",)}
GROUP = "archive"
OUTBOX_BYTES = 10_000

Reference = tuple[int, str]
"""A message by the number in its body, in a queue. Copies in DLQ count for the queue they came from."""
Row = tuple[int, bytes, int]
Snapshot = tuple[dict[str, list[tuple[int, int, int, str]]], dict[str, object]]


class SnapshotStore(JournalStore):
    """A journal that knows which durable state each position stands for."""

    world: "World"
    snapshots: dict[int, Snapshot]
    expected: dict[int, Snapshot]
    recovered: int
    ledger: Ledger
    spares: Spares
    reserve: Reserve

    def __init__(self, *positional: Any, parts: JournalParts | None = None, **named: Any) -> None:
        made = parts or JournalParts()

        def ledger() -> Ledger:
            self.ledger = made.ledger()
            return self.ledger

        def spares(*given: Any, **others: Any) -> Spares:
            self.spares = made.spares(*given, **others)
            return self.spares

        def reserve(*given: Any, **others: Any) -> Reserve:
            self.reserve = made.reserve(*given, **others)
            return self.reserve

        super().__init__(*positional, parts=made._replace(ledger=ledger, spares=spares, reserve=reserve), **named)

    def recover(self, replay: Replay) -> Position:
        position = super().recover(replay)
        self.recovered = int(position)
        return position

    def append(self, batch: Batch) -> None:
        now = self.world.snapshot()
        if not self.snapshots:
            # The first batch of a life: the state is still what replay made of the batches before it.
            before = int(batch.position) - 1
            if before:
                self.world.check_replayed(now, before)
        self.snapshots[int(batch.position)] = now
        super().append(batch)


class WatchedEvents(GateEvents):
    """Remembers whether the disk was ever full."""

    def __init__(self, broker: EngineBroker, gate: Gate, oracle: "Oracle") -> None:
        super().__init__(broker, gate)
        self._oracle = oracle

    def on_full(self, full: bool) -> None:
        self._oracle.was_full = self._oracle.was_full or full
        super().on_full(full)


def check_same(replayed: Snapshot, live: Snapshot, position: int, counts_may_lag: bool) -> None:
    """Replay gives the live state; only counts of deliveries may lag behind, once the disk was full (decision 0027)."""
    where = f"the state replayed at {position} is not the live one"
    for name in replayed[0].keys() | live[0].keys():
        got, expected = replayed[0].get(name, []), live[0].get(name, [])
        if counts_may_lag:
            counts = {row[0]: row[2] for row in expected}
            got = [(row[0], row[1], max(row[2], counts.get(row[0], 0)), row[3]) for row in got]
        lost, new = [row for row in expected if row not in got], [row for row in got if row not in expected]
        assert (lost, new) == ([], []), f"{where}: {name} lacks {lost[:3]} and has {new[:3]} instead"
    assert replayed[1] == live[1], f"{where}: {replayed[1]} instead of {live[1]}"


def snapshot(world: "World") -> Snapshot:
    """The durable part of a broker: recorded references with their counts, and leases."""
    broker = world.broker
    holders = world.holders.of(broker)
    # A message that is not durable counts from the lease on: stored a moment before, it may come back or not.
    leased = {id(s) for group in broker.leases.groups.values() for lease in group.leases.values() for s in lease.slots}
    queues: dict[str, list[tuple[int, int, int, str]]] = {}
    for name, queue in broker.queues.items():
        if not queue.settings.durable:
            continue
        rows = [(slot, slot.delivery_count) for slot in queue.pending.in_order()]
        for where, consumer in holders:
            if where is queue:
                rows += [(slot, slot.delivery_count - 1) for slot in consumer.held_newest_first()]
        queues[name] = sorted(
            (slot.sequence, number_of(slot.message.body), count, str(slot.message.annotations))
            for slot, count in rows
            if slot.recorded and (slot.message.durable or id(slot) in leased)
        )
    leases: dict[str, object] = {
        group.name: (
            group.incarnation,
            group.epoch,
            group.acked,
            group.newest,
            {k: [slot.sequence for slot in lease.slots] for k, lease in group.leases.items()},
        )
        for group in broker.leases.groups.values()
    }
    return queues, leases


def body_of(number: int, size_bytes: int) -> bytes:
    return f"{number}:".encode() + bytes((number + at) % 251 for at in range(size_bytes))


def number_of(body: bytes) -> int:
    """The number of a message; 0 for records of events, which no client sent."""
    return 0 if body.startswith(b"{") else int(body[: body.index(b":")])


class Oracle(EngineEvents):
    """What clients were told, over all lives of the broker."""

    def __init__(self) -> None:
        self.next_number = 1
        self.was_full = False
        self.bodies: dict[int, bytes] = {}
        self.durable: set[int] = set()
        self.confirmed: set[Reference] = set()
        self.ack_issued: set[Reference] = set()
        self.ack_confirmed: set[Reference] = set()
        self.replaced: set[Reference] = set()
        self.leased: dict[int, list[Row]] = {}
        self.lease_acked = 0
        self.lease_ack_issued = 0
        self.archived: list[int] = []

    def message_replaced(self, queue: str, slot: Slot) -> None:
        self.replaced.add((number_of(slot.message.body), queue))


class Client(OutboxOwner):
    """A connection: its outbox, and what becomes known when bytes leave."""

    def __init__(self, gate: Gate) -> None:
        self.outbox = Outbox(self, gate, OUTBOX_BYTES)
        self.told: list[Callable[[], None]] = []

    def write_wanted(self) -> None:
        pass

    def tell(self, position: int, learn: Callable[[], None], stream: Stream | None = None, sequence: int = 0) -> None:
        """Runs ``learn`` when the frame has left."""
        self.told.append(learn)
        frame = b"%d\n" % (len(self.told) - 1)
        self.outbox.put(stream if stream is not None else self.outbox.replies, position, frame, sequence)  # type: ignore[arg-type]

    def write(self) -> None:
        while chunk := self.outbox.take():
            self.outbox.confirm_written()
            for line in chunk.split():
                self.told[int(line)]()


class Reader(ConsumerPort):
    """A subscription: what its client has seen and not answered."""

    def __init__(self, client: Client, queue: str) -> None:
        self.client = client
        self.queue = queue
        self.stream = Stream()
        self.seen: list[Slot] = []
        self.consumer: Consumer | None = None

    def deliver(self, slot: Slot) -> None:
        position = slot.message.position if slot.recorded else 0
        self.client.tell(position, lambda: self.seen.append(slot), self.stream, slot.sequence)

    def has_room(self) -> bool:
        return self.client.outbox.has_room()

    def closed_by_broker(self, reason: BrokerError) -> None:
        self.seen.clear()


class Answer(GateWaiter):
    def __init__(self, learn: Callable[[], None]) -> None:
        self.learn = learn

    def on_open(self) -> None:
        self.learn()


class World:
    """One life of a broker on a disk that may hold earlier lives.

    Args:
        early: the gate opens when bytes are written, not when they are synced: the canary.
    """

    def __init__(
        self,
        random: Random,
        disk: SimDisk,
        oracle: Oracle,
        *,
        kind: type[JournalStore] = JournalStore,
        expected: dict[int, Snapshot],
        early: bool = False,
        settings: BrokerSettings = SETTINGS,
        clock: ManualClock | None = None,
    ) -> None:
        self.random = random
        self.disk = disk
        self.oracle = oracle
        self.early = early
        self.clock = clock if clock is not None else ManualClock()
        self.holders = Holders()
        self.syncer = StepSyncer(disk)
        store_type = (
            type("World" + kind.__name__, (kind, SnapshotStore), {}) if kind is not JournalStore else SnapshotStore
        )
        self.store: SnapshotStore = store_type(
            disk, settings.journal, node_id=NODE, syncer=self.syncer, entropy=random.randbytes
        )
        self.broker = EngineBroker(
            settings,
            self.store,
            clock=self.clock,
            random=CountingRandom(),
            events=oracle,
            conversions=Conversions({"stomp": StompConversion(), "openwire": OpenWireConversion()}),
        )
        self.store.world = self
        self.store.snapshots = {}
        self.store.expected = expected
        self.gate = Gate()
        self.readers: list[Reader] = []
        self.store.attach(WatchedEvents(self.broker, self.gate, oracle), self.broker.state)
        position = self.broker.start()
        self.store.wait_synced(position, 1.0)
        self.gate.on_synced(position)
        self.producer = Client(self.gate)
        self.epoch = 0

    def snapshot(self) -> Snapshot:
        """The durable state as it stands."""
        return snapshot(self)

    def check_replayed(self, replayed: Snapshot, position: int) -> None:
        """The state of a broker that has just started is that of the life before, at that position."""
        check_same(replayed, self.store.expected[position], position, self.oracle.was_full)

    # -- what the loop does --------------------------------------------------------------------------------------

    def turn(self) -> None:
        """One turn of the loop: tick, flush, write."""
        self.broker.tick()
        self.holders.of(self.broker)
        self.store.flush()
        if self.early:
            self.gate.on_synced(self.broker.log.position)
        self.write()

    def write(self) -> None:
        self.producer.write()
        for reader in self.readers:
            reader.client.write()
            if reader.client.outbox.room_returned() and reader.consumer is not None:
                self.broker.consumers.credit_changed(reader.consumer)

    def rest(self) -> None:
        """Lets everything under way come to its end."""
        for _ in range(200):
            self.turn()
            self.syncer.run_all()
            self.store.on_readable()

    def rest_a_while(self) -> None:
        """A few turns with all the syncs they ask for."""
        for _ in range(3):
            self.turn()
            self.syncer.run_all()
            self.store.on_readable()
        self.write()

    # -- what clients do -----------------------------------------------------------------------------------------

    def send(self, address: str, *, durable: bool = True, size_bytes: int = 100, priority: int = 4) -> int:
        oracle = self.oracle
        number = oracle.next_number
        oracle.next_number += 1
        body = body_of(number, size_bytes)
        message = Message(
            address, "stomp/12", b"", body, durable=durable, priority=priority, timestamp_ms=self.clock.wall_ms()
        )
        outcome = self.broker.producers.send(message)
        if outcome == ROUTED:
            oracle.bodies[number] = body
            if durable:
                oracle.durable.add(number)
                queues = QUEUES_OF[address]
                self.producer.tell(
                    self.broker.log.position, lambda: oracle.confirmed.update((number, queue) for queue in queues)
                )
        else:
            assert outcome == BLOCKED
        return outcome

    def subscribe(self, queue: str, credit: int) -> Reader:
        reader = Reader(Client(self.gate), queue)
        address = self.broker.queues[queue].address.name
        reader.consumer = self.broker.consumers.subscribe(address, reader, MessageCredit(credit), queue_name=queue)
        self.readers.append(reader)
        return reader

    def leave(self, reader: Reader) -> None:
        assert reader.consumer is not None
        self.broker.consumers.close(reader.consumer, reader.client.outbox.close_stream(reader.stream))
        self.readers.remove(reader)

    def acknowledge(self, reader: Reader, index: int, *, through: bool) -> None:
        consumer = reader.consumer
        assert consumer is not None
        chosen = reader.seen[: index + 1] if through else [reader.seen[index]]
        reader.seen = reader.seen[index + 1 :] if through else reader.seen[:index] + reader.seen[index + 1 :]
        # Cumulative: all that the engine holds up to there, which the client answers for as well.
        answered = consumer.held_through(chosen[-1].sequence) if through else chosen
        references = [reference(slot, reader.queue) for slot in answered]
        self.oracle.ack_issued.update(references)
        command = self.broker.consumers.acknowledge_through if through else self.broker.consumers.acknowledge
        assert command(consumer, chosen[-1].sequence)
        reader.client.tell(
            self.broker.log.position, lambda: self.oracle.ack_confirmed.update(r for r in references if r[1] != "DLQ")
        )

    def reject(self, reader: Reader, index: int) -> None:
        assert reader.consumer is not None
        slot = reader.seen.pop(index)
        assert self.broker.consumers.reject(reader.consumer, slot.sequence)

    # -- what a lease reader does --------------------------------------------------------------------------------

    def lease(self, rows: int) -> None:
        oracle = self.oracle
        leases = self.broker.leases
        if not self.epoch:
            group = leases.groups.get(GROUP)
            incarnation = None if group is None or group.acked == 0 else group.incarnation
            self.clock.now_ms += 20_000
            self.epoch = self.broker.lease_groups.open(
                GROUP, queue="orders.archive", topic="", run="run", incarnation=incarnation
            ).epoch
        after = oracle.lease_acked + 1 if oracle.lease_acked + 1 in oracle.leased else oracle.lease_acked
        try:
            made = leases.request(GROUP, after=after, max_rows=rows, max_bytes=10**9, epoch=self.epoch, until=None)
        except LeaseError:
            # An acknowledgement whose confirmation never came may be on the disk all the same.
            assert oracle.lease_ack_issued > oracle.lease_acked
            oracle.lease_acked = leases.acknowledge(GROUP, 0, self.epoch)
            return
        except (LimitError, StorageError):
            oracle.lease_ack_issued = max(oracle.lease_ack_issued, after)  # which the disk has room for
            raise
        oracle.lease_ack_issued = max(oracle.lease_ack_issued, after)
        content: list[Row] = []
        if made is not None:
            content = [(s.sequence, s.message.body, s.delivery_count) for s in made.slots]
        self._wait(lambda: self._learn_lease(after, None if made is None else made.number, content))

    def _wait(self, learn: Callable[[], None]) -> None:
        if self.gate.wait(self.broker.log.position, Answer(learn)):
            learn()

    def _learn_lease(self, acked: int, number: int | None, rows: list[Row]) -> None:
        oracle = self.oracle
        if acked > oracle.lease_acked:
            oracle.archived += [number_of(body) for _, body, _ in oracle.leased[acked]]
            oracle.lease_acked = acked
        if number is not None:
            known = oracle.leased.setdefault(number, rows)
            assert known == rows, f"lease {number} has changed"


def reference(slot: Slot, queue: str) -> Reference:
    annotations = slot.message.annotations
    return number_of(slot.message.body), queue if annotations is None else f"dead:{annotations[ORIGINAL_QUEUE]}"
