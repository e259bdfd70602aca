"""One connection to a broker in an event loop: moves the bytes between a socket and its machine, and keeps the time."""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any, Final, TypeVar

from delosmq.client.errors import (
    foreign_loop,
    left_for,
    not_connected_in_time,
    still_not_connected,
    unreachable,
)
from delosmq.client.options.urls import BrokerAddress, ConnectionPlan, FailoverOptions, addresses_named
from delosmq.client.transport import links
from delosmq.client.transport.broker_list import BrokerList
from delosmq.client.transport.clocks import LinkClock, LocalRandom, happens_within
from delosmq.client.transport.identity import identity_of
from delosmq.client.transport.sockets import BrokerSocket, SocketOwner, connect, place_of, timeout_s
from delosmq.client.transport.spares import SpareConnection, SparePool
from delosmq.sessions.client_errors import ClientError, ConnectionLostError, TimedOutError
from delosmq.sessions.openwire.client import errors
from delosmq.sessions.openwire.client.connection import OPEN, OpenWireClient
from delosmq.sessions.openwire.client.ports import ClientEvents, PendingRequest
from delosmq.wire.openwire.commands import ConnectionControl, Response

T = TypeVar("T")
_LOG: Final = logging.getLogger("delosmq.client")
_NS_PER_S: Final = 1_000_000_000
_MS_PER_S: Final = 1_000
MOST_UNHEARD: Final = 1_000  # errors that are kept for an exception listener; of more, the newest


