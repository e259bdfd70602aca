"""What each packet of a session does. The table at the end is the protocol; a type that is not in it is left out.

Source: ServerSessionPacketHandler of Artemis.
"""

from collections.abc import Callable
from typing import Final

from delosmq.model.errors import BrokerError
from delosmq.sessions.core.server import errors
from delosmq.sessions.core.server.requests import wants_answer
from delosmq.sessions.core.server.session import CoreSession
from delosmq.sessions.core.server.transactions.branches import ParkedBranchCommit, ParkedPrepare
from delosmq.sessions.core.server.transactions.local_transactions import ParkedEnd
from delosmq.sessions.parked_sends import Parked
from delosmq.wire.core.connection_packets import NullResponse, PacketsConfirmed
from delosmq.wire.core.message_packets import SessionSend, SessionSendContinuation, SessionSendLarge
from delosmq.wire.core.packet import (
    CREATE_ADDRESS,
    CREATE_PRODUCER,
    CREATE_QUEUE,
    CREATE_QUEUE_V2,
    CREATE_SHARED_QUEUE,
    CREATE_SHARED_QUEUE_V2,
    DELETE_QUEUE,
    PACKETS_CONFIRMED,
    REMOVE_PRODUCER,
    SESS_ACKNOWLEDGE,
    SESS_ADD_METADATA,
    SESS_ADD_METADATA2,
    SESS_BINDINGQUERY,
    SESS_COMMIT,
    SESS_CONSUMER_CLOSE,
    SESS_CREATECONSUMER,
    SESS_EXPIRED,
    SESS_FLOWTOKEN,
    SESS_FORCE_CONSUMER_DELIVERY,
    SESS_INDIVIDUAL_ACKNOWLEDGE,
    SESS_PRODUCER_REQUEST_CREDITS,
    SESS_QUEUEQUERY,
    SESS_ROLLBACK,
    SESS_SEND,
    SESS_SEND_CONTINUATION,
    SESS_SEND_LARGE,
    SESS_START,
    SESS_STOP,
    SESS_UNIQUE_ADD_METADATA,
    SESS_XA_COMMIT,
    SESS_XA_END,
    SESS_XA_FAILED,
    SESS_XA_FORGET,
    SESS_XA_GET_TIMEOUT,
    SESS_XA_INDOUBT_XIDS,
    SESS_XA_JOIN,
    SESS_XA_PREPARE,
    SESS_XA_RESUME,
    SESS_XA_ROLLBACK,
    SESS_XA_SET_TIMEOUT,
    SESS_XA_START,
    SESS_XA_SUSPEND,
    Packet,
)
from delosmq.wire.core.queue_packets import (
    BindingQuery,
    CreateAddressPacket,
    CreateQueuePacket,
    CreateSharedQueue,
    DeleteQueue,
    QueueQuery,
)
from delosmq.wire.core.session_packets import (
    Acknowledge,
    AddMetadata,
    ConsumerClose,
    ConsumerFlowCredit,
    CreateConsumer,
    CreateProducer,
    ForceConsumerDelivery,
    MessageExpired,
    RemoveProducer,
    RequestProducerCredits,
    SessionRollback,
    UniqueAddMetadata,
    XaCommit,
    XaEnd,
    XaGetTimeoutResponse,
    XaInDoubtXidsResponse,
    XaPacket,
    XaResponse,
    XaSetTimeoutResponse,
)

MOST_METADATA: Final = 100
LONGEST_METADATA: Final = 1_024
"""Entries of one session, and characters of each: kept as long as the session."""


class ParkedAcknowledgement(Parked):
    """An acknowledgement of very many messages, answered once all of them are gone."""

    def __init__(self, session: CoreSession, request: Acknowledge) -> None:
        super().__init__(None, None)
        self._session = session
        self._request = request

    def answer(self) -> None:
        if self._request.requires_response:
            self._session.replies.done(self._request)

    def refuse(self, error: BrokerError) -> None:
        self._session.refuse(self._request, error)


# -- messages --------------------------------------------------------------------------------------------------------


def send(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, SessionSend)
    session.producers.send(packet.message, packet, session.work_for_sends())


def send_large(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, SessionSendLarge)
    session.large_message.begin(packet)


