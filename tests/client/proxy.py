"""A proxy between a client and a broker that a test can cut, silence or close."""

import asyncio
from types import TracebackType
from typing import Self


class Proxy:
    """
    Attributes:
        port: where clients connect.
        accepted: connections so far.
        answered: has an item for each connection by which the broker has said something.
        ended: and for each that is over.
        spoils: behind the first thing that the broker says on the second connection comes what is no frame, behind the
            second thing on the third one, and so on.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._pairs: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.accepted = 0
        self.answered: asyncio.Queue[None] = asyncio.Queue()
        self.ended: asyncio.Queue[None] = asyncio.Queue()
        self.spoils = False
        self._passes = asyncio.Event()
        self._passes.set()
        self._cut_after = 0
        self._cut = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def open(self) -> None:
        """Listens, where it did before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Nothing listens any more, and all connections break."""
        self._server.close()
        self.cut()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.speak()
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def silence(self) -> None:
        """Nothing passes any more, not even the end of a connection."""
        self._passes.clear()

    def speak(self) -> None:
        self._passes.set()

    def cut(self) -> None:
        """All connections break."""
        for pair in self._pairs:
            for writer in pair:
                writer.transport.abort()
        self._pairs.clear()
        self._cut_after = 0
        self._cut.set()

    def say(self, frame: bytes) -> None:
        """Puts a frame among those of the broker, between two of them."""
        for to_client, _ in self._pairs:
            to_client.write(frame)

    def refuse(self) -> None:
        """Nothing listens any more; connections go on."""
        self._server.close()

    async def cut_after(self, size_bytes: int) -> None:
        """All connections break once so many more bytes have passed; returns then."""
        self._cut.clear()
        self._cut_after = size_bytes
        await self._cut.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._pairs.append((writer, far_writer))
        spoilt = self.accepted - 1 if self.spoils else 0
        for source, sink, number in ((reader, far_writer, 0), (far_reader, writer, spoilt)):
            task = asyncio.ensure_future(self._copy(source, sink, number, writer, far_writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _copy(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, spoilt: int, *both: asyncio.StreamWriter
    ) -> None:
        said = False
        try:
            while chunk := await source.read(65536):
                if sink is both[0] and not said:
                    said = True
                    self.answered.put_nowait(None)
                spoilt -= 1
                if spoilt == 0:
                    chunk += b"\xff" * 8
                if self._passes.is_set():
                    await self._pass_on(chunk, sink)
        except OSError:
            pass
        finally:
            await self._passes.wait()
            for writer in both:
                writer.close()
            if sink is both[0]:
                self.ended.put_nowait(None)

    async def _pass_on(self, chunk: bytes, sink: asyncio.StreamWriter) -> None:
        if not self._cut_after:
            sink.write(chunk)
        elif len(chunk) < self._cut_after:
            self._cut_after -= len(chunk)
            sink.write(chunk)
        else:
            sink.write(chunk[: self._cut_after])
            self._cut_after = 0
            await sink.drain()
            self.cut()