class Link(ClientEvents, SocketOwner):
    """
    Attributes:
        machine: what may be called, when `check_loop` let it; `flush` follows.
        room: clear while the socket takes no more, and while there is none.
        error: why the connection is over; None while it is not, and when it was closed.
        on_error: hears of what fails without a caller that waits, and why the connection is over if it was not closed.
        policies: for messages that are delivered again.
        place: of the broker that it was connected to last.
    """

    def __init__(self, plan: ConnectionPlan) -> None:
        self.loop = asyncio.get_running_loop()
        self.room = asyncio.Event()
        self.error: ClientError | None = None
        self.on_error: asyncio.Queue[ClientError] = asyncio.Queue()
        self.place: links.Place = ("", 0)
        self._clock = LinkClock()
        self.policies = plan.redelivery_policies
        self._plan = plan
        self._brokers = BrokerList(plan.addresses, plan.failover or FailoverOptions(), random.shuffle)
        self._identity = identity_of(plan)
        self._socket: BrokerSocket | None = None
        self._transport: asyncio.Transport | None = None
        self._no_socket = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0
        self._flushing = False
        self._gone = asyncio.Event()
        self._awaited: set[asyncio.Future[Any]] = set()
        self._closing: asyncio.Task[None] | None = None
        self._reconnecting: asyncio.Task[None] | None = None
        self._returning: asyncio.Task[None] | None = None
        self._spares = SparePool(plan, self._clock, self._brokers.others)
        self._looks = 0  # for a broker with priority, in vain
        self._begin()
        links.enter(self)

    def _begin(self) -> None:
        """Nothing was agreed on with any broker yet."""
        self.machine = OpenWireClient(self, self._plan.options, self._identity, self._clock, LocalRandom())
        self.error = None
        self._gone.clear()
        self._no_socket.set()
        self._opened: asyncio.Future[None] = self.loop.create_future()

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
        failover = self._plan.failover
        if failover is None:
            await self._open_at(self._plan.addresses[0])
            return
        most = failover.max_reconnect_attempts
        if failover.startup_max_reconnect_attempts >= 0:
            most = failover.startup_max_reconnect_attempts
        rounds = 0
        while True:
            rounds += 1
            for address in self._brokers.in_order():
                try:
                    await self._open_at(address)
                except (ConnectionLostError, TimedOutError) as error:
                    last = error
                    self._begin()
                else:
                    return
            if 0 <= most <= rounds:
                raise last
            self._warn_of_rounds(failover, rounds, last)
            await asyncio.sleep(failover.delay_ms(rounds) / _MS_PER_S)

    async def _open_at(self, address: BrokerAddress) -> None:
        try:
            await self._agree_at(address)
        except BaseException:
            await self.abort()
            raise

    async def _agree_at(self, address: BrokerAddress, spare: SpareConnection | None = None) -> None:
        """Connects, and waits until the broker has let us in."""
        try:
            async with asyncio.timeout(timeout_s(address)):
                await self._connect(address, spare)
                self.flush()
                await self._opened
        except TimeoutError:
            raise not_connected_in_time(str(address), timeout_s(address) or 0.0) from None
        except (OSError, UnicodeError) as error:  # no resolver takes a..b
            raise unreachable(str(address), getattr(error, "strerror", None) or str(error)) from None
        if self.machine.state != OPEN and self._reconnecting is asyncio.current_task():
            raise unreachable(str(address), "the connection was lost with the answer to its login")
        self._brokers.note_connected(address)
        self._spares.fill()
        self.room.set()
        if not self._brokers.priority or address in self._brokers.priority:
            self._looks = 0
        else:
            self._returning = self.loop.create_task(self._return())

    async def _connect(self, address: BrokerAddress, spare: SpareConnection | None) -> None:
        if spare is None:
            opened = BrokerSocket(self)
            transport = await connect(address, opened, self._plan.ssl_context)
        else:
            opened, transport = spare.socket, spare.take()
            opened.owner = self
        self._socket = opened
        self._transport = transport
        self._no_socket.clear()
        self.place = place_of(address, transport)
        self._clock.ahead_ns = max(self._clock.ahead_ns, links.ahead_ns(self.place))
        self._cancel_timer()  # `flush` sets it by that clock

    async def close(self) -> None:
        """In order, and within `closeTimeout`."""
        self._stop_returning()
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.wait((self._reconnecting,))
            self._opened.cancel()
        self.machine.close()
        self.flush()
        await self._gone.wait()
        if self._transport is not None:
            self._transport.close()
            # Of a broker that reads nothing more the socket has room for no farewell.
            within_s = self._plan.options.close_timeout_ms / _MS_PER_S
            if within_s and not await happens_within(self._no_socket, within_s) and self._transport is not None:
                self._transport.abort()
        await self._wait_until_closed()

    async def abort(self) -> None:
        """At once."""
        self._stop_returning()
        self.machine.lose()
        if self._opened.done() and not self._opened.cancelled():
            self._opened.exception()  # was told to whom it concerns
        if self._transport is not None:
            self._transport.abort()
        await self._wait_until_closed()

    async def _wait_until_closed(self) -> None:
        self._cancel_timer()
        await self._spares.close()
        await self._no_socket.wait()

    # --- again

    async def _reconnect(self, failover: FailoverOptions, error: ClientError) -> None:
        rounds = 0
        while failover.max_reconnect_attempts < 0 or rounds < failover.max_reconnect_attempts:
            rounds += 1
            for address, spare in self._tries():
                self._opened = self.loop.create_future()
                self.machine.resume(None if spare is None else spare.machine)
                try:
                    await self._agree_at(address, spare)
                except ClientError as failure:
                    error = failure
                    self._opened.cancel()
                    self._drop_socket()
                    if not self.is_open():
                        self.troubled(error)
                        return
                    self.machine.interrupt(error)
                else:
                    _LOG.info(f"DMQ9069: connected again, to {address}")
                    self._reconnecting = None
                    return
            self._warn_of_rounds(failover, rounds, error)
            await asyncio.sleep(failover.delay_ms(rounds) / _MS_PER_S)
        self._reconnecting = None
        self.machine.lose(
            errors.lost(
                str(self._plan),
                f"{rounds} rounds found no broker; the last said: {error.message}",
                "Connect again later, or have more rounds made with maxReconnectAttempts.",
            )
        )
        self._cancel_timer()

    def _warn_of_rounds(self, failover: FailoverOptions, rounds: int, error: ClientError) -> None:
        if failover.warn_after_reconnect_attempts > 0 and rounds % failover.warn_after_reconnect_attempts == 0:
            _LOG.warning(
                f"DMQ9076: {rounds} rounds through {self._plan} found no broker, and more follow: see whether they"
                f" are up; the last said: {error.message}"
            )

    def _tries(self) -> list[tuple[BrokerAddress, SpareConnection | None]]:
        """Where to connect to, in order: by a spare connection first, unless the broker was chosen for us."""
        order = self._brokers.in_order()
        spare = self._spares.take(order[:1] if self._brokers.has_preference else order)
        tries: list[tuple[BrokerAddress, SpareConnection | None]] = [(address, None) for address in order]
        return tries if spare is None else [(spare.address, spare), *tries]

    async def _return(self) -> None:
        """Looks for a broker with priority, and goes there once one is up."""
        failover = self._plan.failover
        while failover is not None:
            self._looks += 1
            await asyncio.sleep(failover.delay_ms(self._looks) / _MS_PER_S)
            for address in self._brokers.priority:
                if await self._is_up(address):
                    self._leave_for(address, "it goes before others (priorityBackup)")
                    return

    async def _is_up(self, address: BrokerAddress) -> bool:
        try:
            async with asyncio.timeout(timeout_s(address)):
                transport = await connect(address, asyncio.Protocol(), self._plan.ssl_context)
        except (OSError, UnicodeError, ClientError):  # TimeoutError is an OSError
            return False
        transport.close()
        return True

    def _stop_returning(self) -> None:
        if self._returning is not None:
            self._returning.cancel()
            self._returning = None

    def _leave_for(self, address: BrokerAddress, why: str) -> None:
        """Makes the connection again, at another broker if it is there."""
        if self.machine.state == OPEN and self._reconnecting is None and address != self._brokers.connected:
            self._brokers.prefer(address)
            self.machine.interrupt(left_for(str(self._brokers.connected), str(address), why))

    def _drop_socket(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._transport = None
        self._socket = None
        self._no_socket.set()

    # --- bytes and time

    def receive(self, source: BrokerSocket, chunk: bytes) -> None:
        if source is self._socket:
            self.machine.receive(chunk)
            self.flush()

    def on_lost(self, source: BrokerSocket, cause: Exception | None) -> None:
        """The socket is gone; an older one than ours does not matter."""
        if source is not self._socket:
            return
        self._drop_socket()
        self.machine.interrupt(None if cause is None else errors.lost(str(self._plan), str(cause)))
        if not self.is_open():
            self._cancel_timer()

    def flush(self) -> None:
        """Writes what the machine has to say, and sets the timer that it needs."""
        transport = self._transport
        # One that is broken says so in the next turn; asyncio warns of each write until then.
        if transport is not None and (output := self.machine.take_output()) and not transport.is_closing():
            transport.write(output)
        due = self.machine.next_timer()
        if due != self._timer_at:
            self._cancel_timer()
            if due:
                self._timer_at = due
                delay_s = max(0.0, (due - self._clock.monotonic_ns()) / _NS_PER_S)
                self._timer = self.loop.call_later(delay_s, self._on_timer)

    def flush_soon(self) -> None:
        """Flushes once for all that is done in this turn of the loop."""
        if not self._flushing:
            self._flushing = True
            self.loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._flushing = False
        self.flush()

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_at = 0
        self.machine.handle_timer()
        self.flush()

    def turn_clock(self, ahead_ns: int) -> None:
        """Has what became due happen now, and counts the broker as heard of. In the loop."""
        self._clock.ahead_ns = max(self._clock.ahead_ns, ahead_ns)
        self.machine.receive(b"")
        self.machine.handle_timer()
        self._spares.hear()
        self.flush()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._timer_at = 0

    @property
    def broker_id(self) -> str:
        return self.machine.broker_id

    def end_branch(self, key: str, *, committed: bool) -> None:
        """Another connection has ended a branch of a distributed transaction. In the loop."""
        self.machine.ended_branches.end(key, committed=committed)
        self.flush()

    def has_room(self, *, room: bool) -> None:
        if room:
            self.room.set()
        else:
            self.room.clear()

    async def wait_for_room(self) -> None:
        """Until the socket takes more.

        Raises:
            TimedOutError: DMQ9075, there was none for as long as ``timeout`` of ``failover:`` lets a caller wait.
        """
        failover = self._plan.failover
        wait_ms = 0 if failover is None or self._reconnecting is None else failover.timeout_ms
        if wait_ms <= 0:
            await self.room.wait()
        elif not await happens_within(self.room, wait_ms / _MS_PER_S):
            raise still_not_connected(str(self._plan), wait_ms)

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

    async def outcome(self, future: asyncio.Future[T]) -> T:
        """What comes of a future that no answer of the broker completes.

        Raises:
            ClientError: the connection ended before.
        """
        if not self.is_open():
            raise self.error or errors.closed("connection")
        self._awaited.add(future)
        try:
            return await future
        finally:
            self._awaited.discard(future)

    def report(self, request: PendingRequest | None) -> None:
        """Tells the exception listener of a refusal, as no caller waits for the answer."""
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
        if self.on_error.qsize() >= MOST_UNHEARD:  # most programs have no listener
            self.on_error.get_nowait()
        self.on_error.put_nowait(error)

    def branch_ended(self, key: str, *, committed: bool) -> None:
        links.tell_of_branch(self, key, committed=committed)

    def interrupted(self, error: ClientError) -> None:
        failover = self._plan.failover
        assert failover is not None  # else the machine would have ended
        self.room.clear()
        self._stop_returning()
        self._spares.rest()
        if not self._opened.done():
            self._opened.set_exception(error)
        elif self._reconnecting is None:
            _LOG.warning(f"DMQ9068: {error.message} Another connection is made, and nothing that is open is lost")
            self._drop_socket()
            self._brokers.note_failed()
            self._reconnecting = self.loop.create_task(self._reconnect(failover, error))

    def connection_control(self, control: ConnectionControl) -> None:
        failover = self._plan.failover
        if failover is None:
            return
        if control.reconnect_to and failover.reconnect_supported:
            for address in addresses_named(control.reconnect_to, self._plan):
                self.loop.call_soon(self._leave_for, address, "the broker sends its clients there")
        if not control.connected_brokers or not failover.update_uris_supported:
            return
        named = addresses_named(control.connected_brokers, self._plan)
        changed = bool(named) and self._brokers.name(named)
        if changed:
            self._spares.look_again()
        if changed and control.rebalance_connection:
            first = self._brokers.in_order()[0]
            if self._brokers.connected not in self._brokers.priority:
                self.loop.call_soon(self._leave_for, first, "the broker spreads its clients anew")

    def ended(self, error: ClientError | None) -> None:
        self.error = error
        self._gone.set()
        self.room.set()
        for awaited in self._awaited:
            if not awaited.done():
                awaited.set_exception(error or errors.closed("connection"))
        self._spares.drop()
        if not self._opened.done():
            self._opened.set_exception(error or errors.closed("connection"))
        elif error is not None:
            self.troubled(error)
        if self._transport is not None and error is not None:
            self._transport.abort()
