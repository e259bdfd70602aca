"""A broker engine on a recording store, with clock, chance and consumers in the test's hand."""

from dataclasses import replace

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.broker import EngineBroker
from delosmq.engine.log.log import Batch, Store
from delosmq.engine.log.ports import Replay
from delosmq.engine.queues.consumer import Consumer, ConsumerPort
from delosmq.engine.queues.credit import Credit, OpenCredit
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.dropped import DroppedListener
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs, Position, WallMs
from delosmq.model.message import ANY_ROUTING, ANYCAST, Home, Message
from delosmq.model.ports import Clock, Random
from delosmq.model.settings import AddressMatch, BrokerSettings, QueueSettings
from delosmq.wire.stomp.conversion import StompConversion


class ManualClock(Clock):
    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000
        self.set_by_ms = 0
        """What somebody set the wall clock forward by."""
        self.each_look_ms = 0
        """What passes each time that somebody looks: for those who look how long they have been at it."""
        self.around_wall_ms = 0
        """What passes before each look at the wall clock and once more after it, as on a busy machine."""

    def wall_ms(self) -> WallMs:
        self.now_ms += self.around_wall_ms
        seen = WallMs(self.now_ms + self.set_by_ms)
        self.now_ms += self.around_wall_ms
        return seen

    def monotonic_ns(self) -> MonotonicNs:
        self.now_ms += self.each_look_ms
        return MonotonicNs(self.now_ms * 1_000_000)


class CountingRandom(Random):
    def __init__(self) -> None:
        self.count = 0

    def token(self, size_bytes: int) -> str:
        self.count += 1
        return f"token{self.count}"

    def fraction(self) -> float:
        self.count += 1
        return self.count * 0.25 % 1


class RecordingStore(Store):
    """Keeps every batch; a second engine can replay it."""

    def __init__(self, batches: list[tuple[int, list[bytes], list[bytes]]] | None = None) -> None:
        self.batches = batches if batches is not None else []
        self.bodies: dict[int, bytes] = {}
        self.released = 0
        self.state_bytes = 0
        """What all addresses and queues take, as asked when one more was made."""

    def takes_state(self, size_bytes: int, reserve_bytes: int = 0) -> bool:
        self.state_bytes = size_bytes
        return True

    def recover(self, replay: Replay) -> Position:
        newest = 0
        for position, metas, bodies in self.batches:
            for meta, body in zip(metas, bodies, strict=True):
                replay.replay_record(Position(position), meta, self._home(body))
            newest = position
        return Position(newest)

    def _home(self, body: bytes) -> Home:
        home = Home()
        home.segment = 1
        home.offset = len(self.bodies) + 1
        home.size_bytes = len(body)
        self.bodies[home.offset] = body
        return home

    def append(self, batch: Batch) -> None:
        self.batches.append((batch.position, batch.metas, batch.bodies))
        for index, home in batch.stored:
            stored = self._home(batch.bodies[index])
            home.segment, home.offset, home.size_bytes = 1, stored.offset, stored.size_bytes
        self.released += len(batch.released)

    def flush(self) -> None: ...

    def read(self, home: Home) -> bytes:
        return self.bodies[home.offset]


