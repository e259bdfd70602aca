"""Oversized frames of each kind are refused before they are buffered."""

# BROKER-4

import pytest

from delosmq.wire.stomp.heads import StompLimits
from tests.wire.stomp.streams import decode

LIMITS = StompLimits(max_head_bytes=100, max_headers=3, max_body_bytes=1000, max_header_line_bytes=50)


def headers(count: int) -> bytes:
    return b"".join(b"h%d:x\n" % index for index in range(count))


# each at its limit and one above it
KINDS = {
    "head": ("DMQ5004", lambda n: b"SEND\na:" + b"x" * 45 + b"\nb:" + b"x" * (n - 56) + b"\n\n\0", 100),
    "head in CR LF": (
        "DMQ5004",
        lambda n: b"SEND\r\na:" + b"x" * 45 + b"\r\nb:" + b"x" * (n - 59) + b"\r\n\r\n\0",
        100,
    ),
    "header line": ("DMQ5005", lambda n: b"SEND\na:" + b"x" * (n - 2) + b"\n\n\0", 50),
    "header line in characters of two bytes": (
        "DMQ5005",
        lambda n: b"SEND\na:" + b"\xc3\xa4" * (n // 2 - 1) + b"b" * (n % 2) + b"\n\n\0",
        50,
    ),
    "headers": ("DMQ5006", lambda n: b"SEND\n" + headers(n) + b"\n\0", 3),
    "repeated headers": ("DMQ5006", lambda n: b"SEND\n" + b"a:b\n" * n + b"\n\0", 3),
    "body with content-length": ("DMQ5011", lambda n: b"SEND\ncontent-length:%d\n\n" % n + b"x" * n + b"\0", 1000),
    "body without content-length": ("DMQ5011", lambda n: b"SEND\n\n" + b"x" * n + b"\0", 1000),
    "ignored body": ("DMQ5011", lambda n: b"ACK\n\n" + b"x" * n + b"\0", 1000),
    "command": ("DMQ5001", lambda n: b"A" * n + b"\n\n\0", 32),
}


@pytest.mark.parametrize("chunk_bytes", [1, 7, 10_000])
@pytest.mark.parametrize("kind", KINDS)
def test_limit(kind, chunk_bytes):
    code, stream_of, most = KINDS[kind]
    for size, expected in ((most, None), (most + 1, code)):
        stream = stream_of(size)
        chunks = [stream[i : i + chunk_bytes] for i in range(0, len(stream), chunk_bytes)]
        decoded = decode(chunks, 10, LIMITS)
        assert (len(decoded.frames), decoded.code()) == (int(expected is None), expected)


def test_content_length_above_the_limit_is_refused_before_the_body_comes():
    assert decode([b"SEND\ncontent-length:1001\n\n"], 12, LIMITS).code() == "DMQ5011"


def test_a_body_that_may_not_be_is_refused_at_its_first_byte():
    assert decode([b"ACK\n\n", b"x"], 12, LIMITS).code() == "DMQ5013"
    assert decode([b"ACK\ncontent-length:9\n\n"], 12, LIMITS).code() == "DMQ5013"


def test_a_refused_stream_is_not_kept():
    decoded = decode([b"SEND\n\n" + b"x" * 5000, b"x" * 5000, b"BEGIN\n\n\0"], 12, LIMITS)
    assert (decoded.code(), decoded.decoder.closed, decoded.decoder.buffered_bytes) == ("DMQ5011", True, 0)
    assert decoded.decoder.next_frame() is None


@pytest.mark.parametrize("eol", [b"\n", b"\r\n"])
def test_heads_of_any_size_are_found(eol):
    # The end of a head is searched in steps that double from 512 bytes; it may straddle two of them.
    for size in [*range(500, 520), *range(1525, 1545), *range(3565, 3595)]:
        stream = b"SEND" + eol + b"a:" + b"x" * size + eol + eol + b"body\n\nx\0"
        (frame,) = decode([stream], 12).frames
        assert (len(frame.headers["a"]), frame.body) == (size, b"body\n\nx")
