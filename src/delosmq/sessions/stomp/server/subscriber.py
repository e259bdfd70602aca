"""The receiving half of a session: subscriptions, and the answers to what they delivered."""

from delosmq.engine.api import BulkAck, Consumer, Transaction
from delosmq.model.errors import BrokerError, StorageError
from delosmq.model.message import ANYCAST
from delosmq.model.reserved_names import CONNECTION_MARK
from delosmq.security.access import BROWSE, CONSUME, DELETE_DURABLE_QUEUE
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.stomp.server import errors
from delosmq.sessions.stomp.server.destinations import StompDestinations, StompTarget
from delosmq.sessions.stomp.server.headers import parse_count, read_routing, required
from delosmq.sessions.stomp.server.producers import Producer
from delosmq.sessions.stomp.server.subscription import (
    ACK_MODES,
    AUTO,
    CLIENT,
    StompSubscription,
    read_credit,
    split_ack_id,
)
from delosmq.sessions.stomp.server.subscription_options import (
    StompSubscriptionOptions,
    durable_name,
    queue_of,
    read_subscription_options,
)
from delosmq.sessions.stomp.server.transactions import TRANSACTION, StompTransactions
from delosmq.sessions.stomp.server.unknown_headers import unknown_headers
from delosmq.wire.stomp.decoder import StompFrame
from delosmq.wire.stomp.versions import V10, V12


