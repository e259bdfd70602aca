"""One consumer of a peer, and the queues it reads: most have one, composite destinations and wildcards several."""

from collections import deque
from typing import Final

from delosmq.engine.api import MOST_LENT, Consumer, Credit, PrefetchCredit, Slot
from delosmq.model.errors import BrokerError
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs
from delosmq.model.message import MULTICAST
from delosmq.sessions.host import NO_TIMER
from delosmq.sessions.openwire.server.destinations import OpenWireTarget
from delosmq.sessions.outbox import Outbox
from delosmq.sessions.stream import NO_SEQUENCE, DeliveryPort, FrameParts, Stream
from delosmq.wire.openwire.commands import ConsumerInfo
from delosmq.wire.openwire.dispatch import DispatchEncoder, Route
from delosmq.wire.openwire.structures import TOPIC, Destination

_LOOKS_A_MESSAGE: Final = 2
"""At messages that a transaction acknowledged, for each that is dispatched or acknowledged."""
_NAMES_AT_MOST: Final = 65_534
"""Ids kept of one subscription; then it begins anew."""
_ORDERED: Final = 2 * MOST_LENT
"""Of several sources; with more, those that are answered are looked for."""
_BYTES_A_LOOK: Final = 16_384
"""Of a message that has to be converted, which take as long as the rest of it."""
MAX_PREFETCH: Final = 32_767
"""More is never in delivery unanswered; the largest prefetch of the Java client."""


