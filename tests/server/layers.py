"""What is above and below a layer, without sockets."""

import asyncio

from delosmq.model.errors import PeerError
from delosmq.server.layers import Upper


class Above(Upper):
    """Takes what comes, as the connection would."""

    def __init__(self) -> None:
        self.received = b""
        self.broken: PeerError | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Nothing is written to it."""

    def receive(self, chunk: bytes) -> None:
        self.received += chunk

    def break_off(self, reason: PeerError) -> None:
        self.broken = reason

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        """Nothing is written."""

    def resume_writing(self) -> None:
        """Nothing is written."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is held."""


class Below(asyncio.Transport):
    """A socket that takes everything."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def write_eof(self) -> None:
        self.closed = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        """Nothing is read by itself."""

    def resume_reading(self) -> None:
        """Nothing is read by itself."""

    def is_closing(self) -> bool:
        return self.closed
