"""What a peer that is logged in asks for: sessions, producers, messages, consumers, destinations, transactions.

Each function handles one kind of command; the table at the end names it. Source: TransportConnection of ActiveMQ
Classic; its processBeginTransaction and the like are `transact`.
"""

from collections.abc import Callable
from typing import Final

from delosmq.engine.api import JobWaiter
from delosmq.model.errors import (
    XA_OK,
    XA_RDONLY,
    BrokerError,
)
from delosmq.model.ids import MonotonicNs
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.connection import OpenWireConnection, ParkedCommand
from delosmq.sessions.openwire.server.consumers.consumers import ALL_SEEN, NOTHING_SEEN
from delosmq.sessions.openwire.server.transactions import OpenWireTransaction, end_association
from delosmq.wire.openwire.commands import (
    BEGIN,
    COMMIT_ONE_PHASE,
    COMMIT_TWO_PHASE,
    END,
    FORGET,
    PREPARE,
    RECOVER,
    ROLLBACK,
    ConsumerControl,
    ConsumerInfo,
    DataArrayResponse,
    DestinationInfo,
    MessageAck,
    MessageCommand,
    MessagePull,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
    SessionInfo,
    TransactionInfo,
)
from delosmq.wire.openwire.structures import (
    CONSUMER_CONTROL,
    CONSUMER_INFO,
    DESTINATION_INFO,
    MESSAGE_ACK,
    MESSAGE_PULL,
    PRODUCER_INFO,
    REMOVE_SUBSCRIPTION_INFO,
    SESSION_INFO,
    TRANSACTION_INFO,
    ConsumerId,
    ProducerId,
    SessionId,
    Structure,
    TransactionId,
    XATransactionId,
)
from delosmq.wire.openwire.wire_format import MESSAGES

_LAST_DELIVERED_SINCE: Final = 5
"""The version from which on a RemoveInfo says what its consumer saw last."""
_KINDS: Final = frozenset((BEGIN, PREPARE, COMMIT_ONE_PHASE, COMMIT_TWO_PHASE, ROLLBACK, RECOVER, FORGET, END))


def add_session(connection: OpenWireConnection, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, SessionInfo)
    connection.sessions.add(frame.session_id)
    connection.replies.grant(frame)


def change_destination(connection: OpenWireConnection, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, DestinationInfo)
    connection.temporaries.handle(frame)
    connection.replies.grant(frame)


# -- sending ---------------------------------------------------------------------------------------------------------


def add_producer(connection: OpenWireConnection, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, ProducerInfo)
    producer_id = frame.producer_id
    if producer_id is not None:
        connection.sessions.require("producer", producer_id.connection_id, producer_id.session_id)
    if connection.producers.add(frame):
        connection.advisories.producer_opened(frame)
    connection.replies.grant(frame)


def send(connection: OpenWireConnection, frame: Structure, now: MonotonicNs) -> None:
    """A message is answered through its owner: it may have to wait for space."""
    assert isinstance(frame, MessageCommand)
    work = None if frame.transaction_id is None else connection.transactions.find(frame.transaction_id)
    connection.producers.send(frame, work, connection, connection.machine.wall)


# -- receiving -------------------------------------------------------------------------------------------------------


def add_consumer(connection: OpenWireConnection, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, ConsumerInfo)
    consumer_id = frame.consumer_id
    if consumer_id is not None:
        connection.sessions.require("consumer", consumer_id.connection_id, consumer_id.session_id)
    subscription = connection.subscriber.add(frame)
    if subscription is not None:
        connection.producers.mark = connection.subscriber.mark
        try:
            connection.announce(subscription)
        except BrokerError:
            assert consumer_id is not None  # `add` looked
            connection.dismiss(connection.consumers.remove(consumer_id, NOTHING_SEEN))
            raise
    connection.replies.grant(frame)


def acknowledge(connection: OpenWireConnection, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, MessageAck)
    work = None if frame.transaction_id is None else connection.transactions.find(frame.transaction_id)
    under_way = connection.acks.handle(frame, None if work is None else work.transaction)
    if under_way is None:
        connection.replies.answer(frame)
    else:
        connection.answer_after(frame, under_way)


def control(connection: OpenWireConnection, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, ConsumerControl)
    connection.dismiss(connection.flow.control(frame))
    connection.replies.answer(frame)


def pull(connection: OpenWireConnection, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, MessagePull)
    connection.flow.pull(frame, now)
    connection.replies.grant(frame)


def unsubscribe(connection: OpenWireConnection, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, RemoveSubscriptionInfo)
    address = connection.subscriber.unsubscribe(frame)
    connection.advisories.subscription_removed(frame, address)
    connection.replies.grant(frame)


# -- transactions ----------------------------------------------------------------------------------------------------


class ParkedTransactionEnd(ParkedCommand):
    """A commit or prepare, which may have to wait for messages of its transaction."""

    def __init__(self, connection: OpenWireConnection, work: OpenWireTransaction, command: TransactionInfo) -> None:
        super().__init__(command, connection, work)
        self._broker = connection.broker
        self._transactions = connection.transactions
        self._ending = work
        self._kind: int = command.type

    def carry_out(self, waiter: JobWaiter) -> bool:
        kind = self._kind
        if kind == END:
            end_association(self._broker, self._ending)
            return True
        return self._transactions.carry_out(
            self._ending, waiter, prepare=kind == PREPARE, one_phase=kind != COMMIT_TWO_PHASE
        )

    def answer(self) -> None:
        self._owner.ended(self._command, XA_RDONLY if self._ending.read_only else XA_OK)


