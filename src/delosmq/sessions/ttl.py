"""The connection TTL: how long a connection may be silent, and the port by which a session asks.

Source: Artemis, RemotingServiceImpl.FailureCheckAndFlushThread: data since the last check starts the TTL afresh,
so a silent peer is found between one TTL and one TTL plus two intervals after its last byte.
"""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs

NEVER_MS: Final = -1
NS_PER_MS: Final = 1_000_000


@mypyc_attr(allow_interpreted_subclasses=True)
class Liveness(ABC):
    """The signs of life of one connection, from both sides, as its protocol has them.

    Attributes:
        heard: bytes came since `is_silent` last looked.
    """

    def __init__(self) -> None:
        self.heard: bool = False

    @abstractmethod
    def next_timer(self) -> MonotonicNs:
        """When to ask the two again; 0 for never."""

    @abstractmethod
    def beat_due(self, now: MonotonicNs) -> bool:
        """Whether the server has to show that it is there; asking makes the next appointment."""

    @abstractmethod
    def is_silent(self, now: MonotonicNs, *, waits_for_us: bool) -> bool:
        """Whether the peer was silent for too long.

        Args:
            waits_for_us: it owes nothing, as we do not read it or keep it waiting.
        """

    @abstractmethod
    def silence(self, peer: str) -> BrokerError:
        """What a peer is told that was silent for too long."""


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


@mypyc_attr(allow_interpreted_subclasses=True)
class TtlLiveness(Liveness):
    """That of a protocol whose peers may be silent for as long as their TTL.

    Attributes:
        ttl: how long that is.
    """

    def __init__(self, ttl_ms: int, check_interval_ms: int, now: MonotonicNs) -> None:
        super().__init__()
        self.ttl: ConnectionTtl = ConnectionTtl(ttl_ms, check_interval_ms, now)

    def next_timer(self) -> MonotonicNs:
        return self.ttl.next_check_at

    def is_silent(self, now: MonotonicNs, *, waits_for_us: bool) -> bool:
        if now < self.ttl.next_check_at:
            return False
        heard = self.heard or waits_for_us
        self.heard = False
        return self.ttl.check(now, heard)
