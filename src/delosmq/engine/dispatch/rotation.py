"""Who of a queue's consumers with room comes first, and which of its messages they take.

Consumers of one priority that take the same messages stand in one lane. What they take is their acceptance: each
message is held against it once, however many consumers share it, and a cursor remembers how far that has come.
"""

from abc import ABC, abstractmethod
from collections import deque
from heapq import heapify, heappop, heappush

from mypy_extensions import mypyc_attr

from delosmq.engine.base.slots import Cursor, PendingSlots, Slot
from delosmq.engine.queues.consumer import Consumer, ConsumerOptions
from delosmq.model.message import Message
from delosmq.selectors.selector import Selector
from delosmq.selectors.subject import Subject


class Work:
    """What one dispatch of a queue may still do, beside handing out.

    Attributes:
        subject: through which selectors look at messages.
        left: selectors to evaluate and messages to pass over.
        out: it was not enough: the queue has to be looked at again.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.left: int = 0
        self.out: bool = False

    def begin(self, limit: int) -> None:
        """A new dispatch."""
        self.left = limit
        self.out = False

    def spend(self) -> bool:
        """Takes one unit; False when there is none."""
        if self.left <= 0:
            self.out = True
            return False
        self.left -= 1
        return True


class Place:
    """Where a consumer stands in a lane. One that it left is found and dropped later."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.valid: bool = True


@mypyc_attr(allow_interpreted_subclasses=True)
class Lane(ABC):
    """Consumers that may have room.

    Attributes:
        priority: theirs.
        count: how many there are.
    """

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.count: int = 0

    @abstractmethod
    def first(self) -> Consumer | None:
        """Who comes next."""

    @abstractmethod
    def put(self, consumer: Consumer) -> None:
        """Takes a consumer in."""

    def take_out(self, consumer: Consumer) -> None:
        """Lets a consumer go, wherever it stands."""
        place = consumer.place
        if place is not None:
            place.valid = False
            consumer.place = None
            self.count -= 1


class TurnLane(Lane):
    """In order of turn; whoever joins has the newest turn and stands last."""

    def __init__(self, priority: int) -> None:
        super().__init__(priority)
        self._places: deque[Place] = deque()

    def first(self) -> Consumer | None:
        places = self._places
        while places:
            place = places[0]
            if place.valid:
                return place.consumer
            places.popleft()
        return None

    def put(self, consumer: Consumer) -> None:
        place = Place(consumer)
        consumer.place = place
        self._places.append(place)
        self.count += 1


class RankedLane(Lane):
    """By turn, whenever a consumer joins; on request first by the number of message groups it owns, fewest first."""

    def __init__(self, priority: int, *, by_load: bool) -> None:
        super().__init__(priority)
        self._by_load = by_load
        self._places: list[tuple[int, int, int, Place]] = []
        self._made: int = 0

    def first(self) -> Consumer | None:
        places = self._places
        while places:
            place = places[0][3]
            if place.valid:
                return place.consumer
            heappop(places)
        return None

    def put(self, consumer: Consumer) -> None:
        place = Place(consumer)
        consumer.place = place
        self._made += 1
        load = consumer.owned_groups if self._by_load else 0
        heappush(self._places, (load, consumer.turn, self._made, place))
        self.count += 1
        if len(self._places) > 2 * self.count + 16:
            self._places = [entry for entry in self._places if entry[3].valid]
            heapify(self._places)


class Acceptance:
    """Which messages some consumers take: those that match a selector and were not sent by a certain connection.

    Attributes:
        members: consumers that share it, with room or not.
        open: those of them in its lanes.
        evaluations: since it exists.
        frontier: where looking stopped for want of work; None when it did not.
    """

    def __init__(self, options: ConsumerOptions, pending: PendingSlots, *, by_load: bool, strict: bool) -> None:
        self._selector: Selector | None = options.selector
        self._no_local: str = options.no_local
        self._pending = pending
        self._by_load = by_load
        self._strict = strict
        self._cursor: Cursor | None = None
        self._matched: Slot | None = None
        self._lanes: list[Lane] = []
        self.takes_all: bool = options.selector is None and options.no_local == ""
        self.members: int = 0
        self.open: int = 0
        self.evaluations: int = 0
        self.frontier: Slot | None = None

    # -- consumers -----------------------------------------------------------------------------------------------

    def put(self, consumer: Consumer, priority: int) -> None:
        """Takes a consumer into the lane of its priority."""
        at = 0
        for lane in self._lanes:
            if lane.priority == priority:
                lane.put(consumer)
                self.open += 1
                return
            if lane.priority < priority:
                break
            at += 1
        made: Lane = (
            RankedLane(priority, by_load=self._by_load) if self._by_load or self._strict else TurnLane(priority)
        )
        self._lanes.insert(at, made)
        made.put(consumer)
        self.open += 1

    def take_out(self, consumer: Consumer, priority: int) -> None:
        """Takes a consumer out of its lane; harmless when it is in none."""
        if consumer.place is None:
            return
        self.open -= 1
        for lane in self._lanes:
            if lane.priority == priority:
                lane.take_out(consumer)
                return

    def first(self) -> Consumer | None:
        """The consumer with the highest priority, and of these the one whose turn it is."""
        for lane in self._lanes:
            if lane.count:
                return lane.first()
        return None

    # -- messages ------------------------------------------------------------------------------------------------

    def accepts(self, message: Message, work: Work) -> bool:
        """Whether they take a message."""
        if self._no_local and message.connection_id == self._no_local:
            return False
        selector = self._selector
        if selector is None:
            return True
        self.evaluations += 1
        work.subject.look_at(message)
        return selector.matches(work.subject)

    def candidate(self, work: Work) -> Slot | None:
        """The first pending message, in the order of the queue, that they take and that was not passed over."""
        self.frontier = None
        cursor = self._cursor
        if cursor is None:
            if self.takes_all:
                return self._pending.head()
            cursor = self._pending.cursor()
            self._cursor = cursor
        while True:
            slot = cursor.peek()
            if slot is None or self.takes_all or slot is self._matched:
                return slot
            if not work.spend():
                self.frontier = slot
                return None
            if self.accepts(slot.message, work):
                self._matched = slot
                return slot
            cursor.advance(slot)

    def candidate_upto(self, sequence: int) -> Slot | None:
        """As `candidate` of those who take everything, among messages with at most this sequence."""
        pending = self._pending
        cursor = self._cursor
        if cursor is None:
            return pending.head_upto(sequence)
        slot = cursor.peek()
        if slot is None or slot.sequence <= sequence:
            return slot
        for priority in range(slot.level - 1, -1, -1):
            lower = pending.next_of(priority, cursor.passed[priority])
            if lower is not None and lower.sequence <= sequence:
                return lower
        return None

    def pass_over(self, slot: Slot) -> None:
        """Leaves out what `candidate` gave: others decide when it goes, and to whom."""
        cursor = self._cursor
        if cursor is None:
            cursor = self._pending.cursor()
            self._cursor = cursor
            if cursor.peek() is not slot:
                return
        cursor.advance(slot)

    def look_again(self) -> None:
        """Everything that was passed over is looked at once more."""
        if self._cursor is not None:
            self._pending.drop(self._cursor)
            self._cursor = None
        self._matched = None


def precedes(slot: Slot, other: Slot) -> bool:
    """Whether a pending slot stands before another one of the same queue."""
    priority = slot.level
    others = other.level
    return priority > others or (priority == others and slot.order < other.order)
