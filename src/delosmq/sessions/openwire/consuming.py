"""The receiving half of a session: consumers, their prefetch, and how they end.

Source: AbstractRegion, PrefetchSubscription, TopicRegion of ActiveMQ Classic; AMQConsumer of Artemis for the mapping.
"""

from typing import Final

from delosmq.engine.consumer import ConsumerOptions
from delosmq.engine.credit import PrefetchCredit
from delosmq.engine.queue import Queue
from delosmq.engine.subscriptions import SubscriptionOptions
from delosmq.engine.taking import Taking
from delosmq.engine.transactions import Transaction
from delosmq.model.errors import BrokerError, InvariantError, NotFoundError, PermissionDeniedError, StorageError
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.security.access import BROWSE, CONSUME, DELETE_DURABLE_QUEUE
from delosmq.selectors.errors import SelectorError
from delosmq.selectors.selector import Selector, parse_selector
from delosmq.sessions.durable_names import durable_queue_name
from delosmq.sessions.no_local import without_own
from delosmq.sessions.openwire import failures
from delosmq.sessions.openwire.acknowledging import Acknowledging, unseen_of
from delosmq.sessions.openwire.advisory_topics import TEMPORARY
from delosmq.sessions.openwire.destinations import Destinations, Target, is_somebodys
from delosmq.sessions.openwire.ids import check_id
from delosmq.sessions.openwire.prefetch import pending_limit_of, settle_prefetch
from delosmq.sessions.openwire.returning import Loss, Returning
from delosmq.sessions.openwire.slow_consumers import (
    SlowConsumers,
    SlowEnds,
    WatchedCredit,
    limits_of,
    slow_destinations,
    still_full,
)
from delosmq.sessions.openwire.spreading import QueueWatchers, Spread, Spreading, reads
from delosmq.sessions.openwire.subscription import MAX_PREFETCH, SharedCredit, Source, Subscription, SubscriptionEvents
from delosmq.sessions.outbox import NO_SEQUENCE, Outbox
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.protocol import NO_TIMER, Peer, SessionHost, SessionServices
from delosmq.sessions.ttl import NS_PER_MS
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    ConsumerControl,
    ConsumerId,
    ConsumerInfo,
    Destination,
    MessageAck,
    MessagePull,
    RemoveSubscriptionInfo,
)
from delosmq.wire.openwire.dispatch import DispatchEncoder
from delosmq.wire.openwire.form import WireForm

NOTHING_SEEN: Final = -1
"""``lastDeliveredSequenceId`` of a consumer that saw no message."""
ALL_SEEN: Final = -2
"""Of a connection that was lost: what was in flight may have been seen."""
_LOOKED_AT: Final = 100
"""Messages of one subscription, once a transaction has ended."""
WILD_PLACES: Final = 50
"""Times as many queues as consumers may be read by wildcards: some 50 MB with the limit that acceptors have."""


