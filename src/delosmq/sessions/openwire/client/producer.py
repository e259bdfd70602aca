"""A producer: its messages get their ids here, and wait for the broker's answer or not.

Source: ActiveMQMessageProducer and ActiveMQSession.send of the Java client.
"""

from collections.abc import Iterator
from itertools import count

from delosmq.sessions.openwire.client.acknowledgement import NOT_COUNTED
from delosmq.sessions.openwire.client.ports import CommandSender, PendingRequest
from delosmq.sessions.openwire.client.transactions.transaction import LocalTransaction
from delosmq.wire.openwire.commands import MessageCommand, ProducerAck, ProducerInfo, RemoveInfo
from delosmq.wire.openwire.structures import Destination, MessageId, ProducerId


class OpenWireProducer:
    """
    Attributes:
        waiter: the owner's, told of by `ClientEvents.changed` when there is room again.
        destination: of all its messages; None when each names its own.
        sequence: the number of the message stamped last.
    """

    def __init__(
        self, sender: CommandSender, transaction: LocalTransaction, info: ProducerInfo, *, transacted: bool
    ) -> None:
        self.waiter: object = None
        self.info = info
        self.closed: bool = False
        self._sender = sender
        self._transaction = transaction
        self._transacted = transacted
        self.sequence: int = 0
        self._numbers: Iterator[int] = count(1)
        self._unanswered_bytes: int = 0

    @property
    def destination(self) -> Destination | None:
        return self.info.destination

    @property
    def producer_id(self) -> ProducerId:
        producer_id = self.info.producer_id
        assert producer_id is not None  # each producer has one
        return producer_id

    def has_room(self) -> bool:
        """Whether the producer window lets one more message be sent."""
        return self.info.window_size <= 0 or self._unanswered_bytes < self.info.window_size

    def send(
        self,
        message: MessageCommand,
        destination: Destination,
        *,
        persistent: bool = True,
        priority: int = 4,
        time_to_live_ms: int = 0,
        confirmed: bool = False,
    ) -> PendingRequest | None:
        """`stamp` and `send_stamped`."""
        self.stamp(message, destination, persistent=persistent, priority=priority, time_to_live_ms=time_to_live_ms)
        return self.send_stamped(message, confirmed=confirmed)

    def never_waits(self, *, persistent: bool) -> bool:
        """Whether no message of this kind has an answer that is waited for, nor needs room in a window."""
        options = self._sender.options
        if options.send_timeout_ms > 0 or options.always_sync_send or self.info.window_size > 0:
            return False
        if (
            self._transacted
        ):  # in a distributed transaction nothing but the answer says whether its branch has the message
            return type(self._transaction) is LocalTransaction
        return not persistent or options.use_async_send

    def stamp(
        self,
        message: MessageCommand,
        destination: Destination,
        *,
        persistent: bool = True,
        priority: int = 4,
        time_to_live_ms: int = 0,
    ) -> None:
        """Sets the headers of ``message``, whose body and properties are set. `send_stamped` follows, in this order."""
        # One step: threads, and a signal handler in the midst of this, get numbers of their own.
        number = next(self._numbers)
        if number > self.sequence:
            self.sequence = number
        now_ms = self._sender.clock.wall_ms()
        message.destination = destination
        message.producer_id = self.producer_id
        message.message_id = MessageId(self.producer_id, number)
        message.persistent = persistent
        message.priority = priority
        message.timestamp = 0 if self._sender.options.disable_time_stamps_by_default else now_ms
        message.expiration = now_ms + time_to_live_ms if time_to_live_ms > 0 else 0

    def send_stamped(self, message: MessageCommand, *, confirmed: bool = False) -> PendingRequest | None:
        """
        Args:
            confirmed: the broker's answer is waited for in any case.

        Returns:
            The request that the answer ends; None when there will be none.
        """
        sender = self._sender
        options = sender.options
        if self._transacted:
            self._transaction.begin()
        message.transaction_id = self._transaction.transaction_id
        silent = not message.persistent or options.use_async_send or message.transaction_id is not None
        if confirmed or options.send_timeout_ms > 0 or options.always_sync_send or not silent:
            name = "" if message.destination is None else message.destination.qualified_name()
            request = sender.request(message, f"a message for {name}", timeout_ms=options.send_timeout_ms)
        else:
            request = None
            sender.send(message)
            if self.info.window_size > 0:
                self._unanswered_bytes += message.size_bytes()
        if self._transacted:
            self._transaction.track(message)
        return request

    def handle_ack(self, ack: ProducerAck) -> None:
        self._unanswered_bytes = max(0, self._unanswered_bytes - ack.size)
        self._sender.events.changed(self.waiter)

    def interrupt(self) -> None:
        """The connection is broken, and nothing that was sent by it is answered any more."""
        self._unanswered_bytes = 0
        self._sender.events.changed(self.waiter)

    def close(self) -> None:
        if not self.closed:
            self.dispose()
            remove = RemoveInfo()
            remove.object_id = self.info.producer_id
            remove.last_delivered_sequence_id = NOT_COUNTED
            self._sender.send(remove)

    def dispose(self) -> None:
        """Ends it without a word; its session's end is told."""
        self.closed = True
        self._sender.events.changed(self.waiter)
