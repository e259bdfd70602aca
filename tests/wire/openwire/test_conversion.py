"""Messages cross between STOMP and OpenWire with their text, bytes, maps, streams and properties."""

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.model.conversion import Conversions
from delosmq.model.errors import PeerError
from delosmq.model.ids import WallMs
from delosmq.model.message import (
    BYTES_BODY,
    EMPTY_BODY,
    MAP_BODY,
    OBJECT_BODY,
    STREAM_BODY,
    TEXT_BODY,
    HubMessage,
    Message,
)
from delosmq.model.properties import (
    BOOLEAN_KIND,
    BYTE_KIND,
    DOUBLE_KIND,
    FLOAT_KIND,
    INT_KIND,
    LIST_KIND,
    LONG_KIND,
    MAP_KIND,
    NULL_KIND,
    SHORT_KIND,
    STRING_KIND,
    TypedValue,
)
from delosmq.selectors.subject import Subject
from delosmq.wire.openwire.bodies import hub_body, inflate
from delosmq.wire.openwire.commands import MessageCommand
from delosmq.wire.openwire.conversion import OpenWireConversion
from delosmq.wire.openwire.heads import BODY_KINDS, StoredReader, encode_head, stored_body
from delosmq.wire.openwire.primitives import decode_map, decode_stream, encode_map, encode_stream
from delosmq.wire.openwire.properties import decode_properties, plain_value
from delosmq.wire.openwire.structures import TEMP_QUEUE, TOPIC, Destination, MessageId, ProducerId, destination_of
from delosmq.wire.stomp.conversion import StompConversion, decode_head

OPENWIRE = OpenWireConversion(max_inflated_bytes=10_000)
STOMP = StompConversion()
PROPERTIES = {
    "flag": TypedValue(BOOLEAN_KIND, True),
    "tiny": TypedValue(BYTE_KIND, -1),
    "small": TypedValue(SHORT_KIND, 2),
    "whole": TypedValue(INT_KIND, 3),
    "long": TypedValue(LONG_KIND, 4),
    "single": TypedValue(FLOAT_KIND, 0.10000000149011612),
    "double": TypedValue(DOUBLE_KIND, 1e10),
    "text": TypedValue(STRING_KIND, "é\U0001f600"),
}


def command(code: int, content: bytes | None) -> MessageCommand:
    message = MessageCommand(code)
    message.producer_id = ProducerId("c", 1, 1)
    message.destination = Destination("orders")
    message.message_id = MessageId(message.producer_id, 1)
    message.content = content
    return message


def stored(sent: MessageCommand, annotations: dict[str, str] | None = None) -> Message:
    head = encode_head(sent, 12, 5)
    kind = BODY_KINDS[sent.code]
    return Message(
        "orders",
        "openwire/12",
        head,
        stored_body(sent),
        body_kind=kind,
        timestamp_ms=WallMs(1),
        annotations=annotations,
    )


def to_stomp(sent: MessageCommand) -> tuple[dict[str, str], bytes, int]:
    encoded = STOMP.from_hub(OPENWIRE.to_hub(stored(sent)), "orders")
    return decode_head(encoded.head, 12), encoded.body, encoded.body_kind


def from_stomp(head: bytes, body: bytes, kind: int) -> MessageCommand:
    message = Message("orders", "stomp/12", head, body, body_kind=kind, timestamp_ms=WallMs(1))
    encoded = OPENWIRE.from_hub(STOMP.to_hub(message), "orders")
    assert encoded.protocol == "openwire/12"
    return StoredReader().decode(
        Message(
            "orders", encoded.protocol, encoded.head, encoded.body, body_kind=encoded.body_kind, timestamp_ms=WallMs(1)
        )
    )


# --- headers and properties


