"""Looking through a queue without taking anything, in slices: a queue may be large, and the broker serves others."""

import heapq
from collections.abc import Callable, Generator, Iterator
from typing import Final, TypeVar

from delosmq.engine.api import EngineBroker, Lease, Queue, Slot, SlotList, consumers_of, inspect
from delosmq.manage.control.message_ids import LARGEST_SEQUENCE
from delosmq.model.conversion import Conversions
from delosmq.model.message import HIGHEST_PRIORITY
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


def _lowest_of(lease: Lease) -> int:
    return lease.rows.lowest_sequence


class Browse:
    """One page: messages with ``after`` < sequence <= ``until``, at most ``max_rows``, by sequence.

    Iterate it to the end, with other work after each slice; then `found` is the page. What stays where it is
    meanwhile is found exactly once; what leaves the queue may be found or not. What is not due yet is found only with
    ``scheduled``, and of all these only what ``only`` wants.

    A page begins near its first message, wherever that is (`inspect.Waymarks`), and ends with its last: pages of a long
    queue take no longer than those of a short one.

    Attributes:
        found: the page so far.
        looked: how many slots were looked at.
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
        self.looked: int = 0
        self._after = after
        # Falls as soon as a page is known to be full below.
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
        marks = inspect.waymarks_of(queue.pending)
        for i, level in enumerate(queue.pending.levels()):
            yield from self._look_through_first(level)
            yield from self._look_through_level(level, HIGHEST_PRIORITY - i, marks)
        # All that is held is noted before any of it is looked at: what comes back meanwhile would be in neither place.
        # The rows of a lease never change; what is being collected grows.
        leased = [[*group.leases.values(), Lease(0, group.draft)] for group in broker.leases.on_queue(queue)]
        delivered = [consumer.held_newest_first() for consumer in consumers_of(queue)]
        for leases in leased:
            yield from self._look_through_leases(leases)
        for held in delivered:
            for at in range(0, len(held), self._per_slice):
                yield from self._look_through_delivered(held[at : at + self._per_slice])
        yield from self._merge()

    def _look_through_delivered(self, slots: list[Slot]) -> Iterator[None]:
        for slot in slots:
            if slot.in_list is not None:
                self._add(slot)
        self.looked += len(slots)
        self._end_run()
        yield

    def _look_through_leases(self, leases: list[Lease]) -> Iterator[None]:
        """Rows of a group: of leases before or behind the page, and what lies there of others, none is looked at."""
        found = 0
        newest = 0
        for lease in sorted(leases, key=_lowest_of):
            rows = lease.rows
            if rows.highest_sequence <= self._after:
                continue
            if rows.lowest_sequence > self._until:
                break
            others = found
            for start, end in rows.stretches(self._after, self._until):
                for at in range(start, end, self._per_slice):
                    before = len(self._runs)
                    yield from self._look_through_delivered(rows.slots[at : min(end, at + self._per_slice)])
                    for run in self._runs[before:]:
                        found += len(run)
                        newest = max(newest, run[-1].sequence)
                    if found - others >= self._max_rows and rows.is_ordered:
                        # All of a page, and what follows in this lease is newer. Other leases may have older rows.
                        self._until = min(self._until, self._runs[-1][-1].sequence)
                        break
            if found >= self._max_rows:
                self._until = min(self._until, newest)

    def _look_through_first(self, level: SlotList) -> Iterator[None]:
        """What stands before all others of a level, in no order of sequence: it became due, or came back with
        Classic's habits."""
        slot = level.head
        seen: Slot | None = None
        while slot is not None and not inspect.is_in_place(slot):
            # Not behind the last one only when it started over.
            if seen is None or slot.order > seen.order:
                seen = slot
                self._add(slot)
            self.looked += 1
            if self.looked % self._per_slice == 0:
                self._end_run()
                yield
                if slot.in_list is not level:
                    # It left meanwhile, and with it the way on: start over and skip what was seen.
                    slot = level.head
                    continue
            slot = slot.next
        self._end_run()

    def _look_through_level(self, level: SlotList, priority: int, marks: inspect.Waymarks) -> Iterator[None]:
        """The others are ordered by sequence: what lies beyond the page need not be looked at, nor most before it."""
        last = self._after
        slot = marks.before(level, priority, last)
        wanted = self._max_rows
        unmarked = 0
        while slot is not None and wanted > 0:
            if inspect.is_in_place(slot):
                if slot.sequence > self._until:
                    break
                # Below ``last`` only before the page, or when it started over.
                if slot.sequence > last:
                    last = slot.sequence
                    wanted -= self._add(slot)
                unmarked += 1
                if marks.has(slot):
                    unmarked = 0
                elif unmarked >= inspect.SLOTS_PER_MARK:
                    marks.put(slot)
                    unmarked = 0
            self.looked += 1
            if self.looked % self._per_slice == 0:
                self._end_run()
                yield
                if slot.in_list is not level:
                    slot = marks.before(level, priority, last)
                    unmarked = 0
                    continue
            slot = slot.next
        self._end_run()
        if wanted <= 0:
            self._until = min(self._until, last)

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
