"""The connection TTL: how long a connection may be silent.

Source: Artemis, RemotingServiceImpl.FailureCheckAndFlushThread: data since the last check starts the TTL afresh,
so a silent peer is found between one TTL and one TTL plus two intervals after its last byte.
"""

from typing import Final

from delosmq.model.ids import MonotonicNs

NEVER_MS: Final = -1
NS_PER_MS: Final = 1_000_000


class ConnectionTtl:
    """The check of one connection, in the server's interval.

    Attributes:
        ttl_ms: `NEVER_MS` switches the check off.
        next_check_at: when `check` is due.
    """

    def __init__(self, ttl_ms: int, interval_ms: int, now: MonotonicNs) -> None:
        self.ttl_ms = ttl_ms
        self._interval_ns = interval_ms * NS_PER_MS
        self._heard_at: MonotonicNs = now
        self.next_check_at: MonotonicNs = MonotonicNs(now + self._interval_ns)

    def check(self, now: MonotonicNs, heard: bool) -> bool:
        """Whether the connection is to be failed. ``heard``: bytes came since the last check, or it waits for us."""
        self.next_check_at = MonotonicNs(now + self._interval_ns)
        if heard:
            self._heard_at = now
            return False
        return self.ttl_ms != NEVER_MS and now >= self._heard_at + self.ttl_ms * NS_PER_MS
