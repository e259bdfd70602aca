"""STOMP clause by clause: bytes in, frames or refusal out. Each case is also decoded byte by byte."""

# BROKER-2

from dataclasses import dataclass, field

import pytest

from delosmq.wire.stomp.decoder import StompDecoder
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V10, V11, V12
from tests.wire.stomp.streams import decode

Row = tuple[str, dict[str, str], bytes]


@dataclass(frozen=True)
class Case:
    clause: str
    stream: bytes
    frames: list[Row] = field(default_factory=list)
    code: str | None = None
    versions: tuple[int, ...] = (V10, V11, V12)
    heartbeats: int = 0


SEND_A: Row = ("SEND", {"destination": "/queue/a"}, b"hello")
BEGIN: Row = ("BEGIN", {"transaction": "t"}, b"")

CASES = [
    # STOMP 1.x, "STOMP Frames": command, headers, blank line, body, NUL.
    Case("frame", b"SEND\ndestination:/queue/a\n\nhello\0", [SEND_A]),
    Case("frame without headers", b"DISCONNECT\n\n\0", [("DISCONNECT", {}, b"")]),
    Case("frame with empty body", b"SEND\ndestination:/q\n\n\0", [("SEND", {"destination": "/q"}, b"")]),
    Case("body with line ends", b"SEND\n\n\n\nx\n\n\0", [("SEND", {}, b"\n\nx\n\n")]),
    Case("frames back to back", b"BEGIN\ntransaction:t\n\n\0" * 3, [BEGIN] * 3),
    Case("line ends between frames", b"\nBEGIN\ntransaction:t\n\n\0\n\r\n\n", [BEGIN], heartbeats=4),
    Case("only heart-beats", b"\n\n\r\n", heartbeats=3),
    Case("commands are case sensitive", b"send\n\n\0", code="DMQ5001"),
    Case("empty header value", b"SEND\nfoo:\n\n\0", [("SEND", {"foo": ""}, b"")]),
    Case(
        "UTF-8 headers",
        "SEND\nk\u00e4se:\u20ac\n\n\u20ac\0".encode(),
        [("SEND", {"k\u00e4se": "\u20ac"}, b"\xe2\x82\xac")],
    ),
    Case("unknown command, its body is kept", b"FROBNICATE\n\nx\0", [("FROBNICATE", {}, b"x")]),
    # "Header content-length": read that many bytes, whatever they are; a NUL follows.
    Case("content-length", b"SEND\ncontent-length:5\n\na\0b\0c\0", [("SEND", {"content-length": "5"}, b"a\0b\0c")]),
    Case("content-length 0", b"SEND\ncontent-length:0\n\n\0", [("SEND", {"content-length": "0"}, b"")]),
    Case(
        "content-length padded",
        b"SEND\ncontent-length:2 \n\nab\0",
        [("SEND", {"content-length": "2 "}, b"ab")],
        versions=(V11, V12),
    ),
    Case("content-length too small", b"SEND\ncontent-length:1\n\nab\0", code="DMQ5012"),
    Case("content-length too large", b"SEND\ncontent-length:3\n\nab\0BEGIN\n\n\0", code="DMQ5012"),
    Case("content-length not a number", b"SEND\ncontent-length:1x\n\na\0", code="DMQ5010"),
    Case("content-length negative", b"SEND\ncontent-length:-1\n\na\0", code="DMQ5010"),
    Case("content-length empty", b"SEND\ncontent-length:\n\na\0", code="DMQ5010"),
    Case("content-length other digits", "SEND\ncontent-length:\u0663\n\na\0".encode(), code="DMQ5010"),
    Case("content-length astronomic", b"SEND\ncontent-length:" + b"9" * 5000 + b"\n\na\0", code="DMQ5011"),
    # "Repeated Header Entries": the first wins.
    Case(
        "repeated headers",
        b"MESSAGE\nfoo:World\nbar:1\nfoo:Hello\n\n\0",
        [("MESSAGE", {"foo": "World", "bar": "1"}, b"")],
    ),
    Case(
        "repeated content-length",
        b"SEND\ncontent-length:1\ncontent-length:3\n\na\0",
        [("SEND", {"content-length": "1"}, b"a")],
    ),
    # "Value Encoding".
    Case("no escapes in 1.0", b"SEND\na:\\n\\c\\q\\\n\n\0", [("SEND", {"a": "\\n\\c\\q\\"}, b"")], versions=(V10,)),
    Case("escapes", b"SEND\na\\cb:\\n\\c\\\\n\n\n\0", [("SEND", {"a:b": "\n:\\n"}, b"")], versions=(V11, V12)),
    Case("\\r in 1.2", b"SEND\na:x\\ry\n\n\0", [("SEND", {"a": "x\ry"}, b"")], versions=(V12,)),
    Case("\\r in 1.1", b"SEND\na:x\\ry\n\n\0", code="DMQ5009", versions=(V11,)),
    Case("undefined escape", b"SEND\na:\\t\n\n\0", code="DMQ5009", versions=(V11, V12)),
    Case("escape at the end of a value", b"SEND\na:x\\\n\n\0", code="DMQ5009", versions=(V11, V12)),
    Case("repeated after unescaping", b"SEND\n\\c:1\n\\c:2\n\n\0", [("SEND", {":": "1"}, b"")], versions=(V11, V12)),
    Case("bare colon in a value", b"SEND\na:b:c\n\n\0", [("SEND", {"a": "b:c"}, b"")]),
    Case(
        "CONNECT has no escapes",
        b"CONNECT\naccept-version:1.2\nlogin:a\\cb\\\n\n\0",
        [("CONNECT", {"accept-version": "1.2", "login": "a\\cb\\"}, b"")],
    ),
    Case(
        "CONNECTED has no escapes",
        b"CONNECTED\nversion:1.2\nsession:\\x\n\n\0",
        [("CONNECTED", {"version": "1.2", "session": "\\x"}, b"")],
    ),
    # "Value Encoding": 1.0 padded and trimmed, from 1.1 on never.
    Case("1.0 trims", b"SEND\n destination : \t/queue/a \n\nhello\0", [SEND_A], versions=(V10,)),
    Case("1.1 and 1.2 don't trim", b"SEND\na : b \n\n\0", [("SEND", {"a ": " b "}, b"")], versions=(V11, V12)),
    Case(
        "CONNECT of a 1.0 client",
        b"CONNECT\nlogin: joe\npasscode: s \n\n\0",
        [("CONNECT", {"login": "joe", "passcode": "s"}, b"")],
    ),
    Case(
        "CONNECT of a 1.2 client",
        b"STOMP\naccept-version:1.2\npasscode: s \n\n\0",
        [("STOMP", {"accept-version": "1.2", "passcode": " s "}, b"")],
    ),
    # 1.2 "Augmented BNF": EOL = [CR] LF.
    Case("CR LF", b"SEND\r\ndestination:/queue/a\r\n\r\nhello\0", [SEND_A], versions=(V10, V12)),
    Case(
        "CR LF, later a blank line in LF",
        b"BEGIN\r\ntransaction:t\r\n\r\n\0BEGIN\ntransaction:t\n\n\0",
        [BEGIN] * 2,
        versions=(V10, V12),
    ),
    Case("CR LF, body of lines", b"SEND\r\n\r\n\xff\n\nb\0", [("SEND", {}, b"\xff\n\nb")], versions=(V10, V12)),
    Case("CR LF on the blank line only", b"SEND\ndestination:/queue/a\n\r\nhello\0", [SEND_A], versions=(V10, V12)),
    Case("CR LF on header lines only", b"SEND\ndestination:/queue/a\r\n\nhello\0", [SEND_A], versions=(V10, V12)),
    Case("CR LF in CONNECT", b"CONNECT\r\naccept-version:1.2\r\n\r\n\0", [("CONNECT", {"accept-version": "1.2"}, b"")]),
    Case("CR LF in 1.1", b"SEND\r\ndestination:/queue/a\r\n\r\nhello\0", code="DMQ5003", versions=(V11,)),
    Case("CR LF blank line in 1.1", b"SEND\ndestination:/queue/a\n\r\nhello\0", code="DMQ5003", versions=(V11,)),
    Case("CR belongs to a value of 1.1", b"SEND\na:b\r\n\n\0", [("SEND", {"a": "b\r"}, b"")], versions=(V11,)),
    Case("lone CR in 1.2", b"SEND\na:b\rc\n\n\0", code="DMQ5003", versions=(V12,)),
    Case("two CR in 1.2", b"SEND\na:b\r\r\n\n\0", code="DMQ5003", versions=(V12,)),
    Case("lone CR between frames", b"\rSEND\n\n\0", code="DMQ5001"),
    # "Body": only SEND, MESSAGE and ERROR have one; 1.0: "The body of the SUBSCRIBE command is ignored".
    Case("ERROR has a body", b"ERROR\n\nwhy\0", [("ERROR", {}, b"why")]),
    Case(
        "1.0 ignores other bodies",
        b"BEGIN\ntransaction:t\n\nx\0BEGIN\ntransaction:t\n\n\0",
        [BEGIN] * 2,
        versions=(V10,),
    ),
    Case("other bodies", b"BEGIN\ntransaction:t\n\nx\0", code="DMQ5013", versions=(V11, V12)),
    Case("other bodies by length", b"ACK\nid:1\ncontent-length:1\n\nx\0", code="DMQ5013", versions=(V11, V12)),
    Case("other bodies, length 0", b"ACK\ncontent-length:0\n\n\0", [("ACK", {"content-length": "0"}, b"")]),
    # What isn't a frame.
    Case("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", code="DMQ5001"),
    Case("HTTP", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", code="DMQ5001"),
    Case("a command of 33 letters", b"A" * 33, code="DMQ5001"),
    Case("binary with a blank line", b"\xff\xfe\n\n\0", code="DMQ5001"),
    Case("NUL alone", b"\0", code="DMQ5001"),
    Case("no blank line", b"DISCONNECT\n\0", code="DMQ5002"),
    Case("no line end at all", b"DISCONNECT\0", code="DMQ5002"),
    Case("no blank line, next frame behind", b"ACK\nid:1\0BEGIN\ntransaction:t\n\n\0", code="DMQ5002"),
    Case("no colon", b"SEND\ndestination\n\n\0", code="DMQ5007"),
    Case("no header name", b"SEND\n:x\n\n\0", code="DMQ5007"),
    Case("not UTF-8", b"SEND\na:\xff\n\n\0", code="DMQ5008"),
    Case("good frames before a bad one", b"BEGIN\ntransaction:t\n\n\0oops\n\n\0BEGIN\n\n\0", [BEGIN], code="DMQ5001"),
]


@pytest.mark.parametrize("version", [V10, V11, V12])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.clause)
def test_clause(case, version):
    if version not in case.versions:
        return
    whole = decode([case.stream], version)
    assert [(f.command, f.headers, f.body) for f in whole.frames] == case.frames
    assert list(whole.frames[0].headers) == list(case.frames[0][1]) if case.frames else True
    assert (whole.code(), whole.decoder.heartbeats) == (case.code, case.heartbeats)
    dribbled = decode([case.stream[i : i + 1] for i in range(len(case.stream))], version)
    assert dribbled.outcome() == whole.outcome()


