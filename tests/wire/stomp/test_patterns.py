"""SENDs that repeat the head before them are recognised: the frames must be those that decoding afresh gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.model.errors import PeerError
from delosmq.wire.stomp.decoder import NO_PATTERN, StompDecoder, StompFrame
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V10, V11, V12

PARTS = st.sampled_from(
    ("receipt:1", "receipt:a-2", "receipt:", "receipt:\\c", "receipt:ä", "receipt:a:b", "receipt:\r", "receipt:\x7f")
)
OTHERS = st.sampled_from(("destination:q", "content-length:1", "receipt-of:1", "x:y", "rec\\ceipt:1", "receipt :1"))
HEADS = st.lists(st.one_of(PARTS, OTHERS), max_size=5).map("\n".join)


def decoder(version: int, limits: StompLimits | None = None) -> StompDecoder:
    made = StompDecoder(limits or StompLimits())
    made.version = version
    return made


def send(head: str) -> bytes:
    return f"SEND\n{head}\n\nb\0".encode() if head else b"SEND\n\nb\0"


def outcome(reader: StompDecoder, chunk: bytes) -> object:
    """What a frame says, or the code of the error."""
    try:
        frame = reader.next_frame(chunk)
    except PeerError as error:
        return error.code
    assert frame is not None
    return frame.command, list(frame.headers.items()), frame.head, frame.body


def frames_of(version: int, *heads: str) -> list[StompFrame]:
    reader = decoder(version)
    found = []
    frame = reader.next_frame(b"".join(map(send, heads)))
    while frame is not None:
        found.append(frame)
        frame = reader.next_frame()
    return found


@given(st.sampled_from((V10, V11, V12)), st.lists(HEADS, min_size=2, max_size=4))
def test_a_frame_does_not_depend_on_the_ones_before(version: int, heads: list[str]) -> None:
    reader = decoder(version)
    for head in heads:
        expected = outcome(decoder(version), send(head))
        assert outcome(reader, send(head)) == expected
        if isinstance(expected, str):
            break


def test_heads_that_differ_in_the_receipt_have_one_pattern() -> None:
    first, second = frames_of(V12, "destination:q\nreceipt:1\nx:y", "destination:q\nreceipt:22\nx:y")
    assert first.pattern == second.pattern != NO_PATTERN
    assert (first.headers["receipt"], second.headers["receipt"]) == ("1", "22")


@pytest.mark.parametrize("other", ["destination:r\nreceipt:1", "destination:q", "destination:q\nreceipt:1\nx:y"])
def test_heads_that_differ_elsewhere_have_patterns_of_their_own(other: str) -> None:
    first, second = frames_of(V12, "destination:q\nreceipt:1", other)
    assert first.pattern != second.pattern


def test_a_new_version_ends_a_pattern() -> None:
    reader = decoder(V11)
    first = reader.next_frame(send("destination:q") * 2)
    reader.version = V12
    second = reader.next_frame()
    assert first is not None
    assert second is not None
    assert first.pattern != second.pattern


def test_a_receipt_that_makes_its_line_too_long_is_refused_in_a_pattern_too() -> None:
    limits = StompLimits(max_header_line_bytes=30)
    reader = decoder(V12, limits)
    assert outcome(reader, send("receipt:1")) == ("SEND", [("receipt", "1")], b"receipt:1", b"b")
    assert outcome(reader, send("receipt:" + "1" * 30)) == "DMQ5005"
