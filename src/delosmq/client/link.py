"""One connection to a broker in an event loop: moves the bytes between a socket and its machine, and keeps the time."""

import asyncio
import os
import random
import secrets
import socket
import ssl
import time
from collections.abc import Callable
from itertools import count
from typing import Final

from delosmq.client.errors import foreign_loop, not_connected_in_time, unreachable
from delosmq.client.urls import BrokerAddress, ConnectionPlan
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.ports import Clock, Random
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client import errors
from delosmq.sessions.openwire.client.connection import ClientIdentity, OpenWireClient
from delosmq.sessions.openwire.client.ports import ClientEvents, PendingRequest
from delosmq.wire.openwire.commands import Response

_NS_PER_S: Final = 1_000_000_000
_MS_PER_S: Final = 1_000
_numbers: Final = count(1)


class LocalClock(Clock):
    """The clocks of this process."""

    def wall_ms(self) -> WallMs:
        return WallMs(time.time_ns() // 1_000_000)

    def monotonic_ns(self) -> MonotonicNs:
        return MonotonicNs(time.monotonic_ns())


class LocalRandom(Random):
    """Chance of this process."""

    def token(self, size_bytes: int) -> str:
        return secrets.token_urlsafe(size_bytes)

    def fraction(self) -> float:
        return random.random()


class _Bytes(asyncio.Protocol):
    """The socket's side of a link."""

    def __init__(self, link: "Link") -> None:
        self._link = link

    def data_received(self, data: bytes) -> None:
        self._link.receive(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._link.on_lost(exc)

    def pause_writing(self) -> None:
        self._link.room.clear()

    def resume_writing(self) -> None:
        self._link.room.set()


class Link(ClientEvents):
    """
    Attributes:
        machine: what may be called, when `check_loop` let it; `flush` follows.
        room: clear while the socket takes no more.
        error: why the connection is over; None while it is not, and when it was closed.
        on_error: hears what nobody waits for, and why the connection is over when it was not closed.
    """

    def __init__(self, plan: ConnectionPlan, context: ssl.SSLContext | None) -> None:
        address = plan.address
        self.loop = asyncio.get_running_loop()
        self.machine = OpenWireClient(self, plan.options, _identity(plan), LocalClock(), LocalRandom())
        self.room = asyncio.Event()
        self.room.set()
        self.error: ClientError | None = None
        self.on_error: asyncio.Queue[ClientError] = asyncio.Queue()
        self._address = address
        self._context = context
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0
        self._opened: asyncio.Future[None] = self.loop.create_future()
        self._gone = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None

    def check_loop(self) -> None:
        """
        Raises:
            IllegalStateError: DMQ9059, another event loop runs here, or none.
        """
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            raise foreign_loop() from None
        if running is not self.loop:
            raise foreign_loop()

    def is_open(self) -> bool:
        return not self._gone.is_set()

    def soon(self, function: Callable[[], object]) -> None:
        """Has a function called in the loop, wherever this is called; not at all when the loop is closed."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function)

    def close_soon(self) -> None:
        """Closes it in the loop."""
        self.soon(self._start_closing)

    def _start_closing(self) -> None:
        self._closing = self.loop.create_task(self.close())

    # --- the beginning and the end

    async def open(self) -> None:
        """
        Raises:
            ClientError: there is no broker, or it lets us not in; nothing is left open then.
        """
        timeout_s = self._address.transport.connection_timeout_ms / _MS_PER_S
        try:
            async with asyncio.timeout(timeout_s or None):
                await self._connect()
                self.flush()
                await self._opened
        except TimeoutError:
            await self.abort()
            raise not_connected_in_time(str(self._address), timeout_s) from None
        except OSError as error:
            await self.abort()
            raise unreachable(str(self._address), error.strerror or str(error)) from None
        except BaseException:
            await self.abort()
            raise

    async def _connect(self) -> None:
        address = self._address
        transport, _ = await self.loop.create_connection(
            lambda: _Bytes(self),
            address.host,
            address.port,
            ssl=self._context,
            server_hostname=address.host if self._context is not None else None,
        )
        self._transport = transport
        connected = transport.get_extra_info("socket")
        if connected is not None:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, address.transport.tcp_no_delay)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, address.transport.keep_alive)

    async def close(self) -> None:
        """In order, and within `closeTimeout`."""
        self.machine.close()
        self.flush()
        await self._gone.wait()
        if self._transport is not None:
            self._transport.close()
        await self._wait_until_closed()

    async def abort(self) -> None:
        """At once."""
        self.machine.lose()
        if self._opened.done() and not self._opened.cancelled():
            self._opened.exception()  # was told to whom it concerns
        if self._transport is not None:
            self._transport.abort()
        await self._wait_until_closed()

    async def _wait_until_closed(self) -> None:
        self._cancel_timer()
        while self._transport is not None:
            self.room.clear()
            await self.room.wait()

    # --- bytes and time

    def receive(self, chunk: bytes) -> None:
        self.machine.receive(chunk)
        self.flush()

    def on_lost(self, cause: Exception | None) -> None:
        """The socket is gone."""
        self._transport = None
        peer = str(self._address)
        self.machine.lose(None if cause is None else errors.lost(peer, f"{cause}. See the broker's log."))
        self._cancel_timer()
        self.room.set()

    def flush(self) -> None:
        """Writes what the machine has to say, and sets the timer that it needs."""
        output = self.machine.take_output()
        if output and self._transport is not None:
            self._transport.write(output)
        due = self.machine.next_timer()
        if due != self._timer_at:
            self._cancel_timer()
            if due:
                self._timer_at = due
                delay_s = max(0.0, (due - time.monotonic_ns()) / _NS_PER_S)
                self._timer = self.loop.call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_at = 0
        self.machine.handle_timer()
        self.flush()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._timer_at = 0

    # --- answers

    async def answer(self, request: PendingRequest | None) -> Response | None:
        """The broker's answer.

        Raises:
            ClientError: it is a refusal, or none will come.
        """
        self.flush()
        if request is None:
            return None
        if not request.done:
            future: asyncio.Future[None] = self.loop.create_future()
            request.waiter = future
            await future
        if request.error is not None:
            raise request.error
        return request.response

    def report(self, request: PendingRequest | None) -> None:
        """Has a refusal told to whom it may concern, as nobody waits for the answer."""
        if request is not None:
            request.waiter = self

    # --- told by the machine

    def opened(self) -> None:
        if not self._opened.done():
            self._opened.set_result(None)

    def answered(self, request: PendingRequest) -> None:
        waiter = request.waiter
        if isinstance(waiter, asyncio.Future):
            if not waiter.done():
                waiter.set_result(None)
        elif waiter is self and request.error is not None:
            self.troubled(request.error)

    def changed(self, waiter: object) -> None:
        if isinstance(waiter, asyncio.Event):
            waiter.set()

    def troubled(self, error: ClientError) -> None:
        self.on_error.put_nowait(error)

    def ended(self, error: ClientError | None) -> None:
        self.error = error
        self._gone.set()
        if not self._opened.done():
            self._opened.set_exception(error or errors.closed("connection"))
        elif error is not None:
            self.on_error.put_nowait(error)
        if self._transport is not None and error is not None:
            self._transport.close()


def _identity(plan: ConnectionPlan) -> ClientIdentity:
    """Ids as the Java client makes them: host, process, time, number."""
    number = next(_numbers)
    unique = f"{socket.gethostname()}-{os.getpid()}-{time.time_ns() // 1_000_000}-{secrets.token_hex(3)}"
    address = plan.address
    return ClientIdentity(
        f"ID:{unique}-{number}:1", f"ID:{unique}-0:{number}", plan.user, plan.password, str(address), address.host
    )


def tls_context(address: BrokerAddress) -> ssl.SSLContext | None:
    """What the URL says of TLS; None for none.

    Raises:
        ConnectionLostError: DMQ9063, a file can't be read.
    """
    if address.scheme != "ssl":
        return None
    options = address.transport
    try:
        context = ssl.create_default_context(cafile=options.trust_store or None)
        if options.key_store:
            context.load_cert_chain(options.key_store, password=options.key_store_password or None)
    except OSError as error:
        raise unreachable(str(address), f"its trustStore or keyStore can't be used: {error}") from None
    if not options.verify_host_name:
        context.check_hostname = False
    return context
