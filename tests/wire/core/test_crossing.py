"""Messages cross between CORE, OpenWire and STOMP with their bodies, headers and properties."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delosmq.model.message import BYTES_BODY, EMPTY_BODY, MAP_BODY, TEXT_BODY, HubMessage, Message
from delosmq.model.properties import INT_KIND, LONG_KIND, STRING_KIND, TypedValue
from delosmq.wire.core.message import TEXT_TYPE
from delosmq.wire.openwire.conversion import OpenWireConversion
from delosmq.wire.openwire.heads import StoredReader
from delosmq.wire.openwire.primitives import decode_map
from delosmq.wire.stomp.conversion import StompConversion, decode_head
from tests.chance import tries
from tests.wire.core.support import texts
from tests.wire.core.test_bodies import ENTRIES, typed_values
from tests.wire.core.test_conversion import (
    CORE,
    GOLDEN,
    NOW,
    TYPED,
    as_message,
    core_head,
    core_message,
    core_rows,
    keep,
    rows,
)

OPENWIRE = OpenWireConversion()
STOMP = StompConversion()


def through_openwire(message: Message) -> Message:
    return as_message(OPENWIRE.from_hub(CORE.to_hub(message), "orders"))


def back_to_core(message: Message, conversion: OpenWireConversion | StompConversion = OPENWIRE) -> Message:
    return as_message(CORE.from_hub(conversion.to_hub(message), "orders"))


def test_openwire_gets_every_type() -> None:
    got = StoredReader().decode(through_openwire(keep(core_message(b"\1\0\0\0\2x\0", TEXT_TYPE, **TYPED))))
    assert (got.code, got.content) == (28, b"\0\0\0\1x")
    assert rows(decode_map(got.marshalled_properties or b"")) == ENTRIES
    got = StoredReader().decode(through_openwire(keep(GOLDEN["headers"])))
    assert (got.correlation_id, got.type, got.group_id) == ("c-1", "order", "g")
    assert got.reply_to is not None
    assert got.reply_to.qualified_name() == "queue://answers"
    # What begins with _AMQ concerns the broker, and JMSXGroupSeq is a field of a dispatch.
    assert decode_map(got.marshalled_properties or b"\0\0\0\0") == {}


@pytest.mark.parametrize(
    "name, code", [("text", 28), ("map", 25), ("stream", 27), ("object", 26), ("bytes", 24), ("default", 23)]
)
def test_a_message_of_each_kind_crosses_to_openwire_and_back(name: str, code: int) -> None:
    kept = keep(GOLDEN[name])
    there = through_openwire(kept)
    assert StoredReader().decode(there).code == code
    back = back_to_core(there)
    assert (back.body, core_head(back).type) == (kept.body, GOLDEN[name].type)


@settings(max_examples=tries(60))
@given(st.dictionaries(texts.filter(lambda name: not name.startswith(("_AMQ", "__"))), typed_values, max_size=6))
def test_openwire_to_core_and_back_keeps_properties_with_types(properties: dict[str, TypedValue]) -> None:
    hub = HubMessage(b"{}", MAP_BODY)
    for name, typed in properties.items():
        value = typed.value
        if value is not None and not isinstance(value, dict | list):
            hub.properties[name] = value
            hub.property_kinds[name] = typed.kind
    sent = as_message(OPENWIRE.from_hub(hub, "orders"))
    back = as_message(OPENWIRE.from_hub(CORE.to_hub(back_to_core(sent)), "orders"))
    marshalled = StoredReader().decode(back).marshalled_properties
    assert marshalled == StoredReader().decode(sent).marshalled_properties
    assert (back.body, back.body_kind) == (sent.body, sent.body_kind)


def test_stomp_sees_properties_as_java_prints_them() -> None:
    sent = GOLDEN["headers"]
    encoded = STOMP.from_hub(CORE.to_hub(keep(sent)), "orders")
    headers = decode_head(encoded.head, 12)
    headers.pop("__AMQ_CID")
    assert headers == {
        "destination": "orders",
        "correlation-id": "c-1",
        "reply-to": "/queue/answers",
        "type": "order",
        "JMSXGroupID": "g",
        "JMSXGroupSeq": "3",
        "_AMQ_DUPL_ID": "d-1",
        "_AMQ_LVQ_NAME": "k",
    }
    assert (encoded.body, encoded.body_kind) == (b"t", TEXT_BODY)
    encoded = STOMP.from_hub(CORE.to_hub(keep(core_message(b"", **TYPED))), "orders")
    shown = decode_head(encoded.head, 12)
    assert [shown[name] for name in ("boolean", "byte", "float", "bytes", "char")] == [
        "true",
        "-2",
        "1.5",
        "0102FF",
        "€",
    ]


def test_maps_and_streams_come_to_stomp_as_json() -> None:
    for name, kind in (("map", "map"), ("stream", "stream")):
        encoded = STOMP.from_hub(CORE.to_hub(keep(GOLDEN[name])), "orders")
        assert decode_head(encoded.head, 12)["amq-msg-type"] == kind
        assert json.loads(encoded.body)


def test_core_sees_stomp_headers_as_string_properties() -> None:
    head = b"destination:orders\ncorrelation-id:c-1\nreply-to:/topic/t\ntype:order\ncontent-type:text/plain\n"
    head += b"JMSXGroupID:g\nJMSXGroupSeq:3\nx:1\n_AMQ_DUPL_ID:d\n_AMQ_SCHED_DELIVERY:5\nAMQ_SCHEDULED_DELAY:5\n"
    head += b"_AMQ_ROUTING_TYPE:1\n_AMQ_LARGE_COMPRESSED:true\n_hornetq.forced.delivery.seq:1\n_AMQ_GROUP_ID:forged\n"
    message = Message("orders", "stomp/12", head, b"h\xc3\xa9", body_kind=TEXT_BODY, timestamp_ms=NOW)
    got = back_to_core(message, STOMP)
    assert core_rows(got) == {
        "x": (STRING_KIND, "1"),
        "_AMQ_DUPL_ID": (STRING_KIND, "d"),
        "JMSCorrelationID": (STRING_KIND, "c-1"),
        "JMSReplyTo": (STRING_KIND, "topic://t"),
        "JMSType": (STRING_KIND, "order"),
        "_AMQ_CONTENT_TYPE": (STRING_KIND, "text/plain"),
        "_AMQ_GROUP_ID": (STRING_KIND, "g"),
        "_AMQ_GROUP_SEQUENCE": (INT_KIND, 3),
        "_AMQ_SCHED_DELIVERY": (LONG_KIND, 5),
    }
    assert core_head(got).type == TEXT_TYPE
    assert got.body == b"\1\0\0\0\4h\0\xe9\0"


@settings(max_examples=tries(40))
@given(st.sampled_from((TEXT_BODY, BYTES_BODY)), st.text(st.characters(exclude_categories=("Cs",)), max_size=20))
def test_what_stomp_sends_comes_back_to_it(kind: int, sent: str) -> None:
    message = Message("orders", "stomp/12", b"destination:orders\n", sent.encode(), body_kind=kind, timestamp_ms=NOW)
    back = STOMP.from_hub(CORE.to_hub(back_to_core(message, STOMP)), "orders")
    assert back.body == sent.encode()
    assert back.body_kind == (BYTES_BODY if "\0" in sent else kind)


@pytest.mark.parametrize("value", ["x", "", "-", "1" * 20, "99999999999999999999", 1.5, True, b"5", "\u0665"])
def test_a_number_that_is_none_is_left_out(value: str | float | bool | bytes) -> None:
    hub = HubMessage(b"", EMPTY_BODY)
    hub.properties["JMSXGroupSeq"] = value
    hub.properties["_AMQ_SCHED_DELIVERY"] = value
    assert core_rows(as_message(CORE.from_hub(hub, "orders"))) == {}
