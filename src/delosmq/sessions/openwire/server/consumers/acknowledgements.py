"""MessageAck: what a peer says of messages that were dispatched to it.

Source: PrefetchSubscription.acknowledge, QueueSubscription and TopicSubscription of ActiveMQ Classic.
"""

from typing import Final

from delosmq.engine.api import BulkAck, Consumer, EngineBroker, Transaction
from delosmq.sessions.host import SessionHost
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.consumers.consumers import Consumers
from delosmq.sessions.openwire.server.consumers.subscription import OpenWireSubscription, Source
from delosmq.wire.openwire.commands import (
    DELIVERED_ACK,
    EXPIRED_ACK,
    INDIVIDUAL_ACK,
    POISON_ACK,
    REDELIVERED_ACK,
    STANDARD_ACK,
    UNMATCHED_ACK,
    MessageAck,
)
from delosmq.wire.openwire.structures import MessageId, Throwable

_NONE: Final = 0
NAMES_READ: Final = 300
"""Messages read in one turn, for peers that don't give back their sequences: about 4 ms in pure Python."""
_LOOKS_A_TRANSACTION: Final = 100
"""Messages of one consumer that are looked at again once a transaction has ended."""
_LONGEST_CAUSE: Final = 1_000
"""Characters: people read it; it is stored with the message."""


class MessageAcks:
    """Carries out acknowledgements of one connection."""

    def __init__(self, broker: EngineBroker, host: SessionHost, consumers: Consumers) -> None:
        self._broker = broker
        self._host = host
        self._consumers = consumers
        self._room: int = NAMES_READ

    def begin_turn(self) -> None:
        """There is room again for what one turn may take."""
        self._room = NAMES_READ

    def handle(self, ack: MessageAck, transaction: Transaction | None) -> BulkAck | None:
        """One acknowledgement; one for a consumer that is gone means nothing. Very many messages go on in
        slices: gives what does.

        Raises:
            OpenWireError: it names what was not dispatched, or is none; nothing has changed.
        """
        consumer_id = ack.consumer_id
        if consumer_id is None:
            raise errors.field_missing("consumerId", "a MessageAck")
        subscription = self._consumers.by_key.get(consumer_id.key())
        return None if subscription is None else self._handle(subscription, ack, transaction)

    def _handle(
        self, subscription: OpenWireSubscription, ack: MessageAck, transaction: Transaction | None
    ) -> BulkAck | None:
        if not subscription.dispatched:
            return None
        kind = ack.ack_type
        if kind == UNMATCHED_ACK:
            return None
        if kind not in _HANDLED:
            raise errors.unknown_ack_type(kind)
        last_id = ack.last_message_id
        if last_id is None:
            raise errors.field_missing("lastMessageId", "a MessageAck")
        last = self._sequence(subscription, last_id)
        source = subscription.source_of(last)
        consumer = None if source is None else source.consumer
        if kind == POISON_ACK and transaction is not None:
            raise errors.poison_in_transaction()
        if consumer is None or source is None:
            if kind != INDIVIDUAL_ACK:
                # Classic's broker passes over what it doesn't find when a message is named alone.
                self._unknown(subscription, last_id)
            return None
        if kind == REDELIVERED_ACK:
            return None
        if subscription.refused_sources:
            self._offer_refused(subscription, source)
        if kind == DELIVERED_ACK:
            self._broker.consumers.extend(consumer, last, ack.message_count)
            return None
        if kind == INDIVIDUAL_ACK:
            self._one(subscription, consumer, last, transaction)
        elif kind == STANDARD_ACK or not subscription.checked:
            self._standard(subscription, consumer, ack, last, transaction)
        else:
            self._end(subscription, consumer, ack, last)
        return consumer.under_way

    def _one(
        self, subscription: OpenWireSubscription, consumer: Consumer, sequence: int, transaction: Transaction | None
    ) -> None:
        credit = subscription.credit
        credit.singly = True
        kept = transaction is None and not subscription.checked
        if kept:
            # Of a topic, or a message that is seen and not acknowledged would fill a small prefetch.
            credit.begin_range()
        try:
            self._broker.consumers.acknowledge(consumer, sequence, transaction)
        finally:
            credit.singly = False
            subscription.answered(sequence)
            if kept:
                credit.end_range(shrinks=False)

    def _standard(
        self,
        subscription: OpenWireSubscription,
        consumer: Consumer,
        ack: MessageAck,
        last: int,
        transaction: Transaction | None,
    ) -> None:
        broker = self._broker
        first_id = ack.first_message_id
        first = _NONE if first_id is None else self._sequence(subscription, first_id)
        if first == last:
            if subscription.checked and transaction is None and ack.message_count != 1:
                raise errors.count_wrong(ack.message_count, 1)
            if not broker.consumers.acknowledge(consumer, last, transaction) and ack.last_message_id is not None:
                self._unknown(subscription, ack.last_message_id)
            subscription.answered(last)
            return
        named = _range(subscription, consumer, ack, first=first, last=last)
        if subscription.checked and transaction is None and consumer.loans is None:
            count = _count_held(subscription, consumer, named)
            if ack.message_count != count:
                raise errors.count_wrong(ack.message_count, count)
        if subscription.order is None and _begins_with(consumer, named):
            broker.consumers.acknowledge_through(consumer, last, transaction)
            return
        for sequence in named:
            holder = subscription.holder_of(sequence)
            if holder is not None:
                broker.consumers.acknowledge(holder, sequence, transaction)
            subscription.answered(sequence)

    def _end(self, subscription: OpenWireSubscription, consumer: Consumer, ack: MessageAck, last: int) -> None:
        """EXPIRED and POISON: the messages leave, and the extension shrinks once."""
        first_id = ack.first_message_id
        first = _NONE if first_id is None else self._sequence(subscription, first_id)
        named = _range(subscription, consumer, ack, first=first, last=last)
        broker = self._broker
        text = _text_of(ack.poison_cause)
        credit = subscription.credit
        credit.begin_range()
        try:
            for sequence in named:
                holder = subscription.holder_of(sequence)
                if holder is None:
                    pass  # a transaction acknowledges it
                elif ack.ack_type == EXPIRED_ACK:
                    broker.consumers.expire_delivered(holder, sequence)
                else:
                    broker.consumers.reject(holder, sequence, poison=True, cause=text)
                subscription.answered(sequence)
        finally:
            credit.end_range()

    def _sequence(self, subscription: OpenWireSubscription, message_id: MessageId) -> int:
        """Clients give back the sequence that came with the message. For one that doesn't the messages that it has are
        read, no more in one turn than that takes a few ms.

        Raises:
            OpenWireError: it was not found among those.
        """
        if message_id.broker_sequence_id:
            return message_id.broker_sequence_id
        room = self._room
        sequence, self._room = subscription.sequence_of(message_id.key(), room)
        if room == NAMES_READ and self._room < room:
            self._host.wake_soon()  # for the next turn's room
        if not sequence and self._room <= 0:
            raise errors.sequence_missing(message_id.key())
        return sequence

    def _unknown(self, subscription: OpenWireSubscription, message_id: MessageId) -> None:
        if subscription.checked and not subscription.info.browser:
            raise errors.never_dispatched("end of ack", message_id.key())

    def share_room(self) -> None:
        """Credit may have come back to one queue of a consumer that others may use: a transaction has ended."""
        for subscription in self._consumers.shared.values():
            subscription.look_again(_LOOKS_A_TRANSACTION)
            if subscription.refused_sources:
                self._offer_refused(subscription)

    def _offer_refused(self, subscription: OpenWireSubscription, source: Source | None = None) -> None:
        """Sources of one subscription share their credit: what one is about to earn the others may use, in turn, or a
        full queue would keep it all."""
        away = subscription.refused_sources
        subscription.refused_sources = {}
        for other in sorted(away, key=_served_at):
            if other is source:
                subscription.refused_sources[other] = None  # offered by what it earns, and again by the others
            elif other.consumer is not None:
                self._broker.consumers.credit_changed(other.consumer)