def transact(connection: OpenWireConnection, frame: Structure, now: MonotonicNs) -> None:
    assert isinstance(frame, TransactionInfo)
    kind = frame.type
    if kind == RECOVER:
        found: list[Structure | None] = [*connection.transactions.recover()]
        connection.replies.write(DataArrayResponse(frame.command_id, found))
        return
    if kind not in _KINDS:
        raise errors.unknown_transaction_command(kind)
    transaction_id = frame.transaction_id
    if transaction_id is None:
        raise errors.field_missing("transactionId", "a TransactionInfo")
    if kind == BEGIN:
        connection.transactions.begin(transaction_id)
        connection.replies.grant(frame)
        return
    elif kind in (COMMIT_ONE_PHASE, COMMIT_TWO_PHASE):
        _end(connection, frame, transaction_id)
        return
    elif kind == ROLLBACK:
        _roll_back(connection, transaction_id)
    elif not isinstance(transaction_id, XATransactionId):
        if kind != END:  # of which local transactions know nothing
            raise errors.not_a_branch(transaction_id.key())
    elif kind == PREPARE:
        _end(connection, frame, transaction_id)
        return
    elif kind == END:
        _end_association(connection, frame, transaction_id)
        return
    else:
        connection.transactions.forget(transaction_id)
    connection.replies.answer(frame)


def _end(connection: OpenWireConnection, command: TransactionInfo, transaction_id: TransactionId) -> None:
    """Commits or prepares, and answers once that is done.

    Raises:
        OpenWireError: there is no such transaction.
    """
    connection.parked_sends.end(ParkedTransactionEnd(connection, _take(connection, transaction_id), command))


def _end_association(connection: OpenWireConnection, command: TransactionInfo, transaction_id: XATransactionId) -> None:
    """END: this connection has done its part of a branch. Answered once what it sent there is through."""
    work = connection.transactions.association(transaction_id)
    if work is None:
        connection.ended(command)
    else:
        connection.parked_sends.end(ParkedTransactionEnd(connection, work, command))


def _roll_back(connection: OpenWireConnection, transaction_id: TransactionId) -> None:
    """Rolls back. What was acknowledged in it stays with its consumers: the client delivers it again."""
    work = _take(connection, transaction_id)
    connection.parked_sends.drop([work])
    connection.transactions.rollback(work, keep_delivered=True)
    connection.acks.share_room()


def _take(connection: OpenWireConnection, transaction_id: TransactionId) -> OpenWireTransaction:
    """What is to end."""
    if isinstance(transaction_id, XATransactionId):
        return connection.transactions.branch_to_end(transaction_id)
    return connection.transactions.take(transaction_id)


# -- ending ----------------------------------------------------------------------------------------------------------


def remove(connection: OpenWireConnection, frame: RemoveInfo) -> None:
    """The end of a consumer, producer or session; that of the connection is the session's own."""
    removed = frame.object_id
    last = last_seen(frame, connection.replies.form.version)
    if isinstance(removed, ConsumerId):
        ended = connection.consumers.remove(removed, last)
        if not ended:
            raise errors.nothing_to_remove("consumer", removed.key())
        connection.dismiss(ended)
    elif isinstance(removed, ProducerId):
        producer = connection.producers.remove(removed)
        if producer is None:
            raise errors.nothing_to_remove("producer", removed.key())
        connection.advisories.producer_closed(producer)
    elif isinstance(removed, SessionId):
        connection.sessions.remove(removed)
        connection.dismiss(connection.consumers.remove_session(removed.connection_id, removed.value, last))
        for producer in connection.producers.remove_session(removed.connection_id, removed.value):
            connection.advisories.producer_closed(producer)
    elif removed is None:
        raise errors.field_missing("objectId", "a RemoveInfo")
    else:
        raise errors.not_removable()
    connection.replies.part(frame, connection.parked_sends.position)


def last_seen(frame: RemoveInfo, version: int) -> int:
    """The sequence of the last message that the application has seen, or a word for all or none."""
    return frame.last_delivered_sequence_id if version >= _LAST_DELIVERED_SINCE else ALL_SEEN


CommandHandler = Callable[[OpenWireConnection, Structure, MonotonicNs], None]

# Type of the command -> who carries it out, once its sender is logged in.
HANDLERS: Final[dict[int, CommandHandler]] = {
    SESSION_INFO: add_session,
    CONSUMER_INFO: add_consumer,
    PRODUCER_INFO: add_producer,
    TRANSACTION_INFO: transact,
    DESTINATION_INFO: change_destination,
    REMOVE_SUBSCRIPTION_INFO: unsubscribe,
    CONSUMER_CONTROL: control,
    MESSAGE_PULL: pull,
    MESSAGE_ACK: acknowledge,
    **dict.fromkeys(MESSAGES, send),
}
