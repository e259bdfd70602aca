"""The blocking client: the same names as `delosmq.client.aio`, without await.

    with connect("tcp://localhost:61616", user="app", password=secret) as connection:
        connection.send("orders", "one pot of tea")
        for message in connection.messages("orders", timeout_s=5):
            print(message.text)

All blocking connections of a process share one event loop in one thread, so any thread may use them; a session and what
it made is for one thread at a time, as in JMS.
"""

import asyncio
from collections.abc import Callable, Generator, Mapping
from typing import Unpack
from weakref import WeakSet

from delosmq.client.aio import AsyncConnection
from delosmq.client.aio_producer import SendOptions
from delosmq.client.closeable import Closeable, watch
from delosmq.client.destinations import Named
from delosmq.client.messages import JmsMessage, Sendable, give_to_loop
from delosmq.client.options.arguments import demand_plain_function
from delosmq.client.options.connect_options import ConnectOptions, plan_for
from delosmq.client.options.urls import ConnectionPlan
from delosmq.client.session import ClientSession
from delosmq.client.threads import loop_thread
from delosmq.client.threads.loop_thread import LoopThread
from delosmq.client.threads.session_calls import in_listener
from delosmq.client.values import PropertyContent
from delosmq.client.xa import XaSession
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client.options import AckMode


def connect(url: str, **options: Unpack[ConnectOptions]) -> "ClientConnection":
    """A connection that delivers messages; close it, or make it in a with block.

    Args:
        url: such as ``tcp://localhost:61616?jms.prefetchPolicy.queuePrefetch=10``.
        options: ``user``, ``password``, ``client_id``, ``ssl_context`` and ``redelivery_policies``, as `ConnectOptions`
            has them.

    Raises:
        ClientOptionError: DMQ9050 to DMQ9052, DMQ9055, DMQ9056, the URL or an argument can't be meant so.
        ConnectionLostError: DMQ9013, DMQ9063, there is no broker.
        TimedOutError: DMQ9064, it doesn't answer.
        ClientSecurityError: DMQ9020, user or password are wrong.
    """
    connection = _open(plan_for(url, **options))
    connection.start()
    return connection


def _open(plan: ConnectionPlan) -> "ClientConnection":
    thread = loop_thread.enter()
    try:
        inner = thread.run(AsyncConnection.open(plan, watched=False))
    except BaseException:
        loop_thread.leave(thread)
        raise
    return ClientConnection(thread, inner)


