"""A session: its consumers, its producers and its transaction.

Source: ActiveMQSession of the Java client.
"""

from collections.abc import Callable

from delosmq.sessions.openwire.client import errors
from delosmq.sessions.openwire.client.acknowledgement import NOT_COUNTED
from delosmq.sessions.openwire.client.consumer import OpenWireConsumer, no_other_thread
from delosmq.sessions.openwire.client.options import (
    NO_PRODUCER_OPTIONS,
    AckMode,
    DestinationOptions,
    ProducerOptions,
    RedeliveryPolicy,
)
from delosmq.sessions.openwire.client.ports import CommandSender, PendingRequest, finished
from delosmq.sessions.openwire.client.producer import OpenWireProducer
from delosmq.sessions.openwire.client.transactions.transaction import LocalTransaction
from delosmq.sessions.openwire.client.transactions.xa import XaBranches, XaTransaction
from delosmq.wire.openwire.commands import ConsumerInfo, ProducerInfo, RemoveInfo, SessionInfo
from delosmq.wire.openwire.structures import Command, ConsumerId, Destination, ProducerId, SessionId

_CLOSE = "the end of a session"


class ConsumerWish:
    """What a consumer is to be.

    Attributes:
        subscription_name: of a durable subscription; "" for none.
        selector: "" for none.
        redelivery_policy: None for the connection's.
    """

    def __init__(
        self,
        destination: Destination,
        options: DestinationOptions,
        *,
        selector: str = "",
        subscription_name: str = "",
        no_local: bool = False,
        browser: bool = False,
        redelivery_policy: RedeliveryPolicy | None = None,
    ) -> None:
        self.destination = destination
        self.options = options
        self.selector = selector
        self.subscription_name = subscription_name
        self.no_local = no_local
        self.browser = browser
        self.redelivery_policy = redelivery_policy