_HANDLED: Final = frozenset((DELIVERED_ACK, POISON_ACK, STANDARD_ACK, REDELIVERED_ACK, INDIVIDUAL_ACK, EXPIRED_ACK))


def _range(
    subscription: OpenWireSubscription, consumer: Consumer, ack: MessageAck, *, first: int, last: int
) -> list[int]:
    """The sequences from the first that is named, or else the oldest, to ``last``, in order of dispatch.

    Raises:
        OpenWireError: the first was never dispatched, or after the last.
    """
    order = subscription.order
    if order is None and consumer.loans is not None:
        return [last]
    first_id = ack.first_message_id
    found = first_id is None
    named: list[int] = []
    for sequence in consumer.in_order() if order is None else order:
        if sequence == first:
            found = True
            named.clear()
        named.append(sequence)
        if sequence == last:
            break
    if not found and first_id is not None and subscription.checked:
        raise errors.never_dispatched("start of ack", first_id.key())
    return named


def _count_held(subscription: OpenWireSubscription, consumer: Consumer, named: list[int]) -> int:
    """How many of them no transaction acknowledges."""
    if subscription.order is None:
        return sum([consumer.held(sequence) is not None for sequence in named])
    return sum([subscription.holder_of(sequence) is not None for sequence in named])


def _text_of(cause: Throwable | None) -> str:
    """As Java prints it."""
    if cause is None:
        return ""
    class_name = cause.class_name or ""
    text = class_name if cause.message is None else f"{class_name}: {cause.message}"
    # Half a character, as Java may send it, can't be stored.
    return text[:_LONGEST_CAUSE].encode("utf-8", "replace").decode()


def _served_at(source: Source) -> int:
    return source.served_at


def _begins_with(consumer: Consumer, sequences: list[int]) -> bool:
    """Whether nothing older is in delivery."""
    if consumer.loans is not None:
        return True
    slot = consumer.in_delivery.head
    while slot is not None and slot.transaction != 0:
        slot = slot.next
    return slot is not None and slot.sequence in sequences
