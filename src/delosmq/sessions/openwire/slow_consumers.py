"""Which consumers are slow: full while messages wait for them. Only they are looked at whose destination asks for it.

Source: PrefetchSubscription and TopicSubscription of ActiveMQ Classic: a subscription of a topic is slow once as much
waits as it may have in delivery.
"""

from delosmq.engine.credit import PrefetchCredit
from delosmq.model.message import MULTICAST
from delosmq.sessions.openwire.subscription import Subscription, SubscriptionEvents
from delosmq.wire.openwire.commands import Destination


class WatchedCredit(PrefetchCredit):
    """Tells when it is spent while something waits.

    Attributes:
        slow: that was told, and there was no room since.
    """

    def __init__(self, limit: int, events: SubscriptionEvents) -> None:
        super().__init__(limit)
        self._events = events
        self.subscription: Subscription | None = None
        self.slow: bool = False

    def has_room(self) -> bool:
        # Asked when there is a message to give.
        if super().has_room():
            self.slow = False
            return True
        subscription = self.subscription
        if not self.slow and self._limit > 0 and subscription is not None:
            self.slow = True
            self._events.consumer_full(subscription)
        return False


def slow_destinations(subscription: Subscription) -> list[Destination]:
    """Those of which is to be told that this consumer, which is full, is slow there."""
    found: list[Destination] = []
    for source in subscription.sources:
        queue = None if source.consumer is None else source.consumer.queue
        if queue is None or not queue.address.settings.advisory_for_slow_consumers:
            continue
        waiting = queue.pending.count
        if queue.settings.routing_type == MULTICAST and queue.temporary:
            waiting -= subscription.info.prefetch_size
        if waiting > 0:
            found.append(source.target.destination)
    return found


def still_full(subscription: Subscription) -> bool:
    """Whether a consumer that was full has had no room since."""
    credit = subscription.credit
    return isinstance(credit, WatchedCredit) and credit.slow and not subscription.stream.closed
