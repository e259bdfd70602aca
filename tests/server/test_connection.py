"""Real sockets: frames, limits, timeouts, foreign bytes, and connections that end in every way."""

import asyncio
import socket
from dataclasses import replace

import pytest

from delosmq.model.errors import LimitError
from delosmq.server.connection import Connection
from delosmq.server.listener import bind
from delosmq.sessions.login import WAIT, LoginAnswer, LoginPort, LoginRequest
from tests.server.support import TCP, running
from tests.sessions.support import PASSWORD, USER


async def test_a_message_goes_through_with_receipt_and_acknowledgement() -> None:
    async with running() as server:
        peer = await server.connect()
        peer.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client", "receipt:s")
        peer.send_frame("SEND", "destination:/queue/a", "persistent:true", "receipt:1", body="hello")
        frames = [await peer.frame() for _ in range(3)]
        assert sorted(frame.command for frame in frames) == ["MESSAGE", "RECEIPT", "RECEIPT"]
        (message,) = [frame for frame in frames if frame.command == "MESSAGE"]
        peer.send_frame("ACK", f"id:{message.headers['ack']}", "receipt:2")
        assert (await peer.frame()).headers["receipt-id"] == "2"
        assert server.broker.queues["a"].message_count == 0
        peer.send_frame("DISCONNECT", "receipt:bye")
        assert [frame.headers["receipt-id"] for frame in await peer.closed()] == ["bye"]
        await server.until(lambda: not server.listener.connections)


async def test_a_wrong_password_gets_an_error_and_is_logged_without_it() -> None:
    async with running() as server:
        peer = await server.open()
        peer.send_frame("CONNECT", "accept-version:1.2", f"login:{USER}", "passcode:guess")
        (error,) = await peer.closed()
        assert "or its passcode is wrong" in error.headers["message"]
        (line,) = server.logged.lines
        assert "DMQ5106" in line
        assert "127.0.0.1:" in line
        assert "guess" not in line


async def test_the_first_login_is_hashed_and_the_next_one_is_remembered() -> None:
    async with running() as server:
        for _ in range(2):
            peer = await server.connect()
            await peer.close()


async def test_a_protocol_is_detected_however_its_first_bytes_arrive() -> None:
    async with running() as server:
        peer = await server.open()
        peer.writer.transport.set_write_buffer_limits(0)
        start = f"\nCONNECT\naccept-version:1.2\nlogin:{USER}\npasscode:{PASSWORD}\n\n\0".encode()
        for byte in start:
            peer.send(bytes((byte,)))
            await peer.writer.drain()
            await asyncio.sleep(0)
        assert (await peer.frame()).command == "CONNECTED"
        await peer.close()


async def test_foreign_bytes_are_closed_and_named_in_the_log() -> None:
    async with running() as server:
        other = await server.connect()
        peer = await server.open()
        peer.send(b"AMQP\x00\x01\x00\x00")
        assert await peer.closed() == []
        assert "DMQ6702" in server.logged.lines[0]
        assert "AMQP" in server.logged.lines[0]
        other.send_frame("SEND", "destination:/queue/a", "receipt:1")
        assert (await other.frame()).headers["receipt-id"] == "1"
        await other.close()


