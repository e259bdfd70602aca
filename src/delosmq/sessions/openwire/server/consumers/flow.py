"""The flow of consumers: their pulls and prefetch, queues that come and go, and those that are too slow.

Acknowledgements: acknowledgements.py. Source: AbstractRegion, PrefetchSubscription and
TopicRegion of ActiveMQ Classic.
"""

from delosmq.model.errors import BrokerError, InvariantError, StorageError
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs
from delosmq.sessions.host import NO_TIMER
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.consumers.consumers import ALL_SEEN, NOTHING_SEEN, Consumers
from delosmq.sessions.openwire.server.consumers.pending_events import PendingEvents
from delosmq.sessions.openwire.server.consumers.reattachment import LostQueue
from delosmq.sessions.openwire.server.consumers.slow_consumers import SlowConsumerEnds
from delosmq.sessions.openwire.server.consumers.subscriber import OpenWireSubscriber
from delosmq.sessions.openwire.server.consumers.subscription import OpenWireSubscription
from delosmq.sessions.openwire.server.consumers.wildcards import WildcardSubscription, reads
from delosmq.sessions.openwire.server.destinations import OpenWireTarget
from delosmq.sessions.stream import NO_SEQUENCE
from delosmq.sessions.ttl import NS_PER_MS
from delosmq.wire.openwire.commands import ConsumerControl, MessagePull


