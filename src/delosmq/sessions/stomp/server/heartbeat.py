"""Heart-beats: what client and server promise each other, and the TTL that follows from it.

Source: STOMP 1.2, "Heart-beating"; Artemis manual, "STOMP heart-beating and connection-ttl".
"""

from dataclasses import dataclass
from typing import Final

from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import UNLIMITED, AcceptorSettings
from delosmq.sessions.host import NO_TIMER
from delosmq.sessions.stomp.server import errors
from delosmq.sessions.ttl import NS_PER_MS, TtlLiveness

# Artemis, StompVersionHandlerV11.MIN_SERVER_PING: more often is noise for both sides.
MIN_SERVER_PING_MS: Final = 500
# A day; keeps deadlines far from where 64 bits of nanoseconds end.
_MAX_HEART_BEAT_MS: Final = 86_400_000
_MAX_DIGITS: Final = 9
# A little earlier than promised, so that a busy moment is not a broken promise.
_BEAT_SHARE_PERCENT: Final = 90


@dataclass(frozen=True)
class HeartBeatLimits:
    """What an acceptor makes of a client's wish.

    Attributes:
        ttl_ms: of a client that can't beat; -1 for never.
        ttl_max_ms: 0 for no maximum.
        override_ms: connection-ttl-override; -1 for none, else it decides alone.
    """

    ttl_ms: int
    ttl_min_ms: int
    ttl_max_ms: int
    modifier: float
    override_ms: int = UNLIMITED


@dataclass(frozen=True)
class HeartBeat:
    """What the server answers. Times in ms; 0 means "won't" (send) or "doesn't want" (receive)."""

    send_every_ms: int
    expect_every_ms: int
    ttl_ms: int


def limits_of(acceptor: AcceptorSettings, override_ms: int) -> HeartBeatLimits:
    """The limits of connections that come in by ``acceptor``."""
    return HeartBeatLimits(
        acceptor.connection_ttl_ms,
        acceptor.connection_ttl_min_ms,
        acceptor.connection_ttl_max_ms,
        acceptor.heart_beat_to_ttl_modifier,
        override_ms,
    )


def first_ttl_ms(limits: HeartBeatLimits) -> int:
    """The TTL before, and without, any negotiation."""
    return limits.ttl_ms if limits.override_ms == UNLIMITED else limits.override_ms


def parse(header: str) -> tuple[int, int]:
    """The two numbers of a client's ``heart-beat``: what it can send, and what it wants to get.

    Raises:
        PeerError: DMQ5104, when it is not two non-negative integers.
    """
    sends, comma, wants = header.partition(",")
    sends = sends.strip()
    wants = wants.strip()
    if not comma or not _is_count(sends) or not _is_count(wants):
        raise errors.bad_heart_beat()
    return min(int(sends), _MAX_HEART_BEAT_MS), min(int(wants), _MAX_HEART_BEAT_MS)


def negotiate(client_sends_ms: int, client_wants_ms: int, limits: HeartBeatLimits) -> HeartBeat:
    """The server's half of the bargain."""
    send = 0 if client_wants_ms == 0 else max(MIN_SERVER_PING_MS, client_wants_ms)
    ttl = first_ttl_ms(limits)
    if ttl == UNLIMITED and client_sends_ms == 0:
        return HeartBeat(send, 0, UNLIMITED)
    expect = int(ttl / limits.modifier)
    if client_sends_ms > 0 and limits.override_ms == UNLIMITED:
        expect = client_sends_ms
        ttl = int(client_sends_ms * limits.modifier)
        if ttl < limits.ttl_min_ms:
            ttl = limits.ttl_min_ms
            expect = int(ttl / limits.modifier)
        elif 0 < limits.ttl_max_ms < ttl:
            ttl = limits.ttl_max_ms
            expect = int(ttl / limits.modifier)
    elif ttl == UNLIMITED:
        expect = 0
    return HeartBeat(send, expect, ttl)


class HeartBeatTimer(TtlLiveness):
    """Heart-beats and TTL of one connection."""

    def __init__(self, limits: HeartBeatLimits, check_interval_ms: int, now: MonotonicNs) -> None:
        super().__init__(first_ttl_ms(limits), check_interval_ms, now)
        self._limits = limits
        self._agreed: HeartBeat | None = None
        self._beat_every_ns: int = 0
        self._beat_at: MonotonicNs = NO_TIMER

    def agree(self, header: str) -> None:
        """Reads a client's ``heart-beat``; what follows from it holds from `start` on.

        Raises:
            PeerError: see `parse`.
        """
        sends, wants = parse(header)
        self._agreed = negotiate(sends, wants, self._limits)

    def start(self, now: MonotonicNs) -> str:
        """The client is logged in. Gives the ``heart-beat`` of the answer, "" for none."""
        beats = self._agreed
        if beats is None:
            return ""
        self.ttl.ttl_ms = beats.ttl_ms
        if beats.send_every_ms:
            self._beat_every_ns = beats.send_every_ms * NS_PER_MS * _BEAT_SHARE_PERCENT // 100
            self._beat_at = MonotonicNs(now + self._beat_every_ns)
        return f"{beats.send_every_ms},{beats.expect_every_ms}"

    def next_timer(self) -> MonotonicNs:
        due = self.ttl.next_check_at
        if self._beat_at != NO_TIMER and self._beat_at < due:
            return self._beat_at
        return due

    def beat_due(self, now: MonotonicNs) -> bool:
        if self._beat_at == NO_TIMER or now < self._beat_at:
            return False
        self._beat_at = MonotonicNs(now + self._beat_every_ns)
        return True

    def silence(self, peer: str) -> BrokerError:
        return errors.silent(peer, self.ttl.ttl_ms)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
