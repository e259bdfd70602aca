"""How long an OpenWire connection may be silent, both ways.

Source: AbstractInactivityMonitor of ActiveMQ's client: any bytes count; a side that wrote nothing for a third of the
read timeout writes a KeepAliveInfo; a peer that is silent for the timeout is gone.
"""

from typing import Final

from delosmq.model.ids import MonotonicNs
from delosmq.sessions.protocol import NO_TIMER
from delosmq.sessions.ttl import NS_PER_MS

_BEATS_PER_TIMEOUT: Final = 3


class Inactivity:
    """The clock of one connection.

    Attributes:
        timeout_ms: 0 for none.
    """

    def __init__(self, timeout_ms: int, initial_delay_ms: int, now: MonotonicNs) -> None:
        self.timeout_ms = timeout_ms
        self._timeout_ns: int = timeout_ms * NS_PER_MS
        self._every_ns: int = self._timeout_ns // _BEATS_PER_TIMEOUT
        self._heard_at: MonotonicNs = MonotonicNs(now + initial_delay_ms * NS_PER_MS)
        self._beat_at: MonotonicNs = MonotonicNs(now + self._every_ns) if timeout_ms else NO_TIMER

    def next_timer(self) -> MonotonicNs:
        """When to look again."""
        return self._beat_at

    def look(self, now: MonotonicNs, *, heard: bool) -> bool:
        """Whether a KeepAliveInfo is due. ``heard``: bytes came since the last call, or it waits for us."""
        if heard and now > self._heard_at:
            self._heard_at = now
        if self._beat_at == NO_TIMER or now < self._beat_at:
            return False
        self._beat_at = MonotonicNs(now + self._every_ns)
        return True

    def silent(self, now: MonotonicNs) -> bool:
        """Whether the peer has been silent for too long."""
        return self._timeout_ns > 0 and now >= self._heard_at + self._timeout_ns
