"""A way to a server on loopback that a test can cut, delay or turn into a black hole."""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from delosmq.testing.processes.free_port import free_port

PATIENCE_S: Final = 60.0
_HOST: Final = "127.0.0.1"
_PIECE_BYTES: Final = 65_536
_MOST_PIECES: Final = 64
"""On their way in one direction; who sends more waits, as on a slow network."""
_RESET_AT_CLOSE: Final = struct.pack("ii", 1, 0)
"""For SO_LINGER: the other side gets a reset."""


@dataclass(frozen=True)
class ProxiedPiece:
    """What passes at once: some bytes of one connection, parted as the network happened to.

    Attributes:
        connection: 1 for the first that was accepted.
        number: 1 for the first piece of its direction.
        to_client: its direction.
    """

    connection: int
    number: int
    to_client: bool
    content: bytes


class TcpProxy:
    """Listens from `start` to `close`, or for a ``with`` block, in a thread of its own. Calls may come from any thread.

    Args:
        target_port: of the server, on 127.0.0.1. It need not be there yet.
        change: is given each piece, in the proxy's thread, and gives what passes on in its place; b"" for nothing, None
            to break the connection there.

    Attributes:
        port: where clients connect, on 127.0.0.1; the same after each start.
        accepted: connections so far.
        answered: those of them on which the server has said something that was passed on.
        ended: those of them that are over.
    """

    def __init__(self, target_port: int, *, change: Callable[[ProxiedPiece], bytes | None] | None = None) -> None:
        self.port = free_port()
        self.accepted = 0
        self.answered = 0
        self.ended = 0
        self._target = target_port
        self._change = change
        self._changed = threading.Condition()
        self._delay_s = 0.0
        self._cut_after_bytes = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._listening: socket.socket | None = None
        self._pairs: list[_Pair] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._held = {True: False, False: False}
        self._open: dict[bool, asyncio.Event] = {}
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listens, where it did before. Nothing changes if it does so already.

        Raises:
            OSError: the port is taken.
        """
        if self._listening is not None:
            return
        self._listening = socket.create_server((_HOST, self.port))
        self._listening.setblocking(False)
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._open = {True: asyncio.Event(), False: asyncio.Event()}
            self._hold(to_client=self._held[True], to_server=self._held[False])
            self._thread = threading.Thread(target=self._loop.run_forever, name="tcp-proxy", daemon=True)
            self._thread.start()
        self._call(self._listen)

    def close(self) -> None:
        """Nothing listens any more, and all connections break. May be repeated. Raises what `change` has raised."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self.refuse()
        self.restore()
        self._await(self._end())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        self._loop = self._thread = None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # -- faults --------------------------------------------------------------------------------------------------

    def refuse(self) -> None:
        """No client can connect, until `start`; those that are connected stay."""
        if self._listening is not None:
            self._call(self._stop_listening)

    def cut(self) -> None:
        """All connections break: both sides get a reset."""
        self._call(self._cut)

    def cut_after(self, size_bytes: int) -> None:
        """All connections break once so many more bytes have passed, counted over all of them in both directions."""
        self._call(lambda: self._order_cut(size_bytes))

    def delay(self, seconds: float) -> None:
        """What is sent from now on arrives so much later, in order."""
        self._delay_s = seconds

    def blackhole(self, *, to_client: bool = True, to_server: bool = True) -> None:
        """Nothing passes any more in these directions, not even the end of a connection. Who connects meanwhile gets no
        answer."""
        self._call(lambda: self._hold(to_client=to_client, to_server=to_server))

    def restore(self) -> None:
        """The end of `blackhole` and `delay`: what was sent in the meantime arrives, as TCP sends it again."""
        self._delay_s = 0.0
        self._call(lambda: self._hold(to_client=False, to_server=False))

    def inject(self, content: bytes) -> None:
        """All clients get this as if it came from the server."""
        self._call(lambda: self._inject(content))

    # -- waiting -------------------------------------------------------------------------------------------------

    def wait_for(self, *, accepted: int = 0, answered: int = 0, ended: int = 0, timeout_s: float = PATIENCE_S) -> None:
        """Waits until there were at least so many.

        Raises:
            TimeoutError: there were not.
        """
        self._wait(
            lambda: self.accepted >= accepted and self.answered >= answered and self.ended >= ended,
            f"accepted={accepted}, answered={answered}, ended={ended}",
            timeout_s,
        )

    async def wait_for_async(
        self, *, accepted: int = 0, answered: int = 0, ended: int = 0, timeout_s: float = PATIENCE_S
    ) -> None:
        """`wait_for` in a coroutine, while the loop goes on."""
        await asyncio.to_thread(self.wait_for, accepted=accepted, answered=answered, ended=ended, timeout_s=timeout_s)

    def wait_for_cut(self, timeout_s: float = PATIENCE_S) -> None:
        """Waits until what `cut_after` ordered has happened.

        Raises:
            TimeoutError: it has not.
        """
        self._wait(lambda: self._cut_after_bytes == 0, "cut", timeout_s)

    def _wait(self, came: Callable[[], bool], what: str, timeout_s: float) -> None:
        with self._changed:
            if not self._changed.wait_for(came, timeout_s):
                seen = f"accepted={self.accepted}, answered={self.answered}, ended={self.ended}"
                raise TimeoutError(f"{timeout_s:g} s, and no {what} at the proxy; it has {seen}")

    def _count(self, *, accepted: int = 0, answered: int = 0, ended: int = 0) -> None:
        with self._changed:
            self.accepted += accepted
            self.answered += answered
            self.ended += ended
            self._changed.notify_all()

    # -- the thread ----------------------------------------------------------------------------------------------

    def _call(self, work: Callable[[], object]) -> None:
        """Done when this returns."""
        if self._loop is None or threading.current_thread() is self._thread:
            work()
        else:
            self._await(_as_coroutine(work))

    def _await(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # asyncio's own server loses a connection that it has accepted when it is closed in the same turn of the loop.
    def _listen(self) -> None:
        assert self._listening is not None
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    def _stop_listening(self) -> None:
        listening, self._listening = self._listening, None
        assert listening is not None
        asyncio.get_running_loop().remove_reader(listening)
        listening.close()

    def _accept(self) -> None:
        assert self._listening is not None
        with contextlib.suppress(OSError):
            client, _ = self._listening.accept()
            self._count(accepted=1)
            self._start(self._serve(self.accepted, client))

    async def _end(self) -> None:
        while self._tasks:
            self._cut()
            await asyncio.wait(self._tasks, timeout=0.05)  # one that is only now being made is cut the next time

    def _cut(self) -> None:
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            pair.reset()
        with self._changed:
            self._cut_after_bytes = 0
            self._changed.notify_all()

    def _order_cut(self, size_bytes: int) -> None:
        self._cut_after_bytes = size_bytes

    def _hold(self, *, to_client: bool, to_server: bool) -> None:
        for direction, held in ((True, to_client), (False, to_server)):
            self._held[direction] = held
            if self._open:
                (self._open[direction].clear if held else self._open[direction].set)()

    def _inject(self, content: bytes) -> None:
        for pair in self._pairs:
            pair.client.write(content)

    async def _serve(self, number: int, client: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=client)
        try:
            far_reader, far_writer = await asyncio.open_connection(_HOST, self._target)
        except OSError:
            writer.transport.abort()
            await _closed(writer)
            self._count(ended=1)
            return
        pair = _Pair(number, writer, far_writer)
        self._pairs.append(pair)
        ways = [
            self._start(self._pass(pair, source, to_client))
            for source, to_client in ((reader, False), (far_reader, True))
        ]
        pair.ways = ways
        await asyncio.wait(ways)
        for one in (writer, far_writer):
            await _closed(one)
        self._pairs = [one for one in self._pairs if one is not pair]
        self._count(ended=1)

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _pass(self, pair: "_Pair", source: asyncio.StreamReader, to_client: bool) -> None:
        """One direction, until either side ends it."""
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_MOST_PIECES)
        reading = self._start(self._read(source, pieces))
        number = 0
        try:
            while True:
                due, content = await pieces.get()
                await asyncio.sleep(due - asyncio.get_running_loop().time())
                await self._open[to_client].wait()
                if not content:
                    break
                number += 1
                await self._pass_on(pair, ProxiedPiece(pair.number, number, to_client, content))
                if to_client and number == 1:
                    self._count(answered=1)
        except OSError:
            pass
        except Exception as error:
            self._failure = self._failure or error
        finally:
            reading.cancel()
            pair.close()

    async def _read(self, source: asyncio.StreamReader, pieces: "asyncio.Queue[tuple[float, bytes]]") -> None:
        """Ends with an empty piece."""
        content = b"-"
        while content:
            try:
                content = await source.read(_PIECE_BYTES)
            except OSError:
                content = b""
            await pieces.put((asyncio.get_running_loop().time() + self._delay_s, content))

    async def _pass_on(self, pair: "_Pair", piece: ProxiedPiece) -> None:
        content = piece.content if self._change is None else self._change(piece)
        sink = pair.client if piece.to_client else pair.server
        if content is None:
            pair.reset()
            raise ConnectionResetError
        left = self._cut_after_bytes
        if not left or len(content) < left:
            self._cut_after_bytes = max(0, left - len(content))
            sink.write(content)
            await sink.drain()
        else:
            sink.write(content[:left])
            await sink.drain()
            self._cut()
            raise ConnectionResetError


class _Pair:
    """One connection: to the client, and to the server."""

    def __init__(self, number: int, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.number = number
        self.client = client
        self.server = server
        self.ways: list[asyncio.Task[None]] = []

    def reset(self) -> None:
        """Whatever is on its way is lost."""
        for writer in (self.client, self.server):
            connected = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
            writer.transport.abort()
        for way in self.ways:
            if way is not asyncio.current_task():
                way.cancel()

    def close(self) -> None:
        """After what was written has been sent."""
        self.client.close()
        self.server.close()


async def _closed(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _as_coroutine(work: Callable[[], object]) -> None:
    work()
