"""Any split of a byte stream decodes alike; limits hold before anything is buffered or built."""

# BROKER-4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delosmq.model.errors import PeerError
from delosmq.wire.core.codec import encode_packet
from delosmq.wire.core.connection_packets import NullResponse, Ping
from delosmq.wire.core.decoder import (
    HANDSHAKE,
    MOST_BESIDE_BODY_BYTES,
    MOST_CONTROL_BYTES,
    CoreDecoder,
    CoreLimits,
    detect,
)
from delosmq.wire.core.message import CoreMessage
from delosmq.wire.core.message_packets import SessionReceiveMessage, SessionSend, SessionSendContinuation
from delosmq.wire.core.packet import SESS_RECEIVE_MSG, SESS_SEND
from delosmq.wire.core.properties import encode_properties
from delosmq.wire.core.queue_packets import BindingQueryResponse
from delosmq.wire.core.session_packets import CreateConsumer
from delosmq.wire.first_bytes import FOREIGN, MINE, UNDECIDED
from tests.chance import tries
from tests.wire.core.support import CODES, decode, open_decoder, packets

PING = encode_packet(Ping(60_000), 136)


def send(body: bytes, properties: bytes = b"\0") -> SessionSend:
    message = CoreMessage()
    message.address = "a"
    message.body = body
    message.encode_head(properties)
    return SessionSend(message)


@settings(max_examples=tries(60))
@given(choice=st.data())
def test_any_split_decodes_alike(choice: st.DataObject) -> None:
    codes = choice.draw(st.lists(st.sampled_from(CODES), min_size=1, max_size=4))
    stream = b"".join(encode_packet(choice.draw(packets(code, 136)), 136) for code in codes)
    whole = decode([stream])
    assert len(whole[0]) == len(codes)
    cuts = sorted(choice.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(chunks) == whole
    assert decode([stream[i : i + 1] for i in range(len(stream))]) == whole


def test_a_large_frame_comes_whole_however_it_lies() -> None:
    stream = encode_packet(send(bytes(range(256)) * 5_000), 136) + PING
    whole = decode([stream])
    assert len(whole[0]) == 2
    for size in (1_000, 20_000, 300_000, len(stream) - 20):
        assert decode([stream[at : at + size] for at in range(0, len(stream), size)]) == whole


def test_core_is_told_by_its_first_bytes() -> None:
    assert detect(b"ARTEMIS\0") == MINE
    assert [detect(HANDSHAKE[:count]) for count in range(7)] == [UNDECIDED] * 7
    assert detect(b"AMQP") == FOREIGN


def test_a_client_greets_first() -> None:
    stream = HANDSHAKE + PING
    for size in (1, 3, 7, len(stream)):
        decoder = CoreDecoder(CoreLimits(), handshake=True)
        found = [decoder.next_frame(stream[at : at + size]) for at in range(0, len(stream), size)]
        assert isinstance(found[-1], Ping)
    for start in (b"ARTEMUS\0", b"AR\0", b"\0"):
        decoder = CoreDecoder(CoreLimits(), handshake=True)
        with pytest.raises(PeerError, match="DMQ5600"):
            decoder.next_frame(start)
        assert (decoder.closed, decoder.buffered_bytes) == (True, 0)
        assert decoder.next_frame(stream) is None


def test_before_a_session_frames_are_small() -> None:
    decoder = CoreDecoder(CoreLimits(max_first_frame_bytes=100))
    assert isinstance(decoder.next_frame(PING), Ping)
    with pytest.raises(PeerError, match="DMQ5609"):
        decoder.next_frame((101).to_bytes(4))
    decoder = CoreDecoder(CoreLimits(max_first_frame_bytes=100))
    decoder.agreed(136)
    assert isinstance(decoder.next_frame(encode_packet(send(bytes(500)), 136)), SessionSend)


@pytest.mark.parametrize("size, code", [(0, "DMQ5601"), (8, "DMQ5601"), (-1, "DMQ5601"), (1_001, "DMQ5602")])
def test_a_frame_is_refused_by_its_size_alone(size: int, code: str) -> None:
    decoder = open_decoder(limits=CoreLimits(max_frame_bytes=1_000))
    with pytest.raises(PeerError, match=code) as refused:
        decoder.next_frame(size.to_bytes(4, signed=True) + bytes(20))
    assert decoder.closed
    assert decoder.buffered_bytes == 0
    assert refused.value.unread_bytes == max(size - 20, 0) * (code == "DMQ5602")


@pytest.mark.parametrize("chunk", [1 << 16, 1 << 30])
def test_a_body_alone_may_be_large(chunk: int) -> None:
    def found(packet: SessionSend | SessionSendContinuation) -> object:
        decoder = open_decoder()
        frame = encode_packet(packet, 136)
        return [decoder.next_frame(frame[at : at + chunk]) for at in range(0, len(frame), chunk)][-1]

    assert isinstance(found(send(bytes(3 << 20), bytes(1 << 19))), SessionSend)
    part = SessionSendContinuation()
    part.body = bytes(3 << 20)
    assert isinstance(found(part), SessionSendContinuation)
    for large in (send(bytes(3 << 20), bytes(1 << 20)), send(b"", bytes(1 << 20))):
        with pytest.raises(PeerError, match="DMQ5610"):
            found(large)


def test_what_has_no_body_is_refused_by_its_type_and_size() -> None:
    decoder = open_decoder()
    assert decoder.next_frame((MOST_BESIDE_BODY_BYTES + 1).to_bytes(4)) is None
    with pytest.raises(PeerError, match="DMQ5610"):
        decoder.next_frame(b"\x48")
    many = BindingQueryResponse()
    many.queue_names = ["queue"] * 60_000
    assert decode([encode_packet(many, 136)])[1] is None


def test_what_is_kept_as_long_as_a_connection_is_small() -> None:
    consumer = CreateConsumer()
    consumer.filter_string = "x" * (MOST_CONTROL_BYTES // 2)
    with pytest.raises(PeerError, match="DMQ5611"):
        open_decoder().next_frame(encode_packet(consumer, 136))


def test_of_an_unread_type_only_the_start_is_decoded() -> None:
    receive = SessionReceiveMessage(send(b"body").message, 3, 1)
    receive.channel = -5
    frame = encode_packet(receive, 136)
    decoder = CoreDecoder(CoreLimits(), frozenset((SESS_RECEIVE_MSG, 21)))
    decoder.agreed(136)
    found = decoder.next_frame(frame + encode_packet(NullResponse(), 136) + PING)
    assert found is not None
    assert (found.code, found.channel, found.size_bytes) == (SESS_RECEIVE_MSG, -5, len(frame))
    assert isinstance(decoder.next_frame(), NullResponse)
    assert isinstance(decoder.next_frame(), Ping)


def test_hostile_properties_are_no_concern_of_the_frame() -> None:
    decoder = open_decoder()
    found = decoder.next_frame(encode_packet(send(b"x", b"\1\x7f\xff\xff\xff"), 136))
    assert isinstance(found, SessionSend)
    assert found.code == SESS_SEND
    assert found.message.properties == b"\1\x7f\xff\xff\xff"
    assert encode_properties({}) == b"\0"