class OpenWireSubscription:
    """What a ConsumerInfo asked for.

    Attributes:
        checked: acknowledgements must name what was dispatched (queues and durable topics).
        dispatched: something was dispatched; till then acknowledgements are not meant for it.
        pulls: the prefetch is 0; from others a pull means nothing.
        pull_until: when an outstanding pull is given up; `NO_TIMER` for never.
        pulling: a pull waits for a message; pull_now: only for one that is there.
        connection, user: of the consumer. Diagnostics only.
        order: sequences in the order of their dispatch, with their sources, answered ones perhaps included; None with a
            single source: its consumer keeps that order.
        queue_names: what it reads.
        tracked: it wants to know of each dispatch.
        refused_sources: sources that found the credit spent, which they share with others.
        unread_sources: sources that have not shown all they have; a wildcard that waits for its queues counts as one.
        places: how many of those that its connection may have.
        waiting_wildcards: wildcards that wait for their queues.
    """

    def __init__(self, info: ConsumerInfo, credit: PrefetchCredit, *, checked: bool) -> None:
        self.info = info
        self.credit = credit
        self.checked = checked
        self.stream: Stream = Stream()
        self.sources: list[Source] = []
        self.dispatched: bool = False
        self.pulls: bool = info.prefetch_size == 0
        self.pulling: bool = False
        self.pull_now: bool = False
        self.pull_until: MonotonicNs = NO_TIMER
        self.connection: str = ""
        self.user: str = ""
        self.order: dict[int, Source] | None = None
        self.queue_names: set[str] = set()
        self.refused_sources: dict[Source, None] = {}
        self.unread_sources: int = 0
        self.places: int = 0
        self.waiting_wildcards: int = 0
        self.tracked: bool = False
        # Ids of messages in delivery, and messages without a known id yet; both only for peers that want them.
        self._names: dict[str, int] | None = None
        self._unnamed: deque[tuple[Source, int]] = deque()
        self._served: int = 0
        self._order_limit: int = _ORDERED
        # Acknowledged while in delivery, by transactions: their end is not seen here.
        self._promised: deque[int] = deque()

    def display_name(self) -> str:
        """A name for the log and for diagnostics."""
        info = self.info
        key = "" if info.consumer_id is None else info.consumer_id.key()
        return f"{key} of '{'' if info.destination is None else info.destination.name}'"

    def shares(self) -> None:
        """Several sources will share its credit."""
        self.order = {}
        self.tracked = True

    def source_of(self, sequence: int) -> "Source | None":
        """The source that dispatched the message, while that is not answered."""
        order = self.order
        if order is not None:
            known = order.get(sequence)
            consumer = None if known is None else known.consumer
            return known if consumer is not None and consumer.holds(sequence) else None
        for source in self.sources:
            consumer = source.consumer
            if consumer is not None and consumer.holds(sequence):
                return source
        return None

    def holder_of(self, sequence: int) -> Consumer | None:
        """The consumer that has that message, unless a transaction acknowledges it."""
        source = self.source_of(sequence)
        consumer = None if source is None else source.consumer
        if consumer is None or (consumer.loans is None and consumer.held(sequence) is None):
            return None
        return consumer

    def dispatching(self, source: "Source", sequence: int) -> None:
        """A message is on its way, perhaps once more."""
        if self._names is not None:
            self._unnamed.append((source, sequence))
            if len(self._unnamed) > _NAMES_AT_MOST:
                self._drop_names()
        order = self.order
        if order is None:
            return
        self._served += 1
        source.served_at = self._served
        order.pop(sequence, None)
        order[sequence] = source
        if len(order) > self._order_limit:
            self._drop_answered(order)
        if self._promised:
            self.look_again(_LOOKS_A_MESSAGE)

    def _drop_answered(self, order: "dict[int, Source]") -> None:
        """Browsers are done with messages that they never answered, when these are very many."""
        answered = [
            sequence
            for sequence, source in order.items()
            if source.consumer is None or not source.consumer.holds(sequence)
        ]
        for sequence in answered:
            del order[sequence]
        self._order_limit = max(_ORDERED, 2 * len(order))

    def answered(self, sequence: int) -> None:
        """A message was acknowledged, perhaps in a transaction."""
        order = self.order
        if order is None:
            return
        if self.source_of(sequence) is None:
            order.pop(sequence, None)
        else:
            self._promised.append(sequence)
            self.look_again(_LOOKS_A_MESSAGE)

    def look_again(self, count: int) -> None:
        """Forgets what transactions have taken meanwhile. With two looks for each message as many are kept needlessly
        as are with open transactions, at most."""
        order = self.order
        promised = self._promised
        if order is None:
            return
        for _ in range(min(count, len(promised))):
            sequence = promised.popleft()
            source = order.get(sequence)
            consumer = None if source is None else source.consumer
            slot = None if consumer is None else consumer.slot_of(sequence)
            if slot is not None:
                if slot.transaction != 0:
                    promised.append(sequence)
            elif consumer is None or not consumer.holds(sequence):
                order.pop(sequence, None)

    def drop_lost(self) -> None:
        """Some of its queues are gone, and what was in delivery from there."""
        self.sources = [source for source in self.sources if source.consumer is not None]
        order = self.order
        if order is not None:
            self.order = {sequence: source for sequence, source in order.items() if source.consumer is not None}

    def sequence_of(self, key: str, room: int) -> tuple[int, int]:
        """The sequence of a message in delivery by its id, for peers that don't give it back; 0 when it is not among
        those known, and as many more as there is ``room`` for. Each is read once. Also gives the room that is left."""
        names = self._names
        if names is None:
            names = self._begin_names()
        found = names.get(key, 0)
        if found and self.source_of(found) is not None:
            return found, room
        for _ in range(len(self._unnamed)):
            if room <= 0:
                break
            room -= 1
            source, sequence = self._unnamed.popleft()
            consumer = source.consumer
            slot = None if consumer is None else consumer.slot_of(sequence)
            if slot is None:
                continue
            room -= slot.message.encoded_size_bytes // _BYTES_A_LOOK
            name = source.key_of(slot)
            known = names.get(name, 0)
            if known not in (0, sequence) and self.source_of(known) is not None:
                self._unnamed.append((source, sequence))  # a copy, for when the other is answered
                continue
            names[name] = sequence
            if name == key:
                return sequence, room
        if len(names) > _NAMES_AT_MOST:
            self._drop_names()
        return 0, room

    def _begin_names(self) -> dict[str, int]:
        names: dict[str, int] = {}
        self._names = names
        self.tracked = True
        for source in self.sources:
            consumer = source.consumer
            if consumer is not None and consumer.loans is None:
                self._unnamed.extend([(source, sequence) for sequence in consumer.in_order()])
        return names

    def _drop_names(self) -> None:
        self._names = None
        self._unnamed.clear()
        self.tracked = self.order is not None


class SubscriptionEvents:
    """Listens to the sources of a session. The base does nothing, for a session that is gone."""

    def source_lost(self, subscription: OpenWireSubscription, source: "Source", reason: BrokerError) -> None:
        """Its queue is gone."""

    def pull_unanswered(self, subscription: OpenWireSubscription) -> None:
        """There is nothing for a pull now."""

    def consumer_full(self, subscription: OpenWireSubscription) -> None:
        """It takes nothing while something waits for it; told of those that are watched."""


