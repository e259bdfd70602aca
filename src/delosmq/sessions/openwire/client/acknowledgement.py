"""When a consumer acknowledges what, to the letter as the Java client does.

| mode | of each message the application has seen |
|---|---|
| AUTO, DUPS_OK on queues | STANDARD for it alone; optimised, a range at 0.65 of the prefetch, or after a time |
| DUPS_OK on topics | STANDARD for a range of half the prefetch |
| CLIENT, INDIVIDUAL | DELIVERED for a range of half the prefetch, which makes room; what the application says follows |
| TRANSACTED | the same DELIVERED, in the transaction; before its end STANDARD for all of it |

Source: ActiveMQMessageConsumer of the Java client 5.17, whose counters have the names here that they have there.
"""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.sessions.openwire.client.options import AckMode, RedeliveryPolicy
from delosmq.sessions.openwire.client.participants import EndedPart, Participant
from delosmq.sessions.openwire.client.ports import NS_PER_MS, CommandSender, PendingRequest
from delosmq.sessions.openwire.client.transactions.transaction import LocalTransaction
from delosmq.wire.openwire.commands import (
    DELIVERED_ACK,
    EXPIRED_ACK,
    INDIVIDUAL_ACK,
    POISON_ACK,
    REDELIVERED_ACK,
    STANDARD_ACK,
    ConsumerInfo,
    MessageAck,
    MessageCommand,
)
from delosmq.wire.openwire.structures import ConsumerId, Destination, MessageId, Throwable

NOTHING_SEEN: Final = -1
"""The last delivered sequence of a consumer whose application has seen no message."""
NOT_COUNTED: Final = -2
"""The last delivered sequence of what has no consumers: the broker makes nothing of it."""

_OPTIMISED_SHARE: Final = 0.65
_ROOM_SHARE: Final = 0.5
_CAUSE: Final = "java.lang.Throwable"


class Delivery:
    """A message that was dispatched to a consumer.

    Attributes:
        destination: as the dispatch names it.
        again: this consumer has seen it before.
    """

    def __init__(self, message: MessageCommand, message_id: MessageId, destination: Destination | None) -> None:
        self.message = message
        self.message_id = message_id
        self.destination = destination
        self.again: bool = False


