"""CORE messages as the broker keeps them, and across to the other protocols and back."""

import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delosmq.model.conversion import Conversions, Encoded
from delosmq.model.errors import LimitError, MisuseError
from delosmq.model.ids import WallMs
from delosmq.model.message import (
    ANYCAST,
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
    BYTES_KIND,
    CHAR_KIND,
    INT_KIND,
    LONG_KIND,
    NULL_KIND,
    STRING_KIND,
    TypedValue,
)
from delosmq.selectors.subject import Subject
from delosmq.wire.core.conversion import LARGE_TAG, PROTOCOL_TAG, CoreConversion, stored_message
from delosmq.wire.core.message import (
    BYTES_TYPE,
    DEFAULT_TYPE,
    EMBEDDED_TYPE,
    MAP_TYPE,
    OBJECT_TYPE,
    STREAM_TYPE,
    TEXT_TYPE,
    CoreMessage,
    CoreMessageReader,
)
from delosmq.wire.core.properties import (
    FORCED_DELIVERY,
    LARGE_BODY_SIZE,
    LARGE_COMPRESSED,
    ROUTING_TYPE,
    BrokerPropertyReader,
    decode_properties,
    encode_properties,
    read_broker_properties,
)
from tests.chance import tries
from tests.wire.core.support import golden_messages, texts
from tests.wire.core.test_bodies import ENTRIES, typed_values

CORE = CoreConversion(max_inflated_bytes=200_000)
GOLDEN = golden_messages()
NOW = WallMs(1_000)
TYPED = {name: TypedValue(kind, value) for name, (kind, value) in ENTRIES.items()}
Rows = dict[str, tuple[int, object]]


def core_message(body: bytes, core_type: int = BYTES_TYPE, **properties: TypedValue) -> CoreMessage:
    message = CoreMessage()
    message.address = "orders"
    message.type = core_type
    message.body = body
    message.encode_head(encode_properties(properties))
    return message


def keep(sent: CoreMessage, address: str = "orders", *, large: bool = False, size: int = -1) -> Message:
    asked = BrokerPropertyReader().read(sent.properties)
    return stored_message(sent, address, asked, NOW, user="ann", connection_id="c-1", large=large, large_body_size=size)


def as_message(encoded: Encoded) -> Message:
    return Message(
        "orders", encoded.protocol, encoded.head, encoded.body, body_kind=encoded.body_kind, timestamp_ms=NOW
    )


def rows(entries: dict[str, TypedValue]) -> Rows:
    return {name: (typed.kind, typed.value) for name, typed in entries.items()}


def core_head(message: Message) -> CoreMessage:
    return CoreMessageReader().read_head(message.head, 0, len(message.head))


def core_rows(message: Message) -> Rows:
    return rows(decode_properties(core_head(message).properties))


def text(value: str) -> TypedValue:
    return TypedValue(STRING_KIND, value)


# --- what a SEND gives


def test_a_message_is_kept_as_it_came() -> None:
    sent = GOLDEN["text"]
    message = keep(sent)
    assert (message.protocol, message.head, message.body) == (PROTOCOL_TAG, sent.head, sent.body)
    assert message.body is sent.body
    assert (message.address, message.durable, message.priority, message.expires_at_ms) == ("orders", True, 4, 0)
    assert (message.user, message.connection_id, message.body_kind) == ("ann", "c-1", TEXT_BODY)
    assert message.timestamp_ms == sent.timestamp > 0
    assert message.annotations is None


def test_the_broker_knows_what_it_is_asked_for() -> None:
    message = keep(GOLDEN["headers"])
    assert (message.group_id, message.group_sequence, message.duplicate_id) == ("g", 3, b"d-1")
    delayed = keep(GOLDEN["delayed"])
    assert (delayed.priority, delayed.durable, delayed.expires_at_ms) == (7, False, GOLDEN["delayed"].expiration)
    assert delayed.due_at_ms - delayed.timestamp_ms in range(90, 1_000)
    assert read_broker_properties(GOLDEN["delayed"].properties).routing == ANYCAST


def test_without_a_timestamp_the_broker_has_its_own_and_consumers_none() -> None:
    message = keep(GOLDEN["no-id"])
    assert message.timestamp_ms == NOW
    assert core_head(message).timestamp == 0
    assert CORE.message_id(message) is None


def test_odd_numbers_are_brought_into_their_bounds() -> None:
    sent = core_message(b"x")
    sent.priority = 12
    sent.expiration = -5
    sent.timestamp = -1
    message = keep(sent)
    assert (message.priority, message.expires_at_ms, message.timestamp_ms) == (9, 0, NOW)