class ConsumerFlow:
    """Keeps the consumers of one connection going."""

    def __init__(
        self,
        machine: SessionMachine,
        consumers: Consumers,
        *,
        events: PendingEvents,
        subscriber: OpenWireSubscriber,
    ) -> None:
        self._host = machine.host
        self._broker = machine.services.broker
        self._outbox = machine.outbox
        self._consumers = consumers
        self._pending_events = events
        self._subscriber = subscriber
        self._wildcards = consumers.wildcards
        self._reattachment = consumers.reattachment
        self._slow = consumers.slow
        # With a pull that is given up one day, perhaps answered meanwhile.
        self._timed: dict[OpenWireSubscription, None] = {}

    # -- what the peer asks for --------------------------------------------------------------------------------------

    def control(self, control: ConsumerControl) -> list[OpenWireSubscription]:
        """Handles a ConsumerControl: another prefetch, or an end. Gives what ended."""
        consumer_id = control.consumer_id
        subscription = None if consumer_id is None else self._consumers.by_key.get(consumer_id.key())
        if subscription is None or consumer_id is None:
            return []
        if control.close:
            return self._consumers.remove(consumer_id, NOTHING_SEEN)
        if control.flush or control.start or control.stop:
            return []
        if control.prefetch < 0:
            raise errors.prefetch_wrong(control.prefetch)
        self._subscriber.change_prefetch(subscription, consumer_id, control.prefetch)
        return []

    def pull(self, pull: MessagePull, now: MonotonicNs) -> None:
        """Handles a MessagePull: one message, now or until its time is over.

        Raises:
            OpenWireError: there is no such consumer.
        """
        consumer_id = pull.consumer_id
        subscription = None if consumer_id is None else self._consumers.by_key.get(consumer_id.key())
        if subscription is None:
            raise errors.pull_unknown("" if consumer_id is None else consumer_id.key())
        if not subscription.pulls:
            return
        subscription.pulling = True
        subscription.pull_until = MonotonicNs(now + pull.timeout * NS_PER_MS) if pull.timeout > 0 else NO_TIMER
        if subscription.pull_until != NO_TIMER:
            self._timed[subscription] = None
        subscription.pull_now = pull.timeout < 0
        if not subscription.sources:
            # A wildcard without queues yet: the first one that comes may answer.
            subscription.credit.pulled(1)
            self._pending_events.pull_unanswered(subscription)
        for source in subscription.sources:
            if source.consumer is not None:
                self._broker.consumers.pull(source.consumer, 1)

    # -- turns ---------------------------------------------------------------------------------------------------------

    def next_timer(self) -> MonotonicNs:
        """When the next pull is given up, or it is looked for slow consumers."""
        due = self._slow.next_at
        if not self._timed:
            return due
        self._timed = {subscription: None for subscription in self._timed if subscription.pulling}
        for subscription in self._timed:
            until = subscription.pull_until
            if until != NO_TIMER and (due == NO_TIMER or until < due):
                due = until
        return due

    def go_on(self, now: MonotonicNs) -> None:
        """Answers pulls that found no message, drops deleted queues, and attaches new ones."""
        unanswered = self._pending_events.take_unanswered()
        for subscription in self._timed:
            if subscription.pulling and subscription.pull_until != NO_TIMER and now >= subscription.pull_until:
                unanswered.append(subscription)
        for subscription in unanswered:
            if not subscription.pulling or subscription.stream.closed:
                continue
            if not subscription.waiting_wildcards:
                self._answer_pull(subscription)
            elif subscription not in self._pending_events.unanswered:
                self._pending_events.unanswered.append(subscription)  # a queue to come may have one
        for subscription in self._pending_events.take_lost():
            subscription.drop_lost()
            self._consumers.offer(subscription)
        for loss in self._reattachment.take():
            self._attach_again(loss, now)
        for wildcard, target in self._wildcards.take():
            self._attach_new(wildcard, target)
        finished = self._wildcards.finished
        if finished:
            self._wildcards.finished = []
            for wildcard in finished:
                self._wildcard_finished(wildcard)

    def _attach_again(self, loss: LostQueue, now: MonotonicNs) -> None:
        """Attaches a consumer to its queue again, or makes the deleted subscription of a topic again."""
        subscription = loss.subscription
        target = loss.target
        queue = self._broker.queues.get(loss.queue)
        if loss.queue and queue is None:
            self._reattachment.add(loss)
            return
        if reads(subscription, queue):
            return
        info = subscription.info
        name = subscription.display_name()
        if info.subscription_name is not None and not loss.queue:
            self._slow.end(subscription, errors.subscription_deleted(name, "an operator ended it for good"), now)
            return
        if target.advisory:
            self._slow.end(subscription, errors.subscription_deleted(name, "make another consumer"), now)
            return
        try:
            self._subscriber.attach_again(subscription, target.destination)
        except (InvariantError, StorageError):
            raise
        except BrokerError as error:
            self._slow.end(subscription, errors.subscription_deleted(name, str(error)), now)
            return
        if not loss.queue:
            self._host.report(errors.subscription_renewed(name))

    def _attach_new(self, wildcard: WildcardSubscription, target: OpenWireTarget) -> None:
        """Attaches a consumer to a queue that its wildcard matches."""
        if reads(wildcard.subscription, self._broker.queues.get(target.queue_name)):
            return
        subscriber = self._subscriber
        try:
            attached = subscriber.attach_found(wildcard, target)
            if not attached and not wildcard.waits and wildcard not in self._wildcards.finished:
                subscriber.report_left_out(wildcard)
        except (InvariantError, StorageError):
            raise
        except BrokerError as error:
            # It goes on with what it has; the peer asked for none of them in particular.
            self._host.report(error)

    def _wildcard_finished(self, wildcard: WildcardSubscription) -> None:
        """A wildcard has all the queues that were there when its consumer came."""
        if wildcard.ended:
            return
        self._subscriber.report_left_out(wildcard)
        subscription = wildcard.subscription
        subscription.waiting_wildcards -= 1
        subscription.unread_sources -= 1
        if subscription.info.browser and subscription.unread_sources <= 0 and subscription.sources:
            subscription.sources[0].nothing_to_give()

    def take_slow_ends(self, now: MonotonicNs) -> SlowConsumerEnds | None:
        """The slow consumers and connections to end; removes consumers that the peer should have closed itself."""
        ends = self._slow.look(now)
        if ends is None:
            return None
        for report in ends.reports:
            self._host.report(report)
        for subscription in ends.overdue:
            if subscription.info.consumer_id is not None:
                self._consumers.remove(subscription.info.consumer_id, ALL_SEEN)
        return ends

    def _answer_pull(self, subscription: OpenWireSubscription) -> None:
        subscription.pulling = False
        subscription.pull_until = NO_TIMER
        for source in subscription.sources:
            if source.consumer is not None:
                self._broker.consumers.pull(source.consumer, 0)
        if subscription.sources:
            subscription.sources[0].nothing_to_give()
            return
        subscription.credit.pulled(0)
        encoder = self._subscriber.encoder_of(subscription)
        self._outbox.put(subscription.stream, NOTHING_DURABLE, encoder.encode_end(), NO_SEQUENCE)
