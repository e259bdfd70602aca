"""WebSocket on the acceptor's port: the request, frames in all their forms, limits, and ends."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Message,
    Ping,
    Pong,
    Request,
    TextMessage,
)

from delosmq.model.settings import AcceptorSettings
from delosmq.server.connection import Connection
from delosmq.server.websocket import WebSocketLayer
from tests.server.layers import Above, Below
from tests.server.support import TCP, RawPeer, RunningServer, running
from tests.sessions.support import PASSWORD, USER

LOGIN = f"CONNECT\naccept-version:1.2\nhost:h\nlogin:{USER}\npasscode:{PASSWORD}\n\n\0".encode()
REQUEST = (
    "GET /stomp HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)


class WebPeer:
    """A WebSocket client that sees messages and frames as they are."""

    def __init__(self, peer: RawPeer) -> None:
        self.peer = peer
        self.frames = WSConnection(ConnectionType.CLIENT)
        self.events: list[Event] = []

    def send(self, event: Event) -> None:
        self.peer.send(self.frames.send(event))

    async def event(self) -> Event:
        async with asyncio.timeout(10):
            while not self.events:
                chunk = await self.peer.reader.read(65_536)
                assert chunk, "the broker closed the connection"
                self.frames.receive_data(chunk)
                self.events += list(self.frames.events())
        return self.events.pop(0)

    async def message(self) -> bytes:
        """A whole message, which may come in several frames."""
        whole = b""
        while True:
            event = await self.event()
            assert isinstance(event, Message), event
            whole += event.data.encode() if isinstance(event.data, str) else bytes(event.data)
            if event.message_finished:
                return whole

    async def message_with(self, part: bytes) -> bytes:
        while part not in (message := await self.message()):
            pass
        return message


async def open_web(server: RunningServer, *subprotocols: str) -> WebPeer:
    web = WebPeer(await server.open())
    web.send(Request(host="h", target="/stomp", subprotocols=list(subprotocols)))
    accepted = await web.event()
    assert isinstance(accepted, AcceptConnection)
    assert accepted.subprotocol == (subprotocols[0] if subprotocols else None)
    return web


async def log_in(server: RunningServer, *subprotocols: str) -> WebPeer:
    web = await open_web(server, *subprotocols)
    web.send(BytesMessage(data=LOGIN))
    assert (await web.message()).startswith(b"CONNECTED\n")
    return web


async def ask(server: RunningServer, request: str) -> str:
    """What a client gets that speaks HTTP."""
    peer = await server.open()
    peer.send(request)
    async with asyncio.timeout(10):
        answer = await peer.reader.read(-1)
    await peer.close()
    return answer.decode()


@pytest.mark.parametrize("subprotocol", ["v10.stomp", "v11.stomp", "v12.stomp", ""])
async def test_stomp_goes_through_a_websocket(subprotocol: str) -> None:
    async with running() as server:
        web = await log_in(server, *([subprotocol] if subprotocol else []))
        web.send(BytesMessage(data=b"SUBSCRIBE\nid:s\ndestination:/queue/a\n\n\0"))
        web.send(TextMessage(data="SEND\ndestination:/queue/a\nreceipt:1\n\nsm\u00f8rrebr\u00f8d\0"))
        both = await web.message()
        while b"MESSAGE\n" not in both or b"RECEIPT\n" not in both:
            both += await web.message()
        assert "sm\u00f8rrebr\u00f8d".encode() in both
        web.send(BytesMessage(data=b"DISCONNECT\nreceipt:bye\n\n\0"))
        await web.message_with(b"receipt-id:bye")
        closing = await web.event()
        assert isinstance(closing, CloseConnection)
        assert closing.code == 1000
        web.send(closing.response())
        await web.peer.close()
        await server.until(lambda: not server.listener.connections)
        assert server.logged.lines == []


async def test_the_first_subprotocol_of_the_client_that_is_spoken_is_chosen() -> None:
    async with running() as server:
        web = WebPeer(await server.open())
        web.send(Request(host="h", target="/", subprotocols=["mqtt", "v11.stomp", "v12.stomp"]))
        accepted = await web.event()
        assert isinstance(accepted, AcceptConnection)
        assert accepted.subprotocol == "v11.stomp"
        await web.peer.close()


async def test_every_message_ends_where_a_frame_of_stomp_ends() -> None:
    async with running(replace(TCP, outbox_limit_bytes=50_000_000)) as server:
        web = await log_in(server)
        web.send(BytesMessage(data=b"SUBSCRIBE\nid:s\ndestination:/queue/a\nconsumer-window-size:-1\n\n\0"))
        sizes = [1, 100, 70_000, 300_000, 5, 1_000_000, 20]
        for size in sizes:
            send = b"SEND\ndestination:/queue/a\n\n" + b"x" * size + b"\0"
            for start in range(0, len(send), 60_000):
                part = send[start : start + 60_000]
                web.send(BytesMessage(data=part, message_finished=start + 60_000 >= len(send)))
        seen = b""
        while seen.count(b"MESSAGE\n") < len(sizes):
            message = await web.message()
            assert message.startswith(b"MESSAGE\n")
            assert message.endswith(b"\0")
            seen += message
        assert [len(body) for body in seen.split(b"\0") if body] != []
        await web.peer.close()


async def test_no_frame_is_longer_than_its_limit() -> None:
    async with running(replace(TCP, web_socket_max_frame_bytes=1_000)) as server:
        web = await log_in(server)
        web.send(BytesMessage(data=b"SUBSCRIBE\nid:s\ndestination:/queue/a\n\n\0"))
        web.send(BytesMessage(data=b"SEND\ndestination:/queue/a\n\n" + b"x" * 900, message_finished=False))
        web.send(BytesMessage(data=b"y" * 900 + b"\0"))
        raw = b""
        async with asyncio.timeout(10):
            while b"y\0" not in raw:
                raw += await web.peer.reader.read(65_536)
        # FIN not set, binary, 1000 bytes; then the rest as a continuation with FIN.
        assert raw.startswith(b"\x02\x7e\x03\xe8MESSAGE\n")
        assert raw[1004] == 0x80
        await web.peer.close()


async def test_text_is_sent_when_it_is_asked_for_and_can_be() -> None:
    async with running(replace(TCP, web_socket_text=True)) as server:
        web = WebPeer(await server.open())
        web.send(Request(host="h", target="/"))
        await web.event()
        web.send(TextMessage(data=LOGIN.decode()))
        assert isinstance(await web.event(), TextMessage)
        web.send(BytesMessage(data=b"SUBSCRIBE\nid:s\ndestination:/queue/a\n\n\0"))
        web.send(BytesMessage(data=b"SEND\ndestination:/queue/a\ncontent-length:2\n\n\xff\xfe\0"))
        assert isinstance(await web.event(), BytesMessage)
        await web.peer.close()


async def test_a_frame_that_is_too_large_is_refused_before_all_of_it_came() -> None:
    async with running() as server:
        witness = await log_in(server)
        web = await log_in(server)
        web.send(BytesMessage(data=b"SEND\ndestination:/queue/a\n\n"))
        # 2 GiB are promised in the head.
        web.peer.send(b"\x82\xff\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00" + b"x" * 70_000)
        closing = await web.event()
        assert isinstance(closing, CloseConnection)
        assert closing.code == 1009
        assert any("webSocketMaxFramePayloadLength" in line for line in server.logged.lines)
        witness.send(BytesMessage(data=b"SEND\ndestination:/queue/a\nreceipt:1\n\nx\0"))
        await witness.message_with(b"receipt-id:1")
        await web.peer.close()
        await witness.peer.close()


async def test_many_small_frames_of_one_large_message_are_no_large_frame() -> None:
    async with running(replace(TCP, web_socket_max_frame_bytes=1_000)) as server:
        web = await log_in(server)
        web.send(BytesMessage(data=b"SEND\ndestination:/queue/a\nreceipt:1\n\n", message_finished=False))
        for _ in range(100):
            web.send(BytesMessage(data=b"x" * 1_000, message_finished=False))
        web.send(BytesMessage(data=b"\0"))
        await web.message_with(b"receipt-id:1")
        await web.peer.close()


async def test_a_body_beyond_the_limit_of_stomp_gets_an_error() -> None:
    async with running(replace(TCP, max_frame_bytes=50_000)) as server:
        web = await log_in(server)
        web.send(BytesMessage(data=b"SEND\ndestination:/queue/a\ncontent-length:60000\n\n", message_finished=True))
        assert b"50000 bytes" in await web.message_with(b"ERROR\n")
        assert isinstance(await web.event(), CloseConnection)
        await web.peer.close()


async def test_a_ping_is_answered_between_the_frames_of_a_message() -> None:
    async with running() as server:
        web = await log_in(server)
        web.send(BytesMessage(data=b"SEND\ndestination:/queue/a\nreceipt:1\n\nx", message_finished=False))
        web.send(Ping(payload=b"hello"))
        pong = await web.event()
        assert isinstance(pong, Pong)
        assert pong.payload == b"hello"
        web.send(BytesMessage(data=b"\0"))
        await web.message_with(b"receipt-id:1")
        await web.peer.close()


async def test_a_heart_beat_is_a_message_of_its_own() -> None:
    async with running() as server:
        web = await open_web(server, "v12.stomp")
        web.send(BytesMessage(data=LOGIN.replace(b"host:h", b"heart-beat:0,500")))
        await web.message_with(b"CONNECTED")
        assert await web.message() == b"\n"
        await web.peer.close()


VIOLATIONS = [
    (b"\x82\x01x", 1002),  # not masked
    (b"\xc2\x81\x00\x00\x00\x00x", 1002),  # a reserved bit
    (b"\x83\x81\x00\x00\x00\x00x", 1002),  # an opcode that is none
    (b"\x80\x81\x00\x00\x00\x00x", 1002),  # continues nothing
    (b"\x09\x80\x00\x00\x00\x00", 1002),  # a ping in parts
    (b"\x89\xfe\x00\x80\x00\x00\x00\x00", 1002),  # a ping of 128 bytes
    (b"\x81\x82\x00\x00\x00\x00\xff\xff", 1007),  # text that is none
]


@pytest.mark.parametrize(("violation", "code"), VIOLATIONS)
async def test_a_violation_ends_that_connection_and_returns_its_messages(violation: bytes, code: int) -> None:
    async with running() as server:
        web = await log_in(server)
        web.send(
            BytesMessage(
                data=b"SEND\ndestination:/queue/a\n\nx\0SUBSCRIBE\nid:s\ndestination:/queue/a\nack:client\n\n\0"
            )
        )
        await web.message_with(b"MESSAGE\n")
        web.peer.send(violation)
        closing = await web.event()
        assert isinstance(closing, CloseConnection)
        assert closing.code == code
        assert server.broker.queues["a"].pending.count == 1
        assert "DMQ6121" in server.logged.lines[0]
        await web.peer.close()


async def test_a_close_frame_returns_what_was_not_acknowledged() -> None:
    async with running() as server:
        web = await log_in(server)
        web.send(
            BytesMessage(
                data=b"SEND\ndestination:/queue/a\n\nx\0SUBSCRIBE\nid:s\ndestination:/queue/a\nack:client\n\n\0"
            )
        )
        await web.message_with(b"MESSAGE\n")
        web.send(CloseConnection(code=1001))
        assert isinstance(await web.event(), CloseConnection)
        await server.until(lambda: not server.listener.connections)
        assert server.broker.queues["a"].pending.count == 1
        assert server.logged.lines == []
        await web.peer.close()


async def test_a_plain_get_is_told_where_http_is() -> None:
    async with running() as server:
        server.parts.http_port = 8161
        answer = await ask(server, "GET /health HTTP/1.1\r\nHost: h\r\n\r\n")
        assert answer.startswith("HTTP/1.1 426 Upgrade Required\r\n")
        assert "Upgrade: websocket" in answer
        assert "port 8161" in answer
        assert "DMQ6120" in server.logged.lines[0]


@pytest.mark.parametrize(
    ("request_text", "status", "sentence"),
    [
        (REQUEST + "Sec-WebSocket-Protocol: mqtt\r\n\r\n", 400, "v12.stomp, v11.stomp, v10.stomp"),
        (REQUEST.replace("13", "8") + "\r\n", 426, "only version 13"),
        (REQUEST.replace("Host: h\r\n", "") + "\r\n", 400, "malformed"),
        (REQUEST.replace("Host: h", "Host: xn--\u00e9.x") + "\r\n", 400, "malformed"),
        (REQUEST + "Sec-WebSocket-Protocol: \u00e9\r\n\r\n", 400, "malformed"),
        (REQUEST + "no colon\r\n\r\n", 400, "malformed"),
        (REQUEST.replace("Connection: Upgrade\r\n", "") + "\r\n", 400, "malformed"),
        (REQUEST + "X: " + "x" * 20_000, 431, "16 KiB"),
    ],
)
async def test_a_request_that_can_not_be_served_gets_an_answer(request_text: str, status: int, sentence: str) -> None:
    async with running() as server:
        witness = await server.connect()
        answer = await ask(server, request_text)
        assert answer.startswith(f"HTTP/1.1 {status} ")
        assert sentence in answer
        witness.send_frame("SEND", "destination:/queue/a", "receipt:1")
        assert (await witness.frame()).command == "RECEIPT"
        await witness.close()


async def test_a_request_and_frames_may_arrive_byte_by_byte_and_together() -> None:
    async with running() as server:
        frames = WSConnection(ConnectionType.CLIENT)
        start = frames.send(Request(host="h", target="/", subprotocols=["v12.stomp"]))
        login = masked(LOGIN)
        for chunks in ([bytes((byte,)) for byte in start + login], [start + login]):
            peer = await server.open()
            for chunk in chunks:
                peer.send(chunk)
                await peer.writer.drain()
                await asyncio.sleep(0)
            async with asyncio.timeout(10):
                await peer.reader.readuntil(b"CONNECTED\n")
            await peer.close()


def masked(payload: bytes) -> bytes:
    """One binary frame under a mask of zeros, which changes nothing."""
    length = bytes((0x80 | len(payload),)) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
    return b"\x82" + length + b"\0\0\0\0" + payload


async def test_what_is_no_stomp_within_a_websocket_is_closed_and_named() -> None:
    async with running() as server:
        web = await open_web(server, "v12.stomp")
        web.send(BytesMessage(data=b"GET / HTTP/1.1\r\n\r\n"))
        assert isinstance(await web.event(), CloseConnection)
        assert "DMQ6702" in server.logged.lines[0]
        await web.peer.close()


async def test_an_upgrade_that_is_not_finished_is_late() -> None:
    async with running() as server:
        peer = await server.open()
        peer.send("GET / HTTP/1.1\r\nHost: h\r\n")
        await server.until(lambda: len(server.transports) == 1)
        (transport,) = server.transports.values()
        await server.until(lambda: isinstance(transport.get_protocol(), WebSocketLayer))
        server.timers.hasten(Connection, TCP.handshake_timeout_s)
        assert await peer.closed() == []
        assert "WebSocket request" in server.logged.lines[0]


async def test_a_peer_that_only_pings_and_reads_nothing_is_bounded() -> None:
    async with running() as server:
        web = await log_in(server)
        web.peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        (connection,) = server.listener.connections
        connection.pause_writing()
        layer = server.transports[connection].get_protocol()
        assert isinstance(layer, WebSocketLayer)
        layer.pause_writing()
        for number in range(1_000):
            web.send(Ping(payload=str(number).encode()))
        web.send(BytesMessage(data=b"SEND\ndestination:/queue/a\n\nx\0"))
        await server.until(lambda: "a" in server.broker.queues)
        web.peer.writer.transport.resume_reading()  # type: ignore[attr-defined]
        layer.resume_writing()
        pong = await web.event()
        assert isinstance(pong, Pong)
        assert pong.payload == b"999"
        await web.peer.close()


def open_layer(acceptor: AcceptorSettings = TCP) -> tuple[WebSocketLayer, Above]:
    above = Above()
    layer = WebSocketLayer(above, acceptor, subprotocols=("v12.stomp",), elsewhere="", buffer=memoryview(bytearray(1)))
    layer.attach(Below())
    return layer, above


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_no_bytes_after_the_upgrade_do_more_than_break_off(chunks: list[bytes]) -> None:
    layer, above = open_layer()
    layer.receive(REQUEST.encode() + b"\r\n")
    for chunk in chunks:
        if above.broken is None and not layer.is_closing():
            layer.receive(chunk)
    layer.close()


@given(st.binary(max_size=300), st.booleans())
def test_no_request_does_more_than_break_off(start: bytes, upgrade: bool) -> None:
    layer, above = open_layer()
    layer.receive(REQUEST.encode() + start + b"\r\n\r\n" if upgrade else b"GET " + start + b"\r\n\r\n")
    if above.broken is not None:
        assert above.broken.code in ("DMQ6120", "DMQ6121")


@given(st.binary(min_size=1, max_size=2_000), st.lists(st.integers(0, 2_000), max_size=8))
def test_any_split_of_the_bytes_gives_the_same_payload(payload: bytes, cuts: list[int]) -> None:
    layer, above = open_layer()
    layer.receive(REQUEST.encode() + b"\r\n")
    whole = masked(payload) + masked(b"end")
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    for start, end in pairwise(edges):
        if end > start:
            layer.receive(whole[start:end])
    assert above.received == payload + b"end"
