"""What is to happen at a time: one list of appointments for all parts of a broker."""

from abc import ABC, abstractmethod
from heapq import heappop, heappush
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.model.ids import MonotonicNs

NS_PER_MS: Final = 1_000_000


@mypyc_attr(allow_interpreted_subclasses=True)
class Timer(ABC):
    """Is called at a time that it asked for."""

    @abstractmethod
    def on_timer(self, now: MonotonicNs) -> None:
        """The time has come. Long work becomes a job."""


class Timers:
    """Appointments by monotonic time. One that is no longer wanted comes all the same: the timer looks if it is."""

    def __init__(self) -> None:
        self._appointments: list[tuple[int, int, Timer]] = []
        self._made: int = 0

    @property
    def next_at(self) -> MonotonicNs:
        """The first appointment; 0 for none."""
        return MonotonicNs(self._appointments[0][0] if self._appointments else 0)

    def at(self, due: int, timer: Timer) -> None:
        """Has ``timer`` called at ``due`` (monotonic ns), or a little later."""
        self._made += 1
        heappush(self._appointments, (due, self._made, timer))

    def run(self, now: MonotonicNs) -> None:
        """Calls all whose time has come."""
        appointments = self._appointments
        while appointments and appointments[0][0] <= now:
            heappop(appointments)[2].on_timer(now)
