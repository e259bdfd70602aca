"""What a broker is made with, and the parts that all its connections share."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from delosmq.server.clock import ServerClock, SystemClock
from delosmq.server.input_buffer import IncompleteFrames
from delosmq.server.layers import Tap
from delosmq.server.passwords import PasswordChecks
from delosmq.server.peer_log import PeerLog
from delosmq.server.slow_readers import SlowReaders
from delosmq.server.ticker import Ticker
from delosmq.server.tls import HandshakeTurns
from delosmq.sessions.host import SessionServices
from delosmq.sessions.protocol import Protocol

READ_BYTES: Final = 256 * 1024


@dataclass(frozen=True)
class Instruments:
    """What a running broker is made with. `delosmq.testing` brings its own; for all others the defaults are right.

    Attributes:
        make_ticker: takes the arguments of `Ticker`.
        tap: sees the bytes of all connections; None for none.
    """

    clock: ServerClock = field(default_factory=SystemClock)
    make_ticker: Callable[..., Ticker] = Ticker
    tap: Tap | None = None


class ServerParts:
    """The parts.

    Attributes:
        buffer: where every socket is read into; what was read is copied before the next read.
        handshakes: lets connections compute TLS handshakes one after the other.
        incomplete_frames: what all of them hold of frames that are not complete.
        slow_readers: what waits for peers that do not read.
        http_port: of the HTTP interface, for those who look for it here; 0 when there is none.
        tap: looks at what passes; None for none.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        services: SessionServices,
        ticker: Ticker,
        *,
        passwords: PasswordChecks,
        protocols: tuple[Protocol, ...],
        log: logging.Logger,
        tap: Tap | None,
    ) -> None:
        self.loop = loop
        self.services = services
        self.ticker = ticker
        self.clock = ticker.clock
        self.protocols = protocols
        self.log = log
        self.peer_log = PeerLog(log)
        self.passwords = passwords
        self.buffer = memoryview(bytearray(READ_BYTES))
        self.handshakes = HandshakeTurns(loop)
        self.incomplete_frames = IncompleteFrames(services.broker.settings.global_max_size_bytes)
        self.slow_readers = SlowReaders(services.broker.settings.global_max_size_bytes)
        self.http_port = 0
        self.tap = tap

    def bound(self, global_max_bytes: int) -> None:
        """Takes over ``global-max-size``, which was reloaded."""
        self.incomplete_frames.bound(global_max_bytes)
        self.slow_readers.bound(global_max_bytes)
