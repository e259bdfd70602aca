"""Subscribes consumers: checks them, reads their options, and attaches them to queues.

Source: AbstractRegion.addConsumer and TopicRegion of ActiveMQ Classic; AMQConsumer of Artemis for the mapping.
"""

from typing import Final

from delosmq.engine.api import NO_OPTIONS, ConsumerOptions, PrefetchCredit, Queue, SubscriptionOptions
from delosmq.model.errors import BrokerError, NotFoundError, PermissionDeniedError
from delosmq.model.ids import NOTHING_DURABLE
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.security.access import BROWSE, CONSUME, DELETE_DURABLE_QUEUE
from delosmq.selectors.errors import SelectorError
from delosmq.selectors.selector import Selector, parse_selector
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.names import durable_queue_name
from delosmq.sessions.no_local import without_own
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.consumers.consumers import NOTHING_SEEN, Consumers
from delosmq.sessions.openwire.server.consumers.prefetch import pending_limit_of, settle_prefetch
from delosmq.sessions.openwire.server.consumers.slow_consumers import WatchedCredit, limits_of
from delosmq.sessions.openwire.server.consumers.subscription import (
    MAX_PREFETCH,
    OpenWireSubscription,
    SharedCredit,
    Source,
    SubscriptionEvents,
)
from delosmq.sessions.openwire.server.consumers.wildcards import WildcardSubscription
from delosmq.sessions.openwire.server.destinations import (
    TEMPORARY_TOPICS,
    OpenWireDestinations,
    OpenWireTarget,
    has_owner,
)
from delosmq.sessions.openwire.server.ids import check_id
from delosmq.sessions.permissions import Permissions
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import ConsumerControl, ConsumerInfo, RemoveSubscriptionInfo
from delosmq.wire.openwire.dispatch import DispatchEncoder
from delosmq.wire.openwire.structures import ConsumerId, Destination
from delosmq.wire.openwire.wire_format import WireFormat

WILD_PLACES: Final = 50
"""Times as many queues as consumers may be read by wildcards: some 50 MB with the limit that acceptors have."""


