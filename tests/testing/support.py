"""A client that is made of one socket, and runs of pytest."""

import socket
from types import TracebackType
from typing import Self

import pytest

import delosmq
from delosmq.wire.stomp.decoder import StompDecoder, StompFrame
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V12
from tests.patience import PATIENCE_S


class StompPeer:
    """Speaks STOMP 1.2 in frames; ``with`` closes it."""

    def __init__(self, broker: delosmq.Broker) -> None:
        self._socket = socket.create_connection((broker.host, broker.stomp_port), timeout=PATIENCE_S)
        self._decoder = StompDecoder(StompLimits())
        self._decoder.version = V12
        self._unread: list[StompFrame] = []
        login = ("accept-version:1.2", "host:h", f"login:{broker.user}", f"passcode:{broker.password}")
        self.send("CONNECT", *login)
        assert self.frame().command == "CONNECTED"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, command: str, *headers: str, body: str = "") -> None:
        self.send_raw(("\n".join((command, *headers)) + f"\n\n{body}\0").encode())

    def send_raw(self, chunk: bytes) -> None:
        self._socket.sendall(chunk)

    def put(self, queue: str, body: str, *headers: str) -> None:
        """Sends a message and waits for its receipt."""
        self.send("SEND", f"destination:/queue/{queue}", "receipt:put", *headers, body=body)
        self._await_receipt("put")

    def subscribe(self, queue: str, ack: str = "auto") -> None:
        self.send("SUBSCRIBE", f"destination:/queue/{queue}", "id:1", f"ack:{ack}")

    def answer(self, command: str, message: StompFrame) -> None:
        """ACK or NACK, with a receipt."""
        self.send(command, f"id:{message.headers['ack']}", "receipt:answered")
        self._await_receipt("answered")

    def _await_receipt(self, receipt: str) -> None:
        while (frame := self._next()).command == "MESSAGE":
            self._unread.append(frame)
        assert (frame.command, frame.headers["receipt-id"]) == ("RECEIPT", receipt)

    def frame(self, timeout_s: float = PATIENCE_S) -> StompFrame:
        self._socket.settimeout(timeout_s)
        return self._unread.pop(0) if self._unread else self._next()

    def _next(self) -> StompFrame:
        frame = self._decoder.next_frame()
        while frame is None:
            chunk = self._socket.recv(65536)
            assert chunk, "the broker closed the connection"
            frame = self._decoder.next_frame(chunk)
        return frame

    def text(self) -> str:
        """The body of the next message."""
        message = self.frame()
        assert message.command == "MESSAGE"
        return bytes(message.body).decode()

    def is_closed(self) -> bool:
        """Reads until the broker closes."""
        try:
            while self._socket.recv(65536):
                pass
        except ConnectionError:
            return True
        return True


def run_pytest(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """A run of pytest in a process of its own, with all plugins that are installed, and warnings as errors."""
    quiet = ("-W", "error", "-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function")
    return pytester.runpytest_subprocess(*quiet, *arguments)