class OpenWireClientSession:
    """
    Attributes:
        consumers, producers: those that are open, in the order they were made, by the last number of their ids.
        xa: of a session whose transactions are branches of distributed ones.
        count_received: of its consumers.
    """

    def __init__(self, sender: CommandSender, session_id: SessionId, mode: AckMode, *, xa: bool = False) -> None:
        self.session_id = session_id
        self.mode = mode
        self.closed: bool = False
        self.consumers: dict[int, OpenWireConsumer] = {}
        self.producers: dict[int, OpenWireProducer] = {}
        self.xa: XaBranches | None = None
        if xa:
            distributed = XaTransaction(sender)
            self.transaction: LocalTransaction = distributed
            self.xa = XaBranches(sender, distributed, self._look_again, self.end_batches)
        else:
            self.transaction = LocalTransaction(sender)
        self.last_delivered_sequence: int = NOT_COUNTED
        self.count_received: Callable[[], None] = no_other_thread
        self._sender = sender
        self._consumers_made: int = 0
        self._producers_made: int = 0

    @property
    def transacted(self) -> bool:
        return self.mode == AckMode.TRANSACTED

    def info(self) -> SessionInfo:
        info = SessionInfo()
        info.session_id = self.session_id
        return info

    # --- consumers and producers

    def add_consumer(self, wish: ConsumerWish) -> tuple[OpenWireConsumer, PendingRequest]:
        """A consumer, and the broker's answer; `drop_consumer` follows if that is an error."""
        self._forget_closed()
        self._consumers_made += 1
        session_id = self.session_id
        info = self._consumer_info(wish)
        info.consumer_id = ConsumerId(session_id.connection_id, session_id.value, self._consumers_made)
        policy = wish.redelivery_policy or self._sender.options.redelivery_policy
        consumer = OpenWireConsumer(self._sender, self.transaction, self.mode, info, policy)
        consumer.count_received = self.count_received
        self.consumers[self._consumers_made] = consumer
        what = f"a {'browser' if wish.browser else 'consumer'} of {wish.destination.qualified_name()}"
        return consumer, self._sender.request(info, what)

    def _consumer_info(self, wish: ConsumerWish) -> ConsumerInfo:
        options = self._sender.options
        own = wish.options
        info = ConsumerInfo()
        info.destination = wish.destination
        info.browser = wish.browser
        info.prefetch_size = self._prefetch(wish) if own.prefetch_size is None else own.prefetch_size
        limit = options.prefetch_policy.maximum_pending_message_limit
        own_limit = own.maximum_pending_message_limit
        info.maximum_pending_message_limit = limit if own_limit is None else own_limit
        info.dispatch_async = options.dispatch_async if own.dispatch_async is None else own.dispatch_async
        info.exclusive = options.exclusive_consumer if own.exclusive is None else own.exclusive
        info.retroactive = options.use_retroactive_consumer if own.retroactive is None else own.retroactive
        info.priority = own.priority or 0
        info.no_local = wish.no_local if own.no_local is None else own.no_local
        info.no_range_acks = own.no_range_acks is True
        info.selector = wish.selector or own.selector or None
        info.client_id = self._sender.client_id
        info.subscription_name = wish.subscription_name or None
        info.optimized_acknowledge = self._sender.optimizes and self.mode == AckMode.AUTO and not wish.browser
        return info

    def _prefetch(self, wish: ConsumerWish) -> int:
        policy = self._sender.options.prefetch_policy
        if wish.browser:
            return policy.queue_browser_prefetch
        if wish.subscription_name:
            optimised = self.mode == AckMode.AUTO and self._sender.options.optimized_message_dispatch
            return policy.optimize_durable_topic_prefetch if optimised else policy.durable_topic_prefetch
        return policy.queue_prefetch if wish.destination.is_queue else policy.topic_prefetch

    def consumes_from(self, destination: Destination) -> bool:
        name = destination.qualified_name()
        for consumer in self.consumers.values():
            consumed = consumer.info.destination
            if not consumer.closed and consumed is not None and consumed.qualified_name() == name:
                return True
        return False

    def close_consumer(self, consumer: OpenWireConsumer) -> None:
        """Ends one; with the transaction, if that has messages of it."""
        consumer.close()
        self._forget_closed()

    def take_back(self) -> None:
        """Nothing is handed over to another thread any more that it has not taken."""
        for consumer in self.consumers.values():
            consumer.take_back()

    def end_batches(self) -> None:
        """As `OpenWireConsumer.end_batch`, of all its consumers."""
        self.take_back()
        self.count_received()

    def note_listener_done(self) -> None:
        """As `OpenWireConsumer.note_listener_done`, of the one that it is."""
        for consumer in self.consumers.values():
            consumer.note_listener_done()

    def _forget_closed(self) -> None:
        for value, consumer in list(self.consumers.items()):
            if consumer.closed:
                del self.consumers[value]

    def drop_consumer(self, consumer: OpenWireConsumer) -> None:
        """Forgets one that the broker has refused."""
        consumer.lose()
        self._forget_closed()

    def add_producer(
        self, destination: Destination | None, own: ProducerOptions = NO_PRODUCER_OPTIONS
    ) -> tuple[OpenWireProducer, PendingRequest]:
        self._producers_made += 1
        session_id = self.session_id
        info = ProducerInfo()
        info.producer_id = ProducerId(session_id.connection_id, session_id.value, self._producers_made)
        info.destination = destination
        window_bytes = own.window_size_bytes
        info.window_size = self._sender.options.producer_window_size_bytes if window_bytes is None else window_bytes
        info.dispatch_async = own.dispatch_async is True
        producer = OpenWireProducer(self._sender, self.transaction, info, transacted=self.transacted)
        self.producers[self._producers_made] = producer
        name = "any destination" if destination is None else destination.qualified_name()
        return producer, self._sender.request(info, f"a producer for {name}")

    def close_producer(self, producer: OpenWireProducer) -> None:
        producer.close()
        self.producers.pop(producer.producer_id.value, None)

    # --- acknowledgement

    def acknowledge(self) -> list[PendingRequest]:
        """All that its consumers have delivered; the answers that are waited for.

        Raises:
            IllegalStateError: DMQ9001, DMQ9003.
        """
        self.check_open()
        if self.transacted:
            raise errors.transacted("acknowledge()")
        answers = [consumer.acknowledge() for consumer in list(self.consumers.values())]
        return [answer for answer in answers if answer is not None]

    def recover(self) -> None:
        """Has delivered again what was not acknowledged.

        Raises:
            IllegalStateError: DMQ9001, DMQ9003.
        """
        self.check_open()
        if self.transacted:
            raise errors.transacted("recover()")
        for consumer in list(self.consumers.values()):
            consumer.recover()

    def commit(self) -> PendingRequest:
        """
        Raises:
            IllegalStateError: DMQ9001, DMQ9002, DMQ9015.
        """
        self.check_open()
        if not self.transacted:
            raise errors.not_transacted("commit()")
        self.transaction.check_ends_here("commit()")
        return self.transaction.commit()

    def rollback(self) -> PendingRequest:
        """
        Raises:
            IllegalStateError: DMQ9001, DMQ9002, DMQ9015.
        """
        self.check_open()
        if not self.transacted:
            raise errors.not_transacted("rollback()")
        self.transaction.check_ends_here("rollback()")
        return self.transaction.rollback()

    def check_open(self) -> None:
        if self.closed:
            raise errors.closed("session")

    # --- the end

    def close(self) -> PendingRequest:
        """Ends it; the answer is that of the rollback, if there is a transaction."""
        return finished(_CLOSE) if self.closed else self.dispose(self._tell_end)

    def dispose(self, then: Callable[[], None]) -> PendingRequest:
        """Ends all in it, as far as the broker is not told with the session's or the connection's end."""
        self.end_batches()  # what was acknowledged and sent is done while it is open
        self.closed = True
        for consumer in self.consumers.values():
            consumer.dispose()
            self.last_delivered_sequence = max(self.last_delivered_sequence, consumer.last_delivered_sequence)
        self.consumers.clear()
        for producer in self.producers.values():
            producer.dispose()
        self.producers.clear()
        if self.transaction.transaction_id is None:
            then()
            return finished(_CLOSE)
        timeout_ms = self._sender.close_timeout_ms
        request = self.transaction.rollback(timeout_ms) if self.xa is None else self.xa.abandon(timeout_ms)
        ended = request.then

        def rolled_back(answered: PendingRequest) -> None:
            if ended is not None:
                ended(answered)
            then()

        request.then = rolled_back
        return request

    def _tell_end(self) -> None:
        remove = RemoveInfo()
        remove.object_id = self.session_id
        remove.last_delivered_sequence_id = self.last_delivered_sequence
        self._sender.send(remove)

    def _look_again(self) -> None:
        """Messages may be delivered now."""
        for consumer in self.consumers.values():
            self._sender.events.changed(consumer.waiter)

    def interrupt(self) -> None:
        """The connection is broken, and will be made again."""
        self.end_batches()
        if self.xa is not None:
            self.xa.interrupt()
        for consumer in self.consumers.values():
            consumer.interrupt()
        for producer in self.producers.values():
            producer.interrupt()

    def to_repeat(self) -> list[Command]:
        """What a broker has to be told of it when the connection is made again."""
        self._forget_closed()
        said: list[Command] = [self.info()]
        said += [producer.info for producer in self.producers.values()]
        said += [consumer.info for consumer in self.consumers.values()]
        if self.transaction.transaction_id is not None:
            said += self.transaction.commands
        return said

    def lose(self) -> None:
        """The connection is gone."""
        self.closed = True
        for consumer in self.consumers.values():
            consumer.lose()
        for producer in self.producers.values():
            producer.dispose()
        self.consumers.clear()
        self.producers.clear()
