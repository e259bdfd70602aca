"""Queues consumer events until the next turn; the engine is not re-entrant."""

from delosmq.model.errors import BrokerError
from delosmq.model.message import MULTICAST
from delosmq.model.ports import Clock
from delosmq.sessions.host import SessionHost
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.consumers.consumers import Consumers
from delosmq.sessions.openwire.server.consumers.reattachment import LostQueue
from delosmq.sessions.openwire.server.consumers.slow_consumers import WatchedCredit, slow_destinations, still_full
from delosmq.sessions.openwire.server.consumers.subscription import OpenWireSubscription, Source, SubscriptionEvents
from delosmq.wire.openwire.commands import ConsumerInfo
from delosmq.wire.openwire.structures import Destination


class PendingEvents(SubscriptionEvents):
    """The events of the consumers of one connection since the last turn.

    Attributes:
        unanswered: with a pull for which there was nothing.
    """

    def __init__(self, host: SessionHost, clock: Clock, consumers: Consumers) -> None:
        self._host = host
        self._clock: Clock = clock
        self._wildcards = consumers.wildcards
        self._reattachment = consumers.reattachment
        self._lost: dict[OpenWireSubscription, None] = {}
        self._full: list[OpenWireSubscription] = []
        self.unanswered: list[OpenWireSubscription] = []

    def pull_unanswered(self, subscription: OpenWireSubscription) -> None:
        if subscription.pulling and subscription.pull_now:
            self.unanswered.append(subscription)
            self._host.wake_soon()

    def source_lost(self, subscription: OpenWireSubscription, source: Source, reason: BrokerError) -> None:
        source.consumer = None
        subscription.queue_names.discard(source.queue_name)
        subscription.refused_sources.pop(source, None)
        self._lost[subscription] = None
        self._host.wake_soon()
        target = source.target
        if subscription.info.browser:
            if not source.browsed:
                source.browse_ended()
        elif target.temporary:
            pass  # its owner has deleted it, for good
        elif target.routing == MULTICAST and not target.queue_name:
            self._reattachment.add(LostQueue(subscription, target, ""))
        elif not self._wildcards.stands_for(subscription, source.queue_name):
            self._reattachment.add(LostQueue(subscription, target, source.queue_name))
            self._host.report(errors.queue_lost(subscription.display_name(), source.queue_name))

    def consumer_full(self, subscription: OpenWireSubscription) -> None:
        credit = subscription.credit
        if isinstance(credit, WatchedCredit):
            credit.full_since = self._clock.monotonic_ns()
            if not credit.advised:
                return
        if subscription not in self._full:
            self._full.append(subscription)
            self._host.wake_soon()

    def take_unanswered(self) -> list[OpenWireSubscription]:
        """Takes the consumers with a pull that finds nothing."""
        unanswered = self.unanswered
        self.unanswered = []
        return unanswered

    def take_lost(self) -> dict[OpenWireSubscription, None]:
        """Takes the consumers that have lost a queue."""
        lost = self._lost
        self._lost = {}
        return lost

    def take_slow(self) -> list[tuple[ConsumerInfo, Destination]]:
        """Consumers that were found slow, and where."""
        if not self._full:
            return []
        full = self._full
        self._full = []
        slow: list[tuple[ConsumerInfo, Destination]] = []
        for subscription in full:
            if not still_full(subscription):
                continue
            found = slow_destinations(subscription)
            slow += [(subscription.info, destination) for destination in found]
            if not found:
                self._full.append(subscription)  # more may come to wait for it
        return slow