async def test_an_http_client_is_told_where_it_is() -> None:
    async with running() as server:
        peer = await server.open()
        peer.send("POST /api/v1/leases/g/open HTTP/1.1\r\nContent-Length: 2\r\n\r\n")
        head, _, body = (await peer.reader.read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 421 Misdirected Request\r\nConnection: close\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        assert body.startswith(b"this is acceptor 'stomp', which speaks STOMP and no HTTP.")
        assert "DMQ6702" in server.logged.lines[0]
        await peer.close()


async def test_an_oversized_frame_is_refused_while_its_sender_still_sends() -> None:
    async with running(replace(TCP, max_frame_bytes=100_000)) as server:
        peer = await server.connect()
        peer.send("SEND\ndestination:/queue/a\ncontent-length:50000000\n\n")
        peer.send(b"x" * 4_000_000)
        (error,) = await peer.closed()
        assert "100000 bytes" in error.headers["message"]


async def test_connections_are_limited() -> None:
    async with running(replace(TCP, connections_allowed=1)) as server:
        first = await server.connect()
        second = await server.open()
        assert await second.closed() == []
        assert "DMQ6701" in server.logged.lines[0]
        first.send_frame("SEND", "destination:/queue/a", "receipt:1")
        assert (await first.frame()).command == "RECEIPT"
        await first.close()
        await server.until(lambda: not server.listener.connections)
        third = await server.connect()
        await third.close()


async def test_a_connection_that_says_nothing_is_closed_in_time() -> None:
    async with running(replace(TCP, handshake_timeout_s=0)) as server:
        peer = await server.open()
        assert await peer.closed() == []
        assert "DMQ6703" in server.logged.lines[0]
        assert "send CONNECT right after connecting" in server.logged.lines[0]


class NeverKnows(LoginPort):
    """Lets every login wait."""

    def __init__(self) -> None:
        self.asked: list[LoginRequest] = []

    def decide(self, request: LoginRequest) -> LoginAnswer:
        self.asked.append(request)
        return WAIT


async def test_a_login_that_is_not_decided_in_time_is_told_so_and_not_to_send_what_it_has_sent() -> None:
    async with running() as server:
        waiting = server.parts.services.logins = NeverKnows()
        peer = await server.open()
        peer.send_frame("CONNECT", "accept-version:1.2", "host:h", f"login:{USER}", f"passcode:{PASSWORD}")
        await server.until(lambda: bool(waiting.asked))
        server.timers.hasten(Connection, TCP.handshake_timeout_s)
        (told,) = await peer.closed()
        assert "DMQ6703" in told.headers["message"]
        assert b"its login is not decided yet; let the client try again later" in told.body


async def test_a_handshake_that_was_begun_takes_no_longer_than_it_may() -> None:
    async with running() as server:
        peer = await server.open()
        peer.send("CONNECT\nlogin:anna\n")
        await server.until(lambda: len(server.sessions) == 1)
        server.timers.hasten(Connection, TCP.handshake_timeout_s)
        (error,) = await peer.closed()
        assert "within 10 s" in error.headers["message"]


async def test_a_connection_that_is_cut_gives_its_messages_back() -> None:
    async with running() as server:
        peer = await server.connect()
        peer.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
        peer.send_frame("SEND", "destination:/queue/a", body="x")
        await peer.frame()
        peer.writer.transport.abort()
        await server.until(lambda: server.broker.queues["a"].pending.count == 1)
        other = await server.connect()
        other.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a")
        assert (await other.frame()).headers["redelivered"] == "true"
        await other.close()


async def test_who_has_sent_everything_still_gets_its_receipts() -> None:
    async with running() as server:
        peer = await server.connect()
        peer.send_frame("SEND", "destination:/queue/a", "persistent:true", "receipt:1", body="x")
        peer.writer.write_eof()
        assert [frame.headers["receipt-id"] for frame in await peer.closed()] == ["1"]
        assert server.broker.queues["a"].message_count == 1


async def test_a_peer_that_does_not_read_is_bounded_and_gets_everything_later() -> None:
    acceptor = replace(TCP, outbox_limit_bytes=100_000)
    async with running(acceptor) as server:
        slow = await server.connect()
        slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
        slow.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a")
        producer = await server.connect()
        body = "x" * 50_000
        for number in range(400):
            producer.send_frame("SEND", "destination:/queue/a", f"receipt:{number}", body=body)
            assert (await producer.frame()).headers["receipt-id"] == str(number)
        queue = server.broker.queues["a"]
        assert queue.pending.count > 0
        (waiting,) = [one.outbox.total_bytes for one in server.sessions if one.outbox.total_bytes]
        assert waiting < 300_000
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(400):
            assert len((await slow.frame()).body) == 50_000
        await server.until(lambda: queue.message_count == 0)
        await producer.close()
        await slow.close()


async def test_a_heart_beat_comes_by_itself() -> None:
    async with running() as server:
        peer = await server.connect(headers="heart-beat:0,500\n")
        async with asyncio.timeout(10):
            assert await peer.reader.readexactly(1) == b"\n"
        await peer.close()


# TTL-1
async def test_a_silent_peer_is_told_and_closed() -> None:
    async with running(replace(TCP, connection_ttl_ms=100), ttl_check_interval_ms=50) as server:
        peer = await server.connect()
        (error,) = await peer.closed()
        assert "127.0.0.1" in error.headers["message"]
        assert "DMQ5117" in server.logged.lines[0]


async def test_at_the_end_everybody_is_told_and_gets_what_was_promised() -> None:
    async with running() as server:
        idle = await server.connect()
        detecting = await server.open()
        busy = await server.connect()
        busy.send_frame("SEND", "destination:/queue/a", "persistent:true", "receipt:1", body="x")
        await server.until(lambda: "a" in server.broker.queues)
    (error,) = await idle.closed()
    assert "stopping" in error.headers["message"]
    assert [frame.command for frame in await busy.closed()] == ["RECEIPT", "ERROR"]
    assert await detecting.closed() == []


async def test_a_port_in_use_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LimitError, match=f"acceptor 'stomp' can't listen on 127.0.0.1:{port}: the port is in use"):
            bind("127.0.0.1", port, "acceptor 'stomp'")