def send_part(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, SessionSendContinuation)
    message = session.large_message.add(packet)
    packet.body = b""  # it is gathered
    if message is not None:
        session.producers.send(
            message,
            packet,
            session.work_for_sends(),
            large=True,
            large_body_size=packet.message_body_size,
        )
    elif packet.requires_response:
        session.replies.done(packet)


def request_credits(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, RequestProducerCredits)
    session.producers.request_credits(packet)


def tell_of_producer(session: CoreSession, packet: Packet) -> None:
    # Artemis lists producers for its console. Here a message brings all that is asked about its own.
    assert isinstance(packet, CreateProducer | RemoveProducer)


# -- consumers -------------------------------------------------------------------------------------------------------


def create_consumer(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, CreateConsumer)
    queue = session.consumers.create(packet)
    if packet.requires_response:
        session.replies.grant(session.queries.queue(queue.name), packet)


def close_consumer(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, ConsumerClose)
    session.consumers.close(packet.consumer_id)
    session.replies.part(packet, session.parked_sends.position)


def flow(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, ConsumerFlowCredit)
    session.consumers.flow(packet)


def force_delivery(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, ForceConsumerDelivery)
    session.consumers.force_delivery(packet)


def acknowledge(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, Acknowledge)
    under_way = session.consumers.acknowledge(packet, session.work_for_acks())
    if under_way is not None:
        session.parked_sends.answer_after(ParkedAcknowledgement(session, packet), under_way)
    elif packet.requires_response:
        session.replies.done(packet)


def expire(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, MessageExpired)
    session.consumers.expire(packet)


def start(session: CoreSession, packet: Packet) -> None:
    session.started = True
    session.consumers.start()


def stop(session: CoreSession, packet: Packet) -> None:
    session.started = False
    session.replies.tell(NullResponse())


# -- addresses and queues --------------------------------------------------------------------------------------------


def create_address(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, CreateAddressPacket)
    session.queues.create_address(packet)
    if packet.requires_response:
        session.replies.made(packet)


def create_queue(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, CreateQueuePacket)
    session.queues.create(packet)
    if packet.requires_response:
        session.replies.made(packet)


def create_shared_queue(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, CreateSharedQueue)
    session.queues.create_shared(packet)
    if packet.requires_response:
        session.replies.made(packet)


def delete_queue(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, DeleteQueue)
    session.queues.delete(packet.queue_name)
    session.replies.made(packet)


def query_queue(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, QueueQuery)
    session.replies.grant(session.queries.queue(packet.queue_name), packet)


def query_bindings(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, BindingQuery)
    session.replies.grant(session.queries.bindings(packet.address), packet)


# -- transactions ----------------------------------------------------------------------------------------------------


def commit(session: CoreSession, packet: Packet) -> None:
    work = session.transactions.take()
    if work is None:
        session.replies.done(packet)
        return
    cause = work.transaction.cause
    if cause is not None:
        session.roll_back(work, first_counts=False)
        raise cause
    session.parked_sends.end(ParkedEnd(session, packet, work, session.broker))


def roll_back(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, SessionRollback)
    session.roll_back(session.transactions.take(), first_counts=packet.consider_last_message_as_delivered)
    session.replies.done(packet)


def xa_commit(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, XaCommit)
    work = session.branches.work_to_end(packet.xid)
    session.parked_sends.end(ParkedBranchCommit(session, packet, work, session.broker, one_phase=packet.one_phase))


def xa_prepare(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, XaPacket)
    work = session.branches.work_to_end(packet.xid)
    session.parked_sends.end(ParkedPrepare(session, packet, work, session.broker))


def xa_start(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, XaPacket)
    session.branches.start(packet.xid)
    session.replies.answer(XaResponse(), packet)


def xa_join(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, XaPacket)
    session.branches.join(packet.xid)
    session.replies.answer(XaResponse(), packet)


def xa_resume(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, XaPacket)
    session.branches.resume(packet.xid)
    session.replies.answer(XaResponse(), packet)


def xa_suspend(session: CoreSession, packet: Packet) -> None:
    session.branches.suspend()
    session.replies.answer(XaResponse(), packet)