class Consuming(SubscriptionEvents):
    """All subscriptions of one connection.

    Attributes:
        mark: what `CONNECTION_MARK` must say in messages of this connection from now on; "" for nothing.
        manageable: the peer lets itself be told what to do.
    """

    def __init__(
        self,
        host: SessionHost,
        peer: Peer,
        services: SessionServices,
        *,
        outbox: Outbox,
        form: WireForm,
        permissions: Permissions,
        destinations: Destinations,
        broker_id: str,
        client_id: str,
        limit: int,
        watchers: QueueWatchers,
        hears_advisories: bool = True,
    ) -> None:
        self._host = host
        self._peer = peer
        self._services = services
        self._broker = services.broker
        self._outbox = outbox
        self._form = form
        self._permissions = permissions
        self._destinations = destinations
        self._broker_id = broker_id
        self._client_id = client_id
        self._limit = limit
        self._acknowledging: Acknowledging = Acknowledging(services.broker, host)
        self._subscriptions: dict[str, Subscription] = {}
        self._unanswered: list[Subscription] = []
        # With a pull that is given up one day, perhaps answered meanwhile.
        self._timed: dict[Subscription, None] = {}
        self._lost: dict[Subscription, None] = {}
        self._full: list[Subscription] = []
        self._slow: SlowConsumers = SlowConsumers(peer.name)
        self._shared: dict[str, Subscription] = {}
        self._spreading: Spreading = Spreading(services.broker, host, watchers)
        self._returning: Returning = Returning(host, watchers)
        # Of `limit`: each destination of each consumer.
        self._places: int = 0
        # Queues that wildcards brought; at most, as those that are gone are not looked for before there are too many.
        self._wild_places: int = 0
        self._wild_full: bool = False
        self._hears_advisories = hears_advisories
        self.mark: str = ""
        self.manageable: bool = False

    # -- adding ------------------------------------------------------------------------------------------------------

    def add(self, info: ConsumerInfo) -> Subscription | None:
        """Handles a ConsumerInfo. None when the consumer is there already: a failover replays it.

        Raises:
            BrokerError: it can't be had.
        """
        consumer_id = info.consumer_id
        destination = info.destination
        if consumer_id is None or destination is None:
            raise failures.field_missing("consumerId and destination", "a ConsumerInfo")
        key = consumer_id.key()
        if key in self._subscriptions:
            return None
        if len(self._subscriptions) >= self._limit:
            raise failures.too_many("consumers", self._limit)
        if info.prefetch_size < 0:
            raise failures.prefetch_wrong(info.prefetch_size)
        selector = _parse(info.selector)
        targets = _each_once(self._destinations.targets_of(destination))
        if self._places + len(targets) > self._limit:
            raise failures.too_many_destinations(self._places, len(targets), self._limit)
        durable = info.subscription_name is not None and all(target.routing == MULTICAST for target in targets)
        if durable and len(targets) > 1:
            raise failures.durable_composite(info.subscription_name or "")
        if durable and any(target.temporary for target in targets):
            raise failures.durable_temporary(destination.name)
        if durable and not self._client_id:
            raise failures.client_id_missing(info.subscription_name or "")
        if durable:
            check_id("name of the subscription", info.subscription_name or "")
        checked = durable or any(target.routing == ANYCAST or target.queue_name for target in targets)
        pulls_now = settle_prefetch(info, targets, self._broker, durable=durable)
        credit = self._credit(targets, info)
        subscription = Subscription(info, credit, checked=checked)
        if isinstance(credit, WatchedCredit):
            credit.subscription = subscription
        subscription.connection = self._peer.name
        subscription.user = self._permissions.user
        shared = len(targets) > 1 or (targets[0].wildcard and targets[0].routing == ANYCAST)
        if shared:
            subscription.shares()
        subscription.places = len(targets)
        self._places += len(targets)
        try:
            for target in targets:
                self._attach_all(subscription, target, selector, durable=durable)
        except BrokerError:
            self._close(subscription, NOTHING_SEEN)
            raise
        self._subscriptions[key] = subscription
        if isinstance(credit, WatchedCredit):
            self._slow.add(subscription, credit, self._services.clock.monotonic_ns())
        if shared:
            self._shared[key] = subscription
        if pulls_now and self.manageable:
            self._outbox.reply(NOTHING_DURABLE, encode_command(_no_prefetch(consumer_id), self._form))
        return subscription

    def _credit(self, targets: list[Target], info: ConsumerInfo) -> PrefetchCredit:
        limit = min(info.prefetch_size, MAX_PREFETCH)
        credit = PrefetchCredit(limit)
        settings = [self._broker.settings_of(target.address) for target in targets if not target.advisory]
        limits = None if info.browser else limits_of(settings)
        advised = any(one.advisory_for_slow_consumers for one in settings)
        if advised or limits is not None:
            credit = WatchedCredit(limit, self, limits, advised=advised)
        credit.extends = self._broker.settings_of(targets[0].address).use_prefetch_extension
        return credit

    def _attach_all(
        self, subscription: Subscription, target: Target, selector: Selector | None, *, durable: bool
    ) -> None:
        """Each queue that a wildcard stands for is a target of its own; so are those to come."""
        if target.wildcard and target.routing == ANYCAST:
            self._attach_spread(Spread(subscription, target, selector, self._destinations.pattern_of(target)))
        elif not target.advisory or self._hears_advisories:
            self._destinations.check_new(target)
            self._attach(subscription, target, selector, durable=durable)

    def _attach_spread(self, spread: Spread) -> None:
        """The queues that there are, very many of them later; those that the user may not read are left out, unless
        nothing else is there."""
        subscription = spread.subscription
        read = 0
        for _, found in self._spreading.add(spread):
            if self._attach_found(spread, found):
                read += 1
        if spread.waits:
            # What was attached till then must not seem to be all.
            subscription.browsing += 1
            subscription.spreading += 1
        elif spread.refused is not None and not read:
            raise spread.refused
        else:
            self._report_left_out(spread)

    def _attach_found(self, spread: Spread, found: Target) -> bool:
        """One queue for which a wildcard stands; False when it is left out."""
        if self._wild_places >= self._limit * WILD_PLACES:
            self._wild_places = sum([len(one.sources) for one in self._shared.values()])
            if self._wild_places >= self._limit * WILD_PLACES:
                if not self._wild_full:
                    self._wild_full = True
                    self._host.report(failures.too_many_queues(self._peer.name, self._limit * WILD_PLACES))
                return False
        try:
            self._attach(spread.subscription, found, spread.selector, durable=False)
        except PermissionDeniedError as error:
            spread.refused = error
            spread.left_out += 1
            return False
        self._wild_places += 1
        return True

    def _report_left_out(self, spread: Spread) -> None:
        refused = spread.refused
        if refused is not None:
            self._host.report(failures.queues_left_out(spread.wildcard.destination.name, spread.left_out, refused))
            spread.left_out = 0
            spread.refused = None

    def _attach(self, subscription: Subscription, target: Target, selector: Selector | None, *, durable: bool) -> None:
        info = subscription.info
        options, wanted = self._wishes(info, target, selector, durable=durable)
        self._check(target, info, wanted)
        consumer_id = info.consumer_id
        assert consumer_id is not None  # `add` looked
        encoder = DispatchEncoder(self._form, consumer_id, self._services.conversions, self._broker_id)
        source = Source(
            subscription,
            target,
            self._outbox,
            encoder=encoder,
            events=self,
        )
        source.consumer = self._broker.subscribe(
            target.address,
            source,
            subscription.credit if subscription.order is None else SharedCredit(source),
            queue_name=target.queue_name,
            routing=target.routing,
            options=options,
            subscription=wanted,
        )
        subscription.stream.owner_id = source.consumer.id
        subscription.sources.append(source)
        queue = source.consumer.queue
        if queue is not None:
            source.queue_name = queue.name
            subscription.queue_names.add(queue.name)
        subscription.browsing += 1

    def _wishes(
        self, info: ConsumerInfo, target: Target, selector: Selector | None, *, durable: bool
    ) -> tuple[ConsumerOptions, SubscriptionOptions]:
        # A filter keeps out of a queue of one's own what would stay there for ever; from a queue of all one only picks.
        filters = target.routing == MULTICAST and not target.queue_name
        connection_id = self._peer.connection_id
        mark = ""
        if info.no_local and filters and not target.advisory:
            mark = self._client_id or connection_id
            self.mark = mark
        options = ConsumerOptions(
            priority=info.priority,
            exclusive=info.exclusive and not filters,
            selector=None if filters else selector,
            no_local=connection_id if info.no_local and not filters else "",
            browser=info.browser,
            client_counts=True,
        )
        wanted = SubscriptionOptions(
            name=durable_queue_name(self._client_id, info.subscription_name or "") if durable else "",
            durable=durable,
            filter=_filter(selector, mark) if filters else "",
            retroactive=info.retroactive,
            connection_id=connection_id,
            pending_limit=pending_limit_of(info, self._broker.settings_of(target.address), self._services.conversions),
        )
        return options, wanted

    def _check(self, target: Target, info: ConsumerInfo, wanted: SubscriptionOptions) -> None:
        broker = self._broker
        if target.temporary and not is_somebodys(target, broker):
            raise failures.temporary_gone(target.destination.name)
        name = wanted.name
        if name:
            queue = broker.queues.get(name)
            if queue is not None and queue.consumers:
                raise failures.subscription_in_use(self._client_id, info.subscription_name or "")
            if queue is not None and not _is_subscription(queue):
                raise failures.subscription_name_taken(info.subscription_name or "", name)
        # A queue that stays, or that others may read, needs the right to make it like any other.
        heard = target.advisory and not target.queue_name and not wanted.durable
        if target.temporary or (heard and target.address in TEMPORARY):
            return  # every client listens to these, and may not be able to do without
        permissions = self._permissions
        permissions.require(broker.address_of(target.address, target.queue_name), _right(info))
        if heard:
            return
        permissions.require_creation(
            target.address, target.queue_name, target.routing, for_subscription=True, subscription=wanted
        )

    # -- living ------------------------------------------------------------------------------------------------------

    def acknowledge(self, ack: MessageAck, transaction: Transaction | None) -> Taking | None:
        """Handles a MessageAck; one for a consumer that is gone is not meant for anybody. Very many messages go on in
        slices: gives what does."""
        consumer_id = ack.consumer_id
        if consumer_id is None:
            raise failures.field_missing("consumerId", "a MessageAck")
        subscription = self._subscriptions.get(consumer_id.key())
        return None if subscription is None else self._acknowledging.handle(subscription, ack, transaction)

    def control(self, control: ConsumerControl) -> list[Subscription]:
        """Handles a ConsumerControl: another prefetch, or an end. Gives what ended."""
        consumer_id = control.consumer_id
        subscription = None if consumer_id is None else self._subscriptions.get(consumer_id.key())
        if subscription is None or consumer_id is None:
            return []
        if control.close:
            return self.remove(consumer_id, NOTHING_SEEN)
        if control.flush or control.start or control.stop:
            return []
        if control.prefetch < 0:
            raise failures.prefetch_wrong(control.prefetch)
        self._change_prefetch(subscription, consumer_id, control.prefetch)
        return []

    def _change_prefetch(self, subscription: Subscription, consumer_id: ConsumerId, prefetch: int) -> None:
        """As when a consumer comes: after a failover the client gives back the one that it had, perhaps its default."""
        info = subscription.info
        assert info.destination is not None  # `add` looked
        targets = self._destinations.targets_of(info.destination)
        durable = info.subscription_name is not None and all(target.routing == MULTICAST for target in targets)
        info.prefetch_size = prefetch
        pulls_now = settle_prefetch(info, targets, self._broker, durable=durable)
        subscription.credit.resize(min(info.prefetch_size, MAX_PREFETCH))
        subscription.pulls = info.prefetch_size == 0
        subscription.pulling = subscription.pulling and subscription.pulls
        self._offer(subscription)
        if pulls_now and self.manageable:
            self._outbox.reply(NOTHING_DURABLE, encode_command(_no_prefetch(consumer_id), self._form))

    def pull(self, pull: MessagePull, now: MonotonicNs) -> None:
        """Handles a MessagePull: one message, now or until its time is over.

        Raises:
            Refusal: there is no such consumer.
        """
        consumer_id = pull.consumer_id
        subscription = None if consumer_id is None else self._subscriptions.get(consumer_id.key())
        if subscription is None:
            raise failures.pull_unknown("" if consumer_id is None else consumer_id.key())
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
            self.pull_unanswered(subscription)
        for source in subscription.sources:
            if source.consumer is not None:
                self._broker.pull(source.consumer, 1)

    def _offer(self, subscription: Subscription) -> None:
        for source in subscription.sources:
            if source.consumer is not None:
                self._broker.credit_changed(source.consumer)

    def pull_unanswered(self, subscription: Subscription) -> None:
        if subscription.pulling and subscription.pull_now:
            self._unanswered.append(subscription)
            self._host.wake_soon()

    def source_lost(self, subscription: Subscription, source: Source, reason: BrokerError) -> None:
        source.consumer = None
        subscription.queue_names.discard(source.queue_name)
        subscription.turned_away.pop(source, None)
        self._lost[subscription] = None
        self._host.wake_soon()
        target = source.target
        if subscription.info.browser:
            if not source.browsed:
                source.browse_ended()
        elif target.temporary:
            pass  # its owner has deleted it, for good
        elif target.routing == MULTICAST and not target.queue_name:
            self._returning.lose(Loss(subscription, target, ""))
        elif not self._spreading.stands_for(subscription, source.queue_name):
            self._returning.lose(Loss(subscription, target, source.queue_name))
            self._host.report(failures.queue_lost(_name_of(subscription), source.queue_name))

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
        """Answers pulls for which there was nothing; forgets queues that are gone, and takes those that are there."""
        self._acknowledging.begin_turn()
        unanswered = self._unanswered
        self._unanswered = []
        for subscription in self._timed:
            if subscription.pulling and subscription.pull_until != NO_TIMER and now >= subscription.pull_until:
                unanswered.append(subscription)
        for subscription in unanswered:
            if not subscription.pulling or subscription.stream.closed:
                continue
            if not subscription.spreading:
                self._answer_pull(subscription)
            elif subscription not in self._unanswered:
                self._unanswered.append(subscription)  # a queue to come may have one
        lost = self._lost
        self._lost = {}
        for subscription in lost:
            subscription.drop_lost()
            self._offer(subscription)
        for loss in self._returning.take():
            self._attach_again(loss, now)
        for spread, target in self._spreading.take():
            self._attach_new(spread, target)
        through = self._spreading.through
        if through:
            self._spreading.through = []
            for spread in through:
                self._spread_through(spread)

    def _attach_again(self, loss: Loss, now: MonotonicNs) -> None:
        """A queue is there again, or the subscription of a topic was deleted and nobody else makes it again."""
        subscription = loss.subscription
        target = loss.target
        queue = self._broker.queues.get(loss.queue)
        if loss.queue and queue is None:
            self._returning.lose(loss)
            return
        if reads(subscription, queue):
            return
        info = subscription.info
        name = _name_of(subscription)
        if info.subscription_name is not None and not loss.queue:
            self._slow.end(subscription, failures.subscription_deleted(name, "an operator ended it for good"), now)
            return
        if target.advisory:
            self._slow.end(subscription, failures.subscription_deleted(name, "make another consumer"), now)
            return
        try:
            found = self._destinations.target_of(target.destination)
            self._attach(subscription, found, _parse(info.selector), durable=False)
        except (InvariantError, StorageError):
            raise
        except BrokerError as error:
            self._slow.end(subscription, failures.subscription_deleted(name, str(error)), now)
            return
        if not loss.queue:
            self._host.report(failures.subscription_renewed(name))

    def _attach_new(self, spread: Spread, target: Target) -> None:
        """A queue was made for which a wildcard stands, or there were too many when it came."""
        if reads(spread.subscription, self._broker.queues.get(target.queue_name)):
            return
        try:
            if not self._attach_found(spread, target) and not spread.waits and spread not in self._spreading.through:
                self._report_left_out(spread)
        except (InvariantError, StorageError):
            raise
        except BrokerError as error:
            # It goes on with what it has; the peer asked for none of them in particular.
            self._host.report(error)

    def _spread_through(self, spread: Spread) -> None:
        """It has all the queues that were there when it came."""
        if spread.ended:
            return
        self._report_left_out(spread)
        subscription = spread.subscription
        subscription.spreading -= 1
        subscription.browsing -= 1
        if subscription.info.browser and subscription.browsing <= 0 and subscription.sources:
            subscription.sources[0].nothing_to_give()

    def share_room(self) -> None:
        """Credit may have come back to one queue of a consumer that others may use: a transaction has ended."""
        for subscription in self._shared.values():
            subscription.look_again(_LOOKED_AT)
            if subscription.turned_away:
                self._acknowledging.offer_turned_away(subscription)

    def consumer_full(self, subscription: Subscription) -> None:
        credit = subscription.credit
        if isinstance(credit, WatchedCredit):
            credit.full_since = self._services.clock.monotonic_ns()
            if not credit.advised:
                return
        if subscription not in self._full:
            self._full.append(subscription)
            self._host.wake_soon()

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

    def take_slow_ends(self, now: MonotonicNs) -> SlowEnds | None:
        """What has to end for being slow; consumers that their peer was told to close, and did not, are gone."""
        ends = self._slow.look(now)
        if ends is None:
            return None
        for report in ends.reports:
            self._host.report(report)
        for subscription in ends.overdue:
            if subscription.info.consumer_id is not None:
                self.remove(subscription.info.consumer_id, ALL_SEEN)
        return ends

    def _answer_pull(self, subscription: Subscription) -> None:
        subscription.pulling = False
        subscription.pull_until = NO_TIMER
        for source in subscription.sources:
            if source.consumer is not None:
                self._broker.pull(source.consumer, 0)
        if subscription.sources:
            subscription.sources[0].nothing_to_give()
            return
        subscription.credit.pulled(0)
        consumer_id = subscription.info.consumer_id
        assert consumer_id is not None  # `add` looked
        encoder = DispatchEncoder(self._form, consumer_id, self._services.conversions, self._broker_id)
        self._outbox.put(subscription.stream, NOTHING_DURABLE, encoder.encode_end(), NO_SEQUENCE)

    # -- ending ------------------------------------------------------------------------------------------------------

    def remove(self, consumer_id: ConsumerId, last_delivered: int) -> list[Subscription]:
        """Handles the RemoveInfo of a consumer; gives what there was."""
        subscription = self._subscriptions.pop(consumer_id.key(), None)
        if subscription is None:
            return []
        self._close(subscription, last_delivered)
        self.return_room()
        return [subscription]

    def remove_session(self, connection_id: str, session_id: int, last_delivered: int) -> list[Subscription]:
        """Ends the consumers of a session; gives them."""
        found = [
            key
            for key, subscription in self._subscriptions.items()
            if subscription.info.consumer_id is not None
            and subscription.info.consumer_id.session_id == session_id
            and subscription.info.consumer_id.connection_id == connection_id
        ]
        ended: list[Subscription] = []
        for key in found:
            subscription = self._subscriptions.pop(key)
            ended.append(subscription)
            self._close(subscription, last_delivered)
        self.return_room()
        return ended

    def close_all(self, last_delivered: int) -> list[Subscription]:
        """Gives back what all of them hold; gives those that there were."""
        subscriptions = list(self._subscriptions.values())
        self._subscriptions.clear()
        self._outbox.close_streams([subscription.stream for subscription in subscriptions])
        for subscription in subscriptions:
            # A full disk must not keep a peer from leaving, nor one consumer's trouble the others from closing.
            try:
                self._close(subscription, last_delivered)
            except StorageError as error:
                self._host.report(failures.not_given_back(self._peer.name, error))
        return subscriptions

    def _close(self, subscription: Subscription, last_delivered: int) -> None:
        self._places -= subscription.places
        subscription.places = 0
        self._spreading.remove(subscription)
        self._returning.remove(subscription)
        self._slow.remove(subscription)
        credit = subscription.credit
        if isinstance(credit, WatchedCredit):
            credit.subscription = None
        if self._shared and subscription.info.consumer_id is not None:
            self._shared.pop(subscription.info.consumer_id.key(), None)
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
                unseen = unseen_of(source, last_delivered) | never_sent
            self._broker.close_consumer(consumer, unseen)

    def unsubscribe(self, info: RemoveSubscriptionInfo) -> str:
        """Ends a durable subscription for good; gives the address that it was of.

        Raises:
            Refusal: there is none, or somebody reads it.
        """
        broker = self._broker
        name = info.subscription_name or ""
        queue = broker.queues.get(durable_queue_name(info.client_id or self._client_id, name))
        if queue is None or not _is_subscription(queue):
            raise failures.subscription_unknown(name)
        if queue.consumers:
            raise failures.subscription_active(name)
        address = queue.address.name
        self._permissions.require(address, DELETE_DURABLE_QUEUE)
        try:
            broker.unsubscribe(queue.name)
        except NotFoundError as error:
            raise failures.subscription_unknown(name) from error
        return address

    def return_room(self) -> bool:
        """Tells the engine that the outbox takes more again. True when it was told."""
        if not self._outbox.room_returned():
            return False
        for subscription in self._subscriptions.values():
            self._offer(subscription)
        return True


