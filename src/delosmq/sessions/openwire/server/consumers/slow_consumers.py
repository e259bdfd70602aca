"""Slow consumers: full while messages wait for them. Only looked at where the destination asks for it.

Source: PrefetchSubscription and TopicSubscription of ActiveMQ Classic: a subscription of a topic is slow once as much
waits as it may have in delivery. AbortSlowConsumerStrategy and AbortSlowAckConsumerStrategy for how they end.
"""

from typing import Final

from delosmq.engine.api import PrefetchCredit
from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs
from delosmq.model.message import MULTICAST
from delosmq.model.settings import AddressSettings
from delosmq.sessions.host import NO_TIMER
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.consumers.subscription import OpenWireSubscription, Source, SubscriptionEvents
from delosmq.sessions.ttl import NS_PER_MS
from delosmq.wire.openwire.commands import ConsumerControl
from delosmq.wire.openwire.structures import Destination

_NS_PER_S: Final = 1_000 * NS_PER_MS
_TO_CLOSE_NS: Final = _NS_PER_S
"""What a peer has to close a consumer itself that it was told to close. Source: AbortSlowConsumerStrategy."""


class SlowConsumerLimits:
    """What a destination says of slow consumers; -1 where it says nothing."""

    def __init__(self, settings: AddressSettings) -> None:
        self.max_slow_ms: int = settings.slow_consumer_max_duration
        self.max_count: int = settings.slow_consumer_max_count
        self.max_silent_ms: int = settings.slow_consumer_max_time_since_last_ack
        self.ignore_idle: bool = settings.slow_consumer_ignore_idle
        self.abort_connection: bool = settings.slow_consumer_abort_connection
        self.period_ns: int = settings.slow_consumer_check_period * _NS_PER_S


def limits_of(settings: list[AddressSettings]) -> SlowConsumerLimits | None:
    """The limits of the first destination that has some."""
    for one in settings:
        if (
            one.slow_consumer_max_duration > 0
            or one.slow_consumer_max_count > 0
            or one.slow_consumer_max_time_since_last_ack > 0
        ):
            return SlowConsumerLimits(one)
    return None


class WatchedCredit(PrefetchCredit):
    """Tells when it is spent while something waits, and counts.

    Attributes:
        limits: when its consumer is closed for being slow; None for never.
        advised: others are told that it is slow.
        slow: that was told, and there was no room since.
        full_since: when it was told; the listener fills it.
        times_full: how often it was told.
        answers: messages that were acknowledged or came back.
    """

    def __init__(
        self, limit: int, events: SubscriptionEvents, limits: SlowConsumerLimits | None = None, *, advised: bool = True
    ) -> None:
        super().__init__(limit)
        self._events = events
        self.limits = limits
        self.advised = advised
        self.subscription: OpenWireSubscription | None = None
        self.slow: bool = False
        self.full_since: MonotonicNs = NO_TIMER
        self.times_full: int = 0
        self.answers: int = 0

    def settled(self, size_bytes: int) -> None:
        self.answers += 1
        super().settled(size_bytes)

    def promised(self, size_bytes: int) -> None:
        self.answers += 1
        super().promised(size_bytes)

    def has_room(self) -> bool:
        # Asked when there is a message to give.
        if super().has_room():
            self.slow = False
            return True
        subscription = self.subscription
        if not self.slow and self._limit > 0 and subscription is not None:
            self.slow = True
            self.times_full += 1
            self._events.consumer_full(subscription)
        return False


def slow_destinations(subscription: OpenWireSubscription) -> list[Destination]:
    """The destinations where this full consumer is slow, for the advisory."""
    found: list[Destination] = []
    for source in subscription.sources:
        queue = None if source.consumer is None else source.consumer.queue
        if queue is None or not queue.address.settings.advisory_for_slow_consumers:
            continue
        if _is_awaited(subscription, source):
            found.append(source.target.destination)
    return found


def _is_awaited(subscription: OpenWireSubscription, source: Source) -> bool:
    """Whether so much waits that a consumer which is full is slow."""
    queue = None if source.consumer is None else source.consumer.queue
    if queue is None:
        return False
    waiting = queue.pending.count
    if queue.settings.routing_type == MULTICAST and queue.temporary:
        waiting -= subscription.info.prefetch_size
    return waiting > 0


def still_full(subscription: OpenWireSubscription) -> bool:
    """Whether a consumer that was full has had no room since."""
    credit = subscription.credit
    return isinstance(credit, WatchedCredit) and credit.slow and not subscription.stream.closed


