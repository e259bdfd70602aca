"""The clocks of a running broker, and its appointments by them: of the engine, of connections, of lease groups.

Sockets, the store and the end of a connection keep to the loop's own time, as they wait for machines.
"""

import asyncio
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Final, Protocol

from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.ports import Clock

_NS_PER_S: Final = 1_000_000_000


class Appointment(Protocol):
    """A call that is to come."""

    def cancel(self) -> None:
        """It does not come any more. May be repeated."""


class ServerClock(Clock):
    """The clocks of a broker that runs in a loop."""

    @abstractmethod
    def call_at(self, loop: asyncio.AbstractEventLoop, due: MonotonicNs, callback: Callable[[], object]) -> Appointment:
        """Has ``callback`` called in ``loop``, where this is called as well, at ``due`` or as soon as possible."""


class SystemClock(ServerClock):
    """The clocks of the machine."""

    def wall_ms(self) -> WallMs:
        return WallMs(time.time_ns() // 1_000_000)

    def monotonic_ns(self) -> MonotonicNs:
        return MonotonicNs(time.monotonic_ns())

    def call_at(self, loop: asyncio.AbstractEventLoop, due: MonotonicNs, callback: Callable[[], object]) -> Appointment:
        return loop.call_later(max(0, due - self.monotonic_ns()) / _NS_PER_S, callback)