def test_stomp_sees_properties_as_java_prints_them() -> None:
    sent = command(28, b"\0\0\0\1x")
    sent.marshalled_properties = encode_map(PROPERTIES | {"none": TypedValue(NULL_KIND, None)})
    sent.correlation_id = "c-1"
    sent.reply_to = Destination("answers", TEMP_QUEUE)
    sent.type = "order"
    sent.group_id = "g"
    headers, body, kind = to_stomp(sent)
    assert headers == {
        "destination": "orders",
        "correlation-id": "c-1",
        "reply-to": "/remote-temp-queue/answers",
        "type": "order",
        "JMSXGroupID": "g",
        "flag": "true",
        "tiny": "-1",
        "small": "2",
        "whole": "3",
        "long": "4",
        "single": "0.1",
        "double": "1.0E10",
        "text": "é\U0001f600",
    }
    assert (body, kind) == (b"x", TEXT_BODY)


def test_openwire_sees_stomp_headers_as_string_properties() -> None:
    head = b"destination:orders\ncorrelation-id:c-1\nreply-to:topic\\c//t\ntype:order\n"
    head += b"JMSXGroupID:g\nx:1\n_AMQ_DUPL_ID:d\n"
    got = from_stomp(head, b"hello", TEXT_BODY)
    assert (got.code, got.content) == (28, b"\0\0\0\5hello")
    assert (got.correlation_id, got.type, got.group_id) == ("c-1", "order", "g")
    assert got.reply_to is not None
    assert (got.reply_to.code, got.reply_to.name) == (TOPIC, "t")
    properties = decode_map(got.marshalled_properties or b"")
    assert {name: (each.kind, each.value) for name, each in properties.items()} == {"x": (STRING_KIND, "1")}


def test_the_hub_keeps_the_type_of_every_property() -> None:
    sent = command(24, b"x")
    sent.marshalled_properties = encode_map(PROPERTIES)
    hub = OPENWIRE.to_hub(stored(sent))
    assert {name: hub.property_kind(name) for name in hub.properties} == {
        name: each.kind for name, each in PROPERTIES.items()
    }
    encoded = OPENWIRE.from_hub(hub, "orders")
    back = StoredReader().decode(Message("a", encoded.protocol, encoded.head, encoded.body, timestamp_ms=WallMs(1)))
    assert back.marshalled_properties == sent.marshalled_properties
    assert hub.property_texts()["flag"] == "true"


def test_selectors_see_typed_values_and_no_bodies() -> None:
    sent = command(28, b"broken text")
    sent.marshalled_properties = encode_map(PROPERTIES)
    sent.type = "order"
    subject = Subject(Conversions({"openwire": OPENWIRE}))
    subject.look_at(stored(sent))
    assert [subject.value(name) for name in ("flag", "tiny", "double", "JMSType", "absent")] == [
        True,
        -1,
        1e10,
        "order",
        None,
    ]


def test_annotations_win_over_properties() -> None:
    sent = command(28, None)
    sent.marshalled_properties = encode_map(PROPERTIES)
    hub = OPENWIRE.to_hub(stored(sent, {"tiny": "x", "_AMQ_ORIG_ADDRESS": "a"}))
    assert hub.properties["tiny"] == "x"
    assert hub.property_kind("tiny") == STRING_KIND
    assert hub.properties["_AMQ_ORIG_ADDRESS"] == "a"


def test_odd_properties_show_as_far_as_they_can_be_read() -> None:
    sent = command(28, b"\0\0\0\0")
    sent.marshalled_properties = b"\0\0\0\1"
    assert OPENWIRE.to_hub(stored(sent)).properties == {}
    sent = command(28, None)
    nested = {"m": TypedValue(MAP_KIND, {"a": TypedValue(INT_KIND, 1)}), "l": TypedValue(LIST_KIND, [])}
    sent.marshalled_properties = encode_map(nested | {"s\ud800": TypedValue(STRING_KIND, "\ud800")})
    sent.correlation_id = "\ud800"
    headers, _, _ = to_stomp(sent)
    assert (headers["m"], headers["l"], headers["s?"], headers["correlation-id"]) == ('{"a":1}', "[]", "?", "?")


def test_properties_come_with_their_types() -> None:
    properties = decode_properties(encode_map(PROPERTIES))
    assert plain_value(properties["whole"]) == 3
    assert properties["tiny"].kind == BYTE_KIND
    assert decode_properties(None) == {}
    with pytest.raises(PeerError, match="DMQ5204"):
        decode_properties(b"\0")


