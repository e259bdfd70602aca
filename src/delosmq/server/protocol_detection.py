"""Which protocol a connection speaks, and what a client is told when that is not served there."""

import asyncio
from enum import Enum
from http import HTTPStatus
from typing import Final

from delosmq.model.settings import AcceptorSettings
from delosmq.server.layers import Upper
from delosmq.server.server_parts import ServerParts
from delosmq.server.websocket import REQUEST_START, WebSocketLayer
from delosmq.sessions.protocol import Protocol
from delosmq.wire.first_bytes import FOREIGN, MINE, describe, is_http

# Line ends may come before the first frame, but not without end.
_START_LIMIT_BYTES: Final = 4_096
# The first byte of every TLS connection. Source: RFC 8446, 5.1.
_TLS_START: Final = b"\x16"


class Verdict(Enum):
    """What the first bytes say when they do not say which protocol it is."""

    UNDECIDED = "undecided"
    WEB_SOCKET = "WebSocket"
    NONE = "none"


class ProtocolDetection:
    """The first bytes of a connection, kept until they tell which protocol of its acceptor it speaks."""

    def __init__(self, acceptor: AcceptorSettings, protocols: tuple[Protocol, ...]) -> None:
        self._web_socket: WebSocketLayer | None = None
        self._acceptor = acceptor
        self._protocols = tuple(protocol for protocol in protocols if protocol.name in acceptor.protocols)
        self._subprotocols = tuple(name for protocol in self._protocols for name in protocol.websocket_subprotocols)
        self._start = b""

    def add(self, chunk: bytes) -> Protocol | Verdict:
        """Looks at all that has come so far."""
        self._start += chunk
        undecided = False
        for protocol in self._candidates():
            verdict = protocol.detect(self._start)
            if verdict == MINE:
                return protocol
            undecided = undecided or verdict != FOREIGN
        if self._web_socket is None and self._subprotocols:
            if self._start.startswith(REQUEST_START):
                return Verdict.WEB_SOCKET
            undecided = undecided or REQUEST_START.startswith(self._start)
        return Verdict.UNDECIDED if undecided and len(self._start) <= _START_LIMIT_BYTES else Verdict.NONE

    def take(self) -> bytes:
        """What has come so far, for who handles it from now on."""
        start, self._start = self._start, b""
        return start

    def refusal(self, peer: str) -> str:
        """Why the connection is closed, for the log."""
        acceptor = self._acceptor
        if acceptor.tls is None and self._start.startswith(_TLS_START):
            return (
                f"DMQ6130: {peer} begins with TLS, which acceptor '{acceptor.name}' does not speak; closed. Set"
                " sslEnabled=true in its URL, or switch TLS off in the client"
            )
        return (
            f"DMQ6702: {peer} speaks no protocol of acceptor '{acceptor.name}' ({', '.join(acceptor.protocols)}): its"
            f" first bytes look like {describe(self._start)}; closed. Check the port and the client's protocol"
        )

    def answer(self, http_port: int) -> bytes:
        """What the client is told before that: an answer to an HTTP client, to others nothing."""
        if self._web_socket is None and is_http(self._start):
            return not_http(self._acceptor.name, self._acceptor.protocols, http_port)
        return b""

    def upgrade(self, upper: Upper, transport: asyncio.Transport, parts: ServerParts) -> WebSocketLayer:
        """Puts a WebSocket between a connection and its transport; what comes in it is detected anew."""
        layer = WebSocketLayer(
            upper,
            self._acceptor,
            subprotocols=self._subprotocols,
            elsewhere=elsewhere(parts.http_port),
            buffer=parts.buffer,
        )
        layer.insert(transport)
        self._web_socket = layer
        return layer

    def _candidates(self) -> tuple[Protocol, ...]:
        if self._web_socket is None:
            return self._protocols
        spoken = tuple(protocol for protocol in self._protocols if protocol.websocket_subprotocols)
        chosen = self._web_socket.subprotocol
        return tuple(one for one in spoken if chosen in one.websocket_subprotocols) if chosen else spoken


def elsewhere(http_port: int) -> str:
    """Where the HTTP interface is, as a sentence after others; "" where there is none (port 0)."""
    return f" The HTTP interface of this broker is at port {http_port}." if http_port else ""


def not_http(acceptor: str, protocols: tuple[str, ...], http_port: int) -> bytes:
    """The whole answer to a request of HTTP that came to the port of another protocol."""
    body = f"this is acceptor '{acceptor}', which speaks {', '.join(protocols)} and no HTTP.{elsewhere(http_port)}\n"
    status = HTTPStatus.MISDIRECTED_REQUEST
    head = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Connection: close",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body.encode())}",
    ]
    return "\r\n".join([*head, "", body]).encode()
