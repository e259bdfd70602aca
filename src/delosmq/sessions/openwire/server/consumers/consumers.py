"""The consumers of one connection, and how they end.

Source: AbstractRegion.removeConsumer and PrefetchSubscription.remove of ActiveMQ Classic.
"""

from typing import Final

from delosmq.model.errors import StorageError
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.consumers.reattachment import Reattachment
from delosmq.sessions.openwire.server.consumers.slow_consumers import SlowConsumers, WatchedCredit
from delosmq.sessions.openwire.server.consumers.subscription import OpenWireSubscription, Source
from delosmq.sessions.openwire.server.consumers.wildcards import QueueWatchers, WildcardSubscriptions
from delosmq.wire.openwire.structures import ConsumerId

NOTHING_SEEN: Final = -1
"""``lastDeliveredSequenceId`` of a consumer that saw no message."""
ALL_SEEN: Final = -2
"""Of a connection that was lost: what was in flight may have been seen."""
_NONE: Final = 0


class Consumers:
    """All of them, each made by `OpenWireSubscriber` and kept going by `ConsumerFlow`.

    Attributes:
        by_key: by the key of their id.
        shared: those with sources that share one credit.
        places: how many destinations they have, each of a composite one counted.
        wildcards: of subscriptions; reattachment: of subscriptions that lost their queue; slow: may be too slow.
    """

    def __init__(self, machine: SessionMachine, watchers: QueueWatchers) -> None:
        self._host = machine.host
        self._peer_name: str = machine.peer.name
        self._broker = machine.services.broker
        self._outbox = machine.outbox
        self.by_key: dict[str, OpenWireSubscription] = {}
        self.shared: dict[str, OpenWireSubscription] = {}
        self.places: int = 0
        self.wildcards: WildcardSubscriptions = WildcardSubscriptions(self._broker, self._host, watchers)
        self.reattachment: Reattachment = Reattachment(self._host, watchers)
        self.slow: SlowConsumers = SlowConsumers(self._peer_name)

    def add(self, key: str, subscription: OpenWireSubscription) -> None:
        """One more, with all its queues; the caller has it watched where it may be slow."""
        self.by_key[key] = subscription
        if subscription.order is not None:
            self.shared[key] = subscription

    def offer(self, subscription: OpenWireSubscription) -> None:
        """Tells the engine that it may take more."""
        for source in subscription.sources:
            if source.consumer is not None:
                self._broker.consumers.credit_changed(source.consumer)

    def return_room(self) -> bool:
        """Tells the engine that the outbox takes more again. True when it was told."""
        if not self._outbox.room_returned():
            return False
        for subscription in self.by_key.values():
            self.offer(subscription)
        return True

    def remove(self, consumer_id: ConsumerId, last_delivered: int) -> list[OpenWireSubscription]:
        """Handles the RemoveInfo of a consumer; gives what there was."""
        subscription = self.by_key.pop(consumer_id.key(), None)
        if subscription is None:
            return []
        self.close(subscription, last_delivered)
        self.return_room()
        return [subscription]

    def remove_session(self, connection_id: str, session_id: int, last_delivered: int) -> list[OpenWireSubscription]:
        """Ends the consumers of a session; gives them."""
        found = [
            key
            for key, subscription in self.by_key.items()
            if subscription.info.consumer_id is not None
            and subscription.info.consumer_id.session_id == session_id
            and subscription.info.consumer_id.connection_id == connection_id
        ]
        ended: list[OpenWireSubscription] = []
        for key in found:
            subscription = self.by_key.pop(key)
            ended.append(subscription)
            self.close(subscription, last_delivered)
        self.return_room()
        return ended

    def close_all(self, last_delivered: int) -> list[OpenWireSubscription]:
        """Gives back what all of them hold; gives those that there were."""
        subscriptions = list(self.by_key.values())
        self.by_key.clear()
        self._outbox.close_streams([subscription.stream for subscription in subscriptions])
        for subscription in subscriptions:
            # A full disk must not keep a peer from leaving, nor one consumer's trouble the others from closing.
            try:
                self.close(subscription, last_delivered)
            except StorageError as error:
                self._host.report(errors.not_given_back(self._peer_name, error))
        return subscriptions

    def close(self, subscription: OpenWireSubscription, last_delivered: int) -> None:
        """Ends one that is no longer among them, or never was."""
        self.places -= subscription.places
        subscription.places = 0
        self.wildcards.remove(subscription)
        self.reattachment.remove(subscription)
        self.slow.remove(subscription)
        credit = subscription.credit
        if isinstance(credit, WatchedCredit):
            credit.subscription = None
        if self.shared and subscription.info.consumer_id is not None:
            self.shared.pop(subscription.info.consumer_id.key(), None)
        if not subscription.stream.closed:
            self._outbox.close_stream(subscription.stream)
        never_sent = subscription.stream.unseen
        subscription.pulling = False
        for source in subscription.sources:
            consumer = source.consumer
            if consumer is None:
                continue
            source.consumer = None
            if last_delivered == ALL_SEEN:
                unseen = never_sent
            else:
                source.consumer = consumer
                unseen = _unseen_of(source, last_delivered) | never_sent
            self._broker.consumers.close(consumer, unseen)


def _unseen_of(source: Source, last_delivered: int) -> set[int]:
    """The sequences that the application of a closing consumer has not seen. Of a queue: those dispatched behind the
    last it saw, or all when that is not in delivery any more. Of a durable subscription: larger ones, and 0 is none."""
    consumer = source.consumer
    if consumer is None or consumer.loans is not None:
        return set()
    unseen: set[int] = set()
    slot = consumer.in_delivery.tail
    if source.subscription.info.subscription_name is not None:
        while slot is not None:
            if slot.sequence > last_delivered != 0:
                unseen.add(int(slot.sequence))
            slot = slot.previous
        return unseen
    if consumer.slot_of(last_delivered) is None:
        last_delivered = _NONE
    while slot is not None and slot.sequence != last_delivered:
        unseen.add(int(slot.sequence))
        slot = slot.previous
    return unseen
