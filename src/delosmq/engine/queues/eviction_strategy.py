"""Eviction strategies: choose which messages go when too many wait for a slow topic consumer.

What was looked at is remembered, so that a choice costs no walk through all that waits: there may be many such
consumers, each with a limit of thousands. It is looked at while it comes, a few messages at a time, and forgotten as
soon as it leaves the queue: a message that is held here alone counts nowhere.

Source: activemq-broker, the MessageEvictionStrategy classes.
"""

from heapq import heapify, heappop, heappush
from typing import Final

from delosmq.engine.base.slots import Cursor, PendingObserver, PendingSlots, Slot
from delosmq.model.conversion import Conversions
from delosmq.model.properties import PropertyValue
from delosmq.model.settings import MessageEviction
from delosmq.selectors.subject import Subject

_SPARE: Final = 100
"""Remembered places that are gone, beside as many as wait, before they are looked for."""


class EvictionChoice(PendingObserver):
    """Takes the one that has waited longest."""

    def learn(self, pending: PendingSlots, most: int) -> bool:
        """Looks at up to ``most`` of those that wait. False: there are others that it has not seen yet."""
        return True

    def choose(self, pending: PendingSlots) -> list[Slot]:
        """At least one of those that wait, of which there are some; the last one goes first. To be asked when all of
        them were looked at."""
        found: Slot | None = None
        for level in pending.levels():
            slot = level.head
            if slot is not None and (found is None or slot.sequence < found.sequence):
                found = slot
        return [] if found is None else [found]

    def on_removed(self, slot: Slot) -> None:
        return

    def end(self, pending: PendingSlots) -> None:
        """There is nothing to choose any more."""


class IndexedChoice(EvictionChoice):
    """Has an index of the waiting messages, by sequence.

    Attributes:
        slots: what was looked at and still waits.
    """

    def __init__(self) -> None:
        self.slots: dict[int, Slot] = {}
        self._cursor: Cursor | None = None

    def learn(self, pending: PendingSlots, most: int) -> bool:
        cursor = self._cursor
        if cursor is None:
            cursor = self._cursor = pending.cursor()
            pending.observers.append(self)
        slot = cursor.peek()
        while slot is not None:
            if most == 0:
                return False
            most -= 1
            cursor.advance(slot)
            sequence = int(slot.sequence)
            # What was dispatched and came back goes when nothing else is left.
            if slot.delivery_count == 0 and sequence not in self.slots:
                slot.marks += 1
                self.slots[sequence] = slot
                self._index(sequence, slot)
            slot = cursor.peek()
        return True

    def on_removed(self, slot: Slot) -> None:
        sequence = int(slot.sequence)
        if self.slots.pop(sequence, None) is not None:
            slot.marks -= 1
            self._unindex(sequence)

    def end(self, pending: PendingSlots) -> None:
        if self._cursor is not None:
            pending.drop(self._cursor)
            pending.observers.remove(self)
        for slot in self.slots.values():
            slot.marks -= 1
        self.slots = {}

    def _index(self, sequence: int, slot: Slot) -> None:
        """One more waits."""

    def _unindex(self, sequence: int) -> None:
        """One of them is gone."""


class LowestPriority(IndexedChoice):
    """The oldest of the lowest priority, which counts here even where the order of the queue does not heed it."""

    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[int, int]] = []

    def _index(self, sequence: int, slot: Slot) -> None:
        heappush(self._heap, (slot.message.priority, sequence))

    def choose(self, pending: PendingSlots) -> list[Slot]:
        heap = self._heap
        slots = self.slots
        if len(heap) > 2 * len(slots) + _SPARE:
            heap = self._heap = [entry for entry in heap if entry[1] in slots]
            heapify(heap)
        while heap:
            slot = slots.get(heap[0][1])
            if slot is not None:
                return [slot]
            heappop(heap)
        return super().choose(pending)


class UniqueProperty(IndexedChoice):
    """All that have a newer one with the same value of a property, and all without a value; the oldest when each has a
    value of its own, or none has one."""

    def __init__(self, key: str, conversions: Conversions) -> None:
        super().__init__()
        self._key = key
        self._subject: Subject = Subject(conversions)
        self._values: dict[int, PropertyValue] = {}
        self._latest: dict[PropertyValue, int] = {}
        self._others: dict[int, None] = {}

    def _index(self, sequence: int, slot: Slot) -> None:
        self._subject.look_at(slot.message)
        value = self._subject.value(self._key)
        if value is None:
            self._others[sequence] = None
            return
        latest = self._latest
        newest = latest.get(value)
        if newest is not None and newest > sequence:  # it came back
            self._others[sequence] = None
            return
        if newest is not None:
            self._others[newest] = None
            del self._values[newest]
        latest[value] = sequence
        self._values[sequence] = value

    def _unindex(self, sequence: int) -> None:
        self._others.pop(sequence, None)
        value = self._values.pop(sequence, None)
        if value is not None:
            del self._latest[value]

    def choose(self, pending: PendingSlots) -> list[Slot]:
        if self._latest and self._others:
            return [self.slots[sequence] for sequence in sorted(self._others, reverse=True)]
        return super().choose(pending)


def choice_for(eviction: MessageEviction, key: str, conversions: Conversions) -> EvictionChoice:
    """What an address-setting asks for."""
    if eviction is MessageEviction.LOWEST_PRIORITY:
        return LowestPriority()
    if eviction is MessageEviction.UNIQUE_PROPERTY:
        return UniqueProperty(key, conversions)
    return EvictionChoice()