def test_what_only_the_broker_says_is_taken_off() -> None:
    message = keep(GOLDEN["headers"])
    names = core_rows(message)
    assert "_AMQ_VALIDATED_USER" not in names
    assert "_AMQ_ORIG_ADDRESS" not in names
    assert names["_AMQ_LVQ_NAME"] == (STRING_KIND, "k")
    forged = keep(core_message(b"x", **{FORCED_DELIVERY: TypedValue(LONG_KIND, 1), "kept": text("x")}))
    assert core_rows(forged) == {"kept": (STRING_KIND, "x")}


def test_the_address_of_the_head_is_that_of_the_message() -> None:
    sent = core_message(b"x", a=text("x"))
    sent.user_id = bytes(range(16))
    sent.encode_head(sent.properties)
    for address in (None, "prefix:orders"):
        sent.address = address
        sent.encode_head(sent.properties)
        message = keep(sent)
        found = core_head(message)
        assert (found.address, found.user_id) == ("orders", bytes(range(16)))
        assert core_rows(message) == {"a": (STRING_KIND, "x")}
        # As Artemis's client reads these bytes.
        assert CORE.message_id(message) == "ID:00010203-0405-1607-8809-0a0b0c0d0e0f"


def test_a_large_message_tells_its_size() -> None:
    sent = core_message(b"", MAP_TYPE, a=text("x"))
    sent.body = b"\0" * 300_000
    message = keep(sent, large=True, size=300_000)
    assert message.protocol == LARGE_TAG
    assert core_rows(message) == {"a": (STRING_KIND, "x"), LARGE_BODY_SIZE: (LONG_KIND, 300_000)}
    assert core_rows(keep(sent, large=True)) == {"a": (STRING_KIND, "x")}


def test_ids_that_can_not_be_kept_are_refused() -> None:
    for name in ("_AMQ_GROUP_ID", "_AMQ_DUPL_ID"):
        with pytest.raises(LimitError, match=f"DMQ5613: the property {name}"):
            keep(core_message(b"", **{name: text("x" * 1_025)}))
        keep(core_message(b"", **{name: text("x" * 1_024)}))


def test_ids_of_messages() -> None:
    message = keep(GOLDEN["text"])
    digits = GOLDEN["text"].user_id.hex()
    message_id = CORE.message_id(message)
    assert message_id is not None
    assert message_id.removeprefix("ID:").replace("-", "") == digits
    assert [len(part) for part in message_id.split("-")] == [11, 4, 4, 4, 12]
    assert CORE.has_id(message, message_id)
    assert not CORE.has_id(message, "ID:x")


# --- to the hub form


def test_headers_of_jms_become_fields() -> None:
    hub = CORE.to_hub(keep(GOLDEN["headers"]))
    assert (hub.body, hub.body_kind) == (b"t", TEXT_BODY)
    assert (hub.correlation_id, hub.correlation_bytes, hub.type, hub.group_id) == ("c-1", None, "order", "g")
    assert hub.reply_to == "queue://answers"
    names = set(hub.properties)
    assert names == {"JMSXGroupSeq", "_AMQ_DUPL_ID", "_AMQ_LVQ_NAME", "__AMQ_CID"}
    assert (hub.properties["JMSXGroupSeq"], hub.property_kind("JMSXGroupSeq")) == (3, INT_KIND)
    assert CORE.headers_to_hub(keep(GOLDEN["headers"])).properties == hub.properties


def test_a_correlation_id_of_bytes_is_a_text_if_it_is_one() -> None:
    hub = CORE.to_hub(keep(GOLDEN["headers-bytes"]))
    assert (hub.correlation_id, hub.correlation_bytes) == (None, b"\1\2\xff")
    assert hub.reply_to is not None
    assert hub.reply_to.startswith("temp-topic://")
    hub = CORE.to_hub(keep(core_message(b"", JMSCorrelationID=TypedValue(BYTES_KIND, b"c-1"))))
    assert (hub.correlation_id, hub.correlation_bytes) == ("c-1", b"c-1")
    hub = CORE.to_hub(keep(core_message(b"", JMSCorrelationID=TypedValue(LONG_KIND, 7))))
    assert hub.correlation_id == "7"


