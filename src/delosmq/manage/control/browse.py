"""Looking through a queue without taking anything, in slices: a queue may be large, and the broker serves others."""

import heapq
from collections.abc import Callable, Generator, Iterator
from typing import Final, TypeVar

from delosmq.engine.api import EngineBroker, Queue, Slot, SlotList, consumers_of, inspect
from delosmq.manage.control.message_ids import LARGEST_SEQUENCE
from delosmq.model.conversion import Conversions
from delosmq.selectors.selector import parse_selector
from delosmq.selectors.subject import Subject

T = TypeVar("T")
SLOTS_PER_SLICE: Final = 2_000
FILTERED_PER_SLICE: Final = 200
"""About 1 ms of looking, without and with a selector; the loop serves others between slices."""

TOLD_PER_SLICE: Final = 25
"""Standings, about 0.5 ms."""


def browse_standings(
    broker: EngineBroker, queue: Queue, *, after: int, limit: int, only: Callable[[Slot], bool] | None = None
) -> Generator[None, None, tuple[list[inspect.Standing], int]]:
    """A page of messages with where each stands, by sequence, and after which to ask for the next; 0 for none."""
    browse = Browse(broker, queue, after=after, until=LARGEST_SEQUENCE, max_rows=limit + 1, scheduled=True, only=only)
    yield from browse
    slots = browse.found
    page: list[inspect.Standing] = []
    for i, slot in enumerate(slots[:limit], 1):
        standing = broker.inspector.standing(queue, slot)
        if standing is not None:  # else it left meanwhile
            page.append(standing)
        if i % TOLD_PER_SLICE == 0 or len(queue.holders) > TOLD_PER_SLICE:
            yield
    return page, slots[limit - 1].sequence if len(slots) > limit else 0


def finish(walk: Generator[None, None, T]) -> T:
    """What a walk in slices gives, in one go."""
    while True:
        try:
            next(walk)
        except StopIteration as end:
            found: T = end.value
            return found


class MessageFilter:
    """Messages that match a selector, "" for all, and were accepted at ``since_ms`` or later and before ``before_ms``.

    Raises:
        SelectorError: ``selector`` is none.
    """

    def __init__(self, selector: str, since_ms: int, before_ms: int, *, conversions: Conversions) -> None:
        self._selector = parse_selector(selector) if selector.strip() else None
        self._since_ms = since_ms
        self._before_ms = before_ms
        self._subject = Subject(conversions)

    def takes(self, slot: Slot) -> bool:
        message = slot.message
        if not self._since_ms <= message.timestamp_ms < self._before_ms:
            return False
        if self._selector is None:
            return True
        self._subject.look_at(message)
        return self._selector.matches(self._subject)


def _sequence_of(slot: Slot) -> int:
    return slot.sequence


class Browse:
    """One page: messages with ``after`` < sequence <= ``until``, at most ``max_rows``, by sequence.

    Iterate it to the end, with other work after each slice; then `found` is the page. What stays where it is
    meanwhile is found exactly once; what leaves the queue may be found or not. What is not due yet is found only with
    ``scheduled``, and of all these only what ``only`` wants.

    Attributes:
        found: the page so far.
    """

    def __init__(
        self,
        broker: EngineBroker,
        queue: Queue,
        *,
        after: int,
        until: int,
        max_rows: int,
        scheduled: bool = False,
        only: Callable[[Slot], bool] | None = None,
        slots_per_slice: int = SLOTS_PER_SLICE,
    ) -> None:
        self.found: list[Slot] = []
        self._after = after
        self._until = until
        self._max_rows = max_rows
        # Each slice is one run, sorted; the page is merged from them.
        self._runs: list[list[Slot]] = []
        self._run: list[Slot] = []
        self._scheduled = scheduled
        self._only = only
        self._per_slice = slots_per_slice
        self._work = self._all_steps(broker, queue)

    def __iter__(self) -> Iterator[None]:
        return self._work

    def _all_steps(self, broker: EngineBroker, queue: Queue) -> Iterator[None]:
        # In the order in which messages move, from scheduled to pending to held, so that none slips through between.
        if self._scheduled:
            for not_due in inspect.walk_scheduled(queue):
                if not_due is None:
                    self._end_run()
                    yield
                else:
                    self._add(not_due)
            self._end_run()
        for level in queue.pending.levels():
            yield from self._look_through_level(level)
        delivered: list[list[Slot]] = []
        for group in broker.leases.on_queue(queue):
            # The slots of a lease never change; what is being collected grows.
            delivered.extend(lease.slots for lease in group.leases.values())
            delivered.append(list(group.building))
        delivered.extend(consumer.held_newest_first() for consumer in consumers_of(queue))
        for slots in delivered:
            yield from self._look_through_delivered(slots)
        yield from self._merge()

    def _look_through_delivered(self, slots: list[Slot]) -> Iterator[None]:
        for at in range(0, len(slots), self._per_slice):
            for slot in slots[at : at + self._per_slice]:
                if slot.in_list is not None:
                    self._add(slot)
            self._end_run()
            yield

    def _look_through_level(self, level: SlotList) -> Iterator[None]:
        """A level is ordered by sequence: what lies beyond the page need not be looked at."""
        slot = level.head
        last = 0
        wanted = self._max_rows
        looked = 0
        while slot is not None and wanted > 0 and slot.sequence <= self._until:
            # Below ``last`` only when it started over.
            if slot.sequence > last:
                last = slot.sequence
                wanted -= self._add(slot)
            looked += 1
            if looked % self._per_slice == 0:
                self._end_run()
                yield
                if slot.in_list is not level:
                    # It left meanwhile, and with it the way on: start over and skip what was seen.
                    slot = level.head
                    continue
            slot = slot.next
        self._end_run()

    def _add(self, slot: Slot) -> int:
        if self._after < slot.sequence <= self._until and (self._only is None or self._only(slot)):
            self._run.append(slot)
            return 1
        return 0

    def _end_run(self) -> None:
        if self._run:
            self._run.sort(key=_sequence_of)
            self._runs.append(self._run)
            self._run = []

    def _merge(self) -> Iterator[None]:
        newest = 0
        for i, slot in enumerate(heapq.merge(*self._runs, key=_sequence_of), 1):
            # Twice when it moved from pending to held between two slices.
            if slot.sequence != newest:
                newest = slot.sequence
                self.found.append(slot)
                if len(self.found) == self._max_rows:
                    return
            if i % SLOTS_PER_SLICE == 0:
                yield
