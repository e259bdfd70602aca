"""What STOMP consumers and readers of rows see of the bodies that OpenWire clients send, and the other way round."""

import json
import zlib

import pytest

from delosmq.model.properties import BYTE_KIND, INT_KIND, STRING_KIND, TypedValue
from delosmq.sessions.lease.columns import Columns
from delosmq.wire.openwire.commands import (
    ACTIVEMQ_MESSAGE,
    BYTES_MESSAGE,
    MAP_MESSAGE,
    OBJECT_MESSAGE,
    STREAM_MESSAGE,
    TEXT_MESSAGE,
    MessageCommand,
)
from delosmq.wire.openwire.modified_utf8 import encode_text
from delosmq.wire.openwire.primitives import encode_map, encode_stream
from delosmq.wire.stomp.decoder import StompFrame
from tests.sessions.openwire.stomp_peer import StompPeer
from tests.sessions.openwire.support import OpenWireBench, queue

A = queue("a")
MAP = encode_map({"pots": TypedValue(INT_KIND, 5), "tiny": TypedValue(BYTE_KIND, 1)})
STREAM = encode_stream([TypedValue(INT_KIND, 5), TypedValue(STRING_KIND, "x")])
JAVA = b"\xac\xed\x00\x05t\x00\x01x"


def text_content(text: str) -> bytes:
    encoded = encode_text(text)
    return len(encoded).to_bytes(4, "big") + encoded


def crossed(code: int, content: bytes | None, *, compressed: bool = False, version: str = "1.2") -> StompFrame:
    """What a STOMP consumer gets of a message."""
    bench = OpenWireBench()
    client = bench.connect()
    stomp = StompPeer(bench)
    stomp.frame("SUBSCRIBE", "id:0", "destination:/queue/a")
    command = client.text(A, "")
    command.code, command.content, command.compressed = code, content, compressed
    client.ok(command)
    (frame,) = stomp.take()
    return frame


@pytest.mark.parametrize("text", ["one pot", "", "grüß", "\U0001f600 tea", "a\x7fb"])
def test_a_text_is_utf8_without_a_length(text: str) -> None:
    frame = crossed(TEXT_MESSAGE, text_content(text))
    assert frame.body.decode() == text
    assert "content-length" not in frame.headers
    assert "amq-msg-type" not in frame.headers


def test_a_text_with_a_nul_needs_its_length() -> None:
    frame = crossed(TEXT_MESSAGE, text_content("a\0b"))
    assert (frame.body, frame.headers["content-length"]) == (b"a\0b", "3")


@pytest.mark.parametrize(("code", "content"), [(TEXT_MESSAGE, None), (ACTIVEMQ_MESSAGE, None)])
def test_null_and_no_body_are_an_empty_text(code: int, content: bytes | None) -> None:
    frame = crossed(code, content)
    assert frame.body == b""
    assert "content-length" not in frame.headers


@pytest.mark.parametrize(
    ("code", "content", "kind", "value"),
    [
        (MAP_MESSAGE, MAP, "map", {"pots": 5, "tiny": {"byte": 1}}),
        (STREAM_MESSAGE, STREAM, "stream", [5, "x"]),
        (MAP_MESSAGE, None, "map", {}),
    ],
)
def test_maps_and_streams_are_json_that_says_so(code: int, content: bytes, kind: str, value: object) -> None:
    frame = crossed(code, content)
    assert json.loads(frame.body) == value
    assert "content-length" not in frame.headers
    assert (frame.headers["amq-msg-type"], frame.headers["content-type"]) == (kind, "application/json")


def test_an_object_is_bytes_that_nobody_has_read() -> None:
    frame = crossed(OBJECT_MESSAGE, JAVA)
    assert (frame.body, frame.headers["content-length"]) == (JAVA, str(len(JAVA)))
    assert frame.headers["amq-msg-type"] == "object"
    assert crossed(OBJECT_MESSAGE, b"no NUL").headers["content-length"] == "6"


