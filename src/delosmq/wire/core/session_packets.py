"""Packets of a session: consumers and what they take, credits, transactions and their branches, metadata."""

from collections.abc import Callable
from typing import Final

from delosmq.wire.core.packet import (
    CREATE_PRODUCER,
    DISCONNECT_CONSUMER,
    EMPTY,
    REMOVE_PRODUCER,
    SESS_ACKNOWLEDGE,
    SESS_ADD_METADATA,
    SESS_ADD_METADATA2,
    SESS_CLOSE,
    SESS_COMMIT,
    SESS_CONSUMER_CLOSE,
    SESS_CREATECONSUMER,
    SESS_EXPIRED,
    SESS_FLOWTOKEN,
    SESS_FORCE_CONSUMER_DELIVERY,
    SESS_INDIVIDUAL_ACKNOWLEDGE,
    SESS_PRODUCER_CREDITS,
    SESS_PRODUCER_FAIL_CREDITS,
    SESS_PRODUCER_REQUEST_CREDITS,
    SESS_ROLLBACK,
    SESS_START,
    SESS_STOP,
    SESS_UNIQUE_ADD_METADATA,
    SESS_XA_COMMIT,
    SESS_XA_END,
    SESS_XA_FAILED,
    SESS_XA_FORGET,
    SESS_XA_GET_TIMEOUT,
    SESS_XA_GET_TIMEOUT_RESP,
    SESS_XA_INDOUBT_XIDS,
    SESS_XA_INDOUBT_XIDS_RESP,
    SESS_XA_JOIN,
    SESS_XA_PREPARE,
    SESS_XA_RESP,
    SESS_XA_RESUME,
    SESS_XA_ROLLBACK,
    SESS_XA_SET_TIMEOUT,
    SESS_XA_SET_TIMEOUT_RESP,
    SESS_XA_START,
    SESS_XA_SUSPEND,
    Packet,
    PacketFields,
)

# --- the session