def test_a_rewritten_head_has_other_properties() -> None:
    sent = command(28, b"\0\0\0\1x")
    sent.marshalled_properties = encode_map(PROPERTIES)
    message = stored(sent)
    message.head = OPENWIRE.rewritten_head(message, ("flag", "text"), {"tiny": "small", "absent": "x"}, ("long",))
    back = StoredReader().decode(message)
    entries = decode_map(back.marshalled_properties or b"")
    assert {name: (each.kind, each.value) for name, each in entries.items()} == {
        "whole": (INT_KIND, 3),
        "single": (FLOAT_KIND, 0.10000000149011612),
        "double": (DOUBLE_KIND, 1e10),
        "small": (BYTE_KIND, -1),
    }
    assert (back.broker_in_time, back.content) == (5, b"\0\0\0\1x")
    for marshalled in (None, b"\0\0\0\1"):
        sent = command(28, None)
        sent.marshalled_properties = marshalled
        message = stored(sent)
        assert OPENWIRE.rewritten_head(message, ("flag",), {}, ()) == message.head


def test_destinations_have_qualified_names() -> None:
    for name in ("queue://a", "topic://a", "temp-queue://a", "temp-topic://a"):
        assert destination_of(name).qualified_name() == name
    assert destination_of("a").qualified_name() == "queue://a"


def test_headers_too_long_for_openwire_are_left_out() -> None:
    hub = HubMessage(b"", EMPTY_BODY)
    hub.correlation_id = "é" * 40_000
    hub.properties["long"] = "é" * 40_000
    encoded = OPENWIRE.from_hub(hub, "a" * 70_000)
    back = StoredReader().decode(Message("a", encoded.protocol, encoded.head, b"", timestamp_ms=WallMs(1)))
    assert (back.code, back.correlation_id) == (23, None)
    assert decode_map(back.marshalled_properties or b"")["long"].value == "é" * 40_000


# --- bodies


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30))
def test_text_crosses_both_ways(text: str) -> None:
    if "\0" not in text:
        there = from_stomp(b"destination:orders\n", text.encode(), TEXT_BODY)
        assert there.code == 28
        assert to_stomp(there)[1:] == (text.encode(), TEXT_BODY)
    assert from_stomp(b"", text.encode(), BYTES_BODY).content == (text.encode() or None)


def test_maps_and_streams_cross_as_json() -> None:
    sent = command(25, encode_map(PROPERTIES))
    headers, body, kind = to_stomp(sent)
    assert (kind, headers["amq-msg-type"], headers["content-type"]) == (TEXT_BODY, "map", "application/json")
    assert json.loads(body)["whole"] == 3
    hub = OPENWIRE.to_hub(stored(sent))
    assert hub.body_kind == MAP_BODY
    encoded = OPENWIRE.from_hub(hub, "orders")
    assert (encoded.body, encoded.body_kind) == (sent.content, MAP_BODY)
    values = [TypedValue(BYTE_KIND, 1), TypedValue(STRING_KIND, "x"), TypedValue(NULL_KIND, None)]
    hub = OPENWIRE.to_hub(stored(command(27, encode_stream(values))))
    assert (hub.body, hub.body_kind) == (b'[{"byte":1},"x",null]', STREAM_BODY)
    assert OPENWIRE.from_hub(hub, "orders").body == encode_stream(values)
    for code, body in ((25, b"{}"), (27, b"[]"), (28, b""), (23, b""), (26, b""), (24, b"")):
        assert OPENWIRE.to_hub(stored(command(code, None))).body == body


def test_an_object_is_relayed_as_it_is() -> None:
    hub = OPENWIRE.to_hub(stored(command(26, b"\xac\xed\0\5")))
    assert (hub.body, hub.body_kind) == (b"\xac\xed\0\5", OBJECT_BODY)
    encoded = OPENWIRE.from_hub(hub, "orders")
    assert (encoded.body, encoded.body_kind) == (b"\xac\xed\0\5", OBJECT_BODY)


