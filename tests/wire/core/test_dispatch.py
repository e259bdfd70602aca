"""What consumers get: messages of CORE as they came, those of other protocols converted."""

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delosmq.model.conversion import Conversions
from delosmq.model.ids import MessageId, Sequence, WallMs
from delosmq.model.message import ANYCAST, BYTES_BODY, MULTICAST, TEXT_BODY, Message
from delosmq.model.properties import BYTE_KIND, INT_KIND, LONG_KIND, STRING_KIND, TypedValue
from delosmq.wire.core.codec import encode_packet
from delosmq.wire.core.conversion import CoreConversion
from delosmq.wire.core.dispatch import PART_OVERHEAD_BYTES, ReceiveEncoder
from delosmq.wire.core.message import BYTES_TYPE, TEXT_TYPE, CoreMessage
from delosmq.wire.core.message_packets import (
    SessionReceiveContinuation,
    SessionReceiveLargeMessage,
    SessionReceiveMessage,
    SessionSend,
)
from delosmq.wire.core.packet import Packet
from delosmq.wire.core.properties import decode_properties
from delosmq.wire.openwire.commands import MessageCommand
from delosmq.wire.openwire.conversion import OpenWireConversion
from delosmq.wire.openwire.heads import BODY_KINDS, encode_head, stored_body
from delosmq.wire.openwire.primitives import encode_map as encode_openwire_map
from delosmq.wire.openwire.structures import TEMP_QUEUE, Destination, ProducerId
from delosmq.wire.openwire.structures import MessageId as OpenWireId
from delosmq.wire.stomp.conversion import StompConversion
from tests.chance import tries
from tests.wire.core.support import golden_messages, messages, open_decoder, read, row
from tests.wire.core.test_conversion import GOLDEN, TYPED, Rows, core_message, keep, rows, text

CONVERSIONS = Conversions({"core": CoreConversion(), "openwire": OpenWireConversion(), "stomp": StompConversion()})
BROKER_ID = bytes(range(16))
NOW = WallMs(1_000)
SAY_WHAT_BROKERS_SAY = ("headers", "marker", "dead", "expired")


def encoder(routing: int = 0, *, shows_user: bool = False) -> ReceiveEncoder:
    return ReceiveEncoder(11, 2, CONVERSIONS, BROKER_ID, routing=routing, shows_user=shows_user)


def received(message: Message, count: int = 1, *, by: ReceiveEncoder | None = None) -> SessionReceiveMessage:
    """What a client reads of a RECEIVE."""
    frame = b"".join((by or encoder()).encode(message, count))
    packet = read(frame)
    assert isinstance(packet, SessionReceiveMessage)
    assert (packet.channel, packet.consumer_id, packet.delivery_count) == (11, 2, count)
    assert packet.size_bytes == len(frame) == (by or encoder()).frame_bytes(message)
    return packet


def properties_of(packet: SessionReceiveMessage) -> Rows:
    return rows(decode_properties(packet.message.properties))


def stored(sent: CoreMessage, message_id: int = 7) -> Message:
    message = keep(sent)
    message.message_id = MessageId(message_id)
    message.sequence = Sequence(message_id)
    return message


# --- of CORE


@pytest.mark.parametrize("name", [name for name in GOLDEN if name not in SAY_WHAT_BROKERS_SAY])
def test_a_message_goes_out_byte_for_byte_but_for_its_id(name: str) -> None:
    sent = GOLDEN[name]
    message = stored(sent)
    start, body, end = encoder().encode(message, 3)
    assert body is message.body
    sent.message_id = 7
    packet = SessionReceiveMessage(sent, 2, 3)
    packet.channel = 11
    assert start + body + end == encode_packet(packet, 136)


@settings(max_examples=tries(60))
@given(messages())
def test_any_message_goes_out_as_it_came(sent: CoreMessage) -> None:
    sent.address = "orders"
    sent.expiration = max(sent.expiration, 0)
    sent.encode_head(sent.properties)
    message = stored(sent)
    sent.message_id = 7
    assert row(received(message).message) == row(sent)


def test_what_the_broker_has_changed_is_told() -> None:
    message = stored(GOLDEN["delayed"])
    message.expires_at_ms = 99
    message.durable = True
    message.priority = 2
    found = received(message).message
    assert (found.expiration, found.durable, found.priority) == (99, True, 2)
    assert (found.timestamp, found.user_id, found.type) == (
        GOLDEN["delayed"].timestamp,
        GOLDEN["delayed"].user_id,
        TEXT_TYPE,
    )
    assert found.properties == GOLDEN["delayed"].properties


