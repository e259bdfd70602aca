"""The HTTP server: uvicorn inside the broker's loop, on a socket that the broker bound."""

import asyncio
import logging
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, cast

import h11
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from delosmq.manage.http.body_length import CheckedConnection
from delosmq.manage.http.problems import ProblemError
from delosmq.manage.http.sync_wait import Drain
from delosmq.model.errors import LimitError, PeerError
from delosmq.model.values import BODY_LIMIT_BYTES
from delosmq.server.layers import Upper
from delosmq.server.listener import close_listening
from delosmq.server.peer_log import PeerLog
from delosmq.server.slow_readers import SlowReader, SlowReaders, WriteWatch
from delosmq.server.tls import TlsLayer

CONNECTION_LIMIT: Final = 256
HEAD_TIMEOUT_S: Final = 10.0
"""For the head of each request: the first from connecting on, as for every protocol (handshake); for what is left of a
body that is not read, too."""
KEEP_ALIVE_S: Final = 75
"""Longer than readers pause between polls, so that they keep their connection."""
HEAD_LIMIT_BYTES: Final = 64 * 1024
REQUEST_LIMIT_BYTES: Final = 8 * BODY_LIMIT_BYTES
"""Of one request in chunks, as it is sent: a body in chunks of one byte takes six times its size."""
STOP_TIMEOUT_S: Final = 5.0
DATE_EVERY_S: Final = 1.0
READ_WITHIN_MS: Final = 60_000
"""A client takes some of its answer within this time, as with ``soWriteTimeout`` of an acceptor; shorter than that, as
no consumer works between two reads."""

_NO_REQUEST: Final = "DMQ6164"
_AMBIGUOUS: Final = "DMQ6174"
_TLS_BEGINS: Final = b"\x16\x03"
_OF_REQUESTS: Final = (
    "Invalid HTTP request received.",
    "Unsupported upgrade request.",
    "No supported WebSocket library",
)
_HEALTH: Final = "/health/"
_FRAMES_TOLD: Final = 6
"""Of the traceback of a fault."""


_SERVING: Final = ContextVar("serving", default=False)
"""Whether what runs is one of our servers: a program around the broker may have a uvicorn of its own."""


class ServedApi(Protocol):
    """What is served: `HttpApi`, or `StandbyApi` of a broker that waits."""

    drain: Drain
    peer_log: PeerLog

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request (ASGI 3)."""


class _OnlyTrouble(logging.Filter):
    """Leaves out what uvicorn tells of our servers' start and end: the broker says so itself."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or not _SERVING.get()


_ONLY_TROUBLE: Final = _OnlyTrouble()


class _ConnectionLog(logging.Logger):
    """What uvicorn says of one connection, within the bounds of `PeerLog`, as a peer can cause it. What it says of odd
    requests is left out: `_Protocol` says what matters, and of whom."""

    def __init__(self, connection: "_Protocol") -> None:
        super().__init__("delosmq.http", logging.WARNING)
        self._connection = connection

    def handle(self, record: logging.LogRecord) -> None:
        if not str(record.msg).startswith(_OF_REQUESTS):
            error = record.exc_info[1] if record.exc_info else None
            self._connection.failed(record.getMessage().strip(), error)


class _Places:
    """The connections, the oldest first, and which of them wait for a request of their peer."""

    def __init__(self) -> None:
        self._all: dict[_Protocol, None] = {}

    def enter(self, connection: "_Protocol") -> None:
        """A new one. When there are too many, the oldest of those that wait goes, of the peer that has most of them: a
        check of health always finds a place."""
        if len(self._all) >= CONNECTION_LIMIT:
            self._make_room()
        self._all[connection] = None

    def leave(self, connection: "_Protocol") -> None:
        """It is closed."""
        self._all.pop(connection, None)

    def all_serve(self) -> bool:
        """Whether as many requests as may be are being served."""
        if len(self._all) <= CONNECTION_LIMIT:
            return False
        return sum([not connection.waits() for connection in self._all]) > CONNECTION_LIMIT

    def _make_room(self) -> None:
        waiting: dict[str, list[_Protocol]] = {}
        for connection in self._all:
            if connection.waits():
                waiting.setdefault(connection.host(), []).append(connection)
        if waiting:
            max(waiting.values(), key=len)[0].give_up()


