"""Signs of life of a client's connection: what is said when there is nothing else, and what silence means.

Source: AbstractInactivityMonitor of the Java client.
"""

from collections.abc import Callable
from typing import Final

from delosmq.model.ports import Clock
from delosmq.sessions.openwire.client.ports import NS_PER_MS, Appointments
from delosmq.wire.openwire.negotiation import Agreement

_BEATS_PER_TIMEOUT: Final = 3


class ClientInactivity:
    """
    Args:
        beat: says that we are here.
        silent: is told after how many ms of silence the broker is taken for gone.

    Attributes:
        wrote: something was said since the last beat.
    """

    def __init__(
        self, clock: Clock, appointments: Appointments, beat: Callable[[], None], silent: Callable[[int], None]
    ) -> None:
        self.wrote: bool = False
        self._clock = clock
        self._appointments = appointments
        self._say = beat
        self._silent = silent
        self._heard_at: int = 0
        self._timeout_ms: int = 0
        self._connections: int = 0

    def begin(self, agreement: Agreement) -> None:
        """Both sides of a connection have agreed."""
        self._connections += 1
        self._timeout_ms = agreement.read_timeout_ms
        if self._timeout_ms > 0:
            self._heard_at = self._clock.monotonic_ns() + agreement.initial_delay_ms * NS_PER_MS
            self._beat_later(self._connections)

    def end(self) -> None:
        """The connection is over."""
        self._connections += 1

    def heard(self) -> None:
        """Bytes came."""
        self._heard_at = self._clock.monotonic_ns()

    def _beat_later(self, connection: int) -> None:
        due = self._clock.monotonic_ns() + (self._timeout_ms // _BEATS_PER_TIMEOUT + 1) * NS_PER_MS
        self._appointments.at(due, lambda: self._beat(connection))

    def _beat(self, connection: int) -> None:
        """A third of the longest silence has passed."""
        if connection != self._connections:
            return
        if self._clock.monotonic_ns() - self._heard_at >= self._timeout_ms * NS_PER_MS:
            self._silent(self._timeout_ms)
            return
        if not self.wrote:
            self._say()
        self.wrote = False
        self._beat_later(connection)