def _each_once(targets: list[Target]) -> list[Target]:
    """A destination that is named twice is read once, as by Classic."""
    if len(targets) == 1:
        return targets
    return list({(target.destination.code, target.address, target.queue_name): target for target in targets}.values())


def _no_prefetch(consumer_id: ConsumerId) -> ConsumerControl:
    control = ConsumerControl()
    control.consumer_id = consumer_id
    return control


def _name_of(subscription: Subscription) -> str:
    """For people."""
    info = subscription.info
    key = "" if info.consumer_id is None else info.consumer_id.key()
    return f"{key} of '{'' if info.destination is None else info.destination.name}'"


def _is_subscription(queue: Queue) -> bool:
    settings = queue.settings
    return settings.routing_type == MULTICAST and settings.durable and not settings.auto_created


def _right(info: ConsumerInfo) -> str:
    return BROWSE if info.browser else CONSUME


def _parse(text: str | None) -> Selector | None:
    if text is None or not text.strip():
        return None
    try:
        return parse_selector(text)
    except SelectorError as error:
        raise failures.selector_wrong(str(error)) from error


def _filter(selector: Selector | None, mark: str) -> str:
    try:
        return without_own(selector, mark)
    except SelectorError as error:
        raise failures.selector_wrong(str(error)) from error
