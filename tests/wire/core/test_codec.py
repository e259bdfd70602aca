"""Every packet in every version: what is encoded is decoded again, and what is cut short or spoilt is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delosmq.model.errors import MisuseError, PeerError
from delosmq.wire.core.codec import encode_packet
from delosmq.wire.core.connection_packets import ExceptionPacket, NullResponse, Ping
from delosmq.wire.core.packet import NO_CORRELATION, VERSIONS, Packet
from delosmq.wire.core.queue_packets import BindingQueryResponse, CreateQueueV2, QueueQuery
from delosmq.wire.core.session_packets import (
    AddMetadata,
    CreateConsumer,
    SessionCommit,
    XaInDoubtXidsResponse,
)
from delosmq.wire.core.strings import decode_characters, encode_characters
from tests.chance import tries
from tests.wire.core.support import CODES, decode, golden, packets, read, row, texts

ANY = st.sampled_from(CODES)
VERSION = st.sampled_from(VERSIONS)
REFUSALS = ("DMQ5604", "DMQ5605", "DMQ5606", "DMQ5607", "DMQ5608")
AFTER_IT = "DMQ5601"
"""Zeros that follow are no frame."""


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=tries(30))
@given(choice=st.data(), version=VERSION)
def test_a_packet_comes_back(code: int, choice: st.DataObject, version: int) -> None:
    packet = choice.draw(packets(code, version))
    frame = encode_packet(packet, version)
    assert len(frame) == packet.size_bytes == 4 + int.from_bytes(frame[:4])
    again = read(frame, version)
    assert row(again) == row(packet)
    assert again.size_bytes == len(frame)
    assert encode_packet(again, version) == frame


@settings(max_examples=tries(100))
@given(choice=st.data(), code=ANY, version=VERSION)
def test_what_follows_the_last_field_is_skipped(choice: st.DataObject, code: int, version: int) -> None:
    if code in (71, 72, 75, 76):
        return  # a message is as long as its frame lets it be
    packet = choice.draw(packets(code, version))
    frame = encode_packet(packet, version)
    if version == VERSIONS[-1]:
        assert row(read(frame + b"\0\0\0", version)) == row(packet)


@settings(max_examples=tries(200))
@given(choice=st.data(), code=ANY, version=VERSION)
def test_a_truncated_frame_is_refused_or_ends_where_older_peers_end(
    choice: st.DataObject, code: int, version: int
) -> None:
    packet = choice.draw(packets(code, version))
    frame = encode_packet(packet, version)
    cut = choice.draw(st.integers(13, len(frame)))
    # More bytes follow in the buffer, as the next frame: a field must not reach into it.
    rows, code = decode([(cut - 4).to_bytes(4) + frame[4:cut] + bytes(200)], version)
    assert code == AFTER_IT if rows else code in REFUSALS


@pytest.mark.parametrize(
    "name, bars", [("CREATE_QUEUE_V2", 6), ("CREATE_SHARED_QUEUE_V2", 6), ("SESS_QUEUEQUERY_RESP_V3", 8)]
)
def test_older_peers_end_at_a_bar(name: str, bars: int) -> None:
    _, frame = golden()[f"{name} 136"]
    accepted = 0
    for cut in range(13, len(frame)):
        try:
            shorter = read(frame[:cut])
        except PeerError:
            continue
        accepted += 1
        if isinstance(shorter, CreateQueueV2):
            assert shorter.attributes.group_rebalance_pause_dispatch is None
    assert accepted == bars


def test_an_answer_may_leave_out_its_correlation_id() -> None:
    for packet in (NullResponse(), ExceptionPacket(100, "no such queue"), SessionCommit()):
        packet.correlation_id = 7
        frame = encode_packet(packet, 136)
        assert read(frame).correlation_id == 7
        assert read(frame[:-8]).correlation_id == NO_CORRELATION
        assert encode_packet(packet, 129) == (len(frame) - 12).to_bytes(4) + frame[4:-8]


def test_a_consumer_without_priority_has_that_of_everybody() -> None:
    consumer = CreateConsumer()
    consumer.priority = 5
    frame = encode_packet(consumer, 130)
    found = read(frame[:-4], 130)
    assert isinstance(found, CreateConsumer)
    assert found.priority == 0


@given(texts)
def test_characters_come_back(text: str) -> None:
    assert decode_characters(encode_characters(text)) == text


@pytest.mark.parametrize("size", [0, 8, 9, 4094, 4095, 70_000])
def test_strings_of_any_length_come_back(size: int) -> None:
    for letter in ("x", "é", "€", "\0", "😀"):
        packet = AddMetadata()
        packet.value = letter * (size // (2 if letter == "😀" else 1))
        found = read(encode_packet(packet, 136))
        assert isinstance(found, AddMetadata)
        assert found.value == packet.value


@pytest.mark.parametrize("text", ["x\ud83d", "\ude00 within more than nine units"])
def test_half_a_pair_of_surrogates_is_replaced(text: str) -> None:
    packet = AddMetadata()
    packet.value = text
    packet.key = text * 1_000
    found = read(encode_packet(packet, 136))
    assert isinstance(found, AddMetadata)
    assert found.value == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert found.key == found.value * 1_000


def frame_of(packet: Packet, body: bytes) -> bytes:
    frame = encode_packet(packet, 136)
    return (9 + len(body)).to_bytes(4) + frame[4:13] + body


@pytest.mark.parametrize(
    "packet, body, code",
    [
        (Ping(), b"\0" * 7, "DMQ5604"),
        (QueueQuery(), b"\xff\xff\xff\xff", "DMQ5606"),
        (QueueQuery(), b"\x7f\xff\xff\xfe", "DMQ5604"),
        (QueueQuery(), b"\0\0\0\3abc", "DMQ5605"),
        (AddMetadata(), b"\xff\xff\xff\xff", "DMQ5606"),
        (AddMetadata(), b"\0\0\0\x09\0\1\xff", "DMQ5605"),
        (AddMetadata(), b"\0\0\x0f\xff\x7f\xff\xff\xfe", "DMQ5604"),
        (AddMetadata(), b"\x7f\xff\xff\xff", "DMQ5604"),
        (BindingQueryResponse(), b"\xff\x7f\xff\xff\xff", "DMQ5608"),
        (BindingQueryResponse(), b"\xff\xff\xff\xff\xff", "DMQ5606"),
        (XaInDoubtXidsResponse(), b"\0\1\0\0" + bytes(20), "DMQ5608"),
    ],
)
def test_a_spoilt_field_is_refused_by_name(packet: Packet, body: bytes, code: str) -> None:
    with pytest.raises(PeerError, match=code):
        read(frame_of(packet, body))


def test_the_refusal_names_the_place() -> None:
    with pytest.raises(PeerError, match="the field 'queue_name' at byte 17 of a packet of type 45"):
        read(frame_of(QueueQuery(), b"\0\0\0\3abc"))


def test_an_unknown_routing_type_is_refused() -> None:
    _, frame = golden()["CREATE_ADDRESS 136"]
    with pytest.raises(PeerError, match="DMQ5607"):
        read(frame[:-3] + b"\7" + frame[-2:])


def test_an_unknown_type_is_refused() -> None:
    frame = encode_packet(Ping(), 136)
    for code in (0, 127, 1, -16, 91):
        with pytest.raises(PeerError, match="DMQ5603"):
            read(frame[:4] + bytes((code & 0xFF,)) + frame[5:])
    with pytest.raises(MisuseError, match="DMQ5612"):
        encode_packet(Packet(), 136)