@pytest.mark.parametrize("host, why", [("192.0.2.1", "does not have that address"), ("", "is unknown")])
def test_other_reasons_are_told_apart(host: str, why: str) -> None:
    with pytest.raises(LimitError, match=why):
        bind(host, 0, "acceptor 'a'")


async def test_many_peers_at_once() -> None:
    async with running() as server:
        peers = [await server.connect() for _ in range(20)]
        for peer in peers:
            peer.send_frame("SUBSCRIBE", "id:s", "destination:/topic/t", "receipt:s")
            await peer.frame()
        for number, peer in enumerate(peers):
            peer.send_frame("SEND", "destination:/topic/t", body=str(number))
        for peer in peers:
            bodies = {(await peer.frame()).body for _ in peers}
            assert bodies == {str(number).encode() for number in range(20)}
            await peer.close()


async def test_a_passcode_is_nowhere_in_the_log() -> None:
    async with running() as server:
        peer = await server.connect()
        peer.send_frame("CONNECT", f"login:{USER}", f"passcode:{PASSWORD}")
        await peer.closed()
        assert server.logged.lines
        assert not any(PASSWORD in line for line in server.logged.lines)


async def test_what_a_new_consumer_gets_leaves_in_several_turns_so_that_it_may_leave_before_the_rest() -> None:
    async with running() as server:
        producer = await server.connect()
        for number in range(20):
            producer.send_frame("SEND", "destination:/queue/a", f"receipt:{number}", body="x" * 10_000)
            await producer.frame()
        reader = await server.connect()
        transport = server.transports[list(server.listener.connections)[1]]
        turns: list[int] = []
        flush = server.store.flush
        write = transport.write

        def count_turns() -> None:
            turns.append(0)
            flush()

        def count_bytes(chunk: bytes) -> None:
            turns[-1] += len(chunk)
            write(chunk)

        server.store.flush = count_turns  # type: ignore[method-assign]
        transport.write = count_bytes  # type: ignore[method-assign,assignment]
        reader.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client", "consumer-window-size:-1")
        for _ in range(20):
            assert (await reader.frame()).command == "MESSAGE"
        assert 60_000 < max(turns) < 80_000
        assert sum(turns) > 200_000
        await producer.close()
        await reader.close()
