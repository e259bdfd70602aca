"""The client for asyncio: the names of JMS in snake case, as coroutines.

    async with connect("tcp://localhost:61616", user="app", password=secret) as connection:
        await connection.send("orders", "one pot of tea")
        async for message in connection.messages("orders", timeout_s=5):
            print(message.text)

All of a connection is used in the event loop in which it was made. What waits can be cancelled at any time: a message
that was not handed out stays with the broker or with its consumer.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from types import TracebackType
from typing import Final, Unpack
from weakref import WeakSet

from delosmq.client import errors
from delosmq.client.aio_consumer import AsyncBrowser, AsyncConsumer
from delosmq.client.aio_producer import AsyncProducer, SendOptions
from delosmq.client.aio_session import AsyncSession
from delosmq.client.aio_xa import AsyncXaResource, AsyncXaSession
from delosmq.client.closeable import AsyncCloseable, watch
from delosmq.client.destinations import Named, named
from delosmq.client.link import Link
from delosmq.client.messages import JmsMessage, Sendable, give_to_loop, message_of, take_headers
from delosmq.client.one_caller import is_cancelled
from delosmq.client.options.arguments import demand_function, demand_name, demand_timeout
from delosmq.client.options.connect_options import ConnectOptions, plan_for
from delosmq.client.options.urls import ConnectionPlan
from delosmq.client.replies import ReplyQueue
from delosmq.client.values import PropertyContent
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client import errors as machine_errors
from delosmq.sessions.openwire.client.options import AckMode

__all__ = [
    "AsyncBrowser",
    "AsyncConnection",
    "AsyncConnectionFactory",
    "AsyncConsumer",
    "AsyncProducer",
    "AsyncSession",
    "AsyncXaResource",
    "AsyncXaSession",
    "Connecting",
    "ErrorListener",
    "connect",
]

_LOG: Final = logging.getLogger("delosmq.client")

ErrorListener = Callable[[ClientError], Awaitable[None] | None]


def connect(url: str, **options: Unpack[ConnectOptions]) -> "Connecting":
    """A connection that delivers messages: ``async with connect(...) as connection``, or ``await connect(...)``.

    Takes what `delosmq.client.connect` takes, and raises the same: ClientOptionError at once, the others when it is
    awaited."""
    return Connecting(plan_for(url, **options))


class Connecting:
    """A connection that is about to be made."""

    def __init__(self, plan: ConnectionPlan) -> None:
        self._plan = plan
        self._connection: AsyncConnection | None = None

    def __await__(self) -> Generator[object, None, "AsyncConnection"]:
        return self._make().__await__()

    async def __aenter__(self) -> "AsyncConnection":
        self._connection = await self._make()
        return self._connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _make(self) -> "AsyncConnection":
        connection = await AsyncConnection.open(self._plan)
        connection.start()
        return connection


class AsyncConnection(AsyncCloseable):
    """A connection to a broker. Made by `connect`, or by a ConnectionFactory."""

    def __init__(self, link: Link, *, watched: bool = True) -> None:
        self._link = link
        self._watched = watched
        self._closed = False
        self._sender: AsyncSession | None = None
        self._sessions: WeakSet[AsyncSession] = WeakSet()
        self._replies: asyncio.Task[ReplyQueue] | None = None
        self._error_listeners: list[ErrorListener] = []
        self._reporting: asyncio.Task[None] | None = None
        if watched:
            watch(self, "connection", link.is_open, link.close_soon)

    @classmethod
    async def open(cls, plan: ConnectionPlan, *, watched: bool = True) -> "AsyncConnection":
        """One that delivers no messages yet.

        Args:
            watched: False where another object stands for it and its sessions, which is told of when it is forgotten.
        """
        link = Link(plan)
        await link.open()
        return cls(link, watched=watched)

    @property
    def client_id(self) -> str:
        return self._link.machine.client_id

    @property
    def closed(self) -> bool:
        """It was closed, or is lost."""
        return self._closed or not self._link.is_open()

    def start(self) -> None:
        """Has messages delivered."""
        self._check()
        self._link.machine.start()
        self._link.flush()

    def stop(self) -> None:
        """Has none delivered until `start`; what comes in the meantime waits."""
        self._check()
        self._link.machine.stop()

    async def create_session(self, mode: AckMode = AckMode.AUTO) -> AsyncSession:
        """
        Raises:
            IllegalStateError: DMQ9001, the connection is closed.
            ClientOptionError: DMQ9056, the mode is none.
        """
        return self._create_session(mode, watched=self._watched)

    def _create_session(self, mode: AckMode, *, watched: bool) -> AsyncSession:
        self._check()
        if not isinstance(mode, AckMode):
            raise errors.wrong_argument("mode", mode, f"one of {', '.join(map(str, AckMode))}")
        session = AsyncSession(self._link, self._link.machine.create_session(mode), self)
        self._keep(session, watched=watched)
        return session

    async def create_xa_session(self) -> AsyncXaSession:
        """A session for distributed transactions.

        Raises:
            IllegalStateError: DMQ9001, the connection is closed.
        """
        self._check()
        machine = self._link.machine.create_session(AckMode.TRANSACTED, xa=True)
        assert machine.xa is not None  # as was asked for
        session = AsyncXaSession(self._link, machine, machine.xa, self)
        self._keep(session, watched=self._watched)
        return session

    def _keep(self, session: AsyncSession, *, watched: bool) -> None:
        self._sessions.add(session)
        if watched:
            watch(session, "session", session.is_open, session.close_soon())
        self._link.flush()

    async def unsubscribe(self, name: str) -> None:
        """Ends a durable subscription that no consumer reads.

        Raises:
            InvalidDestinationError: DMQ9021, there is none.
        """
        self._check()
        demand_name("name", name)
        await self._link.wait_for_room()
        self._check()
        await self._link.answer(self._link.machine.unsubscribe(name))

    def set_exception_listener(self, listener: ErrorListener | None) -> None:
        """Sets who hears of messages and acknowledgements that were refused and needed no answer, and why the
        connection was lost."""
        self._check()
        demand_function("listener", listener)
        self._error_listeners[:] = [] if listener is None else [listener]
        if listener is not None and self._reporting is None:
            self._reporting = self._link.loop.create_task(_report(self._link, self._error_listeners))

    async def close(self, *, waits: bool = True) -> None:
        """Ends it with all its sessions. Transactions are rolled back, and what was not acknowledged goes back."""
        if self._closed:
            return
        self._closed = True
        if self._reporting is not None and self._reporting is not asyncio.current_task():
            self._reporting.cancel()
        try:
            for session in list(self._sessions):
                await session.stop_listening(waits=waits)
                if waits:
                    await session.complete_sends()
        except asyncio.CancelledError:
            self._link.close_soon()
            raise
        await asyncio.shield(self._link.close())

    def closed_error(self) -> ClientError:
        """Why it can't be used any more."""
        return self._link.error or machine_errors.closed("connection")

    def _check(self) -> None:
        self._link.check_loop()
        if self._link.error is not None:
            raise self._link.error
        self._link.machine.check_open()

    # --- the short way

    async def send(self, destination: Named, message: Sendable, **options: Unpack[SendOptions]) -> str:
        """Sends one message; a persistent one is safe with the broker then. Gives its id."""
        if self._sender is None:
            self._sender = self._create_session(AckMode.AUTO, watched=False)
            self._sender.counts_callers = False
        producer = await self._sender.shared_producer()
        return await producer.send(message, destination=destination, **options)

    async def request(
        self,
        destination: Named,
        message: Sendable,
        *,
        properties: Mapping[str, PropertyContent] | None = None,
        timeout_s: float | None = None,
    ) -> JmsMessage:
        """Sends a request and waits for its reply, on a temporary queue of this connection. Several may wait at once.

        The request is not persistent, and expires with ``timeout_s``.

        Raises:
            TimedOutError: DMQ9070, no reply came in time.
            ConnectionLostError: DMQ9009, the connection is lost.
            IllegalStateError: DMQ9001, it was closed meanwhile.
        """
        self._check()
        demand_timeout(timeout_s)
        target, asked = named(destination), message_of(message, properties)
        try:
            async with asyncio.timeout(timeout_s):
                replies = await self._reply_queue()
                return await replies.ask(target, asked, timeout_s)
        except TimeoutError:
            raise errors.not_replied(str(target), timeout_s or 0) from None

    async def _reply_queue(self) -> ReplyQueue:
        """The one of all requests; it is opened once, even when the request that begins with that is cancelled."""
        if self._replies is None or (self._replies.done() and self._replies.exception() is not None):
            machine = self._link.machine.create_session(AckMode.AUTO)
            session = AsyncSession(self._link, machine, None)
            session.counts_callers = False
            self._sessions.add(session)
            self._replies = self._link.loop.create_task(ReplyQueue.open(self._link, session))
        return await asyncio.shield(self._replies)

    async def reply(self, request: JmsMessage, message: Sendable) -> str:
        """Sends the reply to a request. Gives its id.

        Raises:
            IllegalStateError: DMQ9071, the request wants none.
        """
        if not isinstance(request, JmsMessage):
            raise errors.wrong_argument("request", type(request), "a message that was received")
        if request.reply_to is None:
            raise errors.no_reply_to(request.message_id)
        made = message_of(message)
        take_headers(made)
        made.correlation_id = request.correlation_id or request.message_id
        return await self.send(request.reply_to, made, persistent=False)

    async def messages(
        self, destination: Named, *, timeout_s: float | None = None, selector: str = ""
    ) -> AsyncGenerator[JmsMessage, None]:
        """Messages one by one, until none has come for ``timeout_s``; None waits for ever.

        A message is acknowledged when its turn ends well: when the next one is asked for. When the turn raises or
        leaves the loop it goes back, and its delivery counts.
        """
        session = self._create_session(AckMode.INDIVIDUAL, watched=False)
        try:
            consumer = await session.create_consumer(named(destination), selector)
            while (message := await consumer.receive(timeout_s)) is not None:
                acknowledge = give_to_loop(message, "async for")
                yield message
                acknowledge()
        finally:
            await session.close()


async def _report(link: Link, listeners: list[ErrorListener]) -> None:
    """Tells the exception listener; holds no connection, so that one can be forgotten."""
    while True:
        error = await link.on_error.get()
        for listener in tuple(listeners):
            try:
                told = listener(error)
                if told is not None:
                    await told
            except (Exception, asyncio.CancelledError):
                if is_cancelled():
                    raise
                _LOG.exception(
                    f"DMQ9080: the exception listener failed with '{error}', and hears of what comes next; have it"
                    " handle what can go wrong"
                )


class AsyncConnectionFactory:
    """Connections to one broker, as JMS has it. Takes what `connect` takes."""

    def __init__(self, url: str, **options: Unpack[ConnectOptions]) -> None:
        self._plan = plan_for(url, **options)

    async def create_connection(self) -> AsyncConnection:
        """One that delivers no messages until it is started."""
        return await AsyncConnection.open(self._plan)
