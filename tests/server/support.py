"""A broker on free ports of this machine, in the test's own loop, and raw peers for it."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.broker import EngineBroker
from delosmq.model.conversion import Conversions
from delosmq.model.errors import PeerError
from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Random
from delosmq.model.settings import AcceptorSettings, AddressMatch, BrokerSettings
from delosmq.security.access import AccessControl
from delosmq.security.passwords import hash_password
from delosmq.server.clock import SystemClock
from delosmq.server.connection import Connection
from delosmq.server.listener import Listener, Server
from delosmq.server.passwords import PasswordChecks
from delosmq.server.server_parts import ServerParts
from delosmq.server.ticker import GateEvents, Ticker
from delosmq.sessions.host import SessionHost, SessionServices
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.outbox import Gate
from delosmq.sessions.protocol import Protocol
from delosmq.sessions.protocol_session import ProtocolSession
from delosmq.sessions.stomp.server.protocol import StompProtocol
from delosmq.storage.memory import MemoryStore
from delosmq.storage.port import ServedStore
from delosmq.wire.stomp.conversion import StompConversion
from delosmq.wire.stomp.decoder import StompDecoder, StompFrame
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V12
from tests.sessions.support import ACCEPTOR, EVERYTHING, PASSWORD, USER

STORED_PASSWORD = hash_password(PASSWORD, b"0123456789abcdef")
TCP = replace(ACCEPTOR, host="127.0.0.1")


class SystemRandom(Random):
    def token(self, size_bytes: int) -> str:
        return secrets.token_urlsafe(size_bytes)

    def fraction(self) -> float:
        return secrets.randbits(53) / (1 << 53)


class Logged(logging.Handler):
    """Keeps what was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class SeenProtocol(Protocol):
    """STOMP whose sessions the test sees, by their connection."""

    def __init__(self) -> None:
        self._stomp = StompProtocol()
        self.name = self._stomp.name
        self.websocket_subprotocols = self._stomp.websocket_subprotocols
        self.sessions: dict[SessionHost, SessionMachine] = {}

    def detect(self, start: bytes) -> int:
        return self._stomp.detect(start)

    def begin(self, machine: SessionMachine, now: MonotonicNs) -> ProtocolSession:
        self.sessions[machine.host] = machine
        return self._stomp.begin(machine, now)


