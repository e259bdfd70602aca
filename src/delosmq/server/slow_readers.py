"""Peers that do not read: how long they may take nothing, and what may wait for all of them together.

A connection with a full socket gets nothing more, and its consumers no messages (`Outbox.has_room`). It is looked at
every few seconds. It is cut off when its peer then takes no byte for ``soWriteTimeout``, or when what waits for all
such peers is more than ``global-max-size`` and its peer is the one that has taken nothing for longest, two looks at
least. The peer is told nothing, as that would stand behind what it does not read. What it held goes back to its queues.
"""

import asyncio
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from struct import Struct
from typing import Final

from delosmq.model.errors import PeerError
from delosmq.server.input_buffer import SharedLimit

# Source: struct tcp_info of Linux, tcpi_bytes_acked, since 4.1.
_ACKED: Final = Struct("=120xQ")
_CHECKS_PER_TIMEOUT: Final = 4
"""At a peer within the time it has; more when that is long."""
_CHECK_EVERY_MS: Final = 5_000
"""At most so far apart."""
IDLE_CHECKS: Final = 2
"""A peer that takes nothing for so many looks may be cut off for want of room. One that reads, if a little, stays."""
_MS_PER_S: Final = 1_000


class SlowReader(ABC):
    """A connection with a peer that does not read; `SlowReaders` bounds what waits for it."""

    @abstractmethod
    def cut_off(self, reason: PeerError) -> None:
        """Closes it at once, says why in the log, and frees what waits."""


class SlowReaders(SharedLimit[SlowReader]):
    """What waits for peers with full sockets, in the order in which they last took something."""

    def __init__(self, global_max_bytes: int) -> None:
        super().__init__(global_max_bytes)
        self._still: dict[SlowReader, int] = {}

    def looked_at(self, member: SlowReader, size_bytes: int, still: int) -> None:
        """Notes that the socket of a connection is full.

        Args:
            size_bytes: waiting for its peer, and held for it alone.
            still: at how many looks in a row its peer had taken nothing; 0 when it takes what is sent.
        """
        if not still:
            self.remove(member)
        self._still[member] = still
        self.count(member, size_bytes)

    def remove(self, member: SlowReader) -> None:
        super().remove(member)
        self._still.pop(member, None)

    def may_end(self, member: SlowReader) -> bool:
        return self._still[member] >= IDLE_CHECKS

    def reason(self, size_bytes: int) -> PeerError:
        return PeerError(
            "DMQ6713",
            f"it does not read: {size_bytes} bytes wait for it, and {self.used_bytes} bytes for all peers with full "
            f"sockets, more than the {self.most_bytes} of global-max-size; this one has taken nothing for longest; cut "
            "off. Let the client read, or consume fewer messages at a time (prefetch, consumer-window-size); or raise "
            "global-max-size, or lower connectionsAllowed or writeBufferHighWaterMark.",
        )

    def end(self, member: SlowReader, reason: PeerError) -> None:
        member.cut_off(reason)


class WriteWatch:
    """Notices that a peer takes nothing while something waits for it.

    Args:
        timeout_ms: ``soWriteTimeout``; 0 for never.
        looked: called at each look while something waits, with the number of looks in a row at which the peer had
            taken nothing.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, timeout_ms: int, sender: SlowReader, looked: Callable[[int], None]
    ) -> None:
        self._loop = loop
        self._timeout_ms = timeout_ms
        self._every_ms = min(timeout_ms / _CHECKS_PER_TIMEOUT, _CHECK_EVERY_MS) if timeout_ms else _CHECK_EVERY_MS
        self._sender = sender
        self._looked = looked
        self._socket: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._acked = 0
        self._still = 0
        self._full = False

    def socket_full(self, transport: asyncio.BaseTransport) -> None:
        """Something could not be written. Cheap, as it happens all the time to a peer that is only slower than we."""
        self._full = True
        if self._timer is None:
            self._socket = transport.get_extra_info("socket")
            self._acked = acked_bytes(self._socket)
            self._still = 0
            self._arm()

    def socket_took_all(self) -> None:
        """Nothing waits any more."""
        self._full = False
        self._still = 0

    def stop(self) -> None:
        """The connection is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._socket = None

    def _arm(self) -> None:
        self._timer = self._loop.call_later(self._every_ms / _MS_PER_S, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self._full:
            return
        acked = acked_bytes(self._socket)
        self._still = 0 if acked != self._acked else self._still + 1
        self._acked = acked
        if not self._timeout_ms or self._still * self._every_ms < self._timeout_ms:
            self._arm()
            self._looked(self._still)
            return
        self._sender.cut_off(
            PeerError(
                "DMQ6714",
                f"its system has taken nothing for {self._timeout_ms / _MS_PER_S:g} s of what waits for it, as its"
                " program reads nothing, or too little to make room; cut off. Let the client read while it works, or"
                " consume fewer messages at a time (prefetch, consumer-window-size); if it may take so long, raise"
                " soWriteTimeout of the acceptor.",
            )
        )


def acked_bytes(sock: socket.socket | None) -> int:
    """How much the peer's system has taken in the life of the connection; 0 where the system does not tell.

    What the peer's program does not read fills its socket, which then takes nothing: so this stands still. It moves in
    steps: a full socket takes more only when a good part of it was read, on Linux a sixteenth or a whole packet.
    """
    option = getattr(socket, "TCP_INFO", None)
    if sock is None or option is None:
        return 0
    try:
        known = sock.getsockopt(socket.IPPROTO_TCP, option, _ACKED.size)
    except OSError:
        return 0
    return int(_ACKED.unpack(known)[0]) if len(known) == _ACKED.size else 0