class StompSubscriber:
    """All subscriptions of one connection."""

    def __init__(
        self,
        machine: SessionMachine,
        producer: Producer,
        *,
        destinations: StompDestinations,
        transactions: StompTransactions,
    ) -> None:
        self._machine = machine
        self._producer = producer
        self._host = machine.host
        self._peer = machine.peer
        self._acceptor = machine.acceptor
        self._conversions = machine.services.conversions
        self._broker = machine.services.broker
        self._outbox = machine.outbox
        self._destinations = destinations
        self._transactions = transactions
        self._client_id: str = ""
        self._version: int = V10
        self._permissions: Permissions | None = None
        self._noticed: bool = False
        self._subscriptions: dict[str, StompSubscription] = {}
        self._by_consumer: dict[int, StompSubscription] = {}

    def permit(self, permissions: Permissions, version: int, client_id: str) -> None:
        """Names the user, the version of the protocol and the ``client-id``; before the first SUBSCRIBE."""
        self._permissions = permissions
        self._version = version
        self._client_id = client_id

    def subscribe(self, frame: StompFrame) -> None:
        """Handles a SUBSCRIBE; the caller answers it."""
        headers = frame.headers
        destination = required(headers, "destination", "SUBSCRIBE")
        header_id = headers.get("id")
        if header_id is None and self._version != V10:
            raise errors.header_missing("id", "SUBSCRIBE")
        key = destination if header_id is None else header_id
        if key in self._subscriptions:
            raise errors.subscription_taken("destination" if header_id is None else "id", key)
        if len(self._subscriptions) >= self._acceptor.max_subscriptions:
            raise errors.too_many_subscriptions(self._acceptor.max_subscriptions)
        mode = self._read_mode(headers)
        credit = read_credit(headers, mode, self._acceptor.stomp_consumer_window_bytes)
        routing = read_routing(headers, "subscription-type", "SUBSCRIBE")
        routing = routing or read_routing(headers, "destination-type", "SUBSCRIBE")
        target = self._queue_named(self._destinations.decode(destination, routing, "SUBSCRIBE"))
        requested = read_subscription_options(headers, target, self._client_id, self._peer.connection_id)
        self._check_consume(target, requested)
        subscription = StompSubscription(
            header_id,
            mode,
            destination=destination,
            version=self._version,
            outbox=self._outbox,
            conversion=self._destinations.conversion,
            replaces=target.virtual,
        )
        subscription.connection = self._peer.name
        if self._permissions is not None:
            subscription.user = requested.subscription.user = self._permissions.user
        consumer = self._broker.consumers.subscribe(
            target.address,
            subscription,
            credit,
            queue_name=target.queue_name,
            routing=target.routing,
            options=requested.options,
            subscription=requested.subscription,
        )
        subscription.attach(consumer, self._machine, self._conversions)
        self._outbox.begin_gently()
        self._subscriptions[key] = subscription
        self._by_consumer[consumer.id] = subscription
        if requested.mark:
            self._producer.mark(CONNECTION_MARK, requested.mark)
        if not self._noticed:
            self._notice(headers)

    def _queue_named(self, target: StompTarget) -> StompTarget:
        """Queues that the broker made on another address, such as those of dead letters by origin, are known by their
        names alone, as in Artemis."""
        if target.queue_name or target.temporary or target.routing != ANYCAST:
            return target
        queue = self._broker.queues.get(target.address)
        if queue is None or queue.internal or queue.temporary or queue.address.name == target.address:
            return target
        settings = queue.settings
        if not settings.auto_created:
            return target
        return StompTarget(queue.address.name, queue.name, settings.routing_type, virtual=True)

    def _notice(self, headers: dict[str, str]) -> None:
        found = unknown_headers(headers)
        if found:
            self._noticed = True
            self._host.report(errors.headers_without_effect(found))

    def _read_mode(self, headers: dict[str, str]) -> int:
        value = headers.get("ack", "auto")
        mode = ACK_MODES.get(value)
        # client-individual came with 1.1, but clients of 1.0 use it and no meaning is lost.
        if mode is None:
            raise errors.header_wrong("ack", "SUBSCRIBE", value, "auto, client or client-individual")
        return mode

    def _check_consume(self, target: StompTarget, requested: StompSubscriptionOptions) -> None:
        permissions = self._permissions
        assert permissions is not None  # connected
        right = BROWSE if requested.options.browser else CONSUME
        permissions.require_use(target.address, target.queue_name, right)
        permissions.require_creation(
            target.address,
            target.queue_name,
            target.routing,
            for_subscription=True,
            subscription=requested.subscription,
        )

    def unsubscribe(self, frame: StompFrame) -> None:
        """Handles an UNSUBSCRIBE; the caller answers it."""
        headers = frame.headers
        durable = durable_name(headers)
        name = "id" if "id" in headers or self._version != V10 else "destination"
        if durable is None or name in headers:
            key = required(headers, name, "UNSUBSCRIBE")
            subscription = self._subscriptions.pop(key, None)
            if subscription is not None:
                self._close(subscription)
                self.return_room()
            elif durable is None:
                raise errors.unknown_subscription(name, key, "UNSUBSCRIBE")
        if durable is not None:
            self._end_durable(queue_of(durable, headers[durable], self._client_id, "UNSUBSCRIBE"))

    def _end_durable(self, name: str) -> None:
        """Ends a subscription for good. As in Artemis it is no error when there is none."""
        queue = self._broker.queues.get(name)
        permissions = self._permissions
        if queue is not None and permissions is not None:
            permissions.require(queue.address.name, DELETE_DURABLE_QUEUE)
            self._broker.resources.unsubscribe(name, permissions.user)

    def _close(self, subscription: StompSubscription) -> None:
        if not subscription.stream.closed:
            self._outbox.close_stream(subscription.stream)
        consumer = subscription.consumer
        assert consumer is not None  # attached when it was put into the dict
        self._by_consumer.pop(consumer.id, None)
        subscription.machine = None
        self._broker.consumers.close(consumer, subscription.stream.unseen)

    def close_all(self) -> None:
        """Gives back what all of them hold."""
        subscriptions = list(self._subscriptions.values())
        self._subscriptions.clear()
        self._outbox.close_streams([subscription.stream for subscription in subscriptions])
        for subscription in subscriptions:
            # A full disk must not keep a peer from leaving, nor one subscription's trouble the others from closing.
            try:
                self._acknowledge_written(subscription)
            except StorageError as error:
                self._report(subscription, error)
            try:
                self._close(subscription)
            except StorageError as error:
                self._report(subscription, error)

    def report(self, troubles: list[BrokerError]) -> None:
        """Says in the log what could not be recorded of transactions that were rolled back."""
        for error in troubles:
            self._host.report(errors.not_rolled_back(self._peer.name, error))

    def _report(self, subscription: StompSubscription, error: StorageError) -> None:
        self._host.report(errors.not_given_back(self._peer.name, subscription.destination, error))

    def settle(self, frame: StompFrame, accepted: bool) -> BulkAck | None:
        """Handles an ACK or NACK; the caller answers it, once what is given back is over."""
        headers = frame.headers
        command = frame.command
        if self._version == V12:
            name = "id"
            ack_id = required(headers, name, command)
            consumer_id, sequence = split_ack_id(ack_id)
            subscription = self._by_consumer.get(consumer_id)
        else:
            name = "message-id"
            ack_id = required(headers, name, command)
            subscription, sequence = self._find_delivery(headers, ack_id, command)
        if subscription is None or subscription.mode == AUTO:
            raise errors.unknown_delivery(name, ack_id, command)
        consumer = subscription.consumer
        assert consumer is not None  # attached when it was put into the dict
        cumulative = subscription.mode == CLIENT
        if TRANSACTION in headers:
            work = self._transactions.named(headers[TRANSACTION], command)
            transaction = work.transaction if accepted else work.rejected(self._broker)
            done = self._promise(consumer, sequence, cumulative, transaction)
        else:
            done = self._settle_through(consumer, sequence, cumulative, accepted)
        if not done:
            raise errors.unknown_delivery(name, ack_id, command)
        return consumer.under_way if cumulative else None

    def _promise(self, consumer: Consumer, sequence: int, cumulative: bool, work: Transaction) -> bool:
        if cumulative:
            return self._broker.consumers.acknowledge_through(consumer, sequence, work)
        return self._broker.consumers.acknowledge(consumer, sequence, work)

    def _settle_through(self, consumer: Consumer, sequence: int, cumulative: bool, accepted: bool) -> bool:
        broker = self._broker
        if accepted:
            if cumulative:
                return broker.consumers.acknowledge_through(consumer, sequence)
            return broker.consumers.acknowledge(consumer, sequence)
        if cumulative:
            return broker.consumers.reject_through(consumer, sequence)
        return broker.consumers.reject(consumer, sequence)

    def _find_delivery(
        self, headers: dict[str, str], ack_id: str, command: str
    ) -> tuple[StompSubscription | None, int]:
        """How 1.0 and 1.1 name a delivery."""
        if self._version == V10:
            consumer_id, sequence = split_ack_id(ack_id)
            return self._by_consumer.get(consumer_id), sequence
        key = required(headers, "subscription", command)
        subscription = self._subscriptions.get(key)
        if subscription is None:
            raise errors.unknown_subscription("subscription", key, command)
        return subscription, parse_count(ack_id)

    def _acknowledge_written(self, subscription: StompSubscription) -> None:
        """``auto``: what is in the peer's socket is acknowledged."""
        stream = subscription.stream
        consumer = subscription.consumer
        if subscription.mode == AUTO and stream.written and consumer is not None:
            self._broker.consumers.acknowledge_through(consumer, stream.written)
            stream.written = 0

    def handle_written(self) -> bool:
        """Acknowledges for ``auto`` what has reached the peer's socket. True when there was something.

        Raises:
            StorageError: it could not be recorded.
        """
        touched = False
        for stream in self._outbox.take_written():
            subscription = self._by_consumer.get(stream.owner_id)
            if subscription is not None:
                self._acknowledge_written(subscription)
                touched = True
        return self.return_room() or touched

    def return_room(self) -> bool:
        """Tells the engine that the outbox takes more again. True when it was told."""
        if not self._outbox.room_returned():
            return False
        for subscription in self._subscriptions.values():
            consumer = subscription.consumer
            if consumer is not None:
                self._broker.consumers.credit_changed(consumer)
        return True