def xa_end(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, XaEnd)
    session.branches.end(packet.xid, packet.failed)
    session.replies.answer(XaResponse(), packet)


def xa_roll_back(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, XaPacket)
    session.roll_back_branch(packet.xid)
    session.replies.answer(XaResponse(), packet)


def xa_forget(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, XaPacket)
    session.branches.forget(packet.xid)
    session.replies.answer(XaResponse(), packet)


def xa_failed(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, XaPacket)
    session.branches.failed(packet.xid)


def xa_in_doubt(session: CoreSession, packet: Packet) -> None:
    answer = XaInDoubtXidsResponse()
    answer.xids = session.branches.in_doubt()
    session.replies.answer(answer, packet)


def xa_set_timeout(session: CoreSession, packet: Packet) -> None:
    # False: it is not heeded, as the broker has one for all.
    session.replies.tell(XaSetTimeoutResponse(False))


def xa_get_timeout(session: CoreSession, packet: Packet) -> None:
    session.replies.tell(XaGetTimeoutResponse(session.branches.timeout_s()))


# -- metadata --------------------------------------------------------------------------------------------------------


def add_metadata(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, AddMetadata)
    if len(session.metadata) >= MOST_METADATA and packet.key not in session.metadata:
        raise errors.too_many("entries of metadata of the session", MOST_METADATA)
    if len(packet.key) + len(packet.value) > LONGEST_METADATA:
        raise errors.too_long("an entry of metadata", LONGEST_METADATA)
    if isinstance(packet, UniqueAddMetadata):
        session.check_unique(packet.key, packet.value)
    session.metadata[packet.key] = packet.value
    if wants_answer(packet):
        session.replies.tell(NullResponse())


def confirmed(session: CoreSession, packet: Packet) -> None:
    assert isinstance(packet, PacketsConfirmed)
    session.replies.confirmed(packet.command_id)


Command = Callable[[CoreSession, Packet], None]

COMMANDS: Final[dict[int, Command]] = {
    PACKETS_CONFIRMED: confirmed,
    CREATE_QUEUE: create_queue,
    CREATE_QUEUE_V2: create_queue,
    CREATE_SHARED_QUEUE: create_shared_queue,
    CREATE_SHARED_QUEUE_V2: create_shared_queue,
    DELETE_QUEUE: delete_queue,
    CREATE_ADDRESS: create_address,
    SESS_QUEUEQUERY: query_queue,
    SESS_BINDINGQUERY: query_bindings,
    SESS_CREATECONSUMER: create_consumer,
    SESS_CONSUMER_CLOSE: close_consumer,
    SESS_FLOWTOKEN: flow,
    SESS_FORCE_CONSUMER_DELIVERY: force_delivery,
    SESS_ACKNOWLEDGE: acknowledge,
    SESS_INDIVIDUAL_ACKNOWLEDGE: acknowledge,
    SESS_EXPIRED: expire,
    SESS_START: start,
    SESS_STOP: stop,
    SESS_SEND: send,
    SESS_SEND_LARGE: send_large,
    SESS_SEND_CONTINUATION: send_part,
    SESS_PRODUCER_REQUEST_CREDITS: request_credits,
    CREATE_PRODUCER: tell_of_producer,
    REMOVE_PRODUCER: tell_of_producer,
    SESS_COMMIT: commit,
    SESS_ROLLBACK: roll_back,
    SESS_XA_START: xa_start,
    SESS_XA_END: xa_end,
    SESS_XA_COMMIT: xa_commit,
    SESS_XA_PREPARE: xa_prepare,
    SESS_XA_ROLLBACK: xa_roll_back,
    SESS_XA_JOIN: xa_join,
    SESS_XA_SUSPEND: xa_suspend,
    SESS_XA_RESUME: xa_resume,
    SESS_XA_FORGET: xa_forget,
    SESS_XA_FAILED: xa_failed,
    SESS_XA_INDOUBT_XIDS: xa_in_doubt,
    SESS_XA_SET_TIMEOUT: xa_set_timeout,
    SESS_XA_GET_TIMEOUT: xa_get_timeout,
    SESS_ADD_METADATA: add_metadata,
    SESS_ADD_METADATA2: add_metadata,
    SESS_UNIQUE_ADD_METADATA: add_metadata,
}
