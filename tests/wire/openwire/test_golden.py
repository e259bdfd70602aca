"""Frames byte for byte, put together by hand from the marshallers of the Java client."""

import pytest

from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    STANDARD_ACK,
    ConsumerInfo,
    ExceptionResponse,
    KeepAliveInfo,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    ProducerAck,
    RemoveInfo,
    Response,
)
from delosmq.wire.openwire.structures import (
    ConnectionId,
    ConsumerId,
    Destination,
    MessageId,
    ProducerId,
    Structure,
    Throwable,
)
from delosmq.wire.openwire.wire_format import WireFormat
from tests.wire.openwire.support import decode_one, row

LOOSE = WireFormat(12)
TIGHT = WireFormat(12, tight=True)

PRODUCER = "01 7b 01 00 02 49 44 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00 01"  # value before session
ORDERS = "01 64 01 00 01 71"
CONSUMER = "01 7a 01 00 02 49 44 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 02"  # session before value
MESSAGE_ID = f"01 6e 00 {PRODUCER} 00 00 00 00 00 00 00 09 00 00 00 00 00 00 00 00"
TEXT = (
    f"{PRODUCER} {ORDERS} 00 00 {MESSAGE_ID} 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 04 00"
    " 00 00 01 8b cf e5 68 00 00 01 00 00 00 06 00 00 00 02 68 69 00 00 00 00 00 00 00 00 00"
    " 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
)


def text_message() -> MessageCommand:
    message = MessageCommand(28)
    message.producer_id = ProducerId("ID", 1, 5)
    message.destination = Destination("q")
    message.message_id = MessageId(message.producer_id, 9)
    message.persistent = True
    message.priority = 4
    message.timestamp = 1_700_000_000_000
    message.content = b"\0\0\0\2hi"
    return message


def commands() -> list[tuple[str, Structure, str]]:
    remove = RemoveInfo()
    remove.command_id = 3
    remove.object_id = ConnectionId("ID")
    remove.last_delivered_sequence_id = -1
    ack = MessageAck()
    ack.destination = Destination("q")
    ack.consumer_id = ConsumerId("ID", 1, 2)
    ack.ack_type = STANDARD_ACK
    ack.last_message_id = MessageId(ProducerId("ID", 1, 5), 9)
    ack.message_count = 1
    consumer = ConsumerInfo()
    consumer.response_required = True
    consumer.consumer_id = ConsumerId("ID", 1, 2)
    consumer.destination = Destination("q")
    consumer.prefetch_size = 1000
    consumer.dispatch_async = True
    consumer.selector = "é"
    dispatch = MessageDispatch()
    dispatch.consumer_id = ConsumerId("ID", 1, 2)
    dispatch.destination = Destination("q")
    dispatch.message = text_message()
    dispatch.redelivery_counter = 2
    return [
        ("keep alive", KeepAliveInfo(), "0a 00 00 00 00 00"),
        ("response", Response(258), "1e 00 00 00 00 00 00 00 01 02"),
        ("producer ack", ProducerAck(ProducerId("ID", 1, 5), 1029), f"13 00 00 00 00 00 {PRODUCER} 00 00 04 05"),
        (
            "exception",
            ExceptionResponse(1, Throwable("javax.jms.JMSException", None)),
            "1f 00 00 00 00 00 00 00 00 01 01 01 00 16" + b"javax.jms.JMSException".hex() + "00",
        ),
        ("remove", remove, "0c 00 00 00 03 00 01 78 01 00 02 49 44 ff ff ff ff ff ff ff ff"),
        ("ack", ack, f"16 00 00 00 00 00 {ORDERS} 00 {CONSUMER} 02 00 {MESSAGE_ID} 00 00 00 01 00"),
        (
            "consumer",
            consumer,
            f"05 00 00 00 00 01 {CONSUMER} 00 {ORDERS} 00 00 03 e8 00 00 00 00 01 01 00 02 c3 a9 00 00 00 00 00 00"
            " 00 00 00 00 00 00",
        ),
        ("text", text_message(), f"1c 00 00 00 00 00 {TEXT}"),
        ("dispatch", dispatch, f"15 00 00 00 00 00 {CONSUMER} {ORDERS} 01 1c 00 00 00 00 00 {TEXT} 00 00 00 02"),
    ]


@pytest.mark.parametrize("name, command, body", commands(), ids=[name for name, _, _ in commands()])
def test_a_loose_frame(name: str, command: Structure, body: str) -> None:
    frame = bytes.fromhex(body)
    frame = len(frame).to_bytes(4) + frame
    assert encode_command(command, LOOSE).hex(" ") == frame.hex(" ")
    assert row(decode_one(frame, LOOSE), 12) == row(command, 12)


def test_a_tight_frame() -> None:
    # Bits, low first: no response wanted; id set, its text set and ASCII, session 0, value of two bytes; destination
    # null; no message. So 0 1 1 1, 00, 01, then 0 0.
    dispatch = MessageDispatch()
    dispatch.consumer_id = ConsumerId("ID", 0, 2)
    body = bytes.fromhex("15 02 8e 00 00 00 00 00 7a 00 02 49 44 00 02 00 00 00 00")
    frame = len(body).to_bytes(4) + body
    assert encode_command(dispatch, TIGHT).hex(" ") == frame.hex(" ")
    assert row(decode_one(frame, TIGHT), 12) == row(dispatch, 12)
