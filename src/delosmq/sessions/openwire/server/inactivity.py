"""How long an OpenWire connection may be silent, both ways.

Source: AbstractInactivityMonitor of ActiveMQ's client: any bytes count; a side that wrote nothing for a third of the
read timeout writes a KeepAliveInfo; a peer that is silent for the timeout is gone.
"""

from typing import Final

from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs
from delosmq.sessions.host import NO_TIMER
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.ttl import NS_PER_MS, Liveness

_BEATS_PER_TIMEOUT: Final = 3


class Inactivity(Liveness):
    """The clock of one connection.

    Args:
        timeout_ms: 0 for none.
    """

    def __init__(self, timeout_ms: int = 0, initial_delay_ms: int = 0, now: MonotonicNs = NO_TIMER) -> None:
        super().__init__()
        self._timeout_ms: int = timeout_ms
        self._timeout_ns: int = timeout_ms * NS_PER_MS
        self._every_ns: int = self._timeout_ns // _BEATS_PER_TIMEOUT
        self._heard_at: MonotonicNs = MonotonicNs(now + initial_delay_ms * NS_PER_MS)
        self._beat_at: MonotonicNs = MonotonicNs(now + self._every_ns) if timeout_ms else NO_TIMER

    def next_timer(self) -> MonotonicNs:
        return self._beat_at

    def beat_due(self, now: MonotonicNs) -> bool:
        if self._beat_at == NO_TIMER or now < self._beat_at:
            return False
        self._beat_at = MonotonicNs(now + self._every_ns)
        return True

    def is_silent(self, now: MonotonicNs, *, waits_for_us: bool) -> bool:
        if (self.heard or waits_for_us) and now > self._heard_at:
            self._heard_at = now
        self.heard = False
        return self._timeout_ns > 0 and now >= self._heard_at + self._timeout_ns

    def silence(self, peer: str) -> BrokerError:
        return errors.silent(peer, self._timeout_ms)