class SlowConsumerWatch:
    """One consumer that is closed should it be slow.

    Attributes:
        due: when it is looked at next.
    """

    def __init__(
        self, subscription: OpenWireSubscription, credit: WatchedCredit, limits: SlowConsumerLimits, now: MonotonicNs
    ) -> None:
        self.subscription = subscription
        self.limits = limits
        self.due: MonotonicNs = MonotonicNs(now + limits.period_ns)
        self._credit = credit
        self._counted_from: int = 0
        self._answers: int = 0
        self._heard_at: MonotonicNs = now

    def look(self, now: MonotonicNs) -> str:
        """The limit that a consumer has passed, in words; "" for none."""
        self.due = MonotonicNs(now + self.limits.period_ns)
        return self._full(now) or self._silent(now)

    def _full(self, now: MonotonicNs) -> str:
        credit, limits = self._credit, self.limits
        subscription = self.subscription
        if not credit.slow or not any(_is_awaited(subscription, source) for source in subscription.sources):
            self._counted_from = credit.times_full
            return ""
        if limits.max_slow_ms > 0 and now - credit.full_since >= limits.max_slow_ms * NS_PER_MS:
            return f"had no room for {limits.max_slow_ms} ms while messages waited (slow-consumer-max-duration)"
        if 0 < limits.max_count <= credit.times_full - self._counted_from:
            return f"had no room {limits.max_count} times while messages waited (slow-consumer-max-count)"
        return ""

    def _silent(self, now: MonotonicNs) -> str:
        credit, limits = self._credit, self.limits
        if credit.answers != self._answers or (limits.ignore_idle and credit.dispatched == 0):
            self._answers = credit.answers
            self._heard_at = now
        elif limits.max_silent_ms > 0 and now - self._heard_at >= limits.max_silent_ms * NS_PER_MS:
            return f"acknowledged nothing for {limits.max_silent_ms} ms (slow-consumer-max-time-since-last-ack)"
        return ""


class SlowConsumerEnds:
    """The consumers and connections that end as slow.

    Attributes:
        reports: which consumers are slow, and why.
        controls: told to the peer, which closes them itself.
        overdue: those that it did not close.
        failure: why the connection is closed; None when it goes on.
    """

    def __init__(self) -> None:
        self.reports: list[BrokerError] = []
        self.controls: list[ConsumerControl] = []
        self.overdue: list[OpenWireSubscription] = []
        self.failure: BrokerError | None = None


class SlowConsumers:
    """The consumers of one connection that may be closed for being slow. Costs nothing while there are none."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._watches: dict[OpenWireSubscription, SlowConsumerWatch] = {}
        self._ended: dict[OpenWireSubscription, BrokerError] = {}
        self._closing: dict[OpenWireSubscription, MonotonicNs] = {}
        self.next_at: MonotonicNs = NO_TIMER

    def add(self, subscription: OpenWireSubscription, credit: WatchedCredit, now: MonotonicNs) -> None:
        """Watches a consumer, if its destination asks for it."""
        limits = credit.limits
        if limits is not None:
            watch = SlowConsumerWatch(subscription, credit, limits, now)
            self._watches[subscription] = watch
            self._next(watch.due)

    def remove(self, subscription: OpenWireSubscription) -> None:
        self._watches.pop(subscription, None)
        self._ended.pop(subscription, None)
        self._closing.pop(subscription, None)

    def end(self, subscription: OpenWireSubscription, reason: BrokerError, now: MonotonicNs) -> None:
        """A consumer has to end with the next look, whatever the reason."""
        self._watches.pop(subscription, None)
        self._ended[subscription] = reason
        self._next(now)

    def look(self, now: MonotonicNs) -> SlowConsumerEnds | None:
        """The consumers and connections to end now; None before the next check."""
        if self.next_at == NO_TIMER or now < self.next_at:
            return None
        ends = SlowConsumerEnds()
        self.next_at = NO_TIMER
        for watch in list(self._watches.values()):
            if now >= watch.due:
                why = watch.look(now)
                if why:
                    self._end(watch, why, now, ends)
                    continue
            self._next(watch.due)
        ended = self._ended
        self._ended = {}
        for subscription, reason in ended.items():
            self._close(subscription, reason, now, ends)
        for subscription, until in list(self._closing.items()):
            if now >= until:
                del self._closing[subscription]
                ends.overdue.append(subscription)
            else:
                self._next(until)
        return ends

    def _end(self, watch: SlowConsumerWatch, why: str, now: MonotonicNs, ends: SlowConsumerEnds) -> None:
        subscription = watch.subscription
        consumer_id = subscription.info.consumer_id
        destination = subscription.info.destination
        if consumer_id is None or destination is None:
            return
        del self._watches[subscription]
        if watch.limits.abort_connection:
            ends.failure = errors.connection_slow(self._peer, consumer_id.key(), destination.name, why)
            return
        self._close(subscription, errors.consumer_slow(consumer_id.key(), destination.name, why), now, ends)

    def _close(
        self, subscription: OpenWireSubscription, reason: BrokerError, now: MonotonicNs, ends: SlowConsumerEnds
    ) -> None:
        ends.reports.append(reason)
        control = ConsumerControl()
        control.consumer_id = subscription.info.consumer_id
        control.close = True
        ends.controls.append(control)
        self._closing[subscription] = MonotonicNs(now + _TO_CLOSE_NS)

    def _next(self, due: MonotonicNs) -> None:
        if self.next_at == NO_TIMER or due < self.next_at:
            self.next_at = due
