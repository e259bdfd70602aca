"""Consumers and browsers of the asyncio client."""

import asyncio
import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final

from delosmq.client import errors
from delosmq.client.closeable import AsyncCloseable
from delosmq.client.destinations import JmsDestination
from delosmq.client.link import Link
from delosmq.client.messages import JmsMessage, received
from delosmq.client.one_caller import OneCaller, is_cancelled
from delosmq.client.options.arguments import demand_function, demand_timeout
from delosmq.sessions.client_errors import IllegalStateError
from delosmq.sessions.openwire.client import errors as machine_errors
from delosmq.sessions.openwire.client.acknowledgement import Delivery
from delosmq.sessions.openwire.client.consumer import NO_WAIT, OpenWireConsumer, check_listener
from delosmq.sessions.openwire.client.options import AckMode

MessageListener = Callable[[JmsMessage], Awaitable[None] | None]

_LOG: Final = logging.getLogger("delosmq.client")
_MS_PER_S: Final = 1_000
_MOST_AT_ONCE: Final = 64


class ConsumerOwner(OneCaller, ABC):
    """A session as its consumers see it.

    Attributes:
        thread_safe: makes of a function that is to be called in the loop, and one that tells whether that would go
            well now, one that other threads may call; None when there are no others.
    """

    def __init__(self, mode: AckMode) -> None:
        super().__init__()
        self.mode = mode
        self.thread_safe: Callable[[Callable[[], None], Callable[[], bool]], Callable[[], None]] | None = None

    @abstractmethod
    def check(self) -> None:
        """
        Raises:
            IllegalStateError: DMQ9001, it is closed; DMQ9059, another event loop runs here; DMQ9081, another task is
                at work in it.
            ConnectionLostError: DMQ9009, the connection is gone.
        """

    @abstractmethod
    def check_open(self) -> None:
        """The same, whoever uses it."""

    @property
    @abstractmethod
    def has_listener(self) -> bool:
        """One of its consumers has a listener."""

    @abstractmethod
    def acknowledge_delivered(self) -> None:
        """All that its consumers have delivered."""

    @abstractmethod
    def listen(self, consumer: "AsyncConsumer", listener: MessageListener) -> asyncio.Event:
        """Has the consumer's messages given to its listener; what is to be set when one comes."""

    @abstractmethod
    def unlisten(self, consumer: "AsyncConsumer") -> None:
        """No longer."""

    @abstractmethod
    def end_consumer(self, machine: OpenWireConsumer) -> None:
        """Tells the broker."""


