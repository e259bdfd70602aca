"""The encoder's decisions: what cannot be expressed, content-length, relayed and transcoded heads."""

import pytest

from delosmq.model.errors import MisuseError, PeerError
from delosmq.wire.stomp.decoder import StompFrame
from delosmq.wire.stomp.encoder import encode_frame, relay_head, transcode_head
from delosmq.wire.stomp.heads import escape, unescape
from delosmq.wire.stomp.versions import V10, V11, V12
from tests.wire.stomp.streams import decode

ODD = "a\\b:c\nd\re\0f"


@pytest.mark.parametrize(
    ("version", "escaped"),
    [(V10, "a\\b:c d e f"), (V11, "a\\\\b\\cc\\nd\re f"), (V12, "a\\\\b\\cc\\nd\\re f")],
)
def test_escape(version, escaped):
    assert escape(ODD, version) == escaped
    if version != V10:
        assert unescape(escaped, version) == ODD.replace("\0", " ")


@pytest.mark.parametrize(("value", "version"), [("\\", V11), ("a\\r", V11), ("\\t", V12), ("\\\\\\", V12)])
def test_unescape_refuses_what_is_undefined(value, version):
    with pytest.raises(PeerError, match="DMQ5009"):
        unescape(value, version)
    assert unescape(value, V10) == value


def test_frames():
    headers = [("subscription", "1"), ("x", "a:b")]
    assert encode_frame("MESSAGE", headers, b"hi", V12) == b"MESSAGE\nsubscription:1\nx:a\\cb\ncontent-length:2\n\nhi\0"
    assert encode_frame("MESSAGE", headers, b"hi", V10, False) == b"MESSAGE\nsubscription:1\nx:a:b\n\nhi\0"
    assert encode_frame("RECEIPT", [("receipt-id", "7")], b"", V12) == b"RECEIPT\nreceipt-id:7\n\n\0"
    assert encode_frame("CONNECTED", [("server", "a:b\nc")], b"", V12) == b"CONNECTED\nserver:a:b c\n\n\0"
    assert encode_frame("SEND", [("a", "b\0c")], b"", V12, False) == b"SEND\na:b c\n\n\0"
    assert encode_frame("SEND", [("a:b", "c")], b"", V10, False) == b"SEND\na_b:c\n\n\0"


def test_a_body_with_nul_gets_its_content_length_anyway():
    assert encode_frame("SEND", [], b"a\0b", V12, False) == b"SEND\ncontent-length:3\n\na\0b\0"


def test_a_body_where_none_may_be_is_misuse():
    with pytest.raises(MisuseError, match="DMQ5014"):
        encode_frame("RECEIPT", [], b"x", V12)


@pytest.mark.parametrize(
    ("head", "drop", "relayed"),
    [
        (b"", set(), b""),
        (b"a:1\nb:2", set(), b"a:1\nb:2\n"),
        (b"a:1\nb:2", {"a"}, b"b:2\n"),
        (b"a:1\nb:2", {"a", "b", "c"}, b""),
        (b"a:1\nb:2\na:3\nb:4", {"b"}, b"a:1\n"),
        (b"a:x\\cy", set(), b"a:x\\cy\n"),
        (b"a:x:y", set(), b"a:x\\cy\n"),
        (b"\\c:1\n\\c:2\nb:3", {":"}, b"b:3\n"),
    ],
)
def test_relay_head(head, drop, relayed):
    stream = b"SEND\n" + head + (b"\n\n\0" if head else b"\n\0")
    (frame,) = decode([stream], V12).frames
    assert relay_head(frame, V12, frozenset(drop)) == relayed


def test_relay_head_of_1_0_leaves_colons_and_backslashes():
    frame = StompFrame("SEND", {"a": "x:\\y"}, b"a:x:\\y")
    assert relay_head(frame, V10, frozenset()) == b"a:x:\\y\n"


@pytest.mark.parametrize(
    ("head", "versions", "transcoded"),
    [
        (b"", (V11, V12), b""),
        (b"a:1\n", (V10, V12), b"a:1\n"),
        (b"a:x:\\n\nb:1", (V10, V11), b"a:x\\c\\\\n\nb:1"),
        (b"a:x\\c\\\\n\nb:1\n", (V11, V10), b"a:x:\\n\nb:1\n"),
        (b"a:x\\ny", (V12, V10), b"a:x y"),
        (b"a\\cb:1\n", (V12, V10), b"a_b:1\n"),
        (b"a:x\ry\n", (V11, V12), b"a:x\\ry\n"),
        (b"a:x\\ry\n", (V12, V11), b"a:x\ry\n"),
    ],
)
def test_transcode_head(head, versions, transcoded):
    assert transcode_head(head, *versions) == transcoded
