"""The parts that all connections of a broker share."""

import asyncio
import logging
from typing import Final

from delosmq.server.input_buffer import IncompleteFrames
from delosmq.server.passwords import PasswordChecks
from delosmq.server.peer_log import PeerLog
from delosmq.server.slow_readers import SlowReaders
from delosmq.server.ticker import Ticker
from delosmq.server.tls import HandshakeTurns
from delosmq.sessions.host import SessionServices
from delosmq.sessions.protocol import Protocol

READ_BYTES: Final = 256 * 1024


class ServerParts:
    """The parts.

    Attributes:
        buffer: where every socket is read into; what was read is copied before the next read.
        handshakes: lets connections compute TLS handshakes one after the other.
        incomplete_frames: what all of them hold of frames that are not complete.
        slow_readers: what waits for peers that do not read.
        http_port: of the HTTP interface, for those who look for it here; 0 when there is none.
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

    def bound(self, global_max_bytes: int) -> None:
        """Takes over ``global-max-size``, which was reloaded."""
        self.incomplete_frames.bound(global_max_bytes)
        self.slow_readers.bound(global_max_bytes)