class ClientConnection(Closeable):
    """A connection to a broker. Made by `connect`, or by a ConnectionFactory."""

    def __init__(self, thread: LoopThread, inner: AsyncConnection) -> None:
        self._thread = thread
        self._inner = inner
        self._left = False
        self._sessions: WeakSet[ClientSession] = WeakSet()
        watch(
            self, "connection", lambda: not inner.closed, lambda: thread.soon(lambda: _close_forgotten(thread, inner))
        )

    @property
    def client_id(self) -> str:
        return self._inner.client_id

    @property
    def closed(self) -> bool:
        """It was closed, or is lost."""
        return self._inner.closed

    def start(self) -> None:
        """Has messages delivered."""
        self._call(self._inner.start)

    def stop(self) -> None:
        """Has none delivered until `start`; what comes in the meantime waits."""
        self._call(self._inner.stop)

    def create_session(self, mode: AckMode = AckMode.AUTO) -> ClientSession:
        """
        Raises:
            IllegalStateError: DMQ9001, the connection is closed.
        """
        return self._session(mode, watched=True)

    def create_xa_session(self) -> XaSession:
        """A session for distributed transactions.

        Raises:
            IllegalStateError: DMQ9001, the connection is closed.
        """
        self._check()
        inner = self._thread.run(self._inner.create_xa_session())
        session = XaSession(self._thread, inner, self)
        self._sessions.add(session)
        watch(session, "session", inner.is_open, inner.close_soon())
        return session

    def _session(self, mode: AckMode, *, watched: bool) -> ClientSession:
        self._check()
        inner = self._thread.run(self._inner.create_session(mode))
        session = ClientSession(self._thread, inner, self)
        self._sessions.add(session)
        if watched:
            watch(session, "session", inner.is_open, inner.close_soon())
        return session

    def unsubscribe(self, name: str) -> None:
        """Ends a durable subscription that no consumer reads.

        Raises:
            InvalidDestinationError: DMQ9021, there is none.
        """
        self._check()
        self._thread.run(self._inner.unsubscribe(name))

    def set_exception_listener(self, listener: Callable[[ClientError], None] | None) -> None:
        """Sets who hears, in another thread, of messages and acknowledgements that were refused and needed no answer,
        and why the connection was lost."""
        if listener is None:
            self._call(lambda: self._inner.set_exception_listener(None))
            return
        demand_plain_function("listener", listener)
        loop = self._thread.loop

        async def tell(error: ClientError) -> None:
            await loop.run_in_executor(None, listener, error)

        self._call(lambda: self._inner.set_exception_listener(tell))

    def close(self) -> None:
        """Ends it with all its sessions. Transactions are rolled back, and what was not acknowledged goes back."""
        if self._left or self._thread.forked:
            return
        self._left = True
        try:
            for session in list(self._sessions):
                session.calls.ask()
            self._thread.run(self._inner.close(waits=not in_listener()))
            for session in list(self._sessions):
                session.calls.end_listeners()
        finally:
            loop_thread.leave(self._thread)

    def _call(self, function: Callable[[], None]) -> None:
        self._check()
        self._thread.call(function)

    def _check(self) -> None:
        if self._left:
            raise self._inner.closed_error()

    # --- the short way

    def send(self, destination: Named, message: Sendable, **options: Unpack[SendOptions]) -> str:
        """Sends one message; a persistent one is safe with the broker then. Gives its id."""
        self._check()
        return self._thread.run(self._inner.send(destination, message, **options))

    def request(
        self,
        destination: Named,
        message: Sendable,
        *,
        properties: Mapping[str, PropertyContent] | None = None,
        timeout_s: float | None = None,
    ) -> JmsMessage:
        """Sends a request and waits for its reply, on a temporary queue of this connection. Several threads may wait.

        The request is not persistent, and expires with ``timeout_s``.

        Raises:
            TimedOutError: DMQ9070, no reply came in time.
            ConnectionLostError: DMQ9009, the connection is lost.
            IllegalStateError: DMQ9001, it was closed meanwhile.
        """
        self._check()
        return self._thread.run(self._inner.request(destination, message, properties=properties, timeout_s=timeout_s))

    def reply(self, request: JmsMessage, message: Sendable) -> str:
        """Sends the reply to a request. Gives its id.

        Raises:
            IllegalStateError: DMQ9071, the request wants none.
        """
        self._check()
        return self._thread.run(self._inner.reply(request, message))

    def messages(
        self, destination: Named, *, timeout_s: float | None = None, selector: str = ""
    ) -> Generator[JmsMessage, None, None]:
        """Messages one by one, until none has come for ``timeout_s``; None waits for ever.

        A message is acknowledged when its turn ends well: when the next one is asked for. When the turn raises or
        leaves the loop it goes back, and its delivery counts.
        """
        session = self._session(AckMode.INDIVIDUAL, watched=False)
        try:
            consumer = session.create_consumer(destination, selector)
            while (message := consumer.receive(timeout_s)) is not None:
                acknowledge = give_to_loop(message, "for")
                yield message
                acknowledge()
        finally:
            if not self._left:
                session.close()


def _close_forgotten(thread: LoopThread, inner: AsyncConnection) -> None:
    """In the loop: the collector may run in any thread, and waits for nothing."""

    async def close() -> None:
        try:
            await inner.close()
        finally:
            loop_thread.leave(thread)

    thread.keep(asyncio.ensure_future(close()))


class ConnectionFactory:
    """Connections to one broker, as JMS has it. Takes what `connect` takes."""

    def __init__(self, url: str, **options: Unpack[ConnectOptions]) -> None:
        self._plan = plan_for(url, **options)

    def create_connection(self) -> ClientConnection:
        """One that delivers no messages until it is started."""
        return _open(self._plan)
