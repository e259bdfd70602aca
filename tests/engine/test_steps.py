"""Work for a message: the same whatever the backlog and the number of queues, of consumers, of equal selectors.

Counted are the lines of the engine that run (of its .py files: the compiled form shows none) and, in both forms, what
it asks of clock, store, conversions, credit and ports.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType

import pytest

from delosmq.engine import broker as engine
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.broker import EngineBroker
from delosmq.engine.log.log import Batch
from delosmq.engine.queues.consumer import PLAIN, Consumer, ConsumerOptions
from delosmq.engine.queues.credit import Credit
from delosmq.engine.transactions.transaction import Transaction
from delosmq.model.conversion import Conversion, Conversions, Encoded
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.message import ANYCAST, HubMessage, Message
from delosmq.model.settings import BrokerSettings, QueueSettings
from delosmq.selectors.selector import parse_selector
from delosmq.wire.stomp.conversion import StompConversion
from tests.engine.support import Collector, CountingRandom, ManualClock, RecordingStore

pytestmark = pytest.mark.slow

FOLDER = str(Path(engine.__file__).parent)
COMPILED = not engine.__file__.endswith(".py")
CYCLES = 20


class Count:
    """Lines run and questions asked."""

    def __init__(self) -> None:
        self.lines = 0
        self.questions = 0

    def _line(self, frame: FrameType, event: str, _: object) -> object:
        if event == "line":
            self.lines += 1
        return self._line

    def _call(self, frame: FrameType, event: str, _: object) -> object:
        return self._line if frame.f_code.co_filename.startswith(FOLDER) else None

    @contextmanager
    def watch(self) -> Iterator[None]:
        self.lines = self.questions = 0
        before = sys.gettrace()
        sys.settrace(self._call)  # type: ignore[arg-type]
        try:
            yield
        finally:
            sys.settrace(before)


class CountedClock(ManualClock):
    def __init__(self, count: Count) -> None:
        super().__init__()
        self.count = count

    def wall_ms(self) -> WallMs:
        self.count.questions += 1
        return super().wall_ms()

    def monotonic_ns(self) -> MonotonicNs:
        self.count.questions += 1
        return super().monotonic_ns()


class CountedStore(RecordingStore):
    def __init__(self, count: Count) -> None:
        super().__init__()
        self.count = count

    def append(self, batch: Batch) -> None:
        self.count.questions += 1 + len(batch.metas)
        for _, home in batch.stored:
            home.segment = 1


class CountedCredit(Credit):
    """For one message in delivery."""

    def __init__(self, count: Count) -> None:
        self.count = count
        self.free = True

    def has_room(self) -> bool:
        self.count.questions += 1
        return self.free

    def taken(self, size_bytes: int) -> None:
        self.count.questions += 1
        self.free = False

    def settled(self, size_bytes: int) -> None:
        self.count.questions += 1
        self.free = True


class CountedPort(Collector):
    def __init__(self, count: Count, taken: list[tuple[Consumer, Slot]]) -> None:
        super().__init__()
        self.count = count
        self.taken = taken
        self.consumer: Consumer | None = None

    def deliver(self, slot: Slot) -> None:
        self.count.questions += 1
        assert self.consumer is not None
        self.taken.append((self.consumer, slot))

    def has_room(self) -> bool:
        self.count.questions += 1
        return True


class CountedConversion(Conversion):
    """Of STOMP; also says how many messages were decoded."""

    def __init__(self, count: Count) -> None:
        self.count = count
        self.decoded = 0
        self._stomp = StompConversion()

    def to_hub(self, message: Message) -> HubMessage:
        self.count.questions += 1
        self.decoded += 1
        return self._stomp.to_hub(message)

    def from_hub(self, hub: HubMessage, address: str) -> Encoded:
        return self._stomp.from_hub(hub, address)

    def rewritten_head(
        self, message: Message, drop: tuple[str, ...], rename: dict[str, str], replaced: tuple[str, ...]
    ) -> bytes:
        return self._stomp.rewritten_head(message, drop, rename, replaced)


class World:
    """A broker whose surroundings count what they are asked."""

    def __init__(self, *, queues: int = 1, consumers: int = 1, selector: str = "", backlog: int = 0) -> None:
        self.count = Count()
        self.names = [f"q{k}" for k in range(queues)]
        self.taken: list[tuple[Consumer, Slot]] = []
        self.conversion = CountedConversion(self.count)
        self.broker = EngineBroker(
            BrokerSettings(queues=tuple(QueueSettings(name, name, ANYCAST) for name in self.names)),
            CountedStore(self.count),
            clock=CountedClock(self.count),
            random=CountingRandom(),
            events=EngineEvents(),
            conversions=Conversions({"stomp": self.conversion}),
        )
        self.broker.start()
        for _ in range(backlog):
            self.send("q0", durable=False)
        for name in self.names:
            for _ in range(consumers):
                options = ConsumerOptions(selector=parse_selector(selector)) if selector else PLAIN
                port = CountedPort(self.count, self.taken)
                port.consumer = self.broker.consumers.subscribe(
                    name, port, CountedCredit(self.count), routing=ANYCAST, options=options
                )

    def send(self, name: str, *, durable: bool) -> None:
        self.broker.producers.send(
            Message(name, "stomp/12", b"color:red\n", b"x", durable=durable, timestamp_ms=WallMs(1_700_000_000_000))
        )

    def cycle(self, name: str, *, durable: bool) -> None:
        """Sends one message, hands out what a tick hands out, acknowledges all of that."""
        self.send(name, durable=durable)
        self.broker.tick()
        for consumer, slot in self.taken:
            self.broker.consumers.acknowledge(consumer, slot.sequence)
        self.taken.clear()

    def cost(self, *, durable: bool = False) -> tuple[int, int]:
        """Lines and questions of some cycles, each on another queue where there are several."""
        for k in range(CYCLES):
            self.cycle(self.names[-k % len(self.names)], durable=durable)
        with self.count.watch():
            for k in range(CYCLES):
                self.cycle(self.names[-k % len(self.names)], durable=durable)
        lines, questions = self.count.lines, self.count.questions
        assert questions > 0
        assert (lines == 0) is COMPILED
        return lines, questions


def test_whatever_the_backlog() -> None:
    few = World(backlog=1_000).cost()
    assert World(backlog=10_000).cost() == few
    assert World(backlog=100_000).cost() == few


@pytest.mark.parametrize("durable", [False, True])
def test_whatever_the_number_of_queues(durable: bool) -> None:
    few = World(queues=1).cost(durable=durable)
    assert World(queues=100).cost(durable=durable) == few
    assert World(queues=10_000).cost(durable=durable) == few


@pytest.mark.parametrize("durable", [False, True])
def test_whatever_the_number_of_consumers_on_a_queue(durable: bool) -> None:
    # Two, as a single one is full after each message.
    few = World(consumers=2).cost(durable=durable)
    assert World(consumers=1_000).cost(durable=durable) == few


def test_whatever_the_number_of_equal_selectors() -> None:
    few = World(consumers=2, selector="color = 'red'")
    many = World(consumers=1_000, selector="color = 'red'")
    assert many.cost() == few.cost()
    assert many.conversion.decoded == few.conversion.decoded == 2 * CYCLES


def test_whatever_others_don_t_match() -> None:
    # Equal selectors are one question however many ask it, also when the answer is no.
    few = World(consumers=1, selector="color = 'blue'")
    many = World(consumers=1_000, selector="color = 'blue'")
    assert many.cost() == few.cost()


def test_the_backlog_of_a_queue_is_not_looked_at_when_another_is_used() -> None:
    one, other = World(queues=2), World(queues=2)
    for _ in range(20_000):
        other.send("q0", durable=False)
    other.broker.resources.update_queue("q0", paused=True)
    one.broker.resources.update_queue("q0", paused=True)
    assert cost_of(one, "q1") == cost_of(other, "q1")


def cost_of(world: World, name: str) -> tuple[int, int]:
    for _ in range(CYCLES):
        world.cycle(name, durable=True)
    with world.count.watch():
        for _ in range(CYCLES):
            world.cycle(name, durable=True)
    return world.count.lines, world.count.questions


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_what_a_large_transaction_collected_is_let_go_of_in_slices(ending: str) -> None:
    # Freed at once, a million of them would hold up everybody else.
    world = World()
    transaction = world.broker.transactions.begin("somebody")
    for number in range(2_500):
        body = str(number).encode()
        message = Message("q0", "stomp/12", b"", body, timestamp_ms=WallMs(1), duplicate_id=body)
        world.broker.transactions.send(transaction, message)
    if ending == "commit":
        world.broker.transactions.commit(transaction)
    else:
        world.broker.transactions.rollback(transaction)
    left = [sizes_of(transaction)]
    while world.broker.tick() or transaction.sends:
        left.append(sizes_of(transaction))
    left.append(sizes_of(transaction))
    assert left[-1] == [0, 0, 0, 0]
    assert max(was - now for before, after in pairwise(left) for was, now in zip(before, after, strict=True)) == 1_000


def sizes_of(transaction: Transaction) -> list[int]:
    ids = sum(len(ids) for ids in transaction.ids.values())
    return [len(transaction.sends), len(transaction.planned), len(transaction.duplicate_ids), ids]