def test_how_a_message_travels_among_core_peers_is_nobody_elses_concern() -> None:
    inner = {
        ROUTING_TYPE: TypedValue(BYTE_KIND, 1),
        LARGE_BODY_SIZE: TypedValue(LONG_KIND, 5),
        "__HDR_ARRIVAL": TypedValue(LONG_KIND, 1),
        "_AMQ_ROUTE_TOqueue": TypedValue(BYTES_KIND, b"x"),
        "nothing": TypedValue(NULL_KIND, None),
        "_AMQ_CONTENT_TYPE": text("text/plain"),
    }
    hub = CORE.to_hub(keep(core_message(b"", **inner, a=text("x"))))
    assert hub.properties == {"a": "x"}
    assert hub.content_type == "text/plain"


def test_annotations_win_over_properties() -> None:
    message = keep(core_message(b"", a=TypedValue(BYTE_KIND, 1)))
    message.annotations = {"a": "x", "_AMQ_ORIG_ADDRESS": "elsewhere"}
    hub = CORE.to_hub(message)
    assert (hub.properties["a"], hub.property_kind("a")) == ("x", STRING_KIND)
    assert hub.properties["_AMQ_ORIG_ADDRESS"] == "elsewhere"


def test_selectors_see_typed_values_and_no_bodies() -> None:
    sent = core_message(b"\1broken", TEXT_TYPE, JMSType=text("order"), __AMQ_CID=text("me"), **TYPED)
    subject = Subject(Conversions({"core": CORE}))
    subject.look_at(keep(sent))
    seen = [subject.value(name) for name in ("boolean", "byte", "double", "char", "JMSType", "__AMQ_CID", "absent")]
    assert seen == [True, -2, -2.25, "€", "order", "me", None]


def test_the_body_alone() -> None:
    for name in ("text", "map", "stream", "object", "bytes", "compressed-text"):
        whole = CORE.to_hub(keep(GOLDEN[name]))
        alone = CORE.body_to_hub(keep(GOLDEN[name]))
        assert (alone.body, alone.body_kind) == (whole.body, whole.body_kind)


# --- compressed bodies


def with_flag(body: bytes, core_type: int = TEXT_TYPE) -> Message:
    return keep(core_message(body, core_type, **{LARGE_COMPRESSED: TypedValue(BOOLEAN_KIND, True)}))


def test_compressed_bodies_are_inflated() -> None:
    for name, body, kind in (
        ("compressed-text", b"x" * 60_000, TEXT_BODY),
        ("compressed-map", json.dumps({"k": "x" * 60_000}, separators=(",", ":")).encode(), MAP_BODY),
    ):
        hub = CORE.to_hub(keep(GOLDEN[name]))
        assert (hub.body, hub.body_kind) == (body, kind)
        assert set(hub.properties) == {"__AMQ_CID"}


def test_a_body_that_would_inflate_too_far_stays_compressed_and_says_so() -> None:
    message = keep(GOLDEN["compressed-bytes"])
    hub = CORE.to_hub(message)
    assert (hub.body, hub.body_kind) == (message.body, BYTES_BODY)
    assert (hub.properties["content-encoding"], hub.property_kind("content-encoding")) == ("deflate", STRING_KIND)
    assert CoreConversion().to_hub(message).body == bytes(204_800)
    odd = CORE.to_hub(with_flag(b"not zlib"))
    assert (odd.body, odd.body_kind, odd.properties) == (b"not zlib", BYTES_BODY, {})


def test_what_many_ask_for_is_inflated_once() -> None:
    conversion = CoreConversion()
    message = with_flag(zlib.compress(b"\1\0\0\0\2x\0"))
    body = conversion.to_hub(message).body
    assert body == b"x"
    assert conversion.to_hub(message).body is body
    assert conversion.to_hub(with_flag(zlib.compress(b"\1\0\0\0\2y\0"))).body == b"y"


# --- rewritten heads


def test_a_rewritten_head_has_other_properties() -> None:
    sent = core_message(b"x", **TYPED)
    sent.user_id = bytes(16)
    sent.durable = True
    sent.encode_head(sent.properties)
    message = keep(sent)
    message.head = CORE.rewritten_head(message, ("boolean", "string"), {"byte": "short", "absent": "x"}, ("long",))
    found = core_rows(message)
    assert found["short"] == (BYTE_KIND, -2)
    assert set(found) == set(ENTRIES) - {"boolean", "string", "byte", "long"}
    assert core_head(message).durable
    assert core_head(message).user_id == bytes(16)


def test_a_head_of_another_protocol_is_none() -> None:
    with pytest.raises(MisuseError, match="DMQ5616"):
        CORE.to_hub(Message("a", "stomp/12", b"x:y\n", b"", timestamp_ms=NOW))
    with pytest.raises(MisuseError, match="DMQ5616"):
        CORE.headers_to_hub(Message("a", PROTOCOL_TAG, b"", b"", timestamp_ms=NOW))