def test_the_version_set_after_connect_holds_for_the_next_frame_of_the_chunk():
    decoder = StompDecoder(StompLimits())
    connect = decoder.next_frame(b"CONNECT\naccept-version:1.2\n\n\0SEND\na:\\c\n\n\0SEND\na:\\c\n\n\0")
    assert connect.command == "CONNECT"
    assert decoder.next_frame().headers == {"a": "\\c"}
    decoder.version = V12
    assert decoder.next_frame().headers == {"a": ":"}


def test_head_keeps_escapes_and_repeats_but_not_the_padding_of_1_0():
    assert decode([b"SEND\r\na:\\c\r\na:2\r\n\r\n\0"], V12).frames[0].head == b"a:\\c\na:2"
    assert decode([b"SEND\na: 1 \nb :2\n\n\0"], V10).frames[0].head == b"a:1\nb:2"
    assert decode([b"SEND\n\n\0"], V12).frames[0].head == b""


def test_refusals_name_the_frame_and_repeat_no_value():
    refused = decode([b"CONNECT\npasscode:secret\nsecret-rest\n\n\0"], V10).refusal
    assert "header line 2 of the CONNECT frame" in refused.message
    assert "secret" not in str(refused)
    assert "secret" not in repr(decode([b"CONNECT\npasscode:secret\n\n\0"]).frames[0])