@pytest.mark.parametrize("name", ["dead", "expired"])
def test_a_dead_letter_and_an_expired_message_say_what_artemis_has_them_say(name: str) -> None:
    theirs = golden_messages()[name]
    said = rows(decode_properties(theirs.properties))
    kept = {key: TypedValue(*value) for key, value in said.items() if not key.startswith("_AMQ")}
    sent = core_message(theirs.body, TEXT_TYPE, _AMQ_ROUTING_TYPE=TypedValue(BYTE_KIND, 1), **kept)
    sent.durable = True
    sent.timestamp = theirs.timestamp
    sent.user_id = theirs.user_id
    sent.encode_head(sent.properties)
    message = stored(sent, theirs.message_id)
    message.address = theirs.address or ""
    message.annotations = {key: str(value) for key, (_, value) in said.items() if key.startswith("_AMQ")}
    found = received(message)
    assert properties_of(found) == said
    found.message.encode_head(theirs.properties)
    assert row(found.message) == row(theirs)


def test_a_retained_message_keeps_its_routing() -> None:
    message = stored(core_message(b"x", _AMQ_ROUTING_TYPE=TypedValue(BYTE_KIND, 0)))
    message.annotations = {"ActiveMQ.Retained": "true"}
    found = properties_of(received(message))
    assert found == {"_AMQ_ROUTING_TYPE": (BYTE_KIND, 0), "ActiveMQ.Retained": (STRING_KIND, "true")}


def test_the_user_is_told_where_that_is_wanted() -> None:
    message = stored(core_message(b"x", a=text("x")))
    assert properties_of(received(message, by=encoder(shows_user=True))) == {
        "a": (STRING_KIND, "x"),
        "_AMQ_VALIDATED_USER": (STRING_KIND, "ann"),
    }
    assert "_AMQ_VALIDATED_USER" not in properties_of(received(message))


# --- large messages


def test_a_large_message_comes_in_parts() -> None:
    sent = core_message(b"", BYTES_TYPE, a=text("x"))
    sent.body = bytes(range(250)) * 10
    message = keep(sent, large=True, size=2_500)
    message.message_id = MessageId(7)
    message.sequence = Sequence(7)
    encode = encoder()
    assert encode.is_large(message)
    frame, body = encode.encode_large(message, 1)
    decoder = open_decoder()
    head = decoder.next_frame(frame)
    assert isinstance(head, SessionReceiveLargeMessage)
    assert (head.channel, head.consumer_id, head.delivery_count, head.body_size) == (11, 2, 1, 2_500)
    assert (head.message.message_id, head.message.address, head.message.head) == (7, "orders", message.head)
    got: list[SessionReceiveContinuation] = []
    at = 0
    while at < len(body):
        pieces = encode.encode_part(body, at, 1_000)
        at += len(pieces[1])
        part = decoder.next_frame(b"".join(pieces))
        assert isinstance(part, SessionReceiveContinuation)
        assert part.size_bytes == PART_OVERHEAD_BYTES + len(pieces[1])
        got.append(part)
    assert b"".join(part.body for part in got) == sent.body
    assert [part.continues for part in got] == [True, True, False]
    assert {(part.channel, part.consumer_id) for part in got} == {(11, 2)}
    # Those that are small may be sent whole as well.
    assert received(message).message.body == sent.body
    assert not encode.is_large(stored(sent))


def test_a_body_of_whole_parts_and_an_empty_one_end_with_their_last_part() -> None:
    for body, parts in ((bytes(2_000), [True, False]), (b"", [False])):
        continues: list[bool] = []
        for at in range(0, max(len(body), 1), 1_000):
            packet = read(b"".join(encoder().encode_part(body, at, 1_000)))
            assert isinstance(packet, SessionReceiveContinuation)
            continues.append(packet.continues)
        assert continues == parts


def test_the_marker_is_that_of_artemis() -> None:
    packet = read(encoder().encode_marker("orders", 0))
    assert isinstance(packet, SessionReceiveMessage)
    theirs = golden_messages()["marker"]
    theirs.message_id = 0
    assert row(packet.message) == row(theirs)
    assert (packet.channel, packet.consumer_id, packet.delivery_count) == (11, 2, 0)


# --- of other protocols


def of_stomp(head: bytes, body: bytes, kind: int = TEXT_BODY) -> Message:
    message = Message(
        "orders",
        "stomp/12",
        head,
        body,
        body_kind=kind,
        durable=True,
        priority=6,
        timestamp_ms=NOW,
        expires_at_ms=9_000,
    )
    message.message_id = MessageId(7)
    message.sequence = Sequence(7)
    return message


def of_openwire() -> Message:
    sent = MessageCommand(28)
    sent.producer_id = ProducerId("c", 1, 1)
    sent.destination = Destination("orders")
    sent.message_id = OpenWireId(sent.producer_id, 1)
    sent.content = b"\0\0\0\3h\xc3\xa9"
    sent.marshalled_properties = encode_openwire_map(TYPED | {"AMQ_SCHEDULED_DELAY": TypedValue(LONG_KIND, 50)})
    sent.correlation_id = "c-1"
    sent.reply_to = Destination("answers", TEMP_QUEUE)
    sent.type = "order"
    sent.group_id = "g"
    sent.group_sequence = 3
    head = encode_head(sent, 12, 5)
    message = Message(
        "orders",
        "openwire/12",
        head,
        stored_body(sent),
        body_kind=BODY_KINDS[sent.code],
        timestamp_ms=NOW,
        due_at_ms=2_000,
        group_id="g",
        group_sequence=3,
    )
    message.message_id = MessageId(7)
    message.sequence = Sequence(7)
    return message


