"""Round trips, any split, and garbage: properties of the codec over streams that nobody thought of."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from delosmq.model.errors import PeerError
from delosmq.wire.stomp.decoder import StompDecoder, StompFrame
from delosmq.wire.stomp.encoder import encode_frame, relay_head, transcode_head
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V10, V11, V12
from tests.wire.stomp.streams import decode

VERSIONS = st.sampled_from([V10, V11, V12])
TEXT = st.text(
    st.one_of(st.sampled_from("\\:\n\r nrc\t"), st.characters(exclude_characters="\0", codec="utf-8")), max_size=12
)
NAMES = TEXT.filter(bool)
PLAIN = st.text(st.characters(exclude_characters="\0\n\r\\: \t", codec="utf-8"), min_size=1, max_size=8)
HEADERS = st.dictionaries(NAMES.filter(lambda name: name != "content-length"), TEXT, max_size=5)
BODIES = st.binary(max_size=40)
SMALL = StompLimits(max_head_bytes=300, max_headers=20, max_body_bytes=300, max_header_line_bytes=100)


def take_all(stream: bytes, version: int) -> list[StompFrame]:
    decoded = decode([stream], version)
    assert decoded.refusal is None
    return decoded.frames


@given(HEADERS, BODIES, st.sampled_from([V11, V12]), st.booleans())
def test_what_is_encoded_is_decoded(headers, body, version, content_length):
    # In 1.1 a CR is an ordinary character, but a head may not begin a line with it: CR LF would end the head.
    if version == V11:
        headers = {name.replace("\r", "r"): value for name, value in headers.items()}
    stream = encode_frame("MESSAGE", headers.items(), body, version, content_length)
    (frame,) = take_all(stream, version)
    assert frame.body == body
    assert {name: value for name, value in frame.headers.items() if name != "content-length"} == headers
    assert ("content-length" in frame.headers) == (content_length or b"\0" in body)


@given(st.dictionaries(PLAIN, PLAIN, max_size=5), BODIES, st.booleans())
def test_what_1_0_can_express_is_decoded(headers, body, content_length):
    headers.pop("content-length", None)
    (frame,) = take_all(encode_frame("SEND", headers.items(), body, V10, content_length), V10)
    assert (dict(list(frame.headers.items())[: len(headers)]), frame.body) == (headers, body)


@given(HEADERS, VERSIONS)
def test_no_header_can_break_out_of_its_frame(headers, version):
    hostile = [(f"x{name}\0\n\nMESSAGE\n", f"{value}\0\n\nMESSAGE\n\n\0") for name, value in headers.items()]
    for command in ("MESSAGE", "CONNECTED"):
        assert len(take_all(encode_frame(command, hostile, b"", version), version)) == 1


SEND_HEADS = st.lists(st.tuples(PLAIN | st.sampled_from(["a", "destination"]), TEXT), max_size=6)


@given(
    SEND_HEADS, st.sampled_from([V11, V12]), st.sampled_from([V11, V12]), st.sets(st.sampled_from(["a", "destination"]))
)
def test_relayed_headers_arrive_as_sent(pairs, sent_in, delivered_in, drop):
    pairs = [("x" + name if name == "content-length" else name, value) for name, value in pairs]
    (sent,) = take_all(encode_frame("SEND", pairs, b"", sent_in, False), sent_in)
    head = transcode_head(relay_head(sent, sent_in, frozenset(drop)), sent_in, delivered_in)
    (delivered,) = take_all(b"MESSAGE\n" + head + b"\n\0", delivered_in)
    assert delivered.headers == {name: value for name, value in sent.headers.items() if name not in drop}
    assert head.count(b"\n") == head.count(b":") == len(delivered.headers)


GARBAGE = st.lists(
    st.sampled_from(
        [
            b"SEND",
            b"ACK",
            b"CONNECT",
            b"MESSAGE",
            b"\n",
            b"\n\n",
            b"\r\n",
            b"\r",
            b"\0",
            b":",
            b"a:b\n",
            b"\\c",
            b"\\x",
            b"content-length:",
            b"3",
            b"x" * 120,
            b"a:b\n" * 30,
            b"\xff",
            b"\xc3\xa4",
            b" ",
            b"SEND\n\n\0",
            b"accept-version:1.1\n",
        ]
    )
    | st.binary(max_size=4),
    max_size=25,
).map(b"".join)


@given(GARBAGE, st.lists(st.integers(0, 400), max_size=12), VERSIONS)
@example(b"SEND\r\n\r\n\xff\n\n\0\r\n", [1, 6, 7, 8], V12)
def test_any_split_decodes_alike_and_only_refuses(stream, cuts, version):
    whole = decode([stream], version, SMALL).outcome()
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    split = [stream[a:b] for a, b in pairwise(edges)]
    assert decode(split, version, SMALL).outcome() == whole
    assert decode([stream[i : i + 1] for i in range(len(stream))], version, SMALL).outcome() == whole
    assert one_call_each(split, version).outcome() == whole


def one_call_each(chunks: list[bytes], version: int):
    """As ``decode``, for a caller that gives chunks while frames are left."""
    decoded = decode([], version, SMALL)
    left = len(b"".join(chunks))
    try:
        for chunk in chunks + [b""] * left:
            frame = decoded.decoder.next_frame(chunk)
            if frame is not None:
                decoded.frames.append(frame)
    except PeerError as refusal:
        decoded.refusal = refusal
    return decoded


@given(st.data(), HEADERS, BODIES, VERSIONS)
def test_mutated_frames_are_decoded_or_refused_in_bounded_memory(data, headers, body, version):
    stream = bytearray(encode_frame("SEND", headers.items(), body, version) * 3)
    for _ in range(data.draw(st.integers(1, 6))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    decoder = StompDecoder(SMALL)
    decoder.version = version
    for start in range(0, len(stream), 16):
        decode_on(decoder, bytes(stream[start : start + 16]))
        # a head or a body and its NUL, whichever is larger, and one chunk
        assert decoder.buffered_bytes <= 302 + 16


def decode_on(decoder: StompDecoder, chunk: bytes) -> None:
    try:
        frame = decoder.next_frame(chunk)
        while frame is not None:
            frame = decoder.next_frame()
    except PeerError:
        assert decoder.closed