@pytest.mark.parametrize(
    ("code", "content", "body"),
    [
        (TEXT_MESSAGE, zlib.compress(text_content("grüß")), "grüß".encode()),
        (BYTES_MESSAGE, (3).to_bytes(4, "big") + zlib.compress(b"a\0b"), b"a\0b"),
        (STREAM_MESSAGE, zlib.compress(STREAM), b'[5,"x"]'),
    ],
)
def test_what_is_compressed_comes_inflated(code: int, content: bytes, body: bytes) -> None:
    assert crossed(code, content, compressed=True).body == body


def test_what_would_grow_too_large_comes_compressed_and_says_so() -> None:
    deflated = zlib.compress(bytes(11 << 20))
    frame = crossed(TEXT_MESSAGE, deflated, compressed=True)
    assert (frame.body, frame.headers["content-length"]) == (deflated, str(len(deflated)))
    assert frame.headers["content-encoding"] == "deflate"


def test_properties_named_as_headers_of_the_broker_do_not_pass_for_them() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    stomp = StompPeer(bench)
    stomp.frame("SUBSCRIBE", "id:0", "destination:/queue/a")
    command = client.text(A, "whole")
    names = ("content-length", "message-id", "subscription", "ack", "amq-msg-type", "destination", "mine")
    command.marshalled_properties = encode_map({name: TypedValue(STRING_KIND, "2") for name in names})
    client.ok(command)
    (frame,) = stomp.take()
    assert frame.body == b"whole"
    assert (frame.headers["destination"], frame.headers["subscription"]) == ("/queue/a", "0")
    assert {"content-length", "ack", "amq-msg-type"}.isdisjoint(frame.headers)
    assert frame.headers["mine"] == "2"


@pytest.mark.parametrize(
    ("code", "content", "body", "kind"),
    [
        (TEXT_MESSAGE, text_content("\U0001f600"), "\U0001f600".encode(), "text"),
        (MAP_MESSAGE, MAP, b'{"pots":5,"tiny":{"byte":1}}', "map"),
        (OBJECT_MESSAGE, JAVA, JAVA, "object"),
    ],
)
def test_rows_of_leases_have_the_same_bodies(code: int, content: bytes, body: bytes, kind: str) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    command = client.text(A, "")
    command.code, command.content = code, content
    command.reply_to = queue("back")
    client.ok(command)
    slot = bench.queue("a").pending.head()
    assert slot is not None
    columns = Columns(("body", "body_kind", "reply_to"), "a", bench.services.conversions)
    assert columns.add([slot], 0, 1, 1_000) == 1
    assert columns.values == [[body], [kind], ["queue://back"]]


# -- STOMP says what its bodies are ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "body", "code", "content"),
    [
        ("amq-msg-type:text", b"tea", TEXT_MESSAGE, text_content("tea")),
        ("amq-msg-type:bytes", b"tea", BYTES_MESSAGE, b"tea"),
        ("amq-msg-type:map", b'{"pots":5,"tiny":{"byte":1}}', MAP_MESSAGE, MAP),
        ("amq-msg-type:stream", b'[5,"x"]', STREAM_MESSAGE, STREAM),
        ("amq-msg-type:map", b"no map", BYTES_MESSAGE, b"no map"),
    ],
)
def test_a_sender_names_the_kind_of_its_body(header: str, body: bytes, code: int, content: bytes) -> None:
    got = sent_by_stomp(header, f"content-length:{len(body)}", body=body)
    assert (got.code, got.content) == (code, content)


def sent_by_stomp(*headers: str, body: bytes) -> MessageCommand:
    bench = OpenWireBench()
    reader = bench.connect().consume(A)
    StompPeer(bench).frame("SEND", "destination:/queue/a", *headers, body=body)
    (dispatch,) = reader.take()
    assert dispatch.message is not None
    return dispatch.message


def test_an_unknown_kind_is_refused() -> None:
    stomp = StompPeer(OpenWireBench())
    stomp.frame("SEND", "destination:/queue/a", "amq-msg-type:blob")
    (error,) = stomp.take()
    assert error.command == "ERROR"
    assert "DMQ5112" in error.headers["message"] + error.body.decode()