def test_a_message_of_openwire() -> None:
    packet = received(of_openwire(), by=encoder(ANYCAST))
    found = packet.message
    assert (found.message_id, found.address, found.type) == (7, "orders", TEXT_TYPE)
    assert found.body == b"\1\0\0\0\4h\0\xe9\0"
    assert properties_of(packet) == rows(TYPED) | {
        "JMSCorrelationID": (STRING_KIND, "c-1"),
        "JMSReplyTo": (STRING_KIND, "temp-queue://answers"),
        "JMSType": (STRING_KIND, "order"),
        "_AMQ_GROUP_ID": (STRING_KIND, "g"),
        "_AMQ_GROUP_SEQUENCE": (INT_KIND, 3),
        "_AMQ_SCHED_DELIVERY": (LONG_KIND, 2_000),
        "_AMQ_ROUTING_TYPE": (BYTE_KIND, 1),
    }


def test_a_message_of_stomp() -> None:
    packet = received(of_stomp(b"destination:orders\nx:1\n", b"hello"), 4, by=encoder(MULTICAST))
    found = packet.message
    assert (found.durable, found.priority, found.timestamp, found.expiration) == (True, 6, 1_000, 9_000)
    assert (found.type, found.body) == (TEXT_TYPE, b"\1\0\0\0\x0ah\0e\0l\0l\0o\0")
    assert properties_of(packet) == {"x": (STRING_KIND, "1"), "_AMQ_ROUTING_TYPE": (BYTE_KIND, 0)}
    packet = received(of_stomp(b"destination:orders\n", b"\0\1", BYTES_BODY))
    assert (packet.message.type, packet.message.body, properties_of(packet)) == (BYTES_TYPE, b"\0\1", {})


def test_messages_of_others_have_a_user_id_that_stays_and_differs() -> None:
    first = received(of_stomp(b"", b"x")).message.user_id
    # The id that Artemis's client of 2.44.0 reads of it.
    assert str(UUID(bytes=first)) == "00010203-0405-1607-8000-000000000007"
    assert received(of_stomp(b"", b"x"), 2).message.user_id == first
    other = of_stomp(b"", b"x")
    other.message_id = MessageId(8)
    other.sequence = Sequence(8)
    assert received(other).message.user_id != first


def test_a_dead_letter_of_stomp_has_the_types_of_artemis() -> None:
    message = of_stomp(b"destination:orders\n", b"x")
    message.annotations = {"_AMQ_ORIG_MESSAGE_ID": "5", "_AMQ_ORIG_ADDRESS": "orders"}
    message.address = "DLQ"
    packet = received(message)
    assert packet.message.address == "DLQ"
    assert properties_of(packet) == {
        "_AMQ_ORIG_MESSAGE_ID": (LONG_KIND, 5),
        "_AMQ_ORIG_ADDRESS": (STRING_KIND, "orders"),
    }


def test_a_message_of_another_protocol_may_be_sent_in_parts() -> None:
    encode = encoder()
    message = of_stomp(b"", b"x" * 5_000)
    assert not encode.is_large(message)
    frame, body = encode.encode_large(message, 1)
    head = read(frame)
    assert isinstance(head, SessionReceiveLargeMessage)
    assert head.body_size == len(body) == 10_005


def test_a_stream_of_deliveries_in_any_split_decodes_alike() -> None:
    encode = encoder()
    frames = [b"".join(encode.encode(stored(GOLDEN[name]), 1)) for name in ("text", "map", "bytes")]
    frames.append(b"".join(encode.encode(of_openwire(), 1)))
    stream = b"".join(frames)

    def decoded(size: int) -> list[object]:
        decoder = open_decoder()
        found: list[object] = []
        for at in range(0, len(stream), size):
            packet = decoder.next_frame(stream[at : at + size])
            while packet is not None:
                assert isinstance(packet, Packet)
                found.append(row(packet))
                packet = decoder.next_frame()
        return found

    whole = decoded(len(stream))
    assert len(whole) == 4
    for size in (1, 2, 7, 100, 333):
        assert decoded(size) == whole


@settings(max_examples=tries(30))
@given(st.data())
def test_a_send_through_a_decoder_is_received_the_same(choice: st.DataObject) -> None:
    sent = choice.draw(messages())
    sent.address = "orders"
    sent.expiration = 0
    sent.encode_head(sent.properties)
    decoder = open_decoder()
    packet = decoder.next_frame(encode_packet(SessionSend(sent), 136))
    assert isinstance(packet, SessionSend)
    found = received(stored(packet.message)).message
    assert (found.body, found.head) == (sent.body, sent.head)
