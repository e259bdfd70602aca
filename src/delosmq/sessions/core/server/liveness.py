"""How long a CORE client may be silent: it says so in its pings.

Source: RemotingServiceImpl and CoreProtocolManager of Artemis. Any value counts: 0 and all below -1 end a connection
at the next check that finds it silent.
"""

from typing import Final

from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import UNLIMITED
from delosmq.sessions.core.server import errors
from delosmq.sessions.ttl import NEVER_MS, ConnectionTtl, Liveness

DEFAULT_TTL_MS: Final = 60_000
"""Before the first ping. Source: ActiveMQClient.DEFAULT_CONNECTION_TTL."""


class PingLiveness(Liveness):
    """The TTL of one connection.

    Attributes:
        ttl: how long the peer may be silent.
    """

    def __init__(self, override_ms: int, check_interval_ms: int, now: MonotonicNs) -> None:
        """
        Args:
            override_ms: connection-ttl-override; -1 for none, else it decides alone.
        """
        super().__init__()
        self._overridden: bool = override_ms != UNLIMITED
        ttl_ms = override_ms if self._overridden else DEFAULT_TTL_MS
        self.ttl: ConnectionTtl = ConnectionTtl(ttl_ms, check_interval_ms, now)

    def pinged(self, ttl_ms: int) -> None:
        """The peer says how long it may be silent."""
        if not self._overridden:
            self.ttl.ttl_ms = ttl_ms

    def is_watched(self) -> bool:
        """Whether silence would be noticed at all."""
        return self.ttl.ttl_ms != NEVER_MS

    def next_timer(self) -> MonotonicNs:
        return self.ttl.next_check_at

    def beat_due(self, now: MonotonicNs) -> bool:
        return False  # the broker answers pings, and sends none

    def is_silent(self, now: MonotonicNs, *, waits_for_us: bool) -> bool:
        if now < self.ttl.next_check_at:
            return False
        heard = self.heard or waits_for_us
        self.heard = False
        return self.ttl.check(now, heard)

    def silence(self, peer: str) -> BrokerError:
        return errors.silent(peer, self.ttl.ttl_ms)
