"""Peers that do not read: what waits for them is bounded for each and for all, and they do not stay for ever."""

# ACK-7, BROKER-4

import asyncio
import gc
import socket
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from delosmq.model.errors import PeerError
from delosmq.model.settings import AcceptorSettings
from delosmq.server.slow_readers import IDLE_CHECKS, SlowReader, SlowReaders, WriteWatch, acked_bytes
from delosmq.sessions.outbox import WRITE_BYTES
from tests.server.support import TCP, RawPeer, RunningServer, running
from tests.sessions.support import PASSWORD, USER

MESSAGES = 200
BODY = "x" * 100_000
# At most this of each connection: two writes in the transport, and what the allocator and a session cost.
LOOK_EVERY_S = 5.0
EACH_BYTES = 3 * WRITE_BYTES

BROWSE = ("browser:true", "consumer-window-size:-1", "ack:client")
KINDS = {
    "browsers": ("/queue/a", BROWSE),
    "browsers that acknowledge nothing": ("/queue/a", (*BROWSE, "ack:client-individual")),
    "subscribers of a topic": ("/topic/t", ("ack:client", "consumer-window-size:-1")),
    "subscribers with auto": ("/topic/t", ("ack:auto",)),
    "subscribers with a prefetch": ("/topic/t", ("ack:client", "activemq.prefetchSize:60000")),
}


async def deaf(server: RunningServer, destination: str, *headers: str) -> RawPeer:
    """A peer that subscribes and reads nothing more, with a small socket."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", server.listener.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=1_024)
    peer = RawPeer(reader, writer)
    peer.send(f"CONNECT\naccept-version:1.2\nhost:h\nlogin:{USER}\npasscode:{PASSWORD}\n\n\0")
    assert (await peer.frame()).command == "CONNECTED"
    peer.send_frame("SUBSCRIBE", "id:s", f"destination:{destination}", "receipt:s", *headers)
    assert (await peer.frame()).command in ("RECEIPT", "MESSAGE")
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    return peer


def look(server: RunningServer) -> None:
    """What every few seconds does."""
    server.timers.hasten(WriteWatch, LOOK_EVERY_S)


async def fill(server: RunningServer, destination: str, count: int = MESSAGES, body: str = BODY) -> None:
    producer = await server.connect()
    for number in range(count):
        producer.send_frame("SEND", f"destination:{destination}", f"receipt:{number}", body=body)
        await producer.frame()
    await producer.close()


def waiting_bytes(server: RunningServer) -> int:
    return sum(session.outbox.total_bytes for session in server.stuck)


def kept_bytes(server: RunningServer) -> list[int]:
    """What each session keeps for its peer alone; how much of a write a full socket has taken differs by system."""
    kept = [session.outbox.kept_bytes() for session in server.stuck]
    assert all(kept)
    return kept


@asynccontextmanager
async def measured() -> AsyncIterator[Callable[[], int]]:
    """Gives a function that says by how much memory has grown."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield lambda: tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", KINDS)
async def test_what_forty_of_them_hold_is_bounded_and_returns(kind: str) -> None:
    destination, headers = KINDS[kind]
    count = 40
    async with running() as server:
        if destination.startswith("/queue/"):
            await fill(server, destination)
        else:
            await (await server.connect()).close()
        async with measured() as grown:
            peers = [await deaf(server, destination, *headers) for _ in range(count)]
            if destination.startswith("/topic/"):
                await fill(server, destination, 60)
            await server.until(lambda: len(server.stuck) == count)
            accounted = server.broker.used_bytes
            assert grown() < accounted + count * EACH_BYTES
            assert waiting_bytes(server) < count * (TCP.outbox_limit_bytes + len(BODY) + 2 * WRITE_BYTES)
            look(server)
            assert server.parts.slow_readers.used_bytes == sum(kept_bytes(server))
            for peer in peers:
                peer.writer.transport.abort()
            await server.until(lambda: not server.stuck)
            assert server.parts.slow_readers.used_bytes == 0
            peers.clear()
            gc.collect()
            assert grown() < server.broker.used_bytes + 3_000_000


