"""Frames as lines of a trace: what matters of each. Only what is named here is shown, so no password or token is."""

from typing import Final

from delosmq.model.errors import BrokerError
from delosmq.model.phrases import counted, one_line
from delosmq.wire.openwire.bodies import hub_body
from delosmq.wire.openwire.commands import TEXT_MESSAGE, MessageCommand, MessageDispatch
from delosmq.wire.openwire.structures import (
    ConnectionId,
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
    SessionId,
    Throwable,
    XATransactionId,
)
from delosmq.wire.stomp.decoder import StompFrame

_SHOWN_LETTERS: Final = 60

_STOMP_HEADERS: Final = (
    *("version", "accept-version", "heart-beat", "client-id", "destination", "id", "subscription", "ack", "selector"),
    *("message-id", "redelivered", "priority", "expires", "persistent", "transaction", "receipt", "receipt-id"),
    *("reply-to", "correlation-id", "message"),
)

_OPENWIRE_FIELDS: Final = {
    "WireFormatInfo": ("version",),
    "BrokerInfo": ("broker_name",),
    "ConnectionInfo": ("client_id",),
    "ConnectionError": ("exception",),
    "SessionInfo": ("session_id",),
    "ConsumerInfo": ("consumer_id", "destination", "prefetch_size", "selector", "subscription_name", "browser"),
    "ConsumerControl": ("consumer_id", "prefetch", "close"),
    "ProducerInfo": ("producer_id", "destination", "window_size"),
    "ProducerAck": ("producer_id", "size"),
    "DestinationInfo": ("operation_type", "destination"),
    "RemoveInfo": ("object_id", "last_delivered_sequence_id"),
    "RemoveSubscriptionInfo": ("subscription_name", "client_id"),
    "TransactionInfo": ("type", "transaction_id"),
    "Response": ("correlation_id",),
    "ExceptionResponse": ("correlation_id", "exception"),
    "DataResponse": ("correlation_id",),
    "DataArrayResponse": ("correlation_id",),
    "IntegerResponse": ("correlation_id", "result"),
    "MessagePull": ("consumer_id", "timeout"),
    "MessageAck": (
        *("ack_type", "consumer_id", "first_message_id", "last_message_id", "message_count", "transaction_id"),
    ),
    "MessageDispatch": ("consumer_id", "destination", "redelivery_counter"),
    "MessageCommand": ("destination", "message_id", "persistent", "priority", "reply_to", "transaction_id"),
}
_OWN_SESSION: Final = -1
"""In which clients consume for themselves."""
_ACK_TYPES: Final = ("DELIVERED", "POISON", "STANDARD", "REDELIVERED", "INDIVIDUAL", "UNMATCHED", "EXPIRED")
_TRANSACTION_TYPES: Final = (
    *("BEGIN", "PREPARE", "COMMIT_ONE_PHASE", "COMMIT_TWO_PHASE", "ROLLBACK", "RECOVER", "FORGET", "END"),
)
_OPERATIONS: Final = ("ADD", "REMOVE")
_WORDS: Final = {
    ("MessageAck", "ack_type"): _ACK_TYPES,
    ("TransactionInfo", "type"): _TRANSACTION_TYPES,
    ("DestinationInfo", "operation_type"): _OPERATIONS,
}


def line_of(kind: str, frame: object) -> str:
    """One line about a decoded frame."""
    if type(frame) is StompFrame:
        return " ".join([kind, *_stomp_parts(frame)])
    return " ".join([kind, *_openwire_parts(frame)])


def _stomp_parts(frame: StompFrame) -> list[str]:
    headers = frame.headers
    parts = [f"{name}={one_line(headers[name], _SHOWN_LETTERS)}" for name in _STOMP_HEADERS if name in headers]
    if frame.command in {"SEND", "MESSAGE"}:
        parts.append(_body(frame.body))
    return parts


def _openwire_parts(frame: object) -> list[str]:
    name = type(frame).__name__
    parts = []
    for field in _OPENWIRE_FIELDS.get(name, ()):
        value: object = getattr(frame, field)
        words = _WORDS.get((name, field))
        if words is not None and isinstance(value, int) and 0 <= value < len(words):
            parts.append(words[value])
        elif value is not None and value is not False:
            parts.append(f"{field}={_shown(value)}")
    if type(frame) is MessageCommand:
        parts.append(_openwire_body(frame))
    elif type(frame) is MessageDispatch:
        message = frame.message
        parts += ["empty"] if message is None else [f"message_id={_shown(message.message_id)}", _openwire_body(message)]
    if getattr(frame, "response_required", False):
        parts.append(f"command_id={getattr(frame, 'command_id', 0)}")
    return parts


def _openwire_body(message: MessageCommand) -> str:
    try:
        body = hub_body(message)
    except BrokerError:
        body = message.content or b""
    return _body(body) if message.code == TEXT_MESSAGE else counted(len(body), "byte")


def _body(body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return counted(len(body), "byte")
    return f"{counted(len(body), 'byte')} {one_line(text, _SHOWN_LETTERS)!r}" if text else "no body"


def _shown(value: object) -> str:
    """Ids are relative to their connection, which the line names already."""
    if type(value) is Destination:
        return one_line(value.qualified_name(), _SHOWN_LETTERS)
    if type(value) is ConsumerId or type(value) is ProducerId:
        return f"{value.session_id}:{value.value}"
    if type(value) is SessionId or type(value) is LocalTransactionId:
        return str(value.value)
    if type(value) is MessageId:
        producer = "" if value.producer_id is None else f"{_shown(value.producer_id)}:"
        return value.text_view or f"{producer}{value.producer_sequence_id}"
    if type(value) is ConnectionId:
        return "connection"
    if type(value) is XATransactionId:
        return one_line(value.key(), _SHOWN_LETTERS)
    if type(value) is Throwable:
        return one_line(f"{value.class_name}: {value.message}", 2 * _SHOWN_LETTERS)
    return one_line(str(value), _SHOWN_LETTERS)


def is_about_advisories(frame: object) -> bool:
    """Whether a client asks for advisories for itself, as it does for those of temporary destinations, or gets one."""
    consumer = getattr(frame, "consumer_id", None) or getattr(frame, "object_id", None)
    return isinstance(consumer, ConsumerId) and consumer.session_id == _OWN_SESSION
