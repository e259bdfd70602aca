"""Timers: one list of appointments for all parts of a broker."""

from abc import ABC, abstractmethod
from heapq import heapify, heappop, heappush
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.model.ids import MonotonicNs

NS_PER_MS: Final = 1_000_000
_FEW: Final = 16
"""So many cancelled appointments are not worth looking for."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Timer(ABC):
    """Is called at a time that it asked for."""

    @abstractmethod
    def on_timer(self, now: MonotonicNs) -> None:
        """The time has come. Long work becomes a job."""


class Timers:
    """Appointments by monotonic time. One that is no longer wanted may come all the same: the timer looks if it is.
    What clients make and give up at will, long before its time, is cancelled, or it would pile up."""

    def __init__(self) -> None:
        self._appointments: list[tuple[int, int, Timer]] = []
        self._cancelled: set[int] = set()
        self._made: int = 0

    @property
    def next_at(self) -> MonotonicNs:
        """The first appointment; 0 for none."""
        return MonotonicNs(self._appointments[0][0] if self._appointments else 0)

    def at(self, due: int, timer: Timer) -> int:
        """Has ``timer`` called at ``due`` (monotonic ns), or a little later. Gives the number of the appointment."""
        self._made += 1
        heappush(self._appointments, (due, self._made, timer))
        return self._made

    def cancel(self, number: int) -> None:
        """Gives up an appointment that has not come yet. At most half of all there are stay without being wanted."""
        cancelled = self._cancelled
        cancelled.add(number)
        if len(cancelled) > max(_FEW, len(self._appointments) // 2):
            self._appointments[:] = [one for one in self._appointments if one[1] not in cancelled]
            heapify(self._appointments)
            cancelled.clear()

    def run(self, now: MonotonicNs) -> None:
        """Calls all that are due."""
        appointments = self._appointments
        while appointments and appointments[0][0] <= now:
            _, number, timer = heappop(appointments)
            if number in self._cancelled:
                self._cancelled.remove(number)
            else:
                timer.on_timer(now)
