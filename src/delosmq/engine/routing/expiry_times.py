"""When the next message expires, for queues small enough to be looked at then."""

from collections.abc import Callable
from typing import Final

from delosmq.engine.base.timers import NS_PER_MS, Timer, Timers
from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Clock

FAR: Final = 1 << 62
LEAST_GAP_NS: Final = 100 * NS_PER_MS
"""Between two looks, however many messages expire one after the other."""


class ExpiryTimes(Timer):
    """Keeps the earliest time of all that it is told; O(1) in time and memory for each message with an expiry.

    Attributes:
        when_due: called when something has expired, which may be gone by now; None before the start.
    """

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self._planned_ms: int = FAR
        self._next_ns: int = FAR
        self._not_before_ns: int = 0
        self.when_due: Callable[[], None] | None = None

    def note(self, expires_at_ms: int) -> None:
        """A message expires at that time (wall clock)."""
        if expires_at_ms < self._planned_ms and self.when_due is not None:
            self._planned_ms = expires_at_ms
            self._arm(self._clock.monotonic_ns())

    def on_timer(self, now: MonotonicNs) -> None:
        if now < self._next_ns:
            return  # an appointment that a shorter one has replaced
        self._next_ns = FAR
        when_due = self.when_due
        if self._planned_ms > self._clock.wall_ms():
            if self._planned_ms < FAR:
                self._arm(now)
        elif when_due is not None:
            self._planned_ms = FAR
            self._not_before_ns = now + LEAST_GAP_NS
            when_due()

    def _arm(self, now: int) -> None:
        left_ns = max(0, self._planned_ms - self._clock.wall_ms()) * NS_PER_MS
        # Naps bound the number of appointments, too, whatever the order in which expiries become known.
        nap_ns = min(left_ns, self._clock.longest_nap_ms() * NS_PER_MS)
        wanted = max(now + nap_ns, self._not_before_ns)
        if self._next_ns == FAR or wanted + LEAST_GAP_NS <= self._next_ns:
            self._next_ns = wanted
            self._timers.at(wanted, self)