class Later:
    """A call that is to be made later: a method of ``owner``, after a time."""

    def __init__(self, delay_s: float, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        self.owner = type(getattr(callback, "__self__", None))
        self.delay_s = delay_s
        self.handle: asyncio.TimerHandle | None = None
        self.made = False
        self._callback = callback
        self._args = args

    def __call__(self) -> None:
        self.made = True
        self._callback(*self._args)


class Timers:
    """What is to be called later in a loop, as the test sees and hastens it. It keeps nothing that is cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._call_later = loop.call_later
        self._calls: WeakSet[Later] = WeakSet()
        loop.call_later = self._note  # type: ignore[method-assign,assignment]

    def _note(self, delay: float, callback: Callable[..., object], *args: object, **more: Any) -> asyncio.TimerHandle:
        call = Later(delay, callback, args)
        call.handle = self._call_later(delay, call, **more)
        self._calls.add(call)
        return call.handle

    def waiting(self, owner: type, delay_s: float) -> int:
        """How many such calls are to come."""
        return len(self._of(owner, delay_s))

    def hasten(self, owner: type, delay_s: float) -> None:
        """Makes them now."""
        for call in self._of(owner, delay_s):
            assert call.handle is not None
            call.handle.cancel()
            call()

    def cancel(self, owner: type, delay_s: float) -> None:
        """Makes them never."""
        for call in self._of(owner, delay_s):
            assert call.handle is not None
            call.handle.cancel()

    def _of(self, owner: type, delay_s: float) -> list[Later]:
        return [call for call in self._calls if call.owner is owner and call.delay_s == delay_s and not call.made]


class RunningServer:
    """All parts of a server, wired.

    Attributes:
        transports: of connections, as asyncio or a layer gave them.
        finished: how many peers have sent everything.
    """

    def __init__(self, settings: BrokerSettings, store: ServedStore, passwords: PasswordChecks | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.timers = Timers(loop)
        self.transports: dict[Connection, asyncio.Transport] = {}
        self.finished = 0
        clock = SystemClock()
        self.clock = clock
        self.store = store
        self.gate = Gate()
        self.broker = EngineBroker(settings, store, clock=clock, random=SystemRandom(), events=EngineEvents())
        self.events = GateEvents(self.broker, self.gate)
        store.attach(self.events, self.broker.state)
        self.fatal: list[BaseException] = []
        self.ticker = Ticker(loop, self.broker, store, clock=clock, on_fatal=self.fatal.append)
        self.events.attach(self.ticker)
        access = AccessControl(
            {USER: STORED_PASSWORD}, {USER: frozenset({"all"})}, (EVERYTHING,), cache_key=secrets.token_bytes(32)
        )
        services = SessionServices(
            self.broker,
            self.gate,
            clock=clock,
            access=access,
            conversions=Conversions({"stomp": StompConversion()}),
            server_name="DelosMQ/test",
        )
        log = logging.Logger("delosmq.test")
        self.logged = Logged()
        log.addHandler(self.logged)
        self.passwords = passwords if passwords is not None else PasswordChecks(loop)
        self.protocol = SeenProtocol()
        self.parts = ServerParts(
            loop, services, self.ticker, passwords=self.passwords, protocols=(self.protocol,), log=log, tap=None
        )
        self.server = Server(self.parts)

    @property
    def listener(self) -> Listener:
        return self.server.listeners[0]

    @property
    def sessions(self) -> list[SessionMachine]:
        """Of connections that are there."""
        return [session for host, session in self.protocol.sessions.items() if host in self.listener.connections]

    @property
    def stuck(self) -> list[SessionMachine]:
        """Those whose sockets have not taken all that was written."""
        return [session for session in self.sessions if session.outbox.in_flight_bytes]

    def observe(self, patch: pytest.MonkeyPatch) -> None:
        """Notes what asyncio, or a layer, tells the connections."""
        made, ended, lost = Connection.connection_made, Connection.eof_received, Connection.connection_lost

        def connection_made(connection: Connection, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transports[connection] = transport
            made(connection, transport)

        def eof_received(connection: Connection) -> bool:
            self.finished += 1
            return ended(connection)

        def connection_lost(connection: Connection, error: Exception | None) -> None:
            self.transports.pop(connection, None)
            self.protocol.sessions.pop(connection, None)
            lost(connection, error)

        patch.setattr(Connection, "connection_made", connection_made)
        patch.setattr(Connection, "connection_lost", connection_lost)
        patch.setattr(Connection, "eof_received", eof_received)

    async def stop(self) -> None:
        """Drains, and lets go of everything."""
        await self.server.drain(PeerError("DMQ6008", "the broker is stopping"), 5.0)
        self.ticker.stop()
        self.store.close(5.0)

    async def connect(self, version: str = "1.2", headers: str = "") -> "RawPeer":
        """A peer that has read its CONNECTED."""
        peer = await self.open()
        peer.send(f"CONNECT\naccept-version:{version}\nhost:h\nlogin:{USER}\npasscode:{PASSWORD}\n{headers}\n\0")
        connected = await peer.frame()
        assert connected.command == "CONNECTED"
        return peer

    async def open(self) -> "RawPeer":
        reader, writer = await asyncio.open_connection("127.0.0.1", self.listener.port)
        return RawPeer(reader, writer)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for what happens in this loop."""
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - what is waited for happens in this loop
                await asyncio.sleep(0)


class RawPeer:
    """A socket that speaks in frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.decoder = StompDecoder(StompLimits())
        self.decoder.version = V12

    def send(self, chunk: str | bytes) -> None:
        self.writer.write(chunk.encode() if isinstance(chunk, str) else chunk)

    def send_frame(self, command: str, *headers: str, body: str = "") -> None:
        self.send("\n".join((command, *headers)) + f"\n\n{body}\0")

    async def frame(self) -> StompFrame:
        async with asyncio.timeout(10):
            frame = self.decoder.next_frame()
            while frame is None:
                chunk = await self.reader.read(65536)
                assert chunk, "the broker closed the connection"
                frame = self.decoder.next_frame(chunk)
        return frame

    async def closed(self) -> list[StompFrame]:
        """What came until the broker closed."""
        frames = []
        async with asyncio.timeout(10):
            while chunk := await self.reader.read(65536):
                frame = self.decoder.next_frame(chunk)
                while frame is not None:
                    frames.append(frame)
                    frame = self.decoder.next_frame()
        await self.close()
        return frames

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return


@asynccontextmanager
async def running(
    acceptor: AcceptorSettings = TCP,
    *,
    store: ServedStore | None = None,
    address_settings: dict[str, dict[str, object]] | None = None,
    ttl_check_interval_ms: int = 2_000,
    passwords: PasswordChecks | None = None,
) -> AsyncIterator[RunningServer]:
    """A server that is drained at the end; a fatal error fails the test."""
    matches = tuple(AddressMatch(match, fields) for match, fields in (address_settings or {}).items())
    settings = BrokerSettings(address_settings=matches, connection_ttl_check_interval_ms=ttl_check_interval_ms)
    server = RunningServer(settings, store if store is not None else MemoryStore(), passwords)
    position = server.broker.start()
    server.store.wait_synced(position, 5.0)
    server.server.bind((acceptor,))
    await server.server.start()
    server.ticker.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            server.observe(patch)
            yield server
    finally:
        await server.stop()
    assert not server.fatal, server.fatal
