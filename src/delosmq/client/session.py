"""Sessions, producers, consumers and browsers of the blocking client."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final, Unpack

from delosmq.client.aio_consumer import AsyncBrowser, AsyncConsumer
from delosmq.client.aio_producer import AsyncProducer, SendOptions
from delosmq.client.aio_session import AsyncSession
from delosmq.client.closeable import Closeable
from delosmq.client.destinations import JmsDestination, Named, named
from delosmq.client.messages import JmsMessage, Sendable
from delosmq.client.options.arguments import demand_plain_function
from delosmq.client.threads.hand_over import HandOver
from delosmq.client.threads.loop_thread import LoopThread
from delosmq.client.threads.session_calls import LISTENER, SessionCalls, in_listener
from delosmq.sessions.client_errors import ClientError, IllegalStateError
from delosmq.sessions.openwire.client.errors import CLOSED
from delosmq.sessions.openwire.client.options import AckMode

_MOST_POSTED: Final = 256
"""Messages of a session that its loop was given and has not sent; the next one waits."""


class ClientSession(Closeable):
    """What is done in one order: its consumers deliver one message at a time, and its transaction holds all it does.

    Attributes:
        calls: not for applications.
    """

    def __init__(self, thread: LoopThread, inner: AsyncSession, connection: object) -> None:
        """
        Args:
            connection: is not forgotten while the session is in use.
        """
        self._thread = thread
        self._inner = inner
        self._connection = connection
        self.calls = SessionCalls(thread)
        inner.thread_safe = self._thread_safe()
        inner.counts_callers = False  # as this does
        inner.set_count_received(self.calls.work_off)

    def _thread_safe(self) -> Callable[[Callable[[], None], Callable[[], bool]], Callable[[], None]]:
        thread, calls = self._thread, self.calls

        def make(function: Callable[[], None], is_usable: Callable[[], bool]) -> Callable[[], None]:
            def called() -> None:
                with suppress(ClientError):  # the end came first; it is as if the network had lost this
                    function()

            # Waits for the loop only where there is something to be told.
            return lambda: calls.add(called) if is_usable() else thread.call(function)

        return make

    @property
    def mode(self) -> AckMode:
        return self._inner.mode

    @property
    def closed(self) -> bool:
        return self._inner.closed

    # --- destinations

    def queue(self, name: str) -> JmsDestination:
        """A queue by its name, with options for its consumers: ``orders?consumer.prefetchSize=10``."""
        return named(name)

    def topic(self, name: str) -> JmsDestination:
        """A topic, likewise."""
        return named(name, topic=True)

    def create_temporary_queue(self) -> JmsDestination:
        """A queue that only this connection consumes from, and that ends with it."""
        return self.calls.run_alone(self._inner.create_temporary_queue())

    def create_temporary_topic(self) -> JmsDestination:
        return self.calls.run_alone(self._inner.create_temporary_topic())

    def delete_temporary(self, destination: JmsDestination) -> None:
        """Ends a temporary destination of this connection.

        Raises:
            IllegalStateError: DMQ9018, a consumer of it is left.
        """
        self.calls.run_alone(self._inner.delete_temporary(destination))

    # --- what it makes

    def create_producer(self, destination: Named | None = None) -> "MessageProducer":
        """
        Args:
            destination: of all its messages; without one, each message names its own.
        """
        return MessageProducer(self._thread, self.calls.run_alone(self._inner.create_producer(destination)), self)

    def create_consumer(self, destination: Named, selector: str = "", *, no_local: bool = False) -> "MessageConsumer":
        """
        Raises:
            InvalidSelectorError: DMQ9022, the broker can't read the selector.
            InvalidDestinationError: DMQ9007, a temporary destination is another connection's.
        """
        inner = self.calls.run_alone(self._inner.create_consumer(destination, selector, no_local=no_local))
        return MessageConsumer(self._thread, inner, self)

    def create_durable_consumer(
        self, topic: Named, name: str, selector: str = "", *, no_local: bool = False
    ) -> "MessageConsumer":
        """A consumer of the durable subscription ``name`` of this client id: what comes while there is none is kept.

        Raises:
            IllegalStateError: DMQ9004, the connection was given no client id.
        """
        inner = self.calls.run_alone(self._inner.create_durable_consumer(topic, name, selector, no_local=no_local))
        return MessageConsumer(self._thread, inner, self)

    def create_shared_consumer(self, topic: Named, name: str, selector: str = "") -> "MessageConsumer":
        """Refused: OpenWire has no shared subscriptions, and the Java client throws likewise.

        Raises:
            UnsupportedOperationError: DMQ9073, which names the way that does the same.
        """
        inner = self.calls.run_alone(self._inner.create_shared_consumer(topic, name, selector))
        return MessageConsumer(self._thread, inner, self)

    def create_shared_durable_consumer(self, topic: Named, name: str, selector: str = "") -> "MessageConsumer":
        """As `create_shared_consumer`."""
        return self.create_shared_consumer(topic, name, selector)

    def create_browser(self, queue: Named, selector: str = "") -> "QueueBrowser":
        """Looks at what a queue holds, oldest first, without taking it."""
        return QueueBrowser(self._thread, self.calls.run_alone(self._inner.create_browser(queue, selector)), self)

    # --- acknowledgement and transactions

    def acknowledge(self) -> None:
        """All that this session has delivered.

        Raises:
            IllegalStateError: DMQ9003, it is transacted.
        """
        self.calls.call_alone(self._inner.acknowledge)

    def recover(self) -> None:
        """Delivers again, after the delay of the redelivery policy, what was delivered and not acknowledged.

        Raises:
            IllegalStateError: DMQ9003, it is transacted.
        """
        self.calls.run_alone(self._inner.recover())

    def commit(self) -> None:
        """Makes all that was done since the last commit or rollback happen at once.

        Raises:
            IllegalStateError: DMQ9002, it is not transacted.
            TransactionRolledBackError: DMQ9025, nothing of it has happened.
            TransactionInDoubtError: DMQ9012, the connection broke before the answer.
        """
        self.calls.run_alone(self._inner.commit())

    def rollback(self) -> None:
        """Undoes it. What was delivered is delivered again, after the delay of the redelivery policy.

        Raises:
            IllegalStateError: DMQ9002, it is not transacted.
        """
        self.calls.run_alone(self._inner.rollback())

    def close(self) -> None:
        """Ends it with its consumers and producers. A transaction is rolled back; what was not acknowledged goes
        back."""
        if self._thread.forked:
            return
        if not self._inner.closed:
            self.calls.run(self._inner.close(waits=not in_listener()))
        self.calls.end_listeners()


class MessageProducer(Closeable):
    """Sends messages; made by `ClientSession.create_producer`."""

    def __init__(self, thread: LoopThread, inner: AsyncProducer, session: ClientSession) -> None:
        self._thread = thread
        self._inner = inner
        self._session = session

    @property
    def destination(self) -> JmsDestination | None:
        return self._inner.destination

    @property
    def persistent(self) -> bool:
        """Of messages that are sent without a word about it."""
        return self._inner.persistent

    @persistent.setter
    def persistent(self, value: bool) -> None:
        self._inner.persistent = value

    @property
    def priority(self) -> int:
        """Likewise."""
        return self._inner.priority

    @priority.setter
    def priority(self, value: int) -> None:
        self._inner.priority = value

    @property
    def time_to_live_ms(self) -> int:
        """Likewise."""
        return self._inner.time_to_live_ms

    @time_to_live_ms.setter
    def time_to_live_ms(self, value: int) -> None:
        self._inner.time_to_live_ms = value

    def send(
        self,
        message: Sendable,
        *,
        destination: Named | None = None,
        on_completion: Callable[[str, ClientError | None], None] | None = None,
        **options: Unpack[SendOptions],
    ) -> str:
        """Sends a message, or one made of a body: text of a str; bytes, a map or a stream of what these are.

        A persistent message outside a transaction is safe with the broker when this returns, unless
        ``jms.useAsyncSend`` says that it is not waited for.

        Args:
            destination: needed when the producer was made without one.
            on_completion: hears of the message's id when the broker has it (None) or has refused it (why); this returns
                without waiting for that. The session calls it as its listeners, in the order of sending.
            options: as `SendOptions` has them.

        Returns:
            The message's id.

        Raises:
            MessageFormatError: DMQ9060, a property or the body has no type in JMS.
            ClientError: the broker refuses it. Where no answer is waited for, the exception listener is told, and in a
                transaction `commit` raises it.
        """
        if on_completion is None:
            return self._send(message, destination, options)
        demand_plain_function("on_completion", on_completion)
        loop, threads = self._thread.loop, self._session.calls.listener_thread()

        async def tell(message_id: str, error: ClientError | None) -> None:
            await loop.run_in_executor(threads, on_completion, message_id, error)

        return self._session.calls.run_alone(
            self._inner.send(message, destination=destination, on_completion=tell, **options)
        )

    def _send(self, message: Sendable, destination: Named | None, options: SendOptions) -> str:
        calls = self._session.calls
        before = calls.enter()
        try:
            return self._send_soon(message, destination, options)
        finally:
            if before != LISTENER:
                calls.caller = before

    def _send_soon(self, message: Sendable, destination: Named | None, options: SendOptions) -> str:
        inner, calls = self._inner, self._session.calls
        inner.check_usable()
        prepared = inner.prepare(message, destination=destination, **options)
        if len(calls) >= _MOST_POSTED or not inner.is_postable(prepared):
            return calls.run_alone(inner.send_prepared(prepared))
        machine, post = inner.machine, partial(inner.post, prepared.command)
        number = inner.stamp_to_post(prepared)
        while number != machine.sequence:  # another one was sent meanwhile, which is to have the lower number
            number = inner.stamp_to_post(prepared)
        calls.put(post)
        calls.ask()
        return prepared.made.message_id

    def close(self) -> None:
        if not self._inner.closed and not self._thread.forked:
            self._thread.run(self._inner.close())


class MessageConsumer(Closeable):
    """Made by `ClientSession.create_consumer`. ``for`` gives messages until it is closed, by whichever thread: then
    it ends."""

    def __init__(self, thread: LoopThread, inner: AsyncConsumer, session: ClientSession) -> None:
        self._thread = thread
        self._inner = inner
        self._session = session
        self._hand_over = HandOver(inner, session.calls)

    def __iter__(self) -> Iterator[JmsMessage]:
        while True:
            try:
                message = self.receive()
            except IllegalStateError as error:
                if error.code == CLOSED and self.closed:
                    return
                raise
            if message is None:
                return
            yield message

    @property
    def destination(self) -> JmsDestination:
        return self._inner.destination

    @property
    def closed(self) -> bool:
        return self._inner.closed

    def receive(self, timeout_s: float | None = None) -> JmsMessage | None:
        """The next message; None when none came in time, or when the consumer was closed meanwhile.

        An exception in the waiting thread, such as KeyboardInterrupt, loses no message; one that a signal handler
        raises while a caller written in C, such as functools.partial, passes the message on comes too late for that.

        Args:
            timeout_s: None waits for ever, 0 not at all.

        Raises:
            IllegalStateError: DMQ9001, it is closed; DMQ9057, the session has a listener; DMQ9083, this is a signal
                handler amid a `receive` of this consumer.
            ClientError: after a failover the next broker did not take the consumer; why.
        """
        calls = self._session.calls
        before = calls.enter()
        try:
            return self._hand_over.receive(timeout_s)
        finally:
            if before != LISTENER:
                calls.caller = before

    def acknowledge(self) -> None:
        """All that this consumer has delivered; of a session with AckMode.CLIENT.

        Raises:
            IllegalStateError: DMQ9001, DMQ9003.
        """
        self._session.calls.call_alone(self._inner.acknowledge)

    def set_listener(self, listener: Callable[[JmsMessage], None] | None) -> None:
        """Has each message given to ``listener``, in a thread of the session; None takes it away.

        The session calls its listeners one at a time. A message whose listener raises is delivered again in sessions
        with AUTO, DUPS_OK (of a queue) and INDIVIDUAL, by the redelivery policy; otherwise the next one follows.

        Raises:
            IllegalStateError: DMQ9005, the prefetch is 0; DMQ9058, there is one already.
        """
        if listener is None:
            self._session.calls.run_alone(self._inner.set_listener(None))
            return
        demand_plain_function("listener", listener)
        loop = self._thread.loop
        threads = self._session.calls.listener_thread()

        async def tell(message: JmsMessage) -> None:
            await loop.run_in_executor(threads, listener, message)

        self._session.calls.run_alone(self._inner.set_listener(tell))

    def close(self) -> None:
        """Ends it; what it has not handed out goes back. What its transaction has delivered stays in that."""
        if not self._inner.closed and not self._thread.forked:
            self._session.calls.run(self._inner.close())


class QueueBrowser:
    """What a queue holds: ``for message in browser``, each time from the beginning."""

    def __init__(self, thread: LoopThread, inner: AsyncBrowser, session: ClientSession) -> None:
        self._thread = thread
        self._inner = inner
        self._session = session

    @property
    def queue(self) -> JmsDestination:
        return self._inner.queue

    @property
    def selector(self) -> str:
        return self._inner.selector

    def __iter__(self) -> Iterator[JmsMessage]:
        calls = self._session.calls
        inner = calls.run_alone(self._inner.open_consumer())
        with MessageConsumer(self._thread, inner, self._session) as consumer:
            while calls.run_alone(inner.wait_for_more()):
                while (message := consumer.receive(0)) is not None:
                    yield message