@mypyc_attr(allow_interpreted_subclasses=True)
class ConsumerAcks(Participant):
    """What one consumer has delivered and not acknowledged.

    Attributes:
        delivered: what the application has seen, oldest first, and the broker has no STANDARD for.
        reserved: what is on its way to the application, in this order.
        interruptions: how often the connection broke and was made again.
        last_delivered_sequence: the broker's number of the last message that the application saw.
    """

    def __init__(
        self,
        sender: CommandSender,
        transaction: LocalTransaction,
        mode: AckMode,
        info: ConsumerInfo,
        policy: RedeliveryPolicy,
    ) -> None:
        self.sender = sender
        self.info = info
        self.policy = policy
        self.transacted: bool = mode == AckMode.TRANSACTED
        self.closed: bool = False
        self.delivered: list[Delivery] = []
        self.reserved: dict[Delivery, None] = {}
        self.last_delivered_sequence: int = NOTHING_SEEN
        self._transaction = transaction
        self._mode = mode
        destination = info.destination
        is_queue = destination is not None and destination.is_queue
        self._each: bool = mode == AckMode.AUTO or (mode == AckMode.DUPS_OK and is_queue)
        self._batch: bool = mode == AckMode.DUPS_OK and not is_queue
        options = sender.options
        self._individually: bool = options.transacted_individual_ack or options.non_blocking_redelivery
        self._optimized: bool = info.optimized_acknowledge
        self._optimized_at: int = sender.clock.monotonic_ns()
        self.interruptions: int = 0
        self._participates: bool = False
        self._pending: MessageAck | None = None
        self._delivered_counter: int = 0
        self._ack_counter: int = 0

    @abstractmethod
    def redeliver(self, deliveries: list[Delivery], delay_ms: int) -> None:
        """Has them delivered once more, before all others unless redelivery is non-blocking."""

    @abstractmethod
    def forget(self, deliveries: Iterable[Delivery]) -> None:
        """They may come again, and are no duplicates then."""

    @property
    def consumer_id(self) -> ConsumerId:
        consumer_id = self.info.consumer_id
        assert consumer_id is not None  # each consumer has one
        return consumer_id

    # --- what the application sees

    def before(self, delivery: Delivery) -> None:
        """The application is about to see it."""
        self.reserved.pop(delivery, None)
        self.last_delivered_sequence = delivery.message_id.broker_sequence_id
        if self._batch:
            return
        self.delivered.append(delivery)
        if self.transacted:
            if self._individually:
                self._participate()
                ack = self._ack(delivery, INDIVIDUAL_ACK, 1)
                ack.transaction_id = self._transaction.transaction_id
                self._send(ack)
            else:
                self._ack_later(delivery, DELIVERED_ACK)

    def after(self, delivery: Delivery) -> None:
        """The application has it, or its listener is through with it."""
        if self.closed or self.transacted:
            return
        if self._each:
            if self.delivered:
                self._ack_each()
            self.end_if_closing()
        elif self._batch:
            self._ack_later(delivery, STANDARD_ACK)
        elif self.delivered and (self.delivered[-1] is delivery or delivery in self.delivered):
            self._ack_later(delivery, DELIVERED_ACK)

    def expired(self, delivery: Delivery) -> None:
        """The application will not see it: it is too old."""
        self.before(delivery)
        if not self.closed:
            self._one(delivery, EXPIRED_ACK)

    def poison(self, delivery: Delivery, cause: str) -> None:
        """The application will not see it: it goes to the dead letters."""
        ack = self._ack(delivery, POISON_ACK, 1)
        ack.first_message_id = ack.last_message_id
        ack.poison_cause = Throwable(_CAUSE, cause)
        self._send(ack)

    # --- what the application says

    def acknowledge(self) -> PendingRequest | None:
        """All that it has seen; the broker's answer, if one is waited for."""
        ack = self._ack_for_all(STANDARD_ACK)
        if ack is None:
            return None
        if self.transacted:
            self._transaction.begin()
            ack.transaction_id = self._transaction.transaction_id
        self._pending = None
        answer = self._send(ack)
        self._delivered_counter = max(0, self._delivered_counter - len(self.delivered))
        if not self.transacted:
            self.delivered.clear()
        return answer

    def acknowledge_one(self, delivery: Delivery) -> PendingRequest | None:
        """One message, in a session whose mode is INDIVIDUAL; nothing if it was acknowledged or went back already."""
        return self._one(delivery, INDIVIDUAL_ACK) if delivery in self.delivered else None

    def recover(self) -> None:
        """Delivers again what was seen and not acknowledged, or gives it up as poison when that was too often."""
        self._acknowledge_seen()
        deliveries = self.delivered
        self.delivered = []
        self.give_back(deliveries)

    def give_back(self, deliveries: list[Delivery]) -> None:
        """As `recover`, what the caller has kept of it."""
        if not deliveries:
            return
        newest = deliveries[-1]
        redelivered_before = newest.message.redelivery_counter
        for delivery in deliveries:
            delivery.message.redelivery_counter += 1
            delivery.again = True
        self._delivered_counter -= len(deliveries)
        redeliveries = redelivered_before + 1
        if not self.policy.allows(redeliveries):
            ack = self._range(deliveries, POISON_ACK)
            limit = self.policy.maximum_redeliveries
            cause = f"Delivery[{redeliveries}] exceeds redelivery policy limit: maximumRedeliveries = {limit}"
            ack.poison_cause = Throwable(_CAUSE, cause)
            self.sender.send(ack)
            return
        if redelivered_before > 0:
            self.sender.send(self._range(deliveries, REDELIVERED_ACK))
        if self.closed:
            self.forget(deliveries)
        else:
            self.redeliver(deliveries, self.policy.delay_ms(redeliveries, self.sender.chance))

    @property
    def comes_again(self) -> bool:
        """What the application has seen when the connection breaks is not acknowledged yet."""
        return not self._each and not self._batch

    def consumed_too_late(self) -> None:
        """The application has a message of a connection that has broken meanwhile: the broker sends it again."""
        if self.transacted:
            self._transaction.begin()
            self._transaction.rollback_only = True

    def forget_delivered(self) -> None:
        """All went back to the broker, which sends it again."""
        self.interruptions += 1
        if self.in_transaction():
            self._transaction.rollback_only = True
        self.delivered.clear()
        self._pending = None
        self._delivered_counter = 0
        self._ack_counter = 0

    # --- transactions

    def before_end(self) -> None:
        self._participates = False
        if not self._individually:
            self.acknowledge()

    def committed(self) -> None:
        self.delivered.clear()

    def rolled_back(self) -> None:
        self.recover()

    def detach(self) -> EndedPart:
        deliveries = self.delivered
        self.delivered = []
        return BranchDeliveries(self, deliveries)

    @abstractmethod
    def end_if_closing(self) -> None:
        """Ends the consumer if that waited for a transaction, or for its listener."""

    def in_transaction(self) -> bool:
        """Something that it delivered belongs to an open transaction."""
        return bool(self.delivered) and self._transaction.transaction_id is not None

    def _participate(self) -> None:
        self._transaction.begin()
        if not self._participates:
            self._participates = True
            self._transaction.add(self)

    # --- what is put off

    def flush(self) -> None:
        """Sends what was put off and must not be lost."""
        if self._each:
            self._acknowledge_seen()
        elif self._pending is not None and self._pending.ack_type == STANDARD_ACK:
            self._send_pending()

    @property
    def is_listener_at_work(self) -> bool:
        """A listener has a message that is acknowledged when it is through with it."""
        return self._each and len(self.delivered) > self._ack_counter

    def note_listener_done(self) -> None:
        """A listener that ends its session is through with its message, as no acknowledgement can follow."""
        if self._each:
            self._ack_counter = len(self.delivered)

    def stop_optimising(self) -> None:
        if self._optimized:
            self.flush()
            self._optimized = False

    def _acknowledge_seen(self) -> None:
        """What AUTO has put off is not given back when a listener fails with the message after it.

        The Java client forgets half of these then, and the broker delivers them again after the session's end.
        """
        seen = self.delivered[: self._ack_counter]
        del self.delivered[: self._ack_counter]
        self._ack_counter = 0
        if seen:
            self.sender.send(self._range(seen, STANDARD_ACK))

    def _ack_each(self) -> None:
        if not self._optimized:
            ack = self._ack_for_all(STANDARD_ACK)
            assert ack is not None  # asked for when there are some
            self.delivered.clear()
            self._send(ack)
            return
        self._ack_counter += 1
        now = self.sender.clock.monotonic_ns()
        timeout_ms = self.sender.options.optimize_acknowledge_time_out_ms
        many = self._ack_counter + self._delivered_counter >= self.info.prefetch_size * _OPTIMISED_SHARE
        if many or (timeout_ms > 0 and now >= self._optimized_at + timeout_ms * NS_PER_MS):
            ack = self._ack_for_all(STANDARD_ACK)
            assert ack is not None
            self.delivered.clear()
            self._ack_counter = 0
            self._send(ack)
            self._optimized_at = now
            if self._pending is not None and self._delivered_counter > 0:
                self._send_pending()
                self._delivered_counter = 0

    def _ack_later(self, delivery: Delivery, kind: int) -> None:
        """Acknowledges a range once it is large enough."""
        if self.transacted:
            self._participate()
        self._delivered_counter += 1
        before = self._pending
        ack = self._ack(delivery, kind, self._delivered_counter)
        ack.transaction_id = self._transaction.transaction_id
        ack.first_message_id = ack.last_message_id
        if before is not None:
            if before.ack_type == kind:
                ack.first_message_id = before.first_message_id
            elif before.ack_type != DELIVERED_ACK:
                self._send(before)
        self._pending = ack
        if self.info.prefetch_size * _ROOM_SHARE <= self._delivered_counter + self._ack_counter:
            self._send_pending()
            self._delivered_counter = 0

    def _send_pending(self) -> None:
        ack = self._pending
        self._pending = None
        if ack is not None:
            self._send(ack)

    def _one(self, delivery: Delivery, kind: int) -> PendingRequest | None:
        ack = self._ack(delivery, kind, 1)
        if kind == EXPIRED_ACK:
            ack.first_message_id = ack.last_message_id
        answer = self._send(ack)
        if delivery in self.delivered:
            self.delivered.remove(delivery)
        return answer

    # --- acknowledgements

    def _ack_for_all(self, kind: int) -> MessageAck | None:
        return self._range(self.delivered, kind) if self.delivered else None

    def _range(self, deliveries: list[Delivery], kind: int) -> MessageAck:
        ack = self._ack(deliveries[-1], kind, len(deliveries))
        ack.first_message_id = deliveries[0].message_id
        return ack

    def _ack(self, delivery: Delivery, kind: int, count: int) -> MessageAck:
        ack = MessageAck()
        ack.destination = delivery.destination
        ack.consumer_id = self.info.consumer_id
        ack.ack_type = kind
        ack.last_message_id = delivery.message_id
        ack.message_count = count
        return ack

    def _send(self, ack: MessageAck) -> PendingRequest | None:
        if self.transacted or self.sender.options.send_acks_async:
            self.sender.send(ack)
            return None
        return self.sender.request(ack, "an acknowledgement")


class BranchDeliveries(EndedPart):
    """What a consumer has delivered in a branch that was ended."""

    def __init__(self, consumer: ConsumerAcks, deliveries: list[Delivery]) -> None:
        self._consumer = consumer
        self._deliveries = deliveries
        self._since: int = consumer.interruptions

    def committed(self) -> None:
        self._consumer.end_if_closing()

    def rolled_back(self) -> None:
        consumer = self._consumer
        if consumer.closed:
            consumer.forget(self._deliveries)
        elif consumer.interruptions == self._since:
            consumer.give_back(self._deliveries)
        consumer.end_if_closing()

    def interrupt(self) -> None:
        self._consumer.forget(self._deliveries)