class AsyncConsumer(AsyncCloseable):
    """Made by `AsyncSession.create_consumer`. ``async for`` gives messages until it is closed, by whichever task:
    then it ends."""

    def __init__(
        self, session: ConsumerOwner, link: Link, machine: OpenWireConsumer, destination: JmsDestination
    ) -> None:
        self.destination = destination
        self._session = session
        self._link = link
        self._machine = machine
        self._arrived = asyncio.Event()
        self._at_once = 0
        self._batch_waiter: asyncio.Task[object] | None = None
        machine.waiter = self._arrived

    def __aiter__(self) -> AsyncIterator[JmsMessage]:
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[JmsMessage]:
        while True:
            try:
                message = await self.receive()
            except IllegalStateError as error:
                if error.code == machine_errors.CLOSED and self.closed:
                    return
                raise
            if message is None:
                return
            yield message

    @property
    def closed(self) -> bool:
        return self._machine.closed or self._machine.closing

    async def receive(self, timeout_s: float | None = None) -> JmsMessage | None:
        """The next message; None when none came in time, or when the consumer was closed meanwhile.

        Args:
            timeout_s: None waits for ever, 0 not at all.

        Raises:
            IllegalStateError: DMQ9001, it is closed; DMQ9057, the session has a listener; DMQ9017, it has no branch.
            ClientError: after a failover the next broker did not take the consumer; why.
        """
        delivery = await self.reserve(timeout_s)
        return None if delivery is None else self.hand_out(delivery)

    async def reserve(self, timeout_s: float | None) -> Delivery | None:
        """The next message, neither acknowledged nor counted yet; `hand_out` or `put_back` follows."""
        self._check()
        self._machine.check_delivers()
        if self._session.has_listener:
            raise errors.has_listener()
        demand_timeout(timeout_s)
        self._at_once += 1
        if self._at_once >= _MOST_AT_ONCE:
            # Messages that are there are had without waiting, and others in this loop would have no turn.
            self._at_once = 0
            await asyncio.sleep(0)
        loop = self._link.loop
        deadline = None if timeout_s is None else loop.time() + timeout_s
        asked_at = -1
        while True:
            self._arrived.clear()
            delivery = self._machine.reserve()
            self._link.flush()
            if delivery is not None:
                return delivery
            if self.closed:
                if (error := self._link.error or self._machine.refusal) is not None:
                    raise error
                return None
            late = deadline is not None and loop.time() >= deadline
            keeps_time = not self._machine.pulls or not self._link.machine.ready  # else the broker does
            if late and keeps_time:
                return None
            if self._machine.pulls:
                if 0 <= asked_at < self._machine.ends or (late and timeout_s != 0 and asked_at < 0):
                    return None
                if self._machine.pull(self._pull_ms(deadline, timeout_s)):
                    asked_at = self._machine.ends
                    self._link.flush()
                elif late and asked_at < 0:
                    return None
            await self._wait(deadline if keeps_time or asked_at < 0 else None)

    def _pull_ms(self, deadline: float | None, timeout_s: float | None) -> int:
        if deadline is None:
            return 0
        remaining_ms = int((deadline - self._link.loop.time()) * _MS_PER_S)
        return NO_WAIT if timeout_s == 0 else max(1, remaining_ms)

    async def _wait(self, deadline: float | None) -> None:
        """Until something has changed, or the time has come."""
        self._at_once = 0
        timer = None if deadline is None else self._link.loop.call_at(deadline, self._arrived.set)
        self._session.begin_to_wait()
        try:
            await self._arrived.wait()
        finally:
            self._session.end_to_wait()
            if timer is not None:
                timer.cancel()

    def hand_out(self, delivery: Delivery) -> JmsMessage:
        """The application gets a message that was reserved for it."""
        self.consume(delivery)
        return self.message_of(delivery)

    def consume(self, delivery: Delivery) -> None:
        self._machine.consumed(delivery)
        self._link.flush()

    def message_of(self, delivery: Delivery) -> JmsMessage:
        return received(delivery.message, self._acknowledger(delivery))

    # --- for another thread

    @property
    def handed_over(self) -> dict[Delivery, bool]:
        """What the thread may take, by removing it; `note_consumed` or `put_back` follows."""
        return self._machine.handed_over

    async def wait_for_batch(self, timeout_s: float | None) -> list[Delivery]:
        """What there is to take now, oldest first; waits as `receive`."""
        self._end_waiting()
        self._batch_waiter = asyncio.current_task()
        self._machine.take_back()
        delivery = await self.reserve(timeout_s)
        return [] if delivery is None else self._machine.hand_over(delivery)

    def _end_waiting(self) -> None:
        """Of a thread that was interrupted, and again before it could cancel this."""
        if self._batch_waiter is not None:
            self._batch_waiter.cancel()
            self._batch_waiter = None

    def is_expired(self, delivery: Delivery) -> bool:
        """Then it is not for the application, and `wait_for_batch` goes on with the next one."""
        return self._machine.is_expired(delivery)

    def note_consumed(self, delivery: Delivery) -> None:
        """In the loop: the application has it."""
        self._machine.consumed(delivery)
        self._link.flush_soon()

    def put_back(self, taken: Delivery | None) -> None:
        """In the loop: all that the thread has not received goes back.

        Args:
            taken: what it was about to receive; the connection may have broken since.
        """
        machine = self._machine
        self._end_waiting()
        machine.end_batch()
        for delivery in reversed(list(machine.reserved)):
            machine.put_back(delivery)
        if taken is not None:
            machine.put_back(taken)

    # --- the rest

    async def wait_for_more(self) -> bool:
        """Of a browser: whether there is one more message; waits until that is known."""
        while True:
            self._arrived.clear()
            if self._machine.waiting_count:
                if self._link.machine.running:
                    return True
            elif self.closed or self._machine.ends:
                return False
            elif self._machine.pull(NO_WAIT):
                self._link.flush()
            await self._wait(None)

    def _acknowledger(self, delivery: Delivery) -> Callable[[], None] | None:
        mode = self._session.mode
        if mode not in (AckMode.CLIENT, AckMode.INDIVIDUAL):
            return None
        acknowledge = self._acknowledge_all if mode == AckMode.CLIENT else lambda: self._acknowledge_one(delivery)
        thread_safe = self._session.thread_safe
        return acknowledge if thread_safe is None else thread_safe(acknowledge, self._is_usable)

    def _is_usable(self) -> bool:
        return self._link.error is None and not self.closed

    def _acknowledge_all(self) -> None:
        self._check_open()
        self._session.acknowledge_delivered()

    def _acknowledge_one(self, delivery: Delivery) -> None:
        self._check_open()
        self._link.report(self._machine.acknowledge_one(delivery))
        self._link.flush()

    def acknowledge(self) -> None:
        """All that this consumer has delivered; of a session with AckMode.CLIENT.

        Raises:
            IllegalStateError: DMQ9001, DMQ9003.
        """
        self._check()
        if self._session.mode == AckMode.TRANSACTED:
            raise machine_errors.transacted("acknowledge()")
        self._link.report(self._machine.acknowledge())
        self._link.flush()

    async def set_listener(self, listener: MessageListener | None) -> None:
        """Has each message given to ``listener``, a function or a coroutine function; None takes it away.

        The session calls its listeners one at a time. A message whose listener raises is delivered again in sessions
        with AUTO, DUPS_OK (of a queue) and INDIVIDUAL, by the redelivery policy; otherwise the next one follows.

        Raises:
            IllegalStateError: DMQ9005, the prefetch is 0; DMQ9058, there is one already.
        """
        self._check()
        if listener is None:
            self._machine.listens = False
            self._machine.waiter = self._arrived
            self._session.unlisten(self)
            return
        demand_function("listener", listener)
        check_listener(self._machine)
        if self._machine.listens:
            raise errors.listener_set()
        self._machine.listens = True
        self._machine.waiter = self._session.listen(self, listener)

    async def deliver(self, listener: MessageListener) -> bool:
        """Gives the listener one message, if there is one."""
        delivery = self._machine.reserve()
        if delivery is None:
            self._link.flush()
            return False
        self._machine.before(delivery)
        self._link.flush()
        try:
            told = listener(self.message_of(delivery))
            if inspect.isawaitable(told):
                await told
        except (Exception, asyncio.CancelledError):
            if is_cancelled():
                raise
            _LOG.exception(
                f"DMQ9066: the listener of {self.destination} failed with message {delivery.message_id.key()}: it is "
                "delivered again as the session's mode and the redelivery policy say; have the listener handle what "
                "can go wrong"
            )
            self._machine.failed(delivery)
        else:
            self._machine.after(delivery)
        self._link.flush()
        return True

    def _check(self) -> None:
        self._session.check()
        if self.closed:
            raise self._machine.refusal or machine_errors.closed("consumer")

    def _check_open(self) -> None:
        self._session.check_open()
        if self.closed:
            raise machine_errors.closed("consumer")

    async def close(self) -> None:
        """Ends it; what it has not handed out goes back. What its transaction has delivered stays in that."""
        self._link.check_loop()
        self._session.unlisten(self)
        if not self.closed:
            self._session.end_consumer(self._machine)


class AsyncBrowser:
    """What a queue holds: ``async for message in browser``, each time from the beginning.

    Attributes:
        open_consumer: not for applications.
    """

    def __init__(
        self, queue: JmsDestination, selector: str, open_consumer: Callable[[], Coroutine[Any, Any, AsyncConsumer]]
    ) -> None:
        self.queue = queue
        self.selector = selector
        self.open_consumer = open_consumer

    def __aiter__(self) -> AsyncIterator[JmsMessage]:
        return self.browse()

    async def browse(self) -> AsyncGenerator[JmsMessage, None]:
        """One look, from the beginning; it ends when all was seen, or with `aclose`."""
        consumer = await self.open_consumer()
        try:
            while await consumer.wait_for_more():
                delivery = await consumer.reserve(0)
                if delivery is not None:
                    yield consumer.hand_out(delivery)
        finally:
            await consumer.close()
