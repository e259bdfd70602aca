"""A consumer: what the broker has dispatched to it and the application has not asked for yet.

Source: ActiveMQMessageConsumer of the Java client.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from delosmq.model.errors import PeerError
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client import errors
from delosmq.sessions.openwire.client.acknowledgement import ConsumerAcks, Delivery
from delosmq.sessions.openwire.client.options import AckMode, RedeliveryPolicy
from delosmq.sessions.openwire.client.ports import CommandSender
from delosmq.sessions.openwire.client.transactions.transaction import LocalTransaction
from delosmq.wire.openwire.commands import ConsumerInfo, MessageDispatch, MessagePull, RemoveInfo
from delosmq.wire.openwire.properties import decode_properties

NO_WAIT: Final = -1
"""The timeout of a pull that wants an answer at once."""

_BROKER_REDELIVERY: Final = "redeliveryDelay"
"""A property by which the broker tells that it was the broker that redelivered."""


class OpenWireConsumer(ConsumerAcks):
    """
    Attributes:
        waiter: the owner's, told of by `ClientEvents.changed`; the machine doesn't look at it.
        listens: its messages go to a listener.
        ends: how often the broker had nothing to give: to a pull, or at the end of a browse.
        closing: nothing is delivered any more, and the consumer ends with the transaction, or when its listener is
            through with the message that it has.
        handed_over: what is reserved for another thread, oldest first, until it or this one removes it.
        refusal: why the next broker did not take it after the connection broke; None otherwise.
        count_received: calls `consumed` for what the other thread has received and the machine has not heard of.
    """

    def __init__(
        self,
        sender: CommandSender,
        transaction: LocalTransaction,
        mode: AckMode,
        info: ConsumerInfo,
        policy: RedeliveryPolicy,
    ) -> None:
        super().__init__(sender, transaction, mode, info, policy)
        self.waiter: object = None
        self.listens: bool = False
        self.ends: int = 0
        self.closing: bool = False
        self.refusal: ClientError | None = None
        self.handed_over: dict[Delivery, bool] = {}
        self.count_received: Callable[[], None] = no_other_thread
        self._waiting: deque[Delivery] = deque()
        self._held: int = 0
        self._pulled: bool = False
        self._prefetch: int = info.prefetch_size
        interval_ms = sender.options.optimized_ack_scheduled_ack_interval_ms
        if info.optimized_acknowledge and interval_ms > 0:
            sender.after_ms(interval_ms, self._flush_again)

    # --- from the broker

    def handle(self, dispatch: MessageDispatch) -> None:
        message = dispatch.message
        if self.closed:
            return
        if message is None or message.message_id is None:
            self.ends += 1
            self._pulled = False
            self.sender.events.changed(self.waiter)
            return
        message.redelivery_counter = dispatch.redelivery_counter
        delivery = Delivery(message, message.message_id, dispatch.destination)
        self._pulled = False
        if self._came_before(delivery):
            self.poison(delivery, f"Suppressing duplicate delivery on connection, consumer {self.consumer_id.key()}")
        elif not self.listens and self.is_expired(delivery):
            self.expired(delivery)
        else:
            self._waiting.append(delivery)
        self.sender.events.changed(self.waiter)

    def _came_before(self, delivery: Delivery) -> bool:
        seen = self.sender.seen
        return seen is not None and not self.info.browser and seen.add(self._place(), delivery.message_id)

    def _place(self) -> str:
        """Where a message comes once: to a queue, or to one consumer of a topic."""
        destination = self.info.destination
        if destination is None or not destination.is_queue:
            return self.consumer_id.key()
        return destination.qualified_name()

    def forget(self, deliveries: Iterable[Delivery]) -> None:
        seen = self.sender.seen
        if seen is not None:
            for delivery in deliveries:
                seen.forget(self._place(), delivery.message_id)

    def interrupt(self) -> None:
        """The connection is broken and will be made again: all that is not acknowledged comes again."""
        self.end_batch()
        self.forget(self._waiting)
        self.forget(self.delivered)
        if self.comes_again:
            self.forget(self.reserved)
        self.reserved.clear()
        self._waiting.clear()
        self.forget_delivered()
        self._held = 0
        self._pulled = False
        self._prefetch = self.info.prefetch_size
        self.sender.events.changed(self.waiter)

    def set_prefetch(self, prefetch: int) -> None:
        """The broker asks for another one."""
        self.flush()
        self._prefetch = prefetch

    # --- to the application

    @property
    def pulls(self) -> bool:
        """It is sent nothing that it has not asked for."""
        return self._prefetch == 0

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def pull(self, timeout_ms: int) -> bool:
        """Asks the broker for one message, if nothing is there and it was not asked already.

        Args:
            timeout_ms: 0 waits for ever, `NO_WAIT` not at all.

        Returns:
            Whether it was asked now: its answer is a message, or `ends` grows.
        """
        if not self.pulls or self._waiting or self._pulled:
            return False
        pull = MessagePull()
        pull.consumer_id = self.info.consumer_id
        pull.destination = self.info.destination
        pull.timeout = timeout_ms
        self._pulled = True
        self.sender.send(pull)
        return True

    def check_delivers(self) -> None:
        """
        Raises:
            IllegalStateError: DMQ9017, its session works in no branch of a distributed transaction.
        """
        if not self._transaction.delivers:
            raise errors.no_branch()

    def reserve(self) -> Delivery | None:
        """The next message for the application; `consumed` or `put_back` follows."""
        if not self.sender.running or not self._transaction.delivers:
            return None
        while self._waiting and not self._held and not self.closed and not self.closing:
            delivery = self._waiting.popleft()
            if self.is_expired(delivery):
                self.expired(delivery)
            elif self._is_poison(delivery):
                limit = self.policy.maximum_redeliveries
                count = delivery.message.redelivery_counter
                self.poison(
                    delivery, f"Dispatch[{count}] exceeds redelivery policy limit: maximumRedeliveries = {limit}"
                )
            else:
                self.reserved[delivery] = None
                return delivery
        return None

    def consumed(self, delivery: Delivery) -> None:
        """The application has received it."""
        if delivery in self.reserved:
            self.before(delivery)
            self.after(delivery)
        else:
            self.consumed_too_late()

    def put_back(self, delivery: Delivery) -> None:
        """The application went away before it had the message; nothing is handed over then."""
        self.take_back()
        if delivery not in self.reserved:
            if delivery not in self._waiting:
                self.forget((delivery,))
            return
        del self.reserved[delivery]
        if not self.closed:
            self._waiting.appendleft(delivery)
            self.sender.events.changed(self.waiter)

    def hand_over(self, delivery: Delivery) -> list[Delivery]:
        """Lets another thread take what was reserved, and what the application would be given after it."""
        batch = [delivery]
        waiting = self._waiting
        # Where one is too old, or poison, an acknowledgement says so, and has its turn after those before.
        while (
            waiting
            and self._transaction.delivers_ahead
            and not self.is_expired(waiting[0])
            and not self._is_poison(waiting[0])
        ):
            following = waiting.popleft()
            self.reserved[following] = None
            batch.append(following)
        for one in batch:
            self.handed_over[one] = True
        return batch

    def take_back(self) -> None:
        """What the other thread has not taken waits here again, as if it had never been handed over."""
        handed_over = self.handed_over
        if not handed_over:
            return
        while True:
            try:  # one step each: the other thread takes some meanwhile
                delivery, _ = handed_over.popitem()
            except KeyError:
                break
            del self.reserved[delivery]
            self._waiting.appendleft(delivery)
        self.sender.events.changed(self.waiter)

    def end_batch(self) -> None:
        """Before what distinguishes messages that were received from others: takes back those that were not, then
        counts those that were. The other thread can take none between the two."""
        self.take_back()
        self.count_received()

    def failed(self, delivery: Delivery) -> None:
        """The listener raised. Where the application itself says what is acknowledged it has said nothing yet."""
        if self._mode == AckMode.CLIENT or self.transacted:
            self.after(delivery)
        else:
            self.recover()
            self.end_if_closing()

    def redeliver(self, deliveries: list[Delivery], delay_ms: int) -> None:
        self.forget(deliveries)
        since = self.interruptions
        if self.sender.options.non_blocking_redelivery:
            self.sender.after_ms(delay_ms, lambda: self._append(deliveries, since))
            return
        self.take_back()  # what is delivered again comes first
        if delay_ms <= 0:
            self._waiting.extendleft(reversed(deliveries))
            self.sender.events.changed(self.waiter)
        else:
            self._held += 1
            self.sender.after_ms(delay_ms, lambda: self._release(deliveries, since))

    def _append(self, deliveries: list[Delivery], since: int) -> None:
        if not self.closed and since == self.interruptions:
            self._waiting.extend(deliveries)
            self.sender.events.changed(self.waiter)

    def _release(self, deliveries: list[Delivery], since: int) -> None:
        if not self.closed and since == self.interruptions:
            self._held -= 1
            self._waiting.extendleft(reversed(deliveries))
            self.sender.events.changed(self.waiter)

    def is_expired(self, delivery: Delivery) -> bool:
        """Any thread may ask."""
        expiration = delivery.message.expiration
        enabled = self.sender.options.consumer_expiry_check_enabled
        return expiration > 0 and enabled and self.sender.clock.wall_ms() > expiration

    def _is_poison(self, delivery: Delivery) -> bool:
        """Whether it was delivered too often already, to others; of transacted sessions alone."""
        if not self.transacted or not self.policy.pre_dispatch_check:
            return False
        message = delivery.message
        if self.policy.allows(message.redelivery_counter):
            return False
        try:
            return _BROKER_REDELIVERY not in decode_properties(message.marshalled_properties)
        except PeerError:
            return False

    # --- the end

    def close(self) -> None:
        """Ends it, or has it end with the transaction whose messages it has delivered, or after its listener."""
        if self.closed or self.closing:
            return
        self.end_batch()
        if self.in_transaction() or self.is_listener_at_work:
            self.closing = True
        else:
            self._end()
        self.sender.events.changed(self.waiter)

    def committed(self) -> None:
        super().committed()
        self.end_if_closing()

    def rolled_back(self) -> None:
        super().rolled_back()
        self.end_if_closing()

    def end_if_closing(self) -> None:
        if self.closing and not self.in_transaction():
            self.closing = False
            self._end()

    def _end(self) -> None:
        self.dispose()
        remove = RemoveInfo()
        remove.object_id = self.info.consumer_id
        remove.last_delivered_sequence_id = self.last_delivered_sequence
        self.sender.send(remove)

    def dispose(self) -> None:
        """Sends what was put off, and delivers nothing any more."""
        if self.closed:
            return
        self.end_batch()
        self.forget(self._waiting)
        if not self.transacted:
            self.flush()
            self.forget(self.delivered)
            self.delivered.clear()
        self.closed = True
        self._waiting.clear()
        self.sender.events.changed(self.waiter)

    def lose(self) -> None:
        """The connection is gone."""
        self.take_back()
        self.closed = True
        self._waiting.clear()
        self.delivered.clear()
        self.sender.events.changed(self.waiter)

    def end_refused(self, error: ClientError) -> None:
        """The next broker did not take it: nothing comes any more, and who receives hears why."""
        self.refusal = error
        self.lose()

    def _flush_again(self) -> None:
        if not self.closed and self._optimized:
            self.flush()
            self.sender.after_ms(self.sender.options.optimized_ack_scheduled_ack_interval_ms, self._flush_again)


def no_other_thread() -> None:
    """Nothing is handed over."""


def check_listener(consumer: OpenWireConsumer) -> None:
    """
    Raises:
        IllegalStateError: DMQ9005, the consumer asks for each message.
    """
    if consumer.info.prefetch_size == 0:
        destination = consumer.info.destination
        raise errors.listener_without_prefetch("" if destination is None else destination.qualified_name())
