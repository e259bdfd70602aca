"""Delivery at a later time: messages scheduled by their senders, and returned ones that wait to be redelivered.

What is not due is beside the queue (`scheduled_slots`): counted with its messages, outside the ring. What
becomes due together goes to the head of the queue, newest first, so that a full ring drops the oldest of them.

What is to come at a time of day goes by the wall clock. A delay goes by the monotonic one while the broker runs:
setting the wall clock neither ends it nor makes it longer. After a restart what is left of it goes by the wall clock.

Source: Artemis ScheduledDeliveryHandlerImpl.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import NEXT_TICK, Job, Jobs, PhasedJob
from delosmq.engine.base.slots import Slot
from delosmq.engine.base.timers import NS_PER_MS, Timer, Timers
from delosmq.engine.dispatch.dispatcher import Dispatcher
from delosmq.engine.log.log import Log
from delosmq.engine.queues.eviction import Evictions
from delosmq.engine.queues.last_value import LastValueRule
from delosmq.engine.queues.queue import Queue
from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Clock

SLOTS_PER_SLICE: Final = 250
NOTHING_MS: Final = 1 << 62
LATEST_DUE_MS: Final = 253_402_300_797_999
"""Nothing is due later than that, in the year 9999, whatever a client asks for. The due times after it mark what is
held (`held_messages`)."""
SWEEP_AT: Final = 1_024
"""Due times noted before those are dropped for the first time at which nothing is due any more."""
SETTLED_MS: Final = 20
"""By how much the clocks may drift apart, as they are read and adjusted, before that counts as a setting."""


class DueTimes:
    """By when the queues have to be looked at, by one of the two clocks.

    Attributes:
        sign: of these times in `ScheduledSlots`.
    """

    def __init__(self, sign: int) -> None:
        self.sign = sign
        # One entry for each due time of a queue, perhaps of slots that are gone: (due, number, queue).
        self._times: list[tuple[int, int, Queue]] = []
        # The same, those of before a sweep that is under way; a heap as well.
        self._swept: list[tuple[int, int, Queue]] = []
        self._sweep_at: int = SWEEP_AT
        self._made: int = 0

    def add(self, due: int, queue: Queue) -> bool:
        """Notes a time. True when there are so many that a sweep begins with it."""
        self._made += 1
        heappush(self._times, (due, self._made, queue))
        if len(self._times) < self._sweep_at or self._swept:
            return False
        self._swept = self._times
        self._times = []
        return True

    def sweep(self) -> bool:
        """Drops due times of what went before; True when all were looked at. Without it each purged or deleted queue
        would be remembered until what it held had been due."""
        swept = self._swept
        for _ in range(min(len(swept), SLOTS_PER_SLICE)):
            entry = swept.pop()  # the last one: the rest stays a heap
            if entry[2].scheduled.due_at(entry[0] * self.sign) is not None:
                heappush(self._times, entry)
        if swept:
            return False
        self._sweep_at = max(SWEEP_AT, 2 * len(self._times))
        return True

    def wait_ms(self, now_ms: int) -> int:
        """How long until the first of them, negative when it is past; a very long time for none."""
        times = self._first()
        return times[0][0] - now_ms if times else NOTHING_MS

    def take(self) -> tuple[Queue, int] | None:
        """Takes the first one out; None when nothing is due at it any more."""
        due, _, queue = heappop(self._first())
        return (queue, due * self.sign) if queue.scheduled.due_at(due * self.sign) is not None else None

    def _first(self) -> list[tuple[int, int, Queue]]:
        """The heap that what is due next stands in."""
        if not self._swept or (self._times and self._times[0] < self._swept[0]):
            return self._times
        return self._swept


class Schedule(Timer):
    """Knows for all queues what is due next."""

    def __init__(
        self,
        log: Log,
        timers: Timers,
        jobs: Jobs,
        *,
        clock: Clock,
        dispatcher: Dispatcher,
        evictions: Evictions,
        last_value_rule: LastValueRule,
    ) -> None:
        self._log = log
        self._timers = timers
        self._jobs = jobs
        self._clock = clock
        self._dispatcher = dispatcher
        self._evictions = evictions
        self._last_value_rule = last_value_rule
        self._by_wall: DueTimes = DueTimes(1)
        self._by_delay: DueTimes = DueTimes(-1)
        # What the wall clock would show if it had not been set: monotonic time and this.
        self._origin_ms: int = clock.wall_ms() - clock.monotonic_ns() // NS_PER_MS
        self._set_by_ms: int = 0
        # Monotonic ns of the earliest appointment; 0 for none.
        self._armed: int = 0
        self.events: EngineEvents = dispatcher.events
        self._working: bool = False

    def is_due(self, due_at_ms: int) -> bool:
        """Whether that time has come."""
        return due_at_ms <= self._clock.wall_ms()

    # -- the changes, made live and in replay --------------------------------------------------------------------

    def add(self, queue: Queue, slot: Slot, due_at_ms: int, *, delayed: bool) -> None:
        """Puts a slot that is in no list aside until it is due, at the latest at `LATEST_DUE_MS`; `arm` follows.

        Args:
            delayed: the time is the end of a delay.
        """
        due_at_ms = min(due_at_ms, LATEST_DUE_MS)
        times = self._by_delay if delayed else self._by_wall
        due = max(1, due_at_ms - self._wall_set_by_ms()) if delayed else due_at_ms
        if queue.scheduled.add(slot, due_at_ms, due * times.sign) and times.add(due, queue):
            self._jobs.add(_Sweep(times))

    def add_marked(self, queue: Queue, slot: Slot, mark_ms: int) -> None:
        """Puts a slot that is in no list aside with a due time after `LATEST_DUE_MS`, which says why it is held."""
        if queue.scheduled.add(slot, mark_ms) and self._by_wall.add(mark_ms, queue):
            self._jobs.add(_Sweep(self._by_wall))

    def add_pending(self, queue: Queue, slot: Slot, due_at_ms: int, *, delayed: bool) -> None:
        """The same for one that is pending, where every new message begins."""
        queue.pending.remove(slot)
        self.add(queue, slot, due_at_ms, delayed=delayed)

    def add_returned(self, queue: Queue, slot: Slot, due_at_ms: int, longest_ms: int) -> None:
        """The same for one with a delay from before a restart: it is never longer than ``longest_ms`` (0: no bound),
        its sender's delay or the longest one of its address now, whatever the clock showed then."""
        if longest_ms > 0:
            due_at_ms = min(due_at_ms, self._clock.wall_ms() + longest_ms)
        self.add_pending(queue, slot, due_at_ms, delayed=True)

    # -- time ----------------------------------------------------------------------------------------------------

    def _steady_ms(self) -> int:
        """What the wall clock would show if it had not been set since the start."""
        return self._clock.monotonic_ns() // NS_PER_MS + self._origin_ms

    def _wall_set_by_ms(self) -> int:
        """By how much the wall clock was set forward since the start. Steady while it is not: what is due together
        stays together.

        A busy machine may stop us between two looks at its clocks, for longer than they drift apart: with a look at
        the monotonic one before and after that at the wall clock, what it was set by is between two bounds."""
        before = self._steady_ms()
        wall = self._clock.wall_ms()
        most = wall - before
        if abs(most - self._set_by_ms) > SETTLED_MS:
            least = wall - self._steady_ms()
            if self._set_by_ms > most + SETTLED_MS:
                self._set_by_ms = most
            elif self._set_by_ms < least - SETTLED_MS:
                self._set_by_ms = least
        return self._set_by_ms

    def arm(self) -> None:
        """Makes an appointment for what is due next, unless there is one early enough."""
        if self._working:
            return
        wait_ms = min(self._by_wall.wait_ms(self._clock.wall_ms()), self._by_delay.wait_ms(self._steady_ms()))
        if wait_ms == NOTHING_MS:
            return
        nap_ms = min(max(wait_ms, 0), self._clock.longest_nap_ms())
        at = self._clock.monotonic_ns() + nap_ms * NS_PER_MS
        if self._armed == 0 or at < self._armed:
            self._armed = at
            self._timers.at(at, self)

    def on_timer(self, now: MonotonicNs) -> None:
        if self._armed and now >= self._armed:
            self._armed = 0
        self.run()

    def run(self) -> None:
        """Makes pending what is due."""
        if self._working:
            return
        work = PhasedJob(self._jobs, self._make_pending(self._clock.wall_ms(), self._steady_ms()))
        if not work.step():
            self._jobs.add(work)

    def _make_pending(self, wall_ms: int, steady_ms: int) -> Iterator[int]:
        """Makes pending what is due at one moment; what is due next is made so though a slice raises."""
        self._working = True
        try:
            yield from self._make_all_pending(wall_ms, steady_ms)
        finally:
            self._working = False
            self.arm()

    def _make_all_pending(self, wall_ms: int, steady_ms: int) -> Iterator[int]:
        """First finds all that is due, then goes through it from its end."""
        due: list[tuple[Queue, int]] = []
        held: dict[int, Queue] = {}
        room = SLOTS_PER_SLICE
        found = self._take_due(wall_ms, steady_ms)
        while found is not None:
            queue = found[0]
            due.append(found)
            if queue.id not in held:
                held[queue.id] = queue
                self._dispatcher.suspend(queue)  # what is due comes newest first
            room -= 1
            if room <= 0:
                yield NEXT_TICK
                room = SLOTS_PER_SLICE
            found = self._take_due(wall_ms, steady_ms)
        room -= 1
        while due:
            if room <= 0:
                self._log.close()
                yield NEXT_TICK
                room = SLOTS_PER_SLICE
            queue, time = due[-1]
            released = self._release(queue, time, room)
            if released < room:
                due.pop()
            room -= released + 1
        self._log.close()
        for queue in held.values():
            self._dispatcher.resume(queue)

    def _take_due(self, wall_ms: int, steady_ms: int) -> tuple[Queue, int] | None:
        """The next queue and time that is due; None when nothing more is."""
        while True:
            by_wall = self._by_wall.wait_ms(wall_ms)
            by_delay = self._by_delay.wait_ms(steady_ms)
            if min(by_wall, by_delay) > 0:
                return None
            found = (self._by_wall if by_wall <= by_delay else self._by_delay).take()
            if found is not None:
                return found

    def _release(self, queue: Queue, time: int, limit: int) -> int:
        """Makes pending what a queue holds for one time, newest first, ``limit`` at most; gives how many."""
        count = 0
        while count < limit:
            bucket = queue.scheduled.due_at(time)
            if bucket is None or bucket.tail is None:
                break
            slot = bucket.tail
            queue.scheduled.remove(slot)
            count += 1
            if queue.ring.admits_return(queue.pending):
                queue.pending.put_first(slot)
                self.events.message_due(queue.name, slot)
                if queue.last_values is not None:
                    self._last_value_rule.due(queue, slot)
            else:
                self._evictions.replaced(queue, slot)
        if queue.ring.counts_waiting:
            self._evictions.cut(queue)
        return count


class _Sweep(Job):
    """Drops due times at which nothing is due any more."""

    def __init__(self, times: DueTimes) -> None:
        self._times = times

    def step(self) -> bool:
        return self._times.sweep()
