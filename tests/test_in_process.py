"""Connections without a socket: two ends, each in an event loop of its own."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from delosmq import in_process
from delosmq.in_process import LocalPort, MemoryTransport
from tests.patience import PATIENCE_S


class End(asyncio.Protocol):
    """Notes what it is told."""

    def __init__(self, *, keeps_open: bool = False) -> None:
        self.received = b""
        self.told: list[str] = []
        self.lost = threading.Event()
        self.news = threading.Event()
        self._keeps_open = keeps_open

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.news.set()

    def eof_received(self) -> bool:
        self.told.append("eof")
        self.news.set()
        return self._keeps_open

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")
        self.news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append("lost" if exc is None else type(exc).__name__)
        self.lost.set()


class Peer:
    """The broker's side: a loop in a thread, and the end of the last connection."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.end = End()
        self.transport: MemoryTransport | None = None
        self.accepted = threading.Event()
        self.port = LocalPort(self.loop, self._accept)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.loop.run_forever()
        self.loop.close()

    def _accept(self, transport: MemoryTransport) -> None:
        self.transport = transport
        transport.attach(self.end, self.end.data_received)
        self.accepted.set()

    def do(self, name: str, *arguments: bytes) -> None:
        """Calls a method of the end in its loop."""
        assert self.accepted.wait(PATIENCE_S)
        done = threading.Event()

        def call() -> None:
            getattr(self.transport, name)(*arguments)
            done.set()

        self.loop.call_soon_threadsafe(call)
        assert done.wait(PATIENCE_S)

    def stop(self) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    yield made
    made.stop()


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, PATIENCE_S)
    event.clear()


async def test_bytes_pass_both_ways_in_order(peer: Peer) -> None:
    ours = End()
    transport = peer.port.connect(ours)
    transport.write(b"a")
    transport.write(b"b" * 1_000)
    await until(peer.end.news)
    peer.do("write", b"answer")
    await until(ours.news)
    transport.close()
    await until(peer.end.lost)
    assert peer.end.received == b"a" + b"b" * 1_000
    assert ours.received == b"answer"
    assert peer.end.told == ["eof", "lost"]
    assert ours.told == ["lost"]


async def test_what_is_too_much_pauses_its_writer_until_it_is_read(peer: Peer) -> None:
    ours = End()
    transport = peer.port.connect(ours)
    peer.do("pause_reading")
    for _ in range(3):
        transport.write(b"x" * 200_000)
    assert ours.told == ["pause"]
    peer.do("resume_reading")
    await until(ours.news)
    assert ours.told == ["pause", "resume"]
    transport.close()
    await until(peer.end.lost)
    assert len(peer.end.received) == 600_000


async def test_an_end_that_goes_on_writing_after_the_other_s_eof_is_read(peer: Peer) -> None:
    peer.end = End(keeps_open=True)
    ours = End()
    transport = peer.port.connect(ours)
    transport.write_eof()
    await until(peer.end.news)
    peer.do("write", b"late")
    await until(ours.news)
    assert (peer.end.told, ours.received) == (["eof"], b"late")
    peer.do("close")
    await until(ours.lost)
    assert ours.told == ["eof", "lost"]


async def test_an_end_that_writes_to_one_that_is_gone_is_reset(peer: Peer) -> None:
    peer.end = End(keeps_open=True)
    ours = End()
    peer.port.connect(ours).abort()
    await until(ours.lost)
    peer.do("write", b"x")
    await until(peer.end.lost)
    assert peer.end.told == ["eof", "ConnectionResetError"]


async def test_an_end_that_waits_for_one_that_goes_is_reset(peer: Peer) -> None:
    ours = End(keeps_open=True)
    transport = peer.port.connect(ours)
    peer.do("pause_reading")
    transport.write(b"x" * 300_000)
    peer.do("abort")
    await until(ours.lost)
    assert ours.told == ["pause", "eof", "ConnectionResetError"]


@pytest.mark.parametrize("end", ["close", "abort"])
async def test_what_an_end_said_before_it_went_is_read_though_the_other_one_writes(peer: Peer, end: str) -> None:
    ours = End(keeps_open=True)
    transport = peer.port.connect(ours)
    await asyncio.to_thread(peer.accepted.wait, PATIENCE_S)
    peer.do("write", b"last words")
    peer.do(end)
    assert peer.end.lost.wait(PATIENCE_S)
    transport.write(b"x")  # before the loop has read
    await until(ours.lost)
    assert ours.received == b"last words"
    assert ours.told == ["eof", "ConnectionResetError"]
    transport.write(b"y")


async def test_what_an_end_said_before_its_loop_ended_is_read_though_the_other_one_writes(peer: Peer) -> None:
    ours = End()
    transport = peer.port.connect(ours)
    await asyncio.to_thread(peer.accepted.wait, PATIENCE_S)
    peer.do("write", b"last words")
    peer.stop()
    transport.write(b"x")
    await until(ours.lost)
    assert (ours.received, ours.told) == (b"last words", ["ConnectionResetError"])


async def test_an_end_that_does_not_read_loses_what_it_was_told_with_a_reset(peer: Peer) -> None:
    ours = End()
    transport = peer.port.connect(ours)
    await asyncio.to_thread(peer.accepted.wait, PATIENCE_S)
    transport.pause_reading()
    peer.do("write", b"last words")
    peer.do("abort")
    assert peer.end.lost.wait(PATIENCE_S)
    transport.write(b"x")
    await until(ours.lost)
    assert (ours.received, ours.told) == (b"", ["ConnectionResetError"])


async def test_a_loop_that_ends_before_it_has_accepted_is_an_end_that_is_gone(peer: Peer) -> None:
    ours = End()
    is_stopping, is_called = threading.Event(), threading.Event()

    def stop() -> None:
        peer.loop.stop()
        is_stopping.set()
        is_called.wait(PATIENCE_S)

    peer.loop.call_soon_threadsafe(stop)
    assert is_stopping.wait(PATIENCE_S)
    peer.port.connect(ours)
    is_called.set()
    await until(ours.lost)
    assert ours.told == ["ConnectionResetError"]
    assert not peer.accepted.is_set()


async def test_a_loop_that_has_ended_is_an_end_that_is_gone(peer: Peer) -> None:
    ours = End()
    transport = peer.port.connect(ours)
    transport.write(b"x")
    await until(peer.end.news)
    await asyncio.to_thread(peer.stop)
    transport.write(b"y")
    await until(ours.lost)
    assert ours.told == ["ConnectionResetError"]
    with pytest.raises(ConnectionRefusedError):
        peer.port.connect(End())


async def test_a_name_belongs_to_one_broker_at_a_time(peer: Peer) -> None:
    other = LocalPort(peer.loop, lambda transport: None)
    assert in_process.enter("tests.one", peer.port)
    assert not in_process.enter("tests.one", other)
    in_process.leave("tests.one", other)
    assert in_process.find("tests.one") is peer.port
    assert "tests.one" in in_process.names()
    in_process.leave("tests.one", peer.port)
    assert in_process.find("tests.one") is None
    assert "tests.one" not in in_process.names()
