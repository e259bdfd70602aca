"""All consumers of a session: how they come and go, what they may be sent, and what they acknowledge.

Source: ServerSessionImpl and ServerConsumerImpl of Artemis.
"""

from typing import Final

from delosmq.engine.api import BulkAck, ConsumerOptions, Queue, SubscriptionOptions
from delosmq.model.errors import BrokerError, StorageError
from delosmq.security.access import BROWSE, CONSUME
from delosmq.selectors.selector import parse_selector
from delosmq.sessions.core.server import errors
from delosmq.sessions.core.server.consumers.consumer import CoreConsumer
from delosmq.sessions.core.server.destinations import CoreDestinations
from delosmq.sessions.core.server.session_port import SessionPort
from delosmq.sessions.core.server.transactions.local_transactions import CoreTransaction
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.stream import Stream
from delosmq.wire.core.dispatch import ReceiveEncoder
from delosmq.wire.core.session_packets import (
    Acknowledge,
    ConsumerFlowCredit,
    CreateConsumer,
    ForceConsumerDelivery,
    IndividualAcknowledge,
    MessageExpired,
)

_MOST_PRIORITY: Final = 127


class CoreConsumers:
    """Of one session.

    Attributes:
        by_id: as their client calls them.
    """

    def __init__(
        self,
        machine: SessionMachine,
        session: SessionPort,
        *,
        permissions: Permissions,
        destinations: CoreDestinations,
        by_engine_id: dict[int, CoreConsumer],
        broker_id: bytes,
        part_bytes: int,
        settles_itself: bool,
    ) -> None:
        """
        Args:
            by_engine_id: those of all sessions of the connection.
            broker_id: 16 bytes; see `ReceiveEncoder`.
            part_bytes: of large messages, as the client wants them.
            settles_itself: what is sent is acknowledged by that.
        """
        self._conversions = machine.services.conversions
        self._session = session
        self._broker = machine.services.broker
        self._permissions = permissions
        self._destinations = destinations
        self._by_engine_id = by_engine_id
        self._broker_id = broker_id
        self._part_bytes = part_bytes
        self._settles_itself = settles_itself
        self._limit: int = machine.acceptor.max_subscriptions
        self.by_id: dict[int, CoreConsumer] = {}

    # -- connections -----------------------------------------------------------------------------------------------

    def streams(self) -> list[Stream]:
        """Of all of them."""
        return [consumer.stream for consumer in self.by_id.values()]

    def move(self, by_engine_id: dict[int, CoreConsumer]) -> None:
        """The session has another connection.

        Args:
            by_engine_id: those of all its sessions.
        """
        for consumer in self.by_id.values():
            subscribed = consumer.consumer
            if subscribed is not None:
                self._by_engine_id.pop(subscribed.id, None)
                by_engine_id[subscribed.id] = consumer
        self._by_engine_id = by_engine_id

    # -- life ------------------------------------------------------------------------------------------------------

    def create(self, packet: CreateConsumer) -> Queue:
        """Handles a CREATECONSUMER; gives the queue that it reads.

        Raises:
            BrokerError: it can't be had.
        """
        if packet.id in self.by_id:
            raise errors.consumer_taken(packet.id)
        if len(self._by_engine_id) >= self._limit:
            raise errors.too_many("consumers of the connection", self._limit)
        queue = self._queue(packet.queue_name)
        if queue.owner != self._session.peer.connection_id:
            self._permissions.require_use(queue.address.name, queue.name, BROWSE if packet.browse_only else CONSUME)
        selector = parse_selector(packet.filter_string) if packet.filter_string else None
        consumer = CoreConsumer(
            packet.id,
            self._session,
            self._broker,
            encoder=ReceiveEncoder(
                self._session.replies.channel,
                packet.id,
                self._conversions,
                self._broker_id,
                routing=queue.settings.routing_type,
            ),
            part_bytes=self._part_bytes,
            is_browser=packet.browse_only,
            settles_itself=self._settles_itself and not packet.browse_only,
        )
        subscribed = self._broker.consumers.subscribe(
            queue.address.name,
            consumer,
            consumer.credit,
            queue_name=queue.name,
            routing=queue.settings.routing_type,
            options=ConsumerOptions(
                priority=min(max(packet.priority, -_MOST_PRIORITY), _MOST_PRIORITY),
                selector=selector,
                browser=packet.browse_only,
            ),
            subscription=SubscriptionOptions(
                connection_id=self._session.peer.connection_id, user=self._permissions.user
            ),
        )
        consumer.attach(subscribed)
        self._session.replies.begin_gently()
        self.by_id[packet.id] = consumer
        self._by_engine_id[subscribed.id] = consumer
        return queue

    def _queue(self, name: str) -> Queue:
        target = self._destinations.decode(name)
        queue = self._broker.queues.get(target.queue_name or target.address)
        if queue is None or queue.internal or (target.queue_name and queue.address.name != target.address):
            raise errors.no_such_queue(name)
        return queue

    def close(self, consumer_id: int) -> None:
        """A client closes a consumer: what it holds goes back as if it had never been delivered."""
        consumer = self.by_id.pop(consumer_id, None)
        if consumer is not None:
            self._close(consumer, looked_at=False)

    def _close(self, consumer: CoreConsumer, *, looked_at: bool) -> None:
        subscribed = consumer.consumer
        if subscribed is None:
            return
        consumer.drop_large()
        self._by_engine_id.pop(subscribed.id, None)
        if not consumer.stream.closed:
            self._session.replies.close_streams([consumer.stream])
        unseen = consumer.stream.unseen if looked_at else set(subscribed.all_held())
        self._broker.consumers.close(subscribed, unseen)
        consumer.consumer = None  # ends the cycle of both

    def close_all(self, *, looked_at: bool) -> list[BrokerError]:
        """Ends all; gives what could not be recorded.

        Args:
            looked_at: the client is gone, and may have looked at what reached it: that counts as delivered.
        """
        troubles: list[BrokerError] = []
        consumers = list(self.by_id.values())
        self.by_id.clear()
        self._session.replies.close_streams([consumer.stream for consumer in consumers])
        for consumer in consumers:
            # A full disk must not keep a client from leaving, nor one consumer's trouble the others from closing.
            try:
                consumer.settle_written()
            except StorageError as error:
                troubles.append(error)
            try:
                self._close(consumer, looked_at=looked_at)
            except StorageError as error:
                troubles.append(error)
        return troubles

    # -- what may be sent ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Messages may come."""
        for consumer in self.by_id.values():
            self._look_again(consumer)

    def flow(self, packet: ConsumerFlowCredit) -> None:
        """Handles a FLOWTOKEN; one for no consumer means nothing."""
        consumer = self.by_id.get(packet.consumer_id)
        if consumer is not None:
            consumer.credit.give(packet.credits)
            self._look_again(consumer)

    def _look_again(self, consumer: CoreConsumer) -> None:
        consumer.go_on_large()
        if consumer.consumer is not None:
            self._broker.consumers.credit_changed(consumer.consumer)

    def force_delivery(self, packet: ForceConsumerDelivery) -> None:
        """Handles a FORCE_CONSUMER_DELIVERY: the marker follows what the queue delivers by the credit there is."""
        consumer = self.by_id.get(packet.consumer_id)
        if consumer is None:
            return
        subscribed = consumer.consumer
        if subscribed is None or subscribed.closed or not consumer.is_served() or not subscribed.has_room():
            consumer.mark(packet.sequence)
            return
        consumer.markers.append(packet.sequence)
        if len(consumer.markers) > self._limit:
            del consumer.markers[0]
        if not consumer.credit.asked:
            consumer.credit.asked = True
            self._broker.consumers.pull(subscribed, 1)

    def room_returned(self) -> None:
        """The outbox takes more again."""
        for consumer in self.by_id.values():
            self._look_again(consumer)

    # -- what is acknowledged --------------------------------------------------------------------------------------

    def acknowledge(self, packet: Acknowledge, work: CoreTransaction | None) -> BulkAck | None:
        """Handles an ACKNOWLEDGE, of all up to a message or of one alone. Very many go on in slices: gives what does.

        Raises:
            CoreError: that message is not in delivery; what is, goes back.
        """
        consumer = self.by_id.get(packet.consumer_id)
        subscribed = None if consumer is None else consumer.consumer
        if consumer is None or subscribed is None or subscribed.closed:
            raise errors.not_delivered(packet.message_id, packet.consumer_id)
        if consumer.is_browser or consumer.settles_itself:
            return None
        transaction = None if work is None else work.transaction
        if isinstance(packet, IndividualAcknowledge):
            done = self._broker.consumers.acknowledge(subscribed, packet.message_id, transaction)
        else:
            done = self._broker.consumers.acknowledge_through(subscribed, packet.message_id, transaction)
        if not done:
            if not isinstance(packet, IndividualAcknowledge):
                self._give_back(consumer, counted=True)
            raise errors.not_delivered(packet.message_id, packet.consumer_id)
        return subscribed.under_way

    def expire(self, packet: MessageExpired) -> None:
        """Handles an EXPIRED: the client has found that a message is too old."""
        consumer = self.by_id.get(packet.consumer_id)
        if consumer is not None and consumer.consumer is not None and not consumer.is_browser:
            self._broker.consumers.expire_delivered(consumer.consumer, packet.message_id)

    def give_back_all(self, *, first_counts: bool) -> None:
        """What is in delivery and not acknowledged goes back, as if it had never been delivered; but for the first of
        each consumer, if that was looked at."""
        for consumer in self.by_id.values():
            subscribed = consumer.consumer
            if subscribed is None or consumer.is_browser:
                continue
            if first_counts:
                first = subscribed.in_delivery.head
                while first is not None and first.transaction != 0:
                    first = first.next
                if first is not None:
                    self._broker.consumers.reject(subscribed, first.sequence)
            self._give_back(consumer, counted=False)

    def _give_back(self, consumer: CoreConsumer, *, counted: bool) -> None:
        consumer.drop_large()
        subscribed = consumer.consumer
        last = None if subscribed is None else subscribed.in_delivery.tail
        if subscribed is not None and last is not None:
            self._broker.consumers.reject_through(subscribed, last.sequence, count_delivery=counted)
