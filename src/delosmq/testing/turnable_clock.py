"""The clock of a broker under test: it goes as the machine's does, until a test turns it forward or stops it."""

import asyncio
import heapq
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from delosmq.model.errors import MisuseError
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.server.clock import Appointment, ServerClock

_NS_PER_S: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR_MS: Final = 3_600_000
_FEW: Final = 64
"""So many cancelled appointments are not worth looking for."""


class TimeKeeper(ABC):
    """Who a clock turns for: the broker, as far as the clock knows it."""

    @abstractmethod
    def turn(self, ns: int, *, silent_clients: bool) -> None:
        """Has `TurnableClock.pass_time` called where the broker runs, if it does, and waits until that is over."""

    @abstractmethod
    async def settle(self) -> None:
        """Returns when the broker has done all that it has to do now."""

    @abstractmethod
    def hear_clients(self) -> None:
        """Counts every connection as heard of."""


class Due:
    """An appointment."""

    def __init__(self, due: MonotonicNs, callback: Callable[[], object]) -> None:
        self.due = due
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class TurnableClock(ServerClock):
    """Both clocks of one broker.

    Time goes on by itself, so that what waits for a second comes after a second; `freeze` ends that. `advance` turns
    it forward, and what becomes due by it comes at once.
    """

    def __init__(self, keeper: TimeKeeper) -> None:
        self._keeper = keeper
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._appointments: list[tuple[int, int, Due]] = []
        self._made = 0
        self.reset()

    # -- for tests -------------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The broker's time of day, in UTC."""
        return _EPOCH + timedelta(microseconds=self._wall_ns() // 1_000)

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
        silent_clients: bool = False,
    ) -> None:
        """Turns the clock forward. Returns when all that has become due by it has happened, in the order of the due
        times: messages expired, were delivered late or again, connections timed out.

        Args:
            silent_clients: let connections time out, as no client sends a heart-beat meanwhile. Otherwise each client
                counts as heard of.

        Raises:
            MisuseError: time does not go back.
        """
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        if span < timedelta(0):
            raise MisuseError(
                "DMQ7201", f"the clock of a broker can't go back by {-span}; advance it, or reset the broker"
            )
        self._keeper.turn((span // timedelta(microseconds=1)) * 1_000, silent_clients=silent_clients)

    def freeze(self) -> None:
        """Stops the clock: from now on only `advance` moves it."""
        self._go_on(running=False)

    def unfreeze(self) -> None:
        """Lets the clock go on from where it stands."""
        self._go_on(running=True)

    def reset(self) -> None:
        """As the machine's clock again, to the millisecond; for a broker that does not run."""
        wall_ns, monotonic_ns = time.time_ns(), time.monotonic_ns()
        # Their milliseconds begin together: what is due after a delay by one of them is so by the other.
        wall_ns += (monotonic_ns - wall_ns) % _NS_PER_MS
        self._keep(wall_ns, monotonic_ns, running=True)

    # -- for the broker ----------------------------------------------------------------------------------------------

    def wall_ms(self) -> WallMs:
        return WallMs(self._wall_ns() // _NS_PER_MS)

    def monotonic_ns(self) -> MonotonicNs:
        return MonotonicNs(self._monotonic_ns())

    def longest_nap_ms(self) -> int:
        """Its times of day go as its monotonic time does, so few looks suffice: a day passes in few steps."""
        return _HOUR_MS

    @property
    def ahead_ns(self) -> int:
        """Of the machine's."""
        return self._monotonic_ns() - time.monotonic_ns()

    def call_at(self, loop: asyncio.AbstractEventLoop, due: MonotonicNs, callback: Callable[[], object]) -> Appointment:
        if loop is not self._loop:
            # What an earlier run of the broker wanted is over.
            self._loop, self._timer = loop, None
            self._appointments.clear()
        self._drop_cancelled()
        self._made += 1
        appointment = Due(due, callback)
        heapq.heappush(self._appointments, (due, self._made, appointment))
        if self._appointments[0][2] is appointment:
            self._arm()
        return appointment

    async def pass_time(self, ns: int, *, silent_clients: bool) -> None:
        """Goes from appointment to appointment until ``ns`` have passed. In the broker's loop."""
        running = self._running
        self._go_on(running=False)
        target_ns = self._base_ns + ns
        try:
            await self._keeper.settle()
            while self._appointments and self._appointments[0][0] <= target_ns:
                self._jump(max(self._appointments[0][0], self._base_ns))
                if not silent_clients:
                    self._keeper.hear_clients()
                self._call_due()
                await self._keeper.settle()
            self._jump(target_ns)
        finally:
            self._keep(self._base_wall_ns, self._base_ns, running=running)
        await self._keeper.settle()

    def jump(self, ns: int) -> None:
        """Turns the clock of a broker that does not run."""
        self._go_on(ns, running=self._running)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _go_on(self, ahead_ns: int = 0, *, running: bool) -> None:
        """Both clocks from where they stand, or that much later."""
        passed_ns = self._passed_ns() + ahead_ns  # looked at once, so that neither gains on the other
        self._keep(self._base_wall_ns + passed_ns, self._base_ns + passed_ns, running=running)

    def _keep(self, wall_ns: int, monotonic_ns: int, *, running: bool) -> None:
        """It is this time now."""
        self._base_wall_ns = wall_ns
        self._base_ns = monotonic_ns
        self._running = running
        self._since_ns = time.monotonic_ns()
        if self._loop is not None:
            with suppress(RuntimeError):  # that loop is closed, and the next run of the broker has another one
                self._loop.call_soon_threadsafe(self._arm)

    def _jump(self, monotonic_ns: int) -> None:
        self._base_wall_ns += monotonic_ns - self._base_ns
        self._base_ns = monotonic_ns

    def _passed_ns(self) -> int:
        return time.monotonic_ns() - self._since_ns if self._running else 0

    def _wall_ns(self) -> int:
        return self._base_wall_ns + self._passed_ns()

    def _monotonic_ns(self) -> int:
        return self._base_ns + self._passed_ns()

    def _arm(self) -> None:
        """Has the loop wake us for the first appointment, unless the clock stands still."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._running and self._appointments and self._loop is not None:
            after_s = max(0, self._appointments[0][0] - self._monotonic_ns()) / _NS_PER_S
            self._timer = self._loop.call_later(after_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._call_due()
        self._arm()

    def _call_due(self) -> None:
        now = self._monotonic_ns()
        due: list[Due] = []
        while self._appointments and self._appointments[0][0] <= now:
            due.append(heapq.heappop(self._appointments)[2])
        for appointment in due:
            if appointment.callback is not None:
                appointment.callback()

    def _drop_cancelled(self) -> None:
        if self._made % _FEW == 0:
            self._appointments = [one for one in self._appointments if one[2].callback is not None]
            heapq.heapify(self._appointments)
