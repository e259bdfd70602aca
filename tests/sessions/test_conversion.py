"""STOMP messages in the hub form, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.model.conversion import Conversions
from delosmq.model.errors import MisuseError
from delosmq.model.ids import WallMs
from delosmq.model.message import BYTES_BODY, TEXT_BODY, HubMessage, Message
from delosmq.wire.stomp.conversion import OF_FRAMES, PROTOCOL_TAGS, StompConversion, decode_head, encode_lines
from delosmq.wire.stomp.versions import V10, V11, V12


def stored(head: bytes, version: int = V12, annotations: dict[str, str] | None = None) -> Message:
    return Message(
        "a", PROTOCOL_TAGS[version], head, b"body", body_kind=TEXT_BODY, timestamp_ms=WallMs(1), annotations=annotations
    )


def test_headers_that_jms_knows_become_fields_and_the_rest_properties() -> None:
    head = b"destination:/queue/a\ncorrelation-id:c\\c1\ntype:t\nreply-to:/queue/r\ncontent-type:text/plain\nx:1\n"
    hub = StompConversion().to_hub(stored(head))
    assert (hub.correlation_id, hub.type, hub.reply_to, hub.content_type) == ("c:1", "t", "queue://r", "text/plain")
    assert hub.properties == {"x": "1"}
    assert (hub.body, hub.body_kind) == (b"body", TEXT_BODY)


def test_the_version_decides_about_escapes() -> None:
    assert StompConversion().to_hub(stored(b"x:a\\cb\n", V10)).properties == {"x": "a\\cb"}
    assert StompConversion().to_hub(stored(b"x:a\\cb\n", V11)).properties == {"x": "a:b"}


def test_what_the_broker_added_is_a_property_and_wins() -> None:
    hub = StompConversion().to_hub(stored(b"_AMQ_ORIG_ADDRESS:lie\n", annotations={"_AMQ_ORIG_ADDRESS": "a"}))
    assert hub.properties == {"_AMQ_ORIG_ADDRESS": "a"}


def test_an_empty_head_is_no_header() -> None:
    assert StompConversion().to_hub(stored(b"")).properties == {}


@given(
    st.dictionaries(
        st.text(min_size=1).filter(lambda name: "\0" not in name), st.text().filter(lambda value: "\0" not in value)
    )
)
def test_properties_survive_the_way_there_and_back(properties: dict[str, str]) -> None:
    hub = HubMessage(b"\xff\x00", BYTES_BODY)
    hub.properties = {name: value for name, value in properties.items() if name not in OF_FRAMES | {"type"}}
    hub.correlation_id = "a:b\n\\"
    encoded = StompConversion().from_hub(hub, "/queue/a")
    message = Message(
        "a", encoded.protocol, encoded.head, encoded.body, body_kind=encoded.body_kind, timestamp_ms=WallMs(1)
    )
    back = Conversions({"stomp": StompConversion()}).to_hub(message)
    assert back.correlation_id == hub.correlation_id
    assert back.body == hub.body
    for name, value in hub.properties.items():
        if name not in ("correlation-id", "reply-to", "content-type", "JMSXGroupID", "destination-type"):
            assert back.properties[name] == value


def test_lines_are_written_in_the_escapes_of_the_version() -> None:
    assert encode_lines([("a:b", "c\nd")], V12) == b"a\\cb:c\\nd\n"
    assert encode_lines([("a:b", "c\nd")], V10) == b"a_b:c d\n"
    assert decode_head(b"a:1\na:2\n", V12) == {"a": "1"}


def test_a_protocol_without_conversion_is_named() -> None:
    with pytest.raises(MisuseError, match="carrier-pigeon"):
        Conversions({}).to_hub(Message("a", "carrier-pigeon/1", b"", b"", timestamp_ms=WallMs(1)))