class _Protocol(H11Protocol, SlowReader, Upper):
    """Closes connections that don't say what they want or don't read, and tells of those that don't speak HTTP.

    With TLS its transport is a layer, which calls `receive` in place of `data_received`.
    """

    def __init__(self, places: _Places, slow_readers: SlowReaders, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._slow_readers = slow_readers
        self._checked = CheckedConnection(HEAD_LIMIT_BYTES)
        self.conn = self._checked
        self._places = places
        self._head_timer: asyncio.TimerHandle | None = None
        self._request_bytes = 0
        self._looks_like_tls = False
        self.logger = _ConnectionLog(self)
        # uvicorn asks only whether that logger has handlers, and a program around the broker may have some.
        self.access_log = False

    def waits(self) -> bool:
        """Whether no request is being served."""
        # uvicorn's cycle is the request it serves; it declares it as never None.
        cycle: object = self.cycle
        return cycle is None or self.cycle.response_complete

    def host(self) -> str:
        return "an unknown peer" if self.client is None else self.client[0]

    def give_up(self) -> None:
        """Closes at once."""
        self._places.leave(self)
        self.transport.abort()

    def failed(self, what: str, error: BaseException | None) -> None:
        """A request was not answered as it should be, through a fault of ours."""
        # None before the first request; uvicorn declares it as never None.
        scope: object = self.scope
        path = scope["path"] if isinstance(scope, dict) else ""
        cause = "" if error is None else f": {_innermost(error)}"
        self._warn(f"DMQ6175: {what} [{self._peer()}, {path}]{cause}; please report this")

    def _warn(self, message: str) -> None:
        app = self.config.app
        if isinstance(app, _RequestLimit):
            app.api.peer_log.warning(self.host(), message)

    def _peer(self) -> str:
        return "an unknown peer" if self.client is None else f"{self.client[0]}:{self.client[1]}"

    def data_received(self, data: bytes) -> None:
        if self.waits():
            self._request_bytes = 0
            self._looks_like_tls = data.startswith(_TLS_BEGINS)
        self._request_bytes += len(data)
        if self._request_bytes > REQUEST_LIMIT_BYTES and not self._told_its_length():
            self.give_up()
            return
        super().data_received(data)
        self._watch()

    def _told_its_length(self) -> bool:
        """Whether the request that is being served said how long its body is; its operation knows the limit of that."""
        return not self.waits() and any(name == b"content-length" for name, _ in self.headers)

    def receive(self, chunk: bytes) -> None:
        self.data_received(chunk)

    def break_off(self, reason: PeerError) -> None:
        self._warn(f"{reason} [HTTP client {self._peer()}]")
        if self._head_timer is not None:
            with suppress(OSError):  # the peer has reset the connection
                # It reads on until that timer, so that what the peer is told is not lost in a reset.
                self.transport.write_eof()
                return
        self.transport.abort()

    def _watch(self) -> None:
        """Something came: if it is not a request yet, the rest must not take for ever."""
        timer = self._head_timer
        if not self.waits():
            if timer is not None:
                timer.cancel()
                self._head_timer = None
        elif timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._close_if_silent)

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP request, with a problem document as any other refusal."""
        advice = "there is no TLS here, write http://" if self._looks_like_tls else "look at what is sent to this port"
        ambiguity = self._checked.ambiguity
        sentence = f"its end is not clear: {ambiguity}" if ambiguity else f"this is no HTTP request; {advice}"
        if ambiguity:
            self._warn(f"{_AMBIGUOUS}: a request from {self._peer()} is refused: {ambiguity}")
        else:
            self._warn(f"{_NO_REQUEST}: what came from {self._peer()} is no HTTP request; {advice}")
        if not self.waits():
            # The request that has this body still runs: what it answers from now on goes nowhere.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            # Its answer is on its way or sent.
            self.transport.close()
            return
        problem = ProblemError(400, _AMBIGUOUS if ambiguity else _NO_REQUEST, "INVALID", sentence).response()
        headers = [*problem.raw_headers, (b"connection", b"close")]
        head = self.conn.send(h11.Response(status_code=400, headers=headers, reason=b"Bad Request"))
        body = self.conn.send(h11.Data(data=bytes(problem.body)))
        end = self.conn.send(h11.EndOfMessage())
        self.transport.write((head or b"") + (body or b"") + (end or b""))
        self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._places.enter(self)
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._close_if_silent)
        self._reading_watch = WriteWatch(self.loop, READ_WITHIN_MS, self, self._looked)

    def connection_lost(self, exc: Exception | None) -> None:
        self._places.leave(self)
        self._reading_watch.stop()
        self._slow_readers.remove(self)
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading_watch.socket_full(self.transport)
        self._looked(0)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._reading_watch.socket_took_all()
        self._slow_readers.remove(self)

    def cut_off(self, reason: PeerError) -> None:
        if not self.transport.is_closing():
            self._warn(f"{reason} [HTTP client {self._peer()}, {self.scope['path']}]")
        self.transport.abort()

    def _looked(self, still: int) -> None:
        if not self.transport.is_closing():
            self._slow_readers.looked_at(self, self.transport.get_write_buffer_size(), still)

    def _close_if_silent(self) -> None:
        self._head_timer = None
        if self.waits() and not self.transport.is_closing():
            self.give_up()


def _innermost(error: BaseException) -> str:
    """What was raised and where, on one line."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_TOLD:]
    where = " < ".join([f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames)])
    return f"{type(error).__name__}: {error} ({where})"