# --- there and back


@settings(max_examples=tries(80))
@given(
    st.dictionaries(texts.filter(lambda name: not name.startswith(("_AMQ", "__HDR"))), typed_values, max_size=6),
    st.none() | texts,
    st.none() | st.binary(max_size=8),
    st.sampled_from((None, "queue://a", "topic://b", "temp-queue://c", "temp-topic://d", "only-mine")),
)
def test_core_to_the_hub_and_back_is_the_same(
    properties: dict[str, TypedValue], word: str | None, octets: bytes | None, reply_to: str | None
) -> None:
    given_properties = {name: typed for name, typed in properties.items() if typed.kind != NULL_KIND}
    fields: dict[str, TypedValue] = {}
    if word is not None:
        fields |= {"JMSCorrelationID": text(word), "JMSType": text(word), "_AMQ_CONTENT_TYPE": text(word)}
        fields |= {"_AMQ_GROUP_ID": text(word), "_AMQ_GROUP_SEQUENCE": TypedValue(INT_KIND, len(word))}
    if octets is not None:
        fields["JMSCorrelationID"] = TypedValue(BYTES_KIND, octets)
        fields["_AMQ_DUPL_ID"] = TypedValue(BYTES_KIND, octets)
        fields["_AMQ_SCHED_DELIVERY"] = TypedValue(LONG_KIND, len(octets))
    if reply_to is not None:
        fields["JMSReplyTo"] = text(reply_to)
    message = core_message(b"x")
    message.encode_head(encode_properties(given_properties | fields))
    kept = keep(message)
    back = as_message(CORE.from_hub(CORE.to_hub(kept), "orders"))
    assert core_rows(back) == core_rows(kept)
    assert (back.body, back.body_kind) == (b"x", BYTES_BODY)


@pytest.mark.parametrize("name", ["text", "map", "stream", "object", "bytes", "default"])
def test_bodies_come_back(name: str) -> None:
    kept = keep(GOLDEN[name])
    back = as_message(CORE.from_hub(CORE.to_hub(kept), "orders"))
    assert (back.body, back.body_kind) == (kept.body, kept.body_kind)
    assert core_head(back).type == GOLDEN[name].type
    assert (back.protocol, core_head(back).address) == (PROTOCOL_TAG, "orders")


def test_what_the_broker_says_has_the_types_of_artemis() -> None:
    hub = HubMessage(b"", EMPTY_BODY)
    hub.properties = {
        "_AMQ_ORIG_ADDRESS": "orders",
        "_AMQ_ORIG_QUEUE": "q",
        "_AMQ_ORIG_MESSAGE_ID": "7",
        "_AMQ_ORIG_ROUTING_TYPE": "1",
        "_AMQ_ACTUAL_EXPIRY": "1700000000000",
    }
    assert core_rows(as_message(CORE.from_hub(hub, "dead"))) == {
        "_AMQ_ORIG_ADDRESS": (STRING_KIND, "orders"),
        "_AMQ_ORIG_QUEUE": (STRING_KIND, "q"),
        "_AMQ_ORIG_MESSAGE_ID": (LONG_KIND, 7),
        "_AMQ_ORIG_ROUTING_TYPE": (BYTE_KIND, 1),
        "_AMQ_ACTUAL_EXPIRY": (LONG_KIND, 1_700_000_000_000),
    }


def test_a_char_stays_one() -> None:
    kept = keep(core_message(b"", c=TypedValue(CHAR_KIND, "x")))
    assert CORE.to_hub(kept).property_kind("c") == CHAR_KIND
    assert core_rows(as_message(CORE.from_hub(CORE.to_hub(kept), "a"))) == {"c": (CHAR_KIND, "x")}


def test_a_message_of_amqp_is_bytes() -> None:
    kept = keep(core_message(b"amqp", EMBEDDED_TYPE))
    assert (CORE.to_hub(kept).body, CORE.to_hub(kept).body_kind) == (b"amqp", BYTES_BODY)
    assert kept.body_kind == BYTES_BODY
    assert keep(core_message(b"", OBJECT_TYPE)).body_kind == OBJECT_BODY
    assert keep(core_message(b"", STREAM_TYPE)).body_kind == STREAM_BODY
    assert keep(core_message(b"", DEFAULT_TYPE)).body_kind == EMPTY_BODY