class Source(DeliveryPort):
    """One queue of a subscription: encodes what the engine delivers.

    Attributes:
        consumer, queue_name: set right after subscribing, before anything is delivered.
        served_at: grows with each delivery to one of those that share a credit.
        browsed: a browser has seen what there was.
    """

    def __init__(
        self,
        subscription: OpenWireSubscription,
        target: OpenWireTarget,
        outbox: Outbox,
        *,
        encoder: DispatchEncoder,
        events: SubscriptionEvents,
    ) -> None:
        self.subscription = subscription
        self.target = target
        self.consumer: Consumer | None = None
        self.queue_name: str = ""
        self.served_at: int = 0
        self.browsed: bool = False
        self._outbox = outbox
        self._encoder = encoder
        self._route: Route = _route_of(target)
        self._events: SubscriptionEvents = events

    def deliver(self, slot: Slot) -> None:
        subscription = self.subscription
        subscription.dispatched = True
        subscription.pulling = False
        if subscription.tracked:
            subscription.dispatching(self, slot.sequence)
        consumer = self.consumer
        if consumer is not None and consumer.first_of_group:
            # That is known now only.
            frame = b"".join(self.encode(slot, slot.delivery_count, True))
            position = slot.message.position if slot.recorded else NOTHING_DURABLE
            self._outbox.put(subscription.stream, position, frame, slot.sequence)
        else:
            self._outbox.deliver(subscription.stream, slot, self)

    def encode(self, slot: Slot, delivery_count: int, first_of_group: bool = False) -> FrameParts:
        return self._encoder.encode(
            slot.message, self._route, delivery_count - 1, slot.delivered_at_ms, first_of_group=first_of_group
        )

    def browse_ended(self) -> None:
        self.browsed = True
        self.subscription.unread_sources -= 1
        if self.subscription.unread_sources <= 0:
            self.nothing_to_give()

    def nothing_to_give(self) -> None:
        """The empty dispatch that ends a browse, and answers a pull for which there is nothing."""
        self._outbox.put(self.subscription.stream, NOTHING_DURABLE, self._encoder.encode_end(), NO_SEQUENCE)

    def key_of(self, slot: Slot) -> str:
        """The id under which the peer knows a message."""
        message = self._encoder.command(slot.message, self._route, 0, 0).message
        message_id = None if message is None else message.message_id
        return "" if message_id is None else message_id.key()

    def pull_unanswered(self) -> None:
        self._events.pull_unanswered(self.subscription)

    def has_room(self) -> bool:
        return self._outbox.has_room()

    def connection_name(self) -> str:
        return self.subscription.connection

    def user_name(self) -> str:
        return self.subscription.user

    def closed_by_broker(self, reason: BrokerError) -> None:
        self._events.source_lost(self.subscription, self, reason)
        self._events = SubscriptionEvents()


class SharedCredit(Credit):
    """The credit of a subscription, as one of several sources has it: notes the sources that find it spent."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._subscription: OpenWireSubscription = source.subscription
        self._credit: PrefetchCredit = source.subscription.credit

    def has_room(self) -> bool:
        if self._credit.has_room():
            return True
        self._subscription.refused_sources[self._source] = None
        return False

    def taken(self, size_bytes: int) -> None:
        self._credit.taken(size_bytes)

    def settled(self, size_bytes: int) -> None:
        self._credit.settled(size_bytes)

    def promised(self, size_bytes: int) -> None:
        self._credit.promised(size_bytes)

    def committed(self, size_bytes: int) -> None:
        self._credit.committed(size_bytes)

    def rolled_back(self, size_bytes: int) -> None:
        self._credit.rolled_back(size_bytes)

    def room(self) -> int:
        return self._credit.room()

    def extended(self, count: int) -> None:
        self._credit.extended(count)

    def pulled(self, count: int) -> None:
        self._credit.pulled(count)


def _route_of(target: OpenWireTarget) -> Route:
    if target.queue_name and target.routing == MULTICAST:
        # The queue of a virtual topic: its consumers know nothing of the topic.
        return Route(target.destination, replaces=True, original=Destination(target.address, TOPIC))
    return Route(target.destination)
