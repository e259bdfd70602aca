"""Which of the messages that wait for a slow topic consumer go when they are too many.

What was looked at is remembered, so that a choice costs no walk through all that waits: there may be many such
consumers, each with a limit of thousands. What left the queue otherwise meanwhile is found and forgotten later.

Source: activemq-broker, the MessageEvictionStrategy classes.
"""

from heapq import heapify, heappop, heappush
from typing import Final

from delosmq.engine.slots import PendingSlots, Slot
from delosmq.model.conversion import Conversions
from delosmq.model.properties import PropertyValue
from delosmq.model.settings import MessageEviction
from delosmq.selectors.subject import Subject

_SPARE: Final = 100
"""Remembered slots that are gone, beside as many as wait, before they are looked for."""


class EvictionChoice:
    """Takes the one that has waited longest."""

    def choose(self, pending: PendingSlots) -> list[Slot]:
        """At least one of those that wait, of which there are some; the last one goes first."""
        found: Slot | None = None
        for level in pending.levels():
            slot = level.head
            if slot is not None and (found is None or slot.sequence < found.sequence):
                found = slot
        return [] if found is None else [found]


class _Remembering(EvictionChoice):
    def __init__(self) -> None:
        self._newest: int = 0

    def _since(self, pending: PendingSlots) -> list[Slot]:
        """What has come since the last call, in order."""
        found: list[Slot] = []
        for level in pending.levels():
            slot = level.tail
            while slot is not None and slot.sequence > self._newest:
                found.append(slot)
                slot = slot.previous
        found.sort(key=_sequence_of)
        if found:
            self._newest = found[-1].sequence
        return found


class LowestPriority(_Remembering):
    """The oldest of the lowest priority, which counts here even where the order of the queue does not heed it."""

    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[int, int, Slot]] = []

    def choose(self, pending: PendingSlots) -> list[Slot]:
        if len(self._heap) > 2 * pending.count + _SPARE:
            self._heap = [entry for entry in self._heap if pending.holds(entry[2])]
            heapify(self._heap)
        heap = self._heap
        for slot in self._since(pending):
            heappush(heap, (slot.message.priority, int(slot.sequence), slot))
        while heap:
            slot = heappop(heap)[2]
            if pending.holds(slot):
                return [slot]
        return super().choose(pending)


class UniqueProperty(_Remembering):
    """All that have a newer one with the same value of a property, and all without a value; the oldest when each has a
    value of its own, or none has one."""

    def __init__(self, key: str, conversions: Conversions) -> None:
        super().__init__()
        self._key = key
        self._subject: Subject = Subject(conversions)
        self._latest: dict[PropertyValue, Slot] = {}
        self._others: list[Slot] = []

    def choose(self, pending: PendingSlots) -> list[Slot]:
        latest = self._latest
        if len(latest) + len(self._others) > 2 * pending.count + _SPARE:
            latest = self._latest = {value: slot for value, slot in latest.items() if pending.holds(slot)}
            self._others = [slot for slot in self._others if pending.holds(slot)]
        for slot in self._since(pending):
            self._subject.look_at(slot.message)
            value = self._subject.value(self._key)
            if value is None:
                self._others.append(slot)
                continue
            older = latest.get(value)
            if older is not None:
                self._others.append(older)
            latest[value] = slot
        while latest:
            value = next(iter(latest))
            if pending.holds(latest[value]):
                break
            del latest[value]
        if latest:
            found = [slot for slot in self._others if pending.holds(slot)]
            self._others = []
            if found:
                found.sort(key=_sequence_of, reverse=True)
                return found
        return super().choose(pending)


def choice_for(eviction: MessageEviction, key: str, conversions: Conversions) -> EvictionChoice:
    """What an address-setting asks for."""
    if eviction is MessageEviction.LOWEST_PRIORITY:
        return LowestPriority()
    if eviction is MessageEviction.UNIQUE_PROPERTY:
        return UniqueProperty(key, conversions)
    return EvictionChoice()


def _sequence_of(slot: Slot) -> int:
    return int(slot.sequence)