class OpenWireSubscriber:
    """Makes the consumers of one connection, and gives them queues that come later.

    Attributes:
        mark: what `CONNECTION_MARK` must say in messages of this connection from now on; "" for nothing.
        manageable: the peer lets itself be told what to do.
    """

    def __init__(
        self,
        machine: SessionMachine,
        consumers: Consumers,
        *,
        events: SubscriptionEvents,
        form: WireFormat,
        permissions: Permissions,
        destinations: OpenWireDestinations,
        broker_id: str,
        client_id: str,
    ) -> None:
        self._host = machine.host
        self._peer = machine.peer
        self._services = machine.services
        self._broker = machine.services.broker
        self._outbox = machine.outbox
        self._limit: int = machine.acceptor.max_subscriptions
        self._hears_advisories: bool = machine.acceptor.support_advisory
        self._consumers = consumers
        self._events = events
        self._form = form
        self._permissions = permissions
        self._destinations = destinations
        self._broker_id = broker_id
        self._client_id = client_id
        # Queues that wildcards brought; at most, as those that are gone are not looked for before there are too many.
        self._wild_places: int = 0
        self._wild_full: bool = False
        self.mark: str = ""
        self.manageable: bool = False

    def add(self, info: ConsumerInfo) -> OpenWireSubscription | None:
        """Handles a ConsumerInfo. None when the consumer is there already: a failover replays it.

        Raises:
            BrokerError: it can't be had.
        """
        consumer_id = info.consumer_id
        destination = info.destination
        if consumer_id is None or destination is None:
            raise errors.field_missing("consumerId and destination", "a ConsumerInfo")
        key = consumer_id.key()
        if key in self._consumers.by_key:
            return None
        if len(self._consumers.by_key) >= self._limit:
            raise errors.too_many("consumers", self._limit)
        if info.prefetch_size < 0:
            raise errors.prefetch_wrong(info.prefetch_size)
        if info.client_id is not None:
            info.client_id = self._client_id  # others hear of it by advisories
        selector = _parse(info.selector)
        targets = _each_once(self._destinations.targets_of(destination))
        if self._consumers.places + len(targets) > self._limit:
            raise errors.too_many_destinations(self._consumers.places, len(targets), self._limit)
        durable = _is_durable(info, targets)
        if durable:
            self._check_durable(info.subscription_name or "", destination, targets)
        checked = durable or any(target.routing == ANYCAST or target.queue_name for target in targets)
        pulls_now = settle_prefetch(info, targets, self._broker, durable=durable)
        credit = self._credit(targets, info)
        subscription = OpenWireSubscription(info, credit, checked=checked)
        if isinstance(credit, WatchedCredit):
            credit.subscription = subscription
        subscription.connection = self._peer.name
        subscription.user = self._permissions.user
        shared = len(targets) > 1 or (targets[0].wildcard and targets[0].routing == ANYCAST)
        if shared:
            subscription.shares()
        subscription.places = len(targets)
        self._consumers.places += len(targets)
        try:
            if len(targets) > 1:
                self._check_all(targets, info)  # or a refusal would leave what was made for those before
            for target in targets:
                self._attach_all(subscription, target, selector, durable=durable)
        except BrokerError:
            self._consumers.close(subscription, NOTHING_SEEN)
            raise
        self._consumers.add(key, subscription)
        if isinstance(credit, WatchedCredit):
            self._consumers.slow.add(subscription, credit, self._services.clock.monotonic_ns())
        if pulls_now:
            self._tell_to_pull(consumer_id)
        return subscription

    def _check_durable(self, name: str, destination: Destination, targets: list[OpenWireTarget]) -> None:
        if len(targets) > 1:
            raise errors.durable_composite(name)
        if any(target.temporary for target in targets):
            raise errors.durable_temporary(destination.name)
        if not self._client_id:
            raise errors.client_id_missing(name)
        check_id("name of the subscription", name)

    def _tell_to_pull(self, consumer_id: ConsumerId) -> None:
        """The prefetch is 0, other than the peer asked for."""
        if self.manageable:
            control = ConsumerControl()
            control.consumer_id = consumer_id
            self._outbox.reply(NOTHING_DURABLE, encode_command(control, self._form))

    def _credit(self, targets: list[OpenWireTarget], info: ConsumerInfo) -> PrefetchCredit:
        limit = min(info.prefetch_size, MAX_PREFETCH)
        credit = PrefetchCredit(limit)
        settings = [self._broker.bindings.settings_of(target.address) for target in targets if not target.advisory]
        limits = None if info.browser else limits_of(settings)
        advised = any(one.advisory_for_slow_consumers for one in settings)
        if advised or limits is not None:
            credit = WatchedCredit(limit, self._events, limits, advised=advised)
        credit.extends = self._broker.bindings.settings_of(targets[0].address).use_prefetch_extension
        return credit

    def _attach_all(
        self, subscription: OpenWireSubscription, target: OpenWireTarget, selector: Selector | None, *, durable: bool
    ) -> None:
        """Each queue that a wildcard stands for is a target of its own; so are those to come."""
        if target.wildcard and target.routing == ANYCAST:
            self._attach_wildcard(
                WildcardSubscription(subscription, target, selector, self._destinations.pattern_of(target))
            )
        elif not target.advisory or self._hears_advisories:
            self._destinations.check_new(target)
            self._attach(subscription, target, selector, durable=durable)

    def _attach_wildcard(self, wildcard: WildcardSubscription) -> None:
        """The queues that there are, very many of them later; those that the user may not read are left out, unless
        nothing else is there."""
        subscription = wildcard.subscription
        read = 0
        for _, found in self._consumers.wildcards.add(wildcard):
            if self.attach_found(wildcard, found):
                read += 1
        if wildcard.waits:
            # What was attached till then must not seem to be all.
            subscription.unread_sources += 1
            subscription.waiting_wildcards += 1
        elif wildcard.refused is not None and not read:
            raise wildcard.refused
        else:
            self.report_left_out(wildcard)

    def attach_found(self, wildcard: WildcardSubscription, found: OpenWireTarget) -> bool:
        """One queue for which a wildcard stands; False when it is left out."""
        if self._wild_places >= self._limit * WILD_PLACES:
            self._wild_places = sum([len(one.sources) for one in self._consumers.shared.values()])
            if self._wild_places >= self._limit * WILD_PLACES:
                if not self._wild_full:
                    self._wild_full = True
                    self._host.report(errors.too_many_queues(self._peer.name, self._limit * WILD_PLACES))
                return False
        try:
            self._attach(wildcard.subscription, found, wildcard.selector, durable=False)
        except PermissionDeniedError as error:
            wildcard.refused = error
            wildcard.left_out += 1
            return False
        self._wild_places += 1
        return True

    def report_left_out(self, wildcard: WildcardSubscription) -> None:
        """For the log: queues that the user may not read."""
        refused = wildcard.refused
        if refused is not None:
            self._host.report(errors.queues_left_out(wildcard.target.destination.name, wildcard.left_out, refused))
            wildcard.left_out = 0
            wildcard.refused = None

    def _attach(
        self, subscription: OpenWireSubscription, target: OpenWireTarget, selector: Selector | None, *, durable: bool
    ) -> None:
        info = subscription.info
        options, wanted = self._read_options(info, target, selector, durable=durable)
        self._check(target, info, wanted)
        source = Source(subscription, target, self._outbox, encoder=self.encoder_of(subscription), events=self._events)
        source.consumer = self._broker.consumers.subscribe(
            target.address,
            source,
            subscription.credit if subscription.order is None else SharedCredit(source),
            queue_name=target.queue_name,
            routing=target.routing,
            options=options,
            subscription=wanted,
        )
        self._outbox.begin_gently()
        subscription.stream.owner_id = source.consumer.id
        subscription.sources.append(source)
        queue = source.consumer.queue
        if queue is not None:
            source.queue_name = queue.name
            subscription.queue_names.add(queue.name)
        subscription.unread_sources += 1

    def attach_again(self, subscription: OpenWireSubscription, destination: Destination) -> None:
        """A queue or topic that it had, and that may be another now.

        Raises:
            BrokerError: it can't be had.
        """
        target = self._destinations.target_of(destination)
        self._attach(subscription, target, _parse(subscription.info.selector), durable=False)

    def encoder_of(self, subscription: OpenWireSubscription) -> DispatchEncoder:
        consumer_id = subscription.info.consumer_id
        assert consumer_id is not None  # `add` looked
        return DispatchEncoder(self._form, consumer_id, self._services.conversions, self._broker_id)

    def _read_options(
        self, info: ConsumerInfo, target: OpenWireTarget, selector: Selector | None, *, durable: bool
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
            user=self._permissions.user,
            pending_limit=pending_limit_of(
                info, self._broker.bindings.settings_of(target.address), self._services.conversions
            ),
        )
        return options, wanted

    def _check(self, target: OpenWireTarget, info: ConsumerInfo, wanted: SubscriptionOptions) -> None:
        if target.temporary and not has_owner(target, self._broker):
            raise errors.temporary_gone(target.destination.name)
        self._check_permissions(target, info, wanted)
        name = wanted.name
        if name:
            queue = self._broker.queues.get(name)
            if queue is not None and queue.holders:
                raise errors.subscription_in_use(self._client_id, info.subscription_name or "")
            if queue is not None and not _is_subscription(queue):
                raise errors.subscription_name_taken(info.subscription_name or "", name)

    def _check_all(self, targets: list[OpenWireTarget], info: ConsumerInfo) -> None:
        for target in targets:
            spreads = target.wildcard and target.routing == ANYCAST
            if not spreads and not target.temporary and (not target.advisory or self._hears_advisories):
                self._check_permissions(target, info, NO_OPTIONS)

    def _check_permissions(self, target: OpenWireTarget, info: ConsumerInfo, wanted: SubscriptionOptions) -> None:
        # A queue that stays, or that others may read, needs the right to make it like any other.
        heard = target.advisory and not target.queue_name and not wanted.durable
        if target.temporary or (heard and target.address in TEMPORARY_TOPICS):
            return  # every client listens to these, and may not be able to do without
        permissions = self._permissions
        permissions.require_use(target.address, target.queue_name, _right(info))
        if heard:
            return
        permissions.require_creation(
            target.address, target.queue_name, target.routing, for_subscription=True, subscription=wanted
        )

    def change_prefetch(self, subscription: OpenWireSubscription, consumer_id: ConsumerId, prefetch: int) -> None:
        """As when a consumer comes: after a failover the client gives back the one that it had, perhaps its default."""
        info = subscription.info
        assert info.destination is not None  # `add` looked
        targets = self._destinations.targets_of(info.destination)
        durable = _is_durable(info, targets)
        info.prefetch_size = prefetch
        pulls_now = settle_prefetch(info, targets, self._broker, durable=durable)
        subscription.credit.resize(min(info.prefetch_size, MAX_PREFETCH))
        subscription.pulls = info.prefetch_size == 0
        subscription.pulling = subscription.pulling and subscription.pulls
        self._consumers.offer(subscription)
        if pulls_now:
            self._tell_to_pull(consumer_id)

    def unsubscribe(self, info: RemoveSubscriptionInfo) -> str:
        """Ends a durable subscription for good; gives the address that it was of.

        Raises:
            OpenWireError: there is none, or it has a consumer.
        """
        broker = self._broker
        name = info.subscription_name or ""
        queue = broker.queues.get(durable_queue_name(info.client_id or self._client_id, name))
        if queue is None or not _is_subscription(queue):
            raise errors.subscription_unknown(name)
        if queue.holders:
            raise errors.subscription_active(name)
        address = queue.address.name
        self._permissions.require(address, DELETE_DURABLE_QUEUE)
        try:
            broker.resources.unsubscribe(queue.name, self._permissions.user)
        except NotFoundError as error:
            raise errors.subscription_unknown(name) from error
        return address


def _each_once(targets: list[OpenWireTarget]) -> list[OpenWireTarget]:
    """A destination that is named twice is read once, as by Classic."""
    if len(targets) == 1:
        return targets
    return list({(target.destination.code, target.address, target.queue_name): target for target in targets}.values())


def _is_durable(info: ConsumerInfo, targets: list[OpenWireTarget]) -> bool:
    return info.subscription_name is not None and all(target.routing == MULTICAST for target in targets)


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
        raise errors.selector_wrong(str(error)) from error


def _filter(selector: Selector | None, mark: str) -> str:
    try:
        return without_own(selector, mark)
    except SelectorError as error:
        raise errors.selector_wrong(str(error)) from error