class SessionStart(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_START


class SessionStop(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_STOP


class SessionClose(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_CLOSE


class SessionCommit(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_COMMIT
        self.correlation_id = fields.correlation_id(since=132)


class SessionRollback(Packet):
    """Gives back all that the session's consumers hold, and undoes its transaction.

    Attributes:
        consider_last_message_as_delivered: the first delivery of each consumer that is not acknowledged counts.
    """

    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_ROLLBACK
        self.consider_last_message_as_delivered = fields.flag("consider_last_message_as_delivered")


class AddMetadata(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_ADD_METADATA
        self.key = fields.string("key")
        self.value = fields.string("value")


class AddMetadataV2(AddMetadata):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_ADD_METADATA2
        self.requires_response = fields.flag("requires_response")


class UniqueAddMetadata(AddMetadataV2):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_UNIQUE_ADD_METADATA


# --- producers


class CreateProducer(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = CREATE_PRODUCER
        self.id = fields.int32("id")
        self.address = fields.simple_string_or_null("address")


class RemoveProducer(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = REMOVE_PRODUCER
        self.id = fields.int32("id")


class RequestProducerCredits(Packet):
    """Asks whether an address has room.

    Attributes:
        credits: in bytes, as all credits.
    """

    def __init__(self, credits: int = 0, address: str = "", fields: PacketFields = EMPTY) -> None:
        self.code = SESS_PRODUCER_REQUEST_CREDITS
        self.credits = fields.int32("credits", credits)
        fields.simple_string("address")
        self.address = address


class ProducerCredits(RequestProducerCredits):
    def __init__(self, credits: int = 0, address: str = "", fields: PacketFields = EMPTY) -> None:
        super().__init__(credits, address, fields)
        self.code = SESS_PRODUCER_CREDITS


class ProducerFailCredits(RequestProducerCredits):
    def __init__(self, credits: int = 0, address: str = "", fields: PacketFields = EMPTY) -> None:
        super().__init__(credits, address, fields)
        self.code = SESS_PRODUCER_FAIL_CREDITS


# --- consumers


class CreateConsumer(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_CREATECONSUMER
        self.id = fields.int64("id")
        self.queue_name = fields.simple_string("queue_name")
        self.filter_string = fields.simple_string_or_null("filter_string")
        self.browse_only = fields.flag("browse_only")
        self.requires_response = fields.flag("requires_response")
        fields.end_for_older()
        self.priority = fields.int32("priority", since=130)


class ConsumerClose(Packet):
    def __init__(self, consumer_id: int = 0, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_CONSUMER_CLOSE
        self.consumer_id = fields.int64("consumer_id", consumer_id)


class DisconnectConsumer(Packet):
    def __init__(self, consumer_id: int = 0, fields: PacketFields = EMPTY) -> None:
        self.code = DISCONNECT_CONSUMER
        self.consumer_id = fields.int64("consumer_id", consumer_id)


class ConsumerFlowCredit(Packet):
    """Gives a consumer room.

    Attributes:
        credits: added; -1 is without limit, 0 takes what is left.
    """

    def __init__(self, consumer_id: int = 0, credits: int = 0, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_FLOWTOKEN
        self.consumer_id = fields.int64("consumer_id", consumer_id)
        self.credits = fields.int32("credits", credits)


class ForceConsumerDelivery(Packet):
    def __init__(self, consumer_id: int = 0, sequence: int = 0, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_FORCE_CONSUMER_DELIVERY
        self.consumer_id = fields.int64("consumer_id", consumer_id)
        self.sequence = fields.int64("sequence", sequence)


class MessageExpired(Packet):
    def __init__(self, consumer_id: int = 0, message_id: int = 0, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_EXPIRED
        self.consumer_id = fields.int64("consumer_id", consumer_id)
        self.message_id = fields.int64("message_id", message_id)


class Acknowledge(Packet):
    """All of the consumer up to a message, in the order of delivery."""

    def __init__(
        self,
        consumer_id: int = 0,
        message_id: int = 0,
        requires_response: bool = False,
        fields: PacketFields = EMPTY,
    ) -> None:
        self.code = SESS_ACKNOWLEDGE
        self.consumer_id = fields.int64("consumer_id", consumer_id)
        self.message_id = fields.int64("message_id", message_id)
        self.requires_response = fields.flag("requires_response", requires_response)


class IndividualAcknowledge(Acknowledge):
    def __init__(
        self,
        consumer_id: int = 0,
        message_id: int = 0,
        requires_response: bool = False,
        fields: PacketFields = EMPTY,
    ) -> None:
        super().__init__(consumer_id, message_id, requires_response, fields)
        self.code = SESS_INDIVIDUAL_ACKNOWLEDGE


# --- branches of distributed transactions


class XaPacket(Packet):
    """Says something of one branch."""

    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.xid = fields.xid("xid")


class XaStart(XaPacket):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_XA_START


class XaEnd(XaPacket):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_XA_END
        self.failed = fields.flag("failed")


class XaCommit(XaPacket):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_XA_COMMIT
        self.one_phase = fields.flag("one_phase")


class XaPrepare(XaPacket):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_XA_PREPARE


class XaRollback(XaPacket):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_XA_ROLLBACK


class XaJoin(XaPacket):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_XA_JOIN


class XaSuspend(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_XA_SUSPEND


class XaResume(XaPacket):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_XA_RESUME


class XaForget(XaPacket):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_XA_FORGET


class XaFailed(XaPacket):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SESS_XA_FAILED


class XaResponse(Packet):
    """Answers what is said of a branch.

    Attributes:
        response_code: an XAException's code if ``error``, else what the call returns; see `delosmq.model.errors`.
    """

    def __init__(
        self, error: bool = False, response_code: int = 0, message: str | None = None, fields: PacketFields = EMPTY
    ) -> None:
        self.code = SESS_XA_RESP
        self.error = fields.flag("error", error)
        self.response_code = fields.int32("response_code", response_code)
        fields.string_or_null("message")
        self.message = message
        self.correlation_id = fields.correlation_id()


class XaInDoubtXids(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_XA_INDOUBT_XIDS


class XaInDoubtXidsResponse(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_XA_INDOUBT_XIDS_RESP
        self.xids = fields.xids("xids")


class XaSetTimeout(Packet):
    def __init__(self, timeout_seconds: int = 0, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_XA_SET_TIMEOUT
        self.timeout_seconds = fields.int32("timeout_seconds", timeout_seconds)


class XaSetTimeoutResponse(Packet):
    def __init__(self, ok: bool = False, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_XA_SET_TIMEOUT_RESP
        self.ok = fields.flag("ok", ok)


class XaGetTimeout(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_XA_GET_TIMEOUT


class XaGetTimeoutResponse(Packet):
    def __init__(self, timeout_seconds: int = 0, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_XA_GET_TIMEOUT_RESP
        self.timeout_seconds = fields.int32("timeout_seconds", timeout_seconds)


SESSION_PACKETS: Final[tuple[Callable[..., Packet], ...]] = (
    SessionStart,
    SessionStop,
    SessionClose,
    SessionCommit,
    SessionRollback,
    AddMetadata,
    AddMetadataV2,
    UniqueAddMetadata,
    CreateProducer,
    RemoveProducer,
    RequestProducerCredits,
    ProducerCredits,
    ProducerFailCredits,
    CreateConsumer,
    ConsumerClose,
    DisconnectConsumer,
    ConsumerFlowCredit,
    ForceConsumerDelivery,
    MessageExpired,
    Acknowledge,
    IndividualAcknowledge,
    XaStart,
    XaEnd,
    XaCommit,
    XaPrepare,
    XaRollback,
    XaJoin,
    XaSuspend,
    XaResume,
    XaForget,
    XaFailed,
    XaResponse,
    XaInDoubtXids,
    XaInDoubtXidsResponse,
    XaSetTimeout,
    XaSetTimeoutResponse,
    XaGetTimeout,
    XaGetTimeoutResponse,
)
