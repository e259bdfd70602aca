"""How long a CORE client may be silent: it says so in its pings.

Source: RemotingServiceImpl and CoreProtocolManager of Artemis. Any value counts: 0 and all below -1 end a connection
at the next check that finds it silent.
"""

from typing import Final

from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import UNLIMITED
from delosmq.sessions.core.server import errors
from delosmq.sessions.ttl import NEVER_MS, TtlLiveness

DEFAULT_TTL_MS: Final = 60_000
"""Before the first ping. Source: ActiveMQClient.DEFAULT_CONNECTION_TTL."""


class PingLiveness(TtlLiveness):
    """The TTL of one connection."""

    def __init__(self, override_ms: int, check_interval_ms: int, now: MonotonicNs) -> None:
        """
        Args:
            override_ms: connection-ttl-override; -1 for none, else it decides alone.
        """
        self._overridden: bool = override_ms != UNLIMITED
        super().__init__(override_ms if self._overridden else DEFAULT_TTL_MS, check_interval_ms, now)

    def pinged(self, ttl_ms: int) -> None:
        """The peer says how long it may be silent."""
        if not self._overridden:
            self.ttl.ttl_ms = ttl_ms

    def connection_lost(self) -> None:
        """The peer is gone, and its sessions wait for it no longer than the TTL, for which it can't be for ever now."""
        if self.ttl.ttl_ms == NEVER_MS:
            self.ttl.ttl_ms = DEFAULT_TTL_MS

    def is_watched(self) -> bool:
        """Whether silence would be noticed at all."""
        return self.ttl.ttl_ms != NEVER_MS

    def beat_due(self, now: MonotonicNs) -> bool:
        return False  # the broker answers pings, and sends none

    def silence(self, peer: str) -> BrokerError:
        return errors.silent(peer, self.ttl.ttl_ms)
