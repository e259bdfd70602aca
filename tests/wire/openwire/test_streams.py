"""Any split of a byte stream decodes alike; limits hold before anything is buffered or built."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delosmq.model.errors import PeerError
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import KeepAliveInfo, MessageCommand, Response
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.structures import MessageId, ProducerId
from delosmq.wire.openwire.wire_format import PLAIN_FORMATS, WireFormat
from tests.chance import tries
from tests.wire.openwire.support import FRAMES, HELLO, decode, open_decoder, structures

FORM = PLAIN_FORMATS[12]


def message(content: bytes) -> MessageCommand:
    command = MessageCommand(24)
    command.message_id = MessageId(ProducerId("c", 1, 1), 1)
    command.content = content
    return command


@settings(max_examples=tries(60))
@given(choice=st.data(), tight=st.booleans())
def test_any_split_decodes_alike(choice: st.DataObject, tight: bool) -> None:
    form = WireFormat(12, tight=tight)
    codes = choice.draw(st.lists(st.sampled_from(FRAMES), min_size=1, max_size=4))
    stream = b"".join(encode_command(choice.draw(structures(code, 12)), form) for code in codes)
    whole = decode([stream], form)
    assert len(whole[0]) == len(codes)
    cuts = sorted(choice.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(chunks, form) == whole
    assert decode([stream[i : i + 1] for i in range(len(stream))], form) == whole


def test_small_chunks_of_a_large_frame_are_collected() -> None:
    stream = encode_command(message(bytes(range(256)) * 400), FORM) + encode_command(Response(7), FORM)
    sizes = (1_000, 20_000, 3, 30_000)
    chunks: list[bytes] = []
    at = 0
    while at < len(stream):
        chunks.append(stream[at : at + sizes[len(chunks) % 4]])
        at += sizes[len(chunks) % 4 - 1]
    assert b"".join(chunks) == stream
    assert decode(chunks, FORM) == decode([stream], FORM)
    assert len(decode(chunks, FORM)[0]) == 2


def test_a_large_message_comes_whole_however_it_lies() -> None:
    large = message(bytes(range(256)) * 5_000)
    large.marshalled_properties = bytes(70_000)
    stream = encode_command(large, FORM) * 2 + encode_command(Response(7), FORM)
    whole = decode([stream], FORM)
    assert len(whole[0]) == 3
    for size in (100_000, 300_000, 1_279_999, 1_400_000, len(stream) - 20):
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert decode(chunks, FORM) == whole
        decoder = open_decoder(FORM)
        commands = [decoder.next_frame(chunk) for chunk in chunks] + [decoder.next_frame() for _ in range(4)]
        first, *others = [command for command in commands if command is not None]
        assert isinstance(first, MessageCommand)
        other = open_decoder(FORM)
        same = other.next_frame(stream)
        assert isinstance(same, MessageCommand)
        assert (first.before, first.tail, first.content) == (same.before, same.tail, same.content)
        assert len(others) == 2
    # The same frame with a content that reaches over its end, and one that is cut short inside its tail.
    frame = encode_command(large, FORM)
    at = frame.index(bytes(range(256))) - 4
    for length in (-1, 1 << 30, len(frame) - at - 4, 1_280_001):
        broken = frame[:at] + length.to_bytes(4, signed=True) + frame[at + 4 :]
        assert decode([broken[:100_000], broken[100_000:]], FORM) == decode([broken], FORM)
        assert decode([broken], FORM)[1] is not None


def test_nothing_but_a_wire_format_info_comes_first() -> None:
    for stream in (b"\0\0\0\6\x0a\0\0\0\0\0", b"GET / HTTP/1.1\r\n", b"\0\0\0\x0e\1ActiveNQ\0\0\0\x0c\0"):
        decoder = OpenWireDecoder(OpenWireLimits())
        with pytest.raises(PeerError, match="DMQ5200"):
            decoder.next_frame(stream)
        assert decoder.closed
        assert decoder.buffered_bytes == 0
        assert decoder.next_frame(stream) is None


def test_nothing_is_taken_before_both_have_agreed() -> None:
    decoder = OpenWireDecoder(OpenWireLimits())
    assert isinstance(decoder.next_frame(HELLO + encode_command(KeepAliveInfo(), FORM)), WireFormatInfo)
    with pytest.raises(PeerError, match="DMQ5200"):
        decoder.next_frame()


def test_the_first_frame_is_small() -> None:
    decoder = OpenWireDecoder(OpenWireLimits())
    with pytest.raises(PeerError, match="DMQ5215"):
        decoder.next_frame(b"\0\0\x40\x01\1ActiveMQ")


def test_a_frame_over_the_limit_is_refused_by_its_size_alone() -> None:
    limits = OpenWireLimits(max_frame_bytes=100)
    assert decode([b"\0\0\0\x65"], FORM, limits) == ([], "DMQ5202")
    assert decode([b"\0\0\0\x64"], FORM, limits) == ([], None)
    assert decode([b"\xff\xff\xff\xff"], FORM) == ([], "DMQ5201")
    assert decode([b"\0\0\0\0"], FORM) == ([], "DMQ5201")


def test_what_is_still_to_come_of_a_frame_over_the_limit_is_said() -> None:
    decoder = open_decoder(FORM, OpenWireLimits(max_frame_bytes=10_000))
    with pytest.raises(PeerError, match="DMQ5202") as refused:
        decoder.next_frame((20_000).to_bytes(4, "big") + bytes(7_000))
    assert refused.value.unread_bytes == 13_000


def test_limits_may_be_raised_for_a_peer_that_is_known() -> None:
    decoder = open_decoder(FORM, OpenWireLimits(max_frame_bytes=10))
    decoder.set_limits(OpenWireLimits())
    assert isinstance(decoder.next_frame(encode_command(message(bytes(100)), FORM)), MessageCommand)


@pytest.mark.parametrize("code", [0, 13, 55, 91, 110, 255])
def test_what_is_no_command_is_refused(code: int) -> None:
    assert decode([bytes((0, 0, 0, 20, code)) + bytes(19)], FORM) == ([], "DMQ5203")


def test_bytes_behind_the_last_field_are_refused() -> None:
    for command in (KeepAliveInfo(), message(b"x")):
        frame = encode_command(command, FORM)
        longer = (int.from_bytes(frame[:4]) + 1).to_bytes(4) + frame[4:] + b"\0"
        assert decode([longer], FORM) == ([], "DMQ5210")


@settings(max_examples=tries(100))
@given(choice=st.data())
def test_a_truncated_frame_is_refused(choice: st.DataObject) -> None:
    form = choice.draw(st.sampled_from((WireFormat(12), WireFormat(12, tight=True))))
    command = choice.draw(structures(choice.draw(st.sampled_from(FRAMES)), 12))
    frame = encode_command(command, form)[4:]
    cut = choice.draw(st.integers(1, len(frame) - 1))
    # More bytes follow in the buffer, as the next frame: a field must not reach into it.
    rows, code = decode([cut.to_bytes(4) + frame[:cut] + bytes(200)], form)
    assert (rows, code) == ([], "DMQ5204")