async def test_one_that_reads_nothing_is_cut_off_and_its_messages_go_back() -> None:
    async with running(replace(TCP, so_write_timeout_ms=100)) as server:
        await fill(server, "/queue/a")
        peer = await deaf(server, "/queue/a", "ack:client", "consumer-window-size:-1")
        await server.until(lambda: len(server.logged.lines) > 0)
        (line,) = server.logged.lines
        assert line.startswith("DMQ6714")
        assert f"user '{USER}'" in line
        assert "127.0.0.1:" in line
        assert "soWriteTimeout" in line
        queue = server.broker.queues["a"]
        await server.until(lambda: not queue.holders)
        assert (queue.message_count, queue.pending.count) == (MESSAGES, MESSAGES)
        assert server.parts.slow_readers.used_bytes == 0
        peer.writer.transport.abort()


async def test_together_they_hold_no_more_than_they_may_and_the_oldest_goes() -> None:
    async with running() as server:
        await fill(server, "/queue/a")
        peers = [await deaf(server, "/queue/a", *BROWSE) for _ in range(8)]
        await server.until(lambda: len(server.stuck) == 8)
        kept = kept_bytes(server)
        most = server.parts.slow_readers.most_bytes = sum(kept) // 2
        for _ in range(IDLE_CHECKS):
            assert server.logged.lines == []
            look(server)
        look(server)  # what was on its way at the first
        await server.until(lambda: server.parts.slow_readers.used_bytes == sum(kept_bytes(server)))
        assert most - max(kept) < server.parts.slow_readers.used_bytes <= most
        assert len(server.logged.lines) == len(peers) - len(server.stuck)
        assert all(line.startswith("DMQ6713") for line in server.logged.lines)
        for peer in peers:
            peer.writer.transport.abort()


async def test_what_subscribers_of_a_topic_share_is_not_counted_for_each() -> None:
    async with running() as server:
        await (await server.connect()).close()
        peers = [await deaf(server, "/topic/t", "ack:auto") for _ in range(8)]
        await fill(server, "/topic/t", 60)
        await server.until(lambda: len(server.stuck) == 8)
        most = server.parts.slow_readers.most_bytes = sum(kept_bytes(server))
        for _ in range(3):
            look(server)
        assert waiting_bytes(server) > 2 * most
        assert server.parts.slow_readers.used_bytes == most
        assert server.logged.lines == []
        for peer in peers:
            peer.writer.transport.abort()


async def test_a_message_larger_than_all_limits_still_goes_out() -> None:
    async with running(replace(TCP, outbox_limit_bytes=1_000)) as server:
        server.parts.slow_readers.most_bytes = 1_000
        body = "".join(f"{number:07d}" for number in range(1_000_000))
        reader = await server.connect()
        reader.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client", "consumer-window-size:-1")
        producer = await server.connect()
        for _ in range(2):
            producer.send_frame("SEND", "destination:/queue/a", body=body)
        for _ in range(2):
            assert (await reader.frame()).body == body.encode()
        assert server.logged.lines == []
        await producer.close()
        await reader.close()


# -- how it is noticed ---------------------------------------------------------------------------------------------


class Loop:
    """Timers that go off when the test says so."""

    def __init__(self) -> None:
        self.timers: list[Callable[[], None]] = []

    def call_later(self, after_s: float, then: Callable[[], None]) -> "Loop":
        self.timers.append(then)
        return self

    def cancel(self) -> None:
        self.timers.clear()

    def look(self) -> None:
        due, self.timers = self.timers, []
        for then in due:
            then()


