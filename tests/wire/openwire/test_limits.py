"""What a frame may be beside the content of a message, and what of a frame is looked at."""

# BROKER-4

import pytest

from delosmq.model.errors import PeerError
from delosmq.model.properties import INT_KIND, LIST_KIND, STRING_KIND, TypedValue
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    BrokerInfo,
    ControlCommand,
    MessageCommand,
    MessageDispatch,
    ProducerInfo,
    RemoveInfo,
)
from delosmq.wire.openwire.decoder import MOST_BESIDE_CONTENT_BYTES, OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.primitives import MOST_ENTRIES, decode_map, decode_stream, encode_map, encode_stream
from delosmq.wire.openwire.structures import BrokerId, ConsumerId, Destination, MessageId, ProducerId, Structure
from delosmq.wire.openwire.wire_format import WireFormat

FORMS = [WireFormat(12), WireFormat(1), WireFormat(12, tight=True), WireFormat(12, caching=True)]
CHUNKS = (1 << 16, 1 << 30)
DISPATCHES = frozenset((21,))


def message(content: int, properties: int) -> MessageCommand:
    command = MessageCommand()
    command.destination = Destination("a")
    command.message_id = MessageId(ProducerId("ID:c", 1, 1), 1)
    command.content = bytes(content)
    command.marshalled_properties = bytes(properties)
    return command


def decoded(encoded: bytes, form: WireFormat, chunk: int, unread: frozenset[int] = frozenset()) -> Structure | None:
    decoder = OpenWireDecoder(OpenWireLimits(), unread=unread)
    decoder.agreed(form)
    decoder.set_limits(OpenWireLimits())
    for at in range(0, len(encoded), chunk):
        found = decoder.next_frame(encoded[at : at + chunk])
        if found is not None:
            return found
    return None


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("form", FORMS, ids=["loose", "first", "tight", "cached"])
def test_the_content_alone_may_be_large(form: WireFormat, chunk: int) -> None:
    found = decoded(encode_command(message(3 << 20, 1 << 19), form), form, chunk)
    assert isinstance(found, MessageCommand)
    assert len(found.content or b"") == 3 << 20
    for large in (message(3 << 20, 1 << 20), message(0, 1 << 20)):
        encoded = encode_command(large, form)
        with pytest.raises(PeerError, match="DMQ5224"):
            decoded(encoded, form, chunk)


def test_a_large_frame_that_is_no_message_is_refused_before_it_is_there() -> None:
    form = WireFormat(12)
    decoder = OpenWireDecoder(OpenWireLimits())
    decoder.agreed(form)
    assert decoder.next_frame((MOST_BESIDE_CONTENT_BYTES + 1).to_bytes(4)) is None
    with pytest.raises(PeerError, match="DMQ5224"):
        decoder.next_frame(b"\x0c")
    assert decoder.buffered_bytes == 0


@pytest.mark.parametrize("form", FORMS, ids=["loose", "first", "tight", "cached"])
def test_what_is_kept_as_long_as_a_connection_is_small(form: WireFormat) -> None:
    info = ProducerInfo()
    info.producer_id = ProducerId("ID:c", 1, 1)
    info.broker_path = [BrokerId("id") for _ in range(1_000)]
    assert isinstance(decoded(encode_command(info, form), form, 1 << 16), ProducerInfo)
    info.broker_path *= 32
    with pytest.raises(PeerError, match="DMQ5298"):
        decoded(encode_command(info, form), form, 1 << 16)


def test_a_dispatch_is_a_message_for_those_who_take_some() -> None:
    form = WireFormat(12)
    dispatch = MessageDispatch()
    dispatch.consumer_id = ConsumerId("ID:c", 1, 1)
    dispatch.message = message(3 << 20, 0)
    encoded = encode_command(dispatch, form)
    assert isinstance(decoded(encoded, form, 1 << 16), MessageDispatch)
    with pytest.raises(PeerError, match="DMQ5224"):
        decoded(encoded, form, 1 << 16, DISPATCHES)


@pytest.mark.parametrize("form", FORMS[2:] + FORMS[:1], ids=["tight", "cached", "loose"])
def test_of_an_unread_type_only_the_start_is_decoded(form: WireFormat) -> None:
    command = BrokerInfo()
    command.broker_name = "a name"
    command.command_id = 77
    command.response_required = True
    found = decoded(encode_command(command, form), form, 1 << 16, frozenset((2,)))
    assert isinstance(found, BrokerInfo)
    assert (found.command_id, found.response_required) == (77, True)
    assert not found.broker_name
    # What follows is read as ever.
    encoded = encode_command(ControlCommand(), form) + encode_command(RemoveInfo(), form)
    decoder = OpenWireDecoder(OpenWireLimits(), unread=frozenset((14,)))
    decoder.agreed(form)
    assert isinstance(decoder.next_frame(encoded), ControlCommand)
    assert isinstance(decoder.next_frame(), RemoveInfo)
    with pytest.raises(PeerError, match="DMQ5204"):
        decoded(b"\0\0\0\2\x21\0", form, 1 << 16, frozenset((33,)))


def nested(lists: int, entries: int) -> TypedValue:
    inner = TypedValue(LIST_KIND, [TypedValue(INT_KIND, 1)] * entries)
    return TypedValue(LIST_KIND, [inner] * lists)


@pytest.mark.slow
def test_all_that_is_nested_has_one_limit() -> None:
    assert decode_map(encode_map({"a": nested(6, 10_000)}))
    with pytest.raises(PeerError, match="DMQ5212"):
        decode_map(encode_map({"a": nested(7, 10_000)}))
    with pytest.raises(PeerError, match="DMQ5212"):
        decode_map(encode_map({"a": nested(1, 40_000), "b": nested(1, 40_000)}))
    with pytest.raises(PeerError, match="DMQ5212"):
        decode_stream(encode_stream([nested(1, 40_000), nested(1, 40_000)]))
    texts = {str(number): TypedValue(STRING_KIND, "") for number in range(MOST_ENTRIES)}
    assert len(decode_map(encode_map(texts))) == MOST_ENTRIES
