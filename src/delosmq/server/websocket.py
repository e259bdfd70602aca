"""WebSocket between a socket (or TLS) and its connection.

    request -> (rejected: HTTP answer, end) | open -> (violation or close frame) -> closed

wsproto does the framing. Each write of the connection becomes one message; one that ends within a frame of the protocol
is continued by the next. So a message always ends where a frame ends.

Source: RFC 6455; limits and subprotocols as in docs/decisions/0036.
"""

from http import HTTPStatus
from typing import Final

from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Ping, Request, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import RemoteProtocolError

from delosmq.model.errors import PeerError
from delosmq.model.settings import AcceptorSettings
from delosmq.server.layers import AWAITED, Layer, Upper

REQUEST_START: Final = b"GET "
_REQUEST_END: Final = b"\r\n\r\n"
_REQUEST_LIMIT_BYTES: Final = 16 * 1024

_REQUESTED: Final = 0
_OPEN: Final = 1
_ENDED: Final = 2


class WebSocketLayer(Layer):
    """One connection's WebSocket.

    Args:
        subprotocols: those that can be served, the preferred one first.
        elsewhere: says where the HTTP interface is; "" when there is none.

    Attributes:
        subprotocol: what was agreed on; "" when the client asked for none.
        within_frame: what is written next is continued by the write after it.
    """

    def __init__(
        self,
        upper: Upper,
        acceptor: AcceptorSettings,
        *,
        subprotocols: tuple[str, ...],
        elsewhere: str,
        buffer: memoryview,
    ) -> None:
        super().__init__(upper, buffer)
        self.subprotocol = ""
        self.within_frame = False
        self._continues = False
        self._acceptor = acceptor
        self._subprotocols = subprotocols
        self._elsewhere = elsewhere
        self._frames = WSConnection(ConnectionType.SERVER)
        self._state = _REQUESTED
        self._request = b""
        self._frame_bytes = 0
        self._close_code: int = CloseReason.NORMAL_CLOSURE
        self._ping: Ping | None = None

    # -- called from below -----------------------------------------------------------------------------------------

    def receive(self, chunk: bytes) -> None:
        if self._state == _REQUESTED:
            self._read_request(chunk)
        elif self._state == _OPEN:
            self._read_frames(chunk)

    def resume_writing(self) -> None:
        self._writable = True
        if self._ping is not None:
            ping = self._ping
            self._ping = None
            self._send(self._frames.send(ping.response()))
        if self._writable:
            self._upper.resume_writing()

    # -- called from above -----------------------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: object = None) -> object:
        if name == AWAITED and self._state == _REQUESTED:
            return "finish the WebSocket request right after connecting"
        return super().get_extra_info(name, default)

    def write(self, chunk: bytes | bytearray | memoryview) -> None:
        if self._state != _OPEN or self.is_closing():
            return
        message = bytes(chunk)
        most = self._acceptor.web_socket_max_frame_bytes
        whole = not self.within_frame and not self._continues
        self._continues = self.within_frame
        text = _as_text(message) if self._acceptor.web_socket_text and whole and len(message) <= most else None
        if text is not None:
            self._send(self._frames.send(TextMessage(data=text)))
            return
        parts = []
        for start in range(0, len(message), most):
            last = start + most >= len(message) and not self.within_frame
            parts.append(self._frames.send(BytesMessage(data=message[start : start + most], message_finished=last)))
        self._send(parts[0] if len(parts) == 1 else b"".join(parts))

    def write_eof(self) -> None:
        self._send_close()
        if self._lower is not None:
            self._lower.write_eof()

    def close(self) -> None:
        self._send_close()
        self._closing = True
        if self._lower is not None:
            self._lower.close()

    # -- the request -----------------------------------------------------------------------------------------------

    def _read_request(self, chunk: bytes) -> None:
        self._request += chunk
        head, end, rest = self._request.partition(_REQUEST_END)
        if len(head) > _REQUEST_LIMIT_BYTES:
            self._reject(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request has more than 16 KiB")
            return
        if not end:
            return
        self._request = b""
        try:
            self._frames.receive_data(head + end)
            request = next(iter(self._frames.events()))
        except (RemoteProtocolError, ValueError) as wrong:
            # ValueError: names that are not what their headers promise, such as a Host outside of IDNA.
            self._reject_malformed(head, wrong)
            return
        assert isinstance(request, Request)  # the only event there is for a whole request
        if request.subprotocols:
            agreed = [name for name in request.subprotocols if name in self._subprotocols]
            if not agreed:
                self._reject(
                    HTTPStatus.BAD_REQUEST,
                    f"this acceptor speaks the subprotocols {', '.join(self._subprotocols) or '(none)'}; "
                    "ask for one of them",
                )
                return
            self.subprotocol = agreed[0]
        self._send(self._frames.send(AcceptConnection(subprotocol=self.subprotocol or None)))
        self._state = _OPEN
        if rest:
            self._read_frames(rest)

    def _reject_malformed(self, head: bytes, wrong: Exception) -> None:
        lowered = head.lower()
        if b"\nupgrade:" not in lowered or b"\nsec-websocket-key:" not in lowered:
            self._reject(HTTPStatus.UPGRADE_REQUIRED, "only WebSockets are served here, no web pages")
        elif "Sec-WebSocket-Version" in str(wrong):
            self._reject(HTTPStatus.UPGRADE_REQUIRED, "only version 13 of WebSocket is spoken here")
        else:
            sentence = str(wrong) if isinstance(wrong, RemoteProtocolError) else "a header can't be read"
            self._reject(HTTPStatus.BAD_REQUEST, f"the WebSocket request is malformed: {sentence}")

    def _reject(self, status: HTTPStatus, sentence: str) -> None:
        body = f"{sentence}.{self._elsewhere}\n".encode()
        head = [f"HTTP/1.1 {status.value} {status.phrase}", "Connection: close"]
        if status == HTTPStatus.UPGRADE_REQUIRED:
            head = [head[0], "Connection: Upgrade, close", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
        head += ["Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}", "", ""]
        self._send("\r\n".join(head).encode("ascii") + body)
        self._state = _ENDED
        self._request = b""
        self._upper.break_off(PeerError("DMQ6120", f"no WebSocket with {self._peer()}: {sentence} ({status.value})"))

    # -- frames ----------------------------------------------------------------------------------------------------

    def _read_frames(self, chunk: bytes) -> None:
        parts: list[bytes] = []
        ended: CloseConnection | None = None
        self._frames.receive_data(chunk)
        for event in self._frames.events():
            if isinstance(event, BytesMessage | TextMessage):
                part = bytes(event.data) if isinstance(event, BytesMessage) else event.data.encode()
                self._frame_bytes += len(part)
                if self._frame_bytes > self._acceptor.web_socket_max_frame_bytes:
                    ended = CloseConnection(CloseReason.MESSAGE_TOO_BIG, self._too_large())
                    break
                if event.frame_finished:
                    self._frame_bytes = 0
                parts.append(part)
            elif isinstance(event, Ping):
                self._answer(event)
            elif isinstance(event, CloseConnection):
                ended = event
                break
        if parts:
            self._upper.receive(b"".join(parts))
        if ended is None or self._state != _OPEN:
            return
        if self._frames.state is ConnectionState.REMOTE_CLOSING:
            # The peer reads no more: what is not written yet is given back to its queue.
            self.close()
            return
        self._close_code = ended.code
        sentence = f"{ended.reason or 'its frames can not be read'} (close code {int(ended.code)})"
        self._upper.break_off(PeerError("DMQ6121", f"WebSocket of {self._peer()} ends: {sentence}"))

    def _too_large(self) -> str:
        return (
            f"a frame has more than {self._acceptor.web_socket_max_frame_bytes} bytes; send messages in several frames "
            "or raise webSocketMaxFramePayloadLength"
        )

    def _answer(self, ping: Ping) -> None:
        if self._writable:
            self._send(self._frames.send(ping.response()))
        else:
            # Only the last one needs an answer (RFC 6455, 5.5.3), so many pings of a peer that reads none cost nothing.
            self._ping = ping

    def _send_close(self) -> None:
        if self._state == _OPEN:
            self._state = _ENDED
            if self._frames.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
                self._send(self._frames.send(CloseConnection(self._close_code)))

    def _send(self, frames: bytes) -> None:
        if self._lower is not None and not self._lower.is_closing():
            self._lower.write(frames)

    def _peer(self) -> str:
        peer = self.get_extra_info("peername")
        return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) and len(peer) >= 2 else "a peer"


def _as_text(message: bytes) -> str | None:
    """``message`` as text; None when it is none, which binary frames carry."""
    try:
        return message.decode()
    except UnicodeDecodeError:
        return None
