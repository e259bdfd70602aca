"""Brokers of this process, by name, and connections to them without a socket: ``vm://orders``.

    client's loop: write -> [what has arrived, up to `_FULL_BYTES`] -> the broker's loop: the other end's protocol

A connection has two ends, each an `asyncio.Transport` in a loop of its own. They behave as the ends of a socket do:
what is too much pauses its writer, an end that is closed is the end of the stream for the other, which reads what was
written before.
"""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from itertools import count
from threading import Lock
from typing import Final

_FULL_BYTES: Final = 256 * 1024
"""As much as one read of a socket. With more on its way the writer is paused."""


class MemoryTransport(asyncio.Transport):
    """One end of a connection within the process. Its methods are called in its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, peername: tuple[str, int]) -> None:
        super().__init__({"peername": peername})
        self._loop = loop
        self._other = self
        self._protocol: asyncio.BaseProtocol | None = None
        self._deliver: Callable[[bytes], None] | None = None
        self._closing = False
        self._written_eof = False
        self._reading = True
        # What follows is shared by both loops.
        self._guard = Lock()
        self._arrived: list[bytes] = []
        self._arrived_bytes = 0
        self._at_end = False
        self._is_called = True  # from `attach` on
        self._paused = False
        self._is_gone = False

    def join(self, other: "MemoryTransport") -> None:
        """Makes two ends one connection, before either is used."""
        self._other, other._other = other, self
        other._guard = self._guard

    def attach(self, protocol: asyncio.BaseProtocol, deliver: Callable[[bytes], None]) -> None:
        """Begins to deliver what arrives."""
        self._protocol = protocol
        self._deliver = deliver
        self._loop.call_soon(self._receive)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """What arrives from now on is for ``protocol``, which reads as from a socket."""
        assert isinstance(protocol, asyncio.BufferedProtocol)  # as all that stands before a session
        self._protocol = protocol
        self._deliver = partial(_read_into, protocol)

    # --- to the other end

    def write(self, chunk: bytes | bytearray | memoryview) -> None:
        if self._closing or self._written_eof or not chunk:
            return
        other = self._other
        pauses = False
        with self._guard:
            if not other._is_gone:
                other._arrived.append(bytes(chunk))
                other._arrived_bytes += len(chunk)
                pauses = other._arrived_bytes > _FULL_BYTES and not self._paused
                self._paused = self._paused or pauses
        self._wake_other()
        if pauses and self._protocol is not None:
            self._protocol.pause_writing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._written_eof:
            self._written_eof = True
            self._other._at_end = True
            self._wake_other()

    def _wake_other(self) -> None:
        """Has the other end read, unless it is about to. One that is gone, as its loop may be, resets this one."""
        other = self._other
        with self._guard:
            wakes, other._is_called = not other._is_called, True
            gone = other._is_gone
        if wakes and not gone:
            gone = not other._call(other._receive)
        if gone:
            self.reset()

    def tell_other(self) -> None:
        """There is nothing that belongs to this end, and never will be."""
        self._is_gone = True
        self._other._call(self._other.reset)

    def _call(self, function: Callable[[], None]) -> bool:
        """Has a function called in this end's loop, from any thread. False when that is closed."""
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            self._is_gone = True
            return False
        return True

    # --- from the other end

    def _receive(self) -> None:
        with self._guard:
            self._is_called = False
            if not self._reading or self._closing:
                return
            chunks, self._arrived = self._arrived, []
            self._arrived_bytes = 0
            resumes, self._other._paused = self._other._paused, False
        if resumes:
            self._other._call(self._other._resume)
        if chunks and self._deliver is not None:
            try:
                self._deliver(b"".join(chunks) if len(chunks) > 1 else chunks[0])
            except BaseException:
                self.abort()
                raise
        self._look_for_end()

    def _look_for_end(self) -> None:
        if not self._at_end or not self._reading or self._arrived:
            return
        self._at_end = False
        protocol = self._protocol
        if isinstance(protocol, asyncio.Protocol | asyncio.BufferedProtocol) and not protocol.eof_received():
            self.close()

    def _resume(self) -> None:
        if self._protocol is not None and not self._closing:
            self._protocol.resume_writing()

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        with self._guard:
            calls, self._is_called = not self._is_called, True
        if calls:
            self._loop.call_soon(self._receive)

    # --- the end

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is kept on this side."""

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._end(None)

    def abort(self) -> None:
        self._end(None)

    def _end(self, cause: Exception | None) -> None:
        if not self._closing:
            self._closing = True
            self.write_eof()
            self._loop.call_soon(self._lose, cause)

    def reset(self) -> None:
        """The other end is gone; what it wrote before is read first."""
        self._written_eof = True
        self._loop.call_soon(self._break)

    def _break(self) -> None:
        self._receive()
        self._end(ConnectionResetError("the other end is gone"))

    def _lose(self, cause: Exception | None) -> None:
        other = self._other
        with self._guard:
            self._is_gone = True
            self._arrived = []
        if other._paused:  # it would wait for ever
            other._call(other.reset)
        if self._protocol is not None:
            self._protocol.connection_lost(cause)
        self._protocol = self._deliver = None


def _read_into(protocol: asyncio.BufferedProtocol, chunk: bytes) -> None:
    unread = memoryview(chunk)
    while unread:
        buffer = memoryview(protocol.get_buffer(len(unread)))
        read = min(len(buffer), len(unread))
        buffer[:read] = unread[:read]
        protocol.buffer_updated(read)
        unread = unread[read:]


class _Arrival:
    """A connection on its way to the broker's loop, which drops it if it ends before it has come to it."""

    def __init__(self, accept: Callable[[MemoryTransport], None], transport: MemoryTransport) -> None:
        self._accept = accept
        self._transport: MemoryTransport | None = transport

    def __call__(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            self._accept(transport)

    def __del__(self) -> None:
        if self._transport is not None:
            self._transport.tell_other()


class LocalPort:
    """Where clients of this process find a broker.

    Args:
        accept: is called in the broker's loop with the broker's end of a new connection, which it attaches.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, accept: Callable[[MemoryTransport], None]) -> None:
        self._loop = loop
        self._accept = accept
        self._process = os.getpid()
        self._numbers = count(1)

    @property
    def is_here(self) -> bool:
        """False after a fork: the broker's thread is not in the child."""
        return self._process == os.getpid()

    def connect(self, protocol: asyncio.Protocol) -> MemoryTransport:
        """A connection from the running loop.

        Raises:
            ConnectionRefusedError: the broker has ended this moment.
        """
        ours = MemoryTransport(asyncio.get_running_loop(), ("vm", 0))
        theirs = MemoryTransport(self._loop, ("vm", next(self._numbers)))
        ours.join(theirs)
        try:
            self._loop.call_soon_threadsafe(_Arrival(self._accept, theirs))
        except RuntimeError:
            raise ConnectionRefusedError("the broker has ended") from None
        ours.attach(protocol, protocol.data_received)
        return ours


_ports: Final[dict[str, LocalPort]] = {}


def enter(name: str, port: LocalPort) -> bool:
    """Makes a broker known. False when another one has that name."""
    found = _ports.get(name)
    if found is not None and not found.is_here:
        leave(name, found)
    return _ports.setdefault(name, port) is port


def leave(name: str, port: LocalPort) -> None:
    """Takes a broker back, if it is this one that has the name."""
    if _ports.get(name) is port:
        del _ports[name]


def find(name: str) -> LocalPort | None:
    found = _ports.get(name)
    return found if found is not None and found.is_here else None


def names() -> list[str]:
    """Of the brokers that there are, in order."""
    return sorted(name for name, port in list(_ports.items()) if port.is_here)
