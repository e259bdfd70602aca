"""Rotations: which of the consumers with room that take the same messages and have one priority comes first."""

from abc import ABC, abstractmethod
from collections import deque
from heapq import heapify, heappop, heappush
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.base.slots import Slot
from delosmq.engine.queues.consumer import Consumer, RotationEntry
from delosmq.selectors.subject import Subject

SPARE: Final = 16
"""Entries of consumers that left a rotation, beside as many as are in it, before they are dropped."""


class DispatchBudget:
    """What one dispatch of a queue may still do, beside delivering.

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
        self.left = limit
        self.out = False

    def spend(self) -> bool:
        """Takes one unit; False when there is none."""
        if self.left <= 0:
            self.out = True
            return False
        self.left -= 1
        return True


def precedes(slot: Slot, other: Slot) -> bool:
    """Whether a pending slot stands before another one of the same queue."""
    priority = slot.level
    others = other.level
    return priority > others or (priority == others and slot.order < other.order)


@mypyc_attr(allow_interpreted_subclasses=True)
class Rotation(ABC):
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
        """The consumer that comes next."""

    @abstractmethod
    def put(self, consumer: Consumer) -> None:
        """Takes a consumer in."""

    def take_out(self, consumer: Consumer) -> None:
        """Removes a consumer from any place."""
        entry = consumer.entry
        if entry is not None:
            entry.consumer = None
            consumer.entry = None
            self.count -= 1


class TurnRotation(Rotation):
    """In order of turn; a consumer that joins has the newest turn and stands last."""

    def __init__(self, priority: int) -> None:
        super().__init__(priority)
        self._entries: deque[RotationEntry] = deque()

    def first(self) -> Consumer | None:
        entries = self._entries
        while entries:
            consumer = entries[0].consumer
            if consumer is not None:
                return consumer
            entries.popleft()
        return None

    def put(self, consumer: Consumer) -> None:
        entry = RotationEntry(consumer)
        consumer.entry = entry
        self._entries.append(entry)
        self.count += 1
        if len(self._entries) > 2 * self.count + SPARE:
            self._entries = deque(entry for entry in self._entries if entry.consumer is not None)


class RankedRotation(Rotation):
    """By turn, whenever a consumer joins; on request first by the number of message groups it owns, fewest first."""

    def __init__(self, priority: int, *, by_load: bool) -> None:
        super().__init__(priority)
        self._by_load = by_load
        self._entries: list[tuple[int, int, int, RotationEntry]] = []
        self._made: int = 0

    def first(self) -> Consumer | None:
        entries = self._entries
        while entries:
            consumer = entries[0][3].consumer
            if consumer is not None:
                return consumer
            heappop(entries)
        return None

    def put(self, consumer: Consumer) -> None:
        entry = RotationEntry(consumer)
        consumer.entry = entry
        self._made += 1
        load = consumer.owned_groups if self._by_load else 0
        heappush(self._entries, (load, consumer.turn, self._made, entry))
        self.count += 1
        if len(self._entries) > 2 * self.count + SPARE:
            self._entries = [entry for entry in self._entries if entry[3].consumer is not None]
            heapify(self._entries)