class _RequestLimit:
    """Serves at most `CONNECTION_LIMIT` requests at once, and health always."""

    def __init__(self, api: ServedApi, places: _Places) -> None:
        self.api = api
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._places.all_serve() and not scope["path"].startswith(_HEALTH):
            sentence = f"{CONNECTION_LIMIT} requests are being served already; try again later"
            response = ProblemError(503, "DMQ6173", "BUSY", sentence).response()
            response.headers["Connection"] = "close"
            await response(scope, receive, send)
            return
        await self.api(scope, receive, send)


class _Server(uvicorn.Server):
    """Leaves signals to the broker and says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._wake = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        """Once a second, for the date in answers, and at once when it is to stop: uvicorn's own looks ten times a
        second, in every idle broker."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), DATE_EVERY_S)

    def leave(self, *, force: bool = False) -> None:
        """Ends `main_loop`; ``force`` waits for no request."""
        self.should_exit = True
        self.force_exit = self.force_exit or force
        self._wake.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """At once when there are no connections, where uvicorn's own takes 100 ms."""
        for server in self.servers:
            await close_listening(server)
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
            return
        for server in self.servers:
            await server.wait_closed()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        _SERVING.set(True)
        logging.getLogger("uvicorn.error").addFilter(_ONLY_TROUBLE)
        await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


class HttpServer:
    """Serves the API on a socket that is bound and listening; the server's from now on."""

    def __init__(
        self,
        api: ServedApi,
        bound: socket.socket,
        slow_readers: SlowReaders,
        tls: Callable[..., TlsLayer] | None = None,
    ) -> None:
        """
        Args:
            slow_readers: counts what waits for clients that do not read.
            tls: makes the layer below a connection, with the arguments that `TlsLayer` lacks then; None for no TLS.
        """
        self._tls = tls
        self.port: int = bound.getsockname()[1]
        self._api = api
        self._slow_readers = slow_readers
        self._bound = bound
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begins to accept.

        Raises:
            LimitError: the loop can't serve the socket.
        """
        server = _Server(_config(self._api, self._slow_readers, self._tls))
        self._server = server
        self._task = asyncio.create_task(server.serve(sockets=[self._bound]), name="delosmq http")
        listening = asyncio.create_task(server.listening.wait())
        await asyncio.wait({self._task, listening}, return_when=asyncio.FIRST_COMPLETED)
        if not listening.done():
            listening.cancel()
            self._bound.close()
            await asyncio.gather(self._task, return_exceptions=True)
            raise LimitError(
                "DMQ6502", f"the HTTP interface did not start on port {self.port}; the log says why, then start again"
            )

    @property
    def connection_count(self) -> int:
        """How many clients are connected."""
        return 0 if self._server is None else len(self._server.server_state.connections)

    async def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Ends long polls, lets running requests finish for at most ``timeout_s``, closes. May be repeated."""
        server, task = self._server, self._task
        if server is None or task is None:
            return
        self._server = None
        self._task = None
        self._api.drain.start()
        server.leave()
        done, _ = await asyncio.wait({task}, timeout=timeout_s)
        if not done:
            server.leave(force=True)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._api.peer_log.close()


def _with_tls(tls: Callable[..., TlsLayer], made: Callable[..., object], **given: Any) -> TlsLayer:
    return tls(made(**given))


def _plain_answer() -> bytes:
    """What a client of http:// is told where https:// is spoken."""
    sentence = "this port speaks TLS: write https:// in the address"
    problem = ProblemError(400, "DMQ6165", "TLS_NEEDED", sentence).response()
    headers = [b"%s: %s" % header for header in problem.raw_headers]
    return b"\r\n".join([b"HTTP/1.1 400 Bad Request", *headers, b"connection: close", b"", bytes(problem.body)])


def _config(api: ServedApi, slow_readers: SlowReaders, tls: Callable[..., TlsLayer] | None) -> uvicorn.Config:
    places = _Places()
    made: Callable[..., object] = partial(_Protocol, places, slow_readers)
    if tls is not None:
        made = partial(_with_tls, partial(tls, plain_answer=_plain_answer()), made)
    return uvicorn.Config(
        _RequestLimit(api, places),
        http=cast(type[asyncio.Protocol], made),
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        log_level=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(STOP_TIMEOUT_S),
    )
