"""Sessions of the asyncio client."""

import asyncio
from collections.abc import Callable

from delosmq.client import errors
from delosmq.client.aio_consumer import AsyncBrowser, AsyncConsumer, ConsumerOwner, MessageListener
from delosmq.client.aio_producer import AsyncProducer, ProducerOwner
from delosmq.client.closeable import AsyncCloseable
from delosmq.client.destinations import JmsDestination, Named, named
from delosmq.client.link import Link
from delosmq.client.one_caller import by_listener
from delosmq.client.options.arguments import demand_flag, demand_kind, demand_name, demand_text
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client import errors as machine_errors
from delosmq.sessions.openwire.client.consumer import OpenWireConsumer
from delosmq.sessions.openwire.client.options import ProducerOptions
from delosmq.sessions.openwire.client.ports import PendingRequest
from delosmq.sessions.openwire.client.producer import OpenWireProducer
from delosmq.sessions.openwire.client.session import ConsumerWish, OpenWireClientSession


class AsyncSession(ConsumerOwner, ProducerOwner, AsyncCloseable):
    """What is done in one order: its consumers deliver one message at a time, and its transaction holds all it does."""

    def __init__(self, link: Link, machine: OpenWireClientSession, connection: object) -> None:
        """
        Args:
            connection: is not forgotten while the session is in use.
        """
        ConsumerOwner.__init__(self, machine.mode)
        ProducerOwner.__init__(self)
        self._connection = connection
        self._link = link
        self._machine = machine
        self._shared: AsyncProducer | None = None
        self._listening: dict[AsyncConsumer, MessageListener] = {}
        self._arrived = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._failed_post: ClientError | None = None  # of this transaction, which can't be committed as if it were sent

    @property
    def closed(self) -> bool:
        return self._machine.closed

    def set_count_received(self, function: Callable[[], None]) -> None:
        """Sets what has the machine hear of all that another thread has done, before it tells apart what was received
        and what was not."""
        self._machine.count_received = function

    def check(self) -> None:
        self.check_caller()
        self.check_open()

    def check_open(self) -> None:
        self._link.check_loop()
        self.check_usable()

    def check_usable(self) -> None:
        if self._link.error is not None:
            raise self._link.error
        self._machine.check_open()

    def close_soon(self) -> Callable[[], None]:
        """What ends it when it was forgotten; doesn't hold it."""
        link, machine = self._link, self._machine

        def close() -> None:
            link.machine.close_session(machine)
            link.flush()

        return lambda: link.soon(close)

    @property
    def is_open(self) -> Callable[[], bool]:
        """Tells whether it is; doesn't hold it."""
        machine = self._machine
        return lambda: not machine.closed

    # --- destinations

    def queue(self, name: str) -> JmsDestination:
        """A queue by its name, with options for its consumers: ``orders?consumer.prefetchSize=10``."""
        return named(name)

    def topic(self, name: str) -> JmsDestination:
        """A topic, likewise."""
        return named(name, topic=True)

    async def create_temporary_queue(self) -> JmsDestination:
        """A queue that only this connection consumes from, and that ends with it."""
        return await self._create_temporary(topic=False)

    async def create_temporary_topic(self) -> JmsDestination:
        return await self._create_temporary(topic=True)

    async def _create_temporary(self, *, topic: bool) -> JmsDestination:
        await self._check_broker()
        destination, request = self._link.machine.temporaries.create(topic=topic)
        await self._answer(request)
        return JmsDestination(destination.name, topic, True)

    async def delete_temporary(self, destination: JmsDestination) -> None:
        """Ends a temporary destination of this connection.

        Raises:
            IllegalStateError: DMQ9018, a consumer of it is left.
        """
        self.check()
        demand_kind("destination", destination, JmsDestination, "a temporary JmsDestination of this connection")
        await self._check_broker()
        wire = destination.wire()
        machine = self._link.machine
        if any(session.consumes_from(wire) for session in machine.sessions.values()):
            raise machine_errors.temporary_in_use(str(destination))
        await self._answer(machine.temporaries.delete(wire))

    # --- producers

    def note_failed_post(self, error: ClientError) -> None:
        if self._link.error is None and not self._machine.closed:  # else the next call says why
            self._link.troubled(error)
            if self._machine.transacted:
                self._failed_post = error

    async def create_producer(self, destination: Named | None = None) -> "AsyncProducer":
        """
        Args:
            destination: of all its messages; without one, each message names its own.
        """
        self.check()
        wanted = None if destination is None else named(destination)
        await self._check_broker()
        own = ProducerOptions() if wanted is None else wanted.producer_options
        machine, request = self._machine.add_producer(None if wanted is None else wanted.wire(), own)
        producer = AsyncProducer(self, self._link, machine, wanted)
        try:
            await self._answer(request)
        except BaseException:
            self.end_producer(machine)
            raise
        return producer

    async def shared_producer(self) -> "AsyncProducer":
        """The one for messages that name their destination."""
        if self._shared is None:
            self._shared = await self.create_producer()
        return self._shared

    def end_producer(self, machine: OpenWireProducer) -> None:
        self._machine.close_producer(machine)
        self._link.flush()

    # --- consumers

    async def create_consumer(
        self, destination: Named, selector: str = "", *, no_local: bool = False
    ) -> "AsyncConsumer":
        """
        Raises:
            InvalidSelectorError: DMQ9022, the broker can't read the selector.
            InvalidDestinationError: DMQ9007, a temporary destination is another connection's.
        """
        return await self._create_consumer(named(destination), selector, no_local=no_local)

    async def create_durable_consumer(
        self, topic: Named, name: str, selector: str = "", *, no_local: bool = False
    ) -> "AsyncConsumer":
        """A consumer of the durable subscription ``name`` of this client id: what comes while there is none is kept.

        Raises:
            IllegalStateError: DMQ9004, the connection was given no client id.
        """
        demand_name("name", name)
        if not self._link.machine.has_client_id:
            raise machine_errors.no_client_id(name)
        return await self._create_consumer(named(topic, topic=True), selector, name=name, no_local=no_local)

    async def create_shared_consumer(self, topic: Named, name: str, selector: str = "") -> "AsyncConsumer":
        """Refused: OpenWire has no shared subscriptions, and the Java client throws likewise.

        Raises:
            UnsupportedOperationError: DMQ9073, which names the way that does the same.
        """
        raise errors.no_shared_subscriptions(named(topic, topic=True).name, name)

    async def create_shared_durable_consumer(self, topic: Named, name: str, selector: str = "") -> "AsyncConsumer":
        """As `create_shared_consumer`."""
        return await self.create_shared_consumer(topic, name, selector)

    async def create_browser(self, queue: Named, selector: str = "") -> "AsyncBrowser":
        """Looks at what a queue holds, oldest first, without taking it."""
        destination = named(queue)
        _check_selector(selector)
        return AsyncBrowser(destination, selector, lambda: self._create_consumer(destination, selector, browser=True))

    async def _create_consumer(
        self,
        destination: JmsDestination,
        selector: str,
        *,
        name: str = "",
        no_local: bool = False,
        browser: bool = False,
    ) -> "AsyncConsumer":
        self.check()
        _check_selector(selector)
        demand_flag("no_local", no_local)
        wire = destination.wire()
        if destination.is_temporary and not self._link.machine.temporaries.is_ours(wire):
            raise machine_errors.foreign_temporary(str(destination))
        wish = ConsumerWish(
            wire,
            destination.options,
            selector=selector.strip(),
            subscription_name=name,
            no_local=no_local,
            browser=browser,
            redelivery_policy=self._link.policies.policy_of(wire),
        )
        await self._check_broker()
        machine, request = self._machine.add_consumer(wish)
        consumer = AsyncConsumer(self, self._link, machine, destination)
        try:
            await self._answer(request)
        except asyncio.CancelledError:
            await consumer.close()
            raise
        except BaseException:
            self._machine.drop_consumer(machine)
            raise
        return consumer

    def end_consumer(self, machine: OpenWireConsumer) -> None:
        self._machine.close_consumer(machine)
        self._link.flush()

    # --- acknowledgement and transactions

    def acknowledge(self) -> None:
        """All that this session has delivered.

        Raises:
            IllegalStateError: DMQ9003, it is transacted.
        """
        self.check()
        self.acknowledge_delivered()

    def acknowledge_delivered(self) -> None:
        self.check_open()
        for request in self._machine.acknowledge():
            self._link.report(request)
        self._link.flush()

    async def recover(self) -> None:
        """Delivers again, after the delay of the redelivery policy, what was delivered and not acknowledged.

        Raises:
            IllegalStateError: DMQ9003, it is transacted.
        """
        self.check()
        self._machine.recover()
        self._link.flush()

    async def commit(self) -> None:
        """Makes all that was done since the last commit or rollback happen at once.

        Raises:
            IllegalStateError: DMQ9002, it is not transacted.
            TransactionRolledBackError: DMQ9025, nothing of it has happened.
            TransactionInDoubtError: DMQ9012, the connection broke before the answer.
        """
        await self._check_broker()
        if self._failed_post is not None:
            raise self._failed_post
        await self._answer(self._machine.commit())

    async def rollback(self) -> None:
        """Undoes it. What was delivered is delivered again, after the delay of the redelivery policy.

        Raises:
            IllegalStateError: DMQ9002, it is not transacted.
        """
        self.check()
        self._failed_post = None
        await self._answer(self._machine.rollback())

    # --- listeners

    @property
    def has_listener(self) -> bool:
        return bool(self._listening)

    def listen(self, consumer: "AsyncConsumer", listener: MessageListener) -> asyncio.Event:
        self._listening[consumer] = listener
        self._machine.take_back()  # a thread that receives is told of the listener
        if self._pump is None:
            self._pump = self._link.loop.create_task(self._deliver())
        self._arrived.set()
        return self._arrived

    def unlisten(self, consumer: "AsyncConsumer") -> None:
        self._listening.pop(consumer, None)

    async def stop_listening(self, *, waits: bool = True) -> None:
        """Calls no listener any more, and waits until the one at work has ended; that one itself can't wait."""
        pump = self._pump
        self._listening.clear()
        self._arrived.set()
        if pump is None:
            return
        if waits and pump is not asyncio.current_task():
            await asyncio.wait((pump,))
        else:
            self._machine.note_listener_done()

    async def _deliver(self) -> None:
        by_listener.set(True)
        while self._listening and not self._machine.closed:
            self._arrived.clear()
            delivered = False
            for consumer, listener in list(self._listening.items()):
                if consumer in self._listening and await consumer.deliver(listener):
                    delivered = True
            if not delivered:
                await self._arrived.wait()
        self._pump = None

    async def _check_broker(self) -> None:
        """As `check`, before the broker is asked: waits while the connection is made again.

        Raises:
            TimedOutError: DMQ9075, nothing was asked or changed.
        """
        self.check()
        self.begin_to_wait()
        try:
            await self.wait_for_room(self._link)
        finally:
            self.end_to_wait()
        self.check_open()

    async def _answer(self, request: PendingRequest) -> None:
        """Waits for the broker's answer to what the caller has asked for."""
        self.begin_to_wait()
        try:
            await self._link.answer(request)
        finally:
            self.end_to_wait()

    async def complete_sends(self) -> None:
        """Waits until the listeners of messages have been told, for as long as a close may take."""
        within_s = self._link.machine.options.close_timeout_ms / 1_000
        while waiting := self.completions - {asyncio.current_task()}:
            _, late = await asyncio.wait(waiting, timeout=within_s or None)
            if late:
                return

    async def close(self, *, waits: bool = True) -> None:
        """Ends it with its consumers and producers. A transaction is rolled back; what was not acknowledged goes
        back."""
        if self._machine.closed:
            return
        self._link.check_loop()
        try:
            await self.stop_listening(waits=waits)
            if waits:
                await self.complete_sends()
        except asyncio.CancelledError:  # it ends all the same: what it has goes back, and nothing is waited for
            if self._link.error is None:
                self._link.machine.close_session(self._machine)
                self.ended.set()
                self._link.flush()
            raise
        if self._link.error is None:
            request = self._link.machine.close_session(self._machine)
            self.ended.set()
            await asyncio.shield(self._link.answer(request))


def _check_selector(selector: object) -> None:
    demand_text("selector", selector, "a str, empty for all messages")
