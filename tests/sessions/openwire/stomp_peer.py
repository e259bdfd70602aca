"""A STOMP client of the broker that tests of other protocols have."""

from itertools import count
from typing import Any

from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.host import Peer
from delosmq.sessions.stomp.server.protocol import StompProtocol
from delosmq.wire.stomp.decoder import StompDecoder, StompFrame
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V12
from tests.sessions.support import ACCEPTOR, PASSWORD, USER, Bench, Host

_NUMBERS = count(1)


class StompPeer:
    """A STOMP client of the same broker."""

    def __init__(self, bench: Bench[Any], acceptor: AcceptorSettings = ACCEPTOR, *, version: int = V12) -> None:
        self.bench = bench
        self.host = Host()
        self.version = version
        peer = Peer("10.0.0.2:6000", f"stomp{next(_NUMBERS)}")
        self.session = StompProtocol().open(self.host, peer, acceptor, bench.services, bench.now)
        self.frame("CONNECT", f"accept-version:{version / 10}", "host:h", f"login:{USER}", f"passcode:{PASSWORD}")
        (connected,) = self.take()
        assert connected.command == "CONNECTED"

    def frame(self, command: str, *headers: str, body: bytes = b"") -> None:
        head = "\n".join((command, *headers)).encode()
        self.session.receive(head + b"\n\n" + body + b"\0", self.bench.now)
        self.bench.tick()

    def take_raw(self) -> bytes:
        """The bytes received since the last call."""
        raw = b""
        for _ in range(3):
            self.bench.tick()
            while chunk := self.session.outbox.take():
                raw += chunk
                self.session.outbox.confirm_written()
            self.session.handle_written(self.bench.now)
        return raw

    def take(self) -> list[StompFrame]:
        """The frames received since the last call."""
        decoder = StompDecoder(StompLimits())
        decoder.version = self.version
        frames: list[StompFrame] = []
        frame = decoder.next_frame(self.take_raw())
        while frame is not None:
            frames.append(frame)
            frame = decoder.next_frame()
        return frames

    def drop(self) -> None:
        """The socket breaks."""
        self.session.connection_lost()
        self.bench.tick()
