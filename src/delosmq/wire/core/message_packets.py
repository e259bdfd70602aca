"""Packets with messages in them, or parts of large ones. Those with whole messages are read and written by hand."""

from struct import Struct
from typing import Final

from delosmq.wire.core import errors
from delosmq.wire.core.message import CoreMessage, CoreMessageReader
from delosmq.wire.core.packet import (
    EMPTY,
    NO_CORRELATION,
    SESS_RECEIVE_CONTINUATION,
    SESS_RECEIVE_LARGE_MSG,
    SESS_RECEIVE_MSG,
    SESS_SEND,
    SESS_SEND_CONTINUATION,
    SESS_SEND_LARGE,
    Packet,
    PacketFields,
)

NO_SENDER: Final = -1
SENDER_SINCE: Final = 134
_CORRELATED_SINCE: Final = 130
# What stands behind the message, by version: requires response, correlation id, sender id.
_SEND_129: Final = Struct(">B")
_SEND_130: Final = Struct(">Bq")
_SEND_134: Final = Struct(">Bqi")
# consumer id, delivery count
_RECEIVE: Final = Struct(">qi")
# consumer id, delivery count, size of the body
_RECEIVE_LARGE: Final = Struct(">qiq")


class SessionSend(Packet):
    """A message to the broker.

    Attributes:
        sender_id: of the producer, `NO_SENDER` for none.
    """

    def __init__(self, message: CoreMessage) -> None:
        self.code = SESS_SEND
        self.message = message
        self.sender_id: int = NO_SENDER

    @property
    def body_bytes(self) -> int:
        return len(self.message.body)


class SessionReceiveMessage(Packet):
    """A message to a consumer.

    Attributes:
        delivery_count: 1 for the first delivery.
    """

    def __init__(self, message: CoreMessage, consumer_id: int = 0, delivery_count: int = 0) -> None:
        self.code = SESS_RECEIVE_MSG
        self.message = message
        self.consumer_id = consumer_id
        self.delivery_count = delivery_count

    @property
    def body_bytes(self) -> int:
        return len(self.message.body)


class SessionSendLarge(Packet):
    """The headers of a large message to the broker; its body follows in `SessionSendContinuation`."""

    def __init__(self, message: CoreMessage) -> None:
        self.code = SESS_SEND_LARGE
        self.message = message


class SessionReceiveLargeMessage(Packet):
    """The headers of a large message to a consumer; its body follows in `SessionReceiveContinuation`.

    Attributes:
        body_size: of the whole body, in bytes.
    """

    def __init__(self, message: CoreMessage, consumer_id: int = 0, delivery_count: int = 0, body_size: int = 0) -> None:
        self.code = SESS_RECEIVE_LARGE_MSG
        self.message = message
        self.consumer_id = consumer_id
        self.delivery_count = delivery_count
        self.body_size = body_size


class SessionSendContinuation(Packet):
    """A part of a large message's body.

    Attributes:
        continues: more follows.
        message_body_size: of the whole body as it was before it was compressed, said with the last part; -1 if unknown.
    """

    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_SEND_CONTINUATION
        self.body = fields.octets("body")
        self.continues = fields.flag("continues")
        self.message_body_size = fields.int64("message_body_size", -1, unless="continues")
        self.requires_response = fields.flag("requires_response")
        self.correlation_id = fields.correlation_id()
        self.sender_id = fields.int32("sender_id", NO_SENDER, since=SENDER_SINCE)

    @property
    def body_bytes(self) -> int:
        return len(self.body)


class SessionReceiveContinuation(Packet):
    """A part of a large message's body.

    Attributes:
        continues: more follows.
    """

    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SESS_RECEIVE_CONTINUATION
        self.body = fields.octets("body")
        self.continues = fields.flag("continues")
        self.consumer_id = fields.int64("consumer_id")

    @property
    def body_bytes(self) -> int:
        return len(self.body)


def read_send(messages: CoreMessageReader, encoded: bytes, at: int, end: int, version: int) -> SessionSend:
    """The packet with its fields from ``at`` to ``end``.

    Raises:
        PeerError: DMQ5604 to DMQ5606, they are malformed.
    """
    sender_id = NO_SENDER
    correlation_id = NO_CORRELATION
    if version >= SENDER_SINCE:
        message_end = end - _SEND_134.size
        if message_end >= at:
            requires_response, correlation_id, sender_id = _SEND_134.unpack_from(encoded, message_end)
    elif version >= _CORRELATED_SINCE:
        message_end = end - _SEND_130.size
        if message_end >= at:
            requires_response, correlation_id = _SEND_130.unpack_from(encoded, message_end)
    else:
        message_end = end - _SEND_129.size
        if message_end >= at:
            (requires_response,) = _SEND_129.unpack_from(encoded, message_end)
    if message_end < at:
        raise errors.truncated("a packet of type 71", "message", at)
    packet = SessionSend(messages.read(encoded, at, message_end))
    packet.requires_response = requires_response != 0
    packet.correlation_id = correlation_id
    packet.sender_id = sender_id
    return packet


def read_receive(messages: CoreMessageReader, encoded: bytes, at: int, end: int) -> SessionReceiveMessage:
    """The packet with its fields from ``at`` to ``end``.

    Raises:
        PeerError: DMQ5604 to DMQ5606, they are malformed.
    """
    message_end = end - _RECEIVE.size
    if message_end < at:
        raise errors.truncated("a packet of type 75", "message", at)
    consumer_id, delivery_count = _RECEIVE.unpack_from(encoded, message_end)
    return SessionReceiveMessage(messages.read(encoded, at, message_end), consumer_id, delivery_count)


def read_receive_large(messages: CoreMessageReader, encoded: bytes, at: int, end: int) -> SessionReceiveLargeMessage:
    """The packet with its fields from ``at`` to ``end``.

    Raises:
        PeerError: DMQ5604 to DMQ5606, they are malformed.
    """
    headers_at = at + _RECEIVE_LARGE.size
    if headers_at > end:
        raise errors.truncated("a packet of type 76", "consumer, count and size", at)
    consumer_id, delivery_count, body_size = _RECEIVE_LARGE.unpack_from(encoded, at)
    message = messages.read_headers(encoded, headers_at, end)
    return SessionReceiveLargeMessage(message, consumer_id, delivery_count, body_size)


def add_message_packet(packet: Packet, version: int, pieces: list[bytes]) -> bool:
    """The fields of a packet with a message, behind ``pieces``; False when it has none."""
    if isinstance(packet, SessionReceiveMessage):
        packet.message.add(pieces)
        pieces.append(_RECEIVE.pack(packet.consumer_id, packet.delivery_count))
    elif isinstance(packet, SessionSend):
        packet.message.add(pieces)
        required = 0xFF if packet.requires_response else 0
        if version >= SENDER_SINCE:
            pieces.append(_SEND_134.pack(required, packet.correlation_id, packet.sender_id))
        elif version >= _CORRELATED_SINCE:
            pieces.append(_SEND_130.pack(required, packet.correlation_id))
        else:
            pieces.append(_SEND_129.pack(required))
    elif isinstance(packet, SessionSendLarge):
        packet.message.add_headers(pieces)
    elif isinstance(packet, SessionReceiveLargeMessage):
        pieces.append(_RECEIVE_LARGE.pack(packet.consumer_id, packet.delivery_count, packet.body_size))
        packet.message.add_headers(pieces)
    else:
        return False
    return True