class Collector(ConsumerPort):
    """A consumer that remembers what it got; ``room`` bounds its outbox."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.room = True
        self.closed: BrokerError | None = None

    def deliver(self, slot: Slot) -> None:
        self.slots.append(slot)

    def has_room(self) -> bool:
        return self.room

    def closed_by_broker(self, reason: BrokerError) -> None:
        self.closed = reason

    @property
    def bodies(self) -> str:
        return " ".join(slot.message.body.decode() for slot in self.slots)


class Bench:
    """One engine and short words to drive it."""

    def __init__(
        self,
        *,
        queues: tuple[QueueSettings, ...] = (),
        settings: dict[str, dict[str, object]] | None = None,
        global_max: int = -1,
        size_per_user: int = BrokerSettings().max_destinations_size_per_user,
        store: RecordingStore | None = None,
        events: EngineEvents | None = None,
        core: dict[str, object] | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.store = store if store is not None else RecordingStore()
        matches = tuple(AddressMatch(match, fields) for match, fields in (settings or {}).items())
        self.settings = BrokerSettings(
            queues=queues,
            address_settings=matches,
            global_max_size_bytes=global_max,
            max_destinations_size_per_user=size_per_user,
        )
        if core:
            self.settings = replace(self.settings, **core)  # type: ignore[arg-type]
        self.conversions = Conversions({"stomp": StompConversion()})
        self.broker = EngineBroker(
            self.settings,
            self.store,
            clock=self.clock,
            random=CountingRandom(),
            events=events if events is not None else EngineEvents(),
            conversions=self.conversions,
        )
        self.broker.start()

    def message(
        self,
        address: str,
        body: str,
        *,
        durable: bool = True,
        priority: int = 4,
        due_in_ms: int = 0,
        delayed: bool = False,
        expires_in_ms: int = 0,
    ) -> Message:
        message = Message(
            address,
            "stomp/12",
            b"",
            body.encode(),
            durable=durable,
            priority=priority,
            timestamp_ms=self.clock.wall_ms(),
            due_at_ms=self.clock.wall_ms() + due_in_ms if due_in_ms else 0,
            expires_at_ms=self.clock.wall_ms() + expires_in_ms if expires_in_ms else 0,
        )
        message.delay_ms = due_in_ms if delayed else 0
        return message

    def send(
        self,
        address: str,
        bodies: str,
        *,
        durable: bool = True,
        priority: int = 4,
        routing: int = ANY_ROUTING,
        due_in_ms: int = 0,
        delayed: bool = False,
        expires_in_ms: int = 0,
    ) -> list[int]:
        """Sends each word of ``bodies`` as a message; gives the outcomes."""
        return [
            self.broker.producers.send(
                self.message(
                    address,
                    body,
                    durable=durable,
                    priority=priority,
                    due_in_ms=due_in_ms,
                    delayed=delayed,
                    expires_in_ms=expires_in_ms,
                ),
                routing=routing,
            )
            for body in bodies.split()
        ]

    def later(self, ms: int) -> None:
        """Lets time pass, and the engine do what is due."""
        self.clock.now_ms += ms
        self.run()

    def consume(
        self, queue: str, credit: Credit | None = None, *, routing: int = ANYCAST
    ) -> tuple[Consumer, Collector]:
        port = Collector()
        known = self.broker.queues.get(queue)
        elsewhere = known is not None and known.address.name != queue
        consumer = self.broker.consumers.subscribe(
            known.address.name if known is not None else queue,
            port,
            credit if credit is not None else OpenCredit(),
            queue_name=queue if elsewhere else "",
            routing=routing,
        )
        return consumer, port

    def run(self) -> None:
        """Ticks until nothing is left to do."""
        for _ in range(10_000):
            if not self.broker.tick():
                return
        raise AssertionError("the engine never comes to rest")

    def pending(self, queue: str) -> str:
        return " ".join(s.message.body.decode() for s in self.broker.queues[queue].pending.in_order())

    def scheduled(self, queue: str) -> str:
        return " ".join(s.message.body.decode() for s in self.broker.queues[queue].scheduled.in_order())

    def counts(self, queue: str) -> tuple[int, int, int]:
        """Messages, in delivery, scheduled."""
        found = self.broker.queues[queue]
        return found.message_count, found.delivering.count, found.scheduled.count

    def restart(self, position: int | None = None, *, listener: DroppedListener | None = None) -> "Bench":
        """A new engine on what the store holds, or held at ``position``."""
        again = Bench.__new__(Bench)
        again.clock = self.clock
        again.store = RecordingStore([kept for kept in self.store.batches if position is None or kept[0] <= position])
        again.settings = self.settings
        again.conversions = self.conversions
        again.broker = EngineBroker(
            self.settings,
            again.store,
            clock=self.clock,
            random=CountingRandom(),
            events=EngineEvents(),
            conversions=self.conversions,
        )
        again.broker.dropped.listener = listener
        again.broker.start()
        return again


def stood_on(queue: Queue) -> str:
    """Pending messages at which somebody who reads or searches the queue has come."""
    return " ".join(slot.message.body.decode() for slot in queue.pending.in_order() if slot.marks)


def anycast(
    name: str, *, ring_size: int | None = None, durable: bool = True, max_consumers: int | None = None
) -> QueueSettings:
    return QueueSettings(name, name, ANYCAST, durable, ring_size, max_consumers=max_consumers)
