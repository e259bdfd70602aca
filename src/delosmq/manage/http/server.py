"""The HTTP server: uvicorn inside the broker's loop, on a socket that the broker bound."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from delosmq.manage.http.app import HttpApi
from delosmq.manage.http.problems import ProblemError
from delosmq.model.errors import LimitError

CONNECTION_LIMIT: Final = 256
HEAD_TIMEOUT_S: Final = 10.0
"""From connecting to the end of the first request's head, as for every protocol (handshake)."""
KEEP_ALIVE_S: Final = 75
"""Longer than readers pause between polls, so that they keep their connection."""
HEAD_LIMIT_BYTES: Final = 64 * 1024
STOP_TIMEOUT_S: Final = 5.0
DATE_EVERY_S: Final = 1.0


_NO_REQUEST: Final = "DMQ6164"
_TLS_BEGINS: Final = b"\x16\x03"
_NOT_HTTP: Final = "Invalid HTTP request received."


class _NotHttpFilter(logging.Filter):
    """Keeps back what uvicorn says of requests that are none: `_Protocol` says it, and of whom."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.msg != _NOT_HTTP


_NOT_HTTP_FILTER: Final = _NotHttpFilter()


class _Protocol(H11Protocol):
    """Closes connections that don't say what they want, and tells of those that don't speak HTTP."""

    def data_received(self, data: bytes) -> None:
        self._looks_like_tls = data.startswith(_TLS_BEGINS)
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP request, with a problem document as any other refusal."""
        advice = "there is no TLS here, write http://" if self._looks_like_tls else "look at what is sent to this port"
        peer = "an unknown peer" if self.client is None else f"{self.client[0]}:{self.client[1]}"
        app = self.config.app
        if isinstance(app, HttpApi):
            app.logger.warning("%s: what came from %s is no HTTP request; %s", _NO_REQUEST, peer, advice)
        problem = ProblemError(400, _NO_REQUEST, "INVALID", f"this is no HTTP request; {advice}").response()
        headers = [*problem.raw_headers, (b"connection", b"close")]
        head = self.conn.send(h11.Response(status_code=400, headers=headers, reason=b"Bad Request"))
        body = self.conn.send(h11.Data(data=bytes(problem.body)))
        end = self.conn.send(h11.EndOfMessage())
        self.transport.write((head or b"") + (body or b"") + (end or b""))
        self.transport.close()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_timer = asyncio.get_running_loop().call_later(HEAD_TIMEOUT_S, self._close_if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_timer.cancel()
        super().connection_lost(exc)

    def _close_if_silent(self) -> None:
        # uvicorn's cycle is the request it serves; it declares it as never None.
        cycle: object = self.cycle
        if cycle is None and not self.transport.is_closing():
            self.transport.close()


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
        """At once when nobody is connected, where uvicorn's own takes 100 ms."""
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
            return
        for server in self.servers:
            server.close()
            await server.wait_closed()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


class HttpServer:
    """Serves the API on a socket that is bound and listening; the server's from now on."""

    def __init__(self, api: HttpApi, bound: socket.socket) -> None:
        self.port: int = bound.getsockname()[1]
        self._api = api
        self._bound = bound
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begins to accept.

        Raises:
            LimitError: the loop can't serve the socket.
        """
        server = _Server(_config(self._api))
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


def _config(api: Any) -> uvicorn.Config:
    logging.getLogger("uvicorn.error").addFilter(_NOT_HTTP_FILTER)
    return uvicorn.Config(
        api,
        http=_Protocol,
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        log_level=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTION_LIMIT,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(STOP_TIMEOUT_S),
        h11_max_incomplete_event_size=HEAD_LIMIT_BYTES,
    )