class Socket:
    """The transport of a connection over a real socket whose peer reads when the test says so."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.peer = socket.socket()
            self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            self.peer.connect(listening.getsockname())
            self.ours, _ = listening.accept()
        self.ours.setblocking(False)

    def get_extra_info(self, name: str) -> socket.socket:
        return self.ours

    def fill(self) -> None:
        """Writes till its system takes no more."""
        with suppress(BlockingIOError):
            while self.ours.send(bytes(65_536)):
                pass

    def read_some(self) -> None:
        """Reads till its system takes more."""
        before = acked_bytes(self.ours)
        while acked_bytes(self.ours) == before:
            self.peer.recv(16_384)

    def close(self) -> None:
        self.peer.close()
        self.ours.close()


class Cut(SlowReader):
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def cut_off(self, reason: PeerError) -> None:
        self.reasons.append(str(reason))


def watched(timeout_ms: int = 1_000, slow_readers: SlowReaders | None = None) -> tuple[Loop, Socket, Cut, WriteWatch]:
    """A watch of a socket that is full, of 100 bytes that count for ``slow_readers``."""
    loop, transport, cut = Loop(), Socket(), Cut()
    counting = slow_readers if slow_readers is not None else SlowReaders(1_000)
    watch = WriteWatch(loop, timeout_ms, cut, lambda still: counting.looked_at(cut, 100, still))  # type: ignore[arg-type]
    transport.fill()
    watch.socket_full(transport)  # type: ignore[arg-type]
    return loop, transport, cut, watch


def test_one_that_takes_nothing_has_its_time_and_no_more() -> None:
    loop, transport, cut, _ = watched()
    for _ in range(3):
        loop.look()
        assert cut.reasons == []
    for _ in range(2):  # one more for what was on its way when the socket was full
        loop.look()
    assert "for 1 s" in cut.reasons[0]
    assert loop.timers == []
    transport.close()


def test_one_that_reads_little_at_a_time_stays() -> None:
    loop, transport, cut, _ = watched()
    for _ in range(20):
        transport.read_some()
        transport.fill()
        for _ in range(3):
            loop.look()
    assert cut.reasons == []
    transport.close()


def test_one_that_has_taken_everything_is_not_looked_at() -> None:
    loop, transport, cut, watch = watched()
    watch.socket_took_all()
    loop.look()
    assert loop.timers == []
    watch.socket_full(transport)  # type: ignore[arg-type]
    watch.stop()
    assert loop.timers == []
    assert cut.reasons == []
    transport.close()


def test_without_a_timeout_nobody_is_cut_off_by_the_time_and_all_are_counted() -> None:
    slow_readers = SlowReaders(1_000)
    loop, transport, cut, _ = watched(timeout_ms=0, slow_readers=slow_readers)
    for _ in range(20):
        loop.look()
    assert cut.reasons == []
    assert slow_readers.used_bytes == 100
    transport.close()


def test_a_long_time_has_looks_every_few_seconds() -> None:
    loop, transport, cut, _ = watched(timeout_ms=600_000)
    looks = 0
    while loop.timers:
        loop.look()
        looks += 1
    assert looks in (120, 121)
    assert "taken nothing for 600 s" in cut.reasons[0]
    transport.close()


def test_what_waits_for_one_alone_may_be_more_than_for_all() -> None:
    slow_readers = SlowReaders(1_000)
    one, other = Cut(), Cut()
    for still in range(IDLE_CHECKS + 1):
        slow_readers.looked_at(one, 5_000, still)
    assert one.reasons == []
    slow_readers.looked_at(other, 10, 0)
    assert "DMQ6713" in one.reasons[0]
    assert (slow_readers.used_bytes, other.reasons) == (10, [])
    slow_readers.remove(other)
    assert slow_readers.used_bytes == 0


def test_nobody_goes_while_all_take_something_now_and_then() -> None:
    slow_readers = SlowReaders(1_000)
    readers = [Cut() for _ in range(5)]
    for turn in range(20):
        for number, reader in enumerate(readers):
            slow_readers.looked_at(reader, 900, (turn + number) % IDLE_CHECKS)
    assert slow_readers.used_bytes == 5 * 900
    assert all(reader.reasons == [] for reader in readers)


def test_the_one_that_has_taken_nothing_for_longest_goes_first_and_no_more_than_have_to() -> None:
    slow_readers = SlowReaders(1_000)
    reads, deaf, deafer = Cut(), Cut(), Cut()
    slow_readers.looked_at(reads, 400, 0)
    slow_readers.looked_at(deafer, 400, 0)
    slow_readers.looked_at(deaf, 400, 0)
    for still in range(1, IDLE_CHECKS):
        slow_readers.looked_at(reads, 400, 0)
        slow_readers.looked_at(deafer, 400, still)
        slow_readers.looked_at(deaf, 400, still)
    assert deaf.reasons == deafer.reasons == []
    slow_readers.looked_at(deaf, 400, IDLE_CHECKS)
    assert deaf.reasons == deafer.reasons == []  # `deafer` was not looked at yet
    slow_readers.looked_at(deafer, 400, IDLE_CHECKS)
    assert "DMQ6713" in deafer.reasons[0]
    assert reads.reasons == deaf.reasons == []
    assert slow_readers.used_bytes == 800


def test_the_limits_are_settings() -> None:
    settings = AcceptorSettings("a", "h", 1, ("STOMP",))
    assert (settings.so_write_timeout_ms, settings.outbox_limit_bytes) == (600_000, 256 * 1024)