def test_what_is_not_the_map_it_claims_to_be_becomes_bytes() -> None:
    for kind in (MAP_BODY, STREAM_BODY):
        encoded = OPENWIRE.from_hub(HubMessage(b"oops", kind), "orders")
        assert (encoded.body, encoded.body_kind) == (b"oops", BYTES_BODY)


@pytest.mark.parametrize(
    "code, plain",
    [(28, b"\0\0\0\2hi"), (25, encode_map(PROPERTIES)), (27, b"\x09\0\1x"), (26, b"\xac\xed"), (23, b"x")],
)
def test_compressed_bodies_are_inflated(code: int, plain: bytes) -> None:
    sent = command(code, zlib.compress(plain))
    sent.compressed = True
    assert hub_body(sent) == hub_body(command(code, plain))
    sent.content = b"not zlib"
    hub = OPENWIRE.to_hub(stored(sent))
    assert (hub.body, hub.body_kind) == (b"not zlib", BYTES_BODY)
    with pytest.raises(PeerError, match="DMQ5216"):
        inflate(zlib.compress(plain)[:-3], False, 1000)


def test_compressed_bytes_are_cut_to_their_length() -> None:
    sent = command(24, (3).to_bytes(4) + zlib.compress(b"abcdef"))
    sent.compressed = True
    assert hub_body(sent) == b"abc"
    for content, code in (
        ((9).to_bytes(4) + zlib.compress(b"abc"), "DMQ5216"),
        ((20_000).to_bytes(4) + zlib.compress(b"abc"), "DMQ5217"),
        (b"abc", "DMQ5216"),
    ):
        with pytest.raises(PeerError, match=code):
            inflate(content, True, 10_000)
    assert inflate(bytes(4), True, 10) == b""
    assert inflate(b"\xff\xff\xff\xff", True, 10) == b""


def test_a_bomb_is_not_inflated() -> None:
    with pytest.raises(PeerError, match="DMQ5217"):
        inflate(zlib.compress(bytes(1_000_000)), False, 10_000)
    assert inflate(zlib.compress(bytes(10_000)), False, 10_000) == bytes(10_000)


@pytest.mark.parametrize("code, length", [(28, b""), (24, (11 << 20).to_bytes(4))])
def test_a_body_that_would_inflate_too_far_stays_compressed_and_says_so(code: int, length: bytes) -> None:
    deflated = zlib.compress(bytes(11 << 20))
    sent = command(code, length + deflated)
    sent.compressed = True
    sent.marshalled_properties = encode_map({"content-encoding": TypedValue(SHORT_KIND, 1)})
    hub = OpenWireConversion().to_hub(stored(sent))
    assert (hub.body, hub.body_kind) == (deflated, BYTES_BODY)
    assert (hub.properties["content-encoding"], hub.property_kind("content-encoding")) == ("deflate", STRING_KIND)


def test_what_many_ask_for_is_inflated_once() -> None:
    sent = command(28, zlib.compress((100).to_bytes(4) + b"x" * 100))
    sent.compressed = True
    conversion = OpenWireConversion()
    message = stored(sent)
    body = conversion.to_hub(message).body
    assert conversion.to_hub(message).body is body
    other = command(28, zlib.compress((1).to_bytes(4) + b"y"))
    other.compressed = True
    assert conversion.to_hub(stored(other)).body == b"y"
    assert conversion.to_hub(message).body == body


@pytest.mark.parametrize("content", [b"\0\0\0", b"\0\0\0\5abc", b"\0\0\0\1abc", b"\xff\xff\xff\xfex", b"\0\0\0\1\xff"])
def test_a_malformed_text_is_shown_as_bytes(content: bytes) -> None:
    with pytest.raises(PeerError):
        hub_body(command(28, content))
    hub = OPENWIRE.to_hub(stored(command(28, content)))
    assert (hub.body, hub.body_kind) == (content, BYTES_BODY)


def test_a_null_text_is_empty() -> None:
    for content in (None, b"\xff\xff\xff\xff", b"\0\0\0\0"):
        hub = OPENWIRE.to_hub(stored(command(28, content)))
        assert (hub.body, hub.body_kind) == (b"", TEXT_BODY)
    assert decode_stream(b"") == []
