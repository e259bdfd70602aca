"""Every type in every version comes back as it was sent, however it was encoded."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delosmq.model.errors import MisuseError, PeerError, Scope
from delosmq.wire.openwire.acks import AckReader
from delosmq.wire.openwire.codec import encode_command, encode_response, encode_structure
from delosmq.wire.openwire.commands import (
    BrokerInfo,
    ConsumerInfo,
    ExceptionResponse,
    MessageAck,
    MessageDispatch,
    NetworkBridgeFilter,
    Response,
)
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.structures import (
    ConnectionId,
    LocalTransactionId,
    MessageId,
    ProducerId,
    Structure,
    Throwable,
    XATransactionId,
)
from delosmq.wire.openwire.wire_format import CLASSES, LAYOUTS, PLAIN_FORMATS, TABLE, WireFormat, new_structure
from tests.chance import tries
from tests.wire.openwire.support import FRAMES, decode, decode_one, row, structures

VERSIONS = range(1, 13)
FORMS = [
    pytest.param({}, id="loose"),
    pytest.param({"tight": True}, id="tight"),
    pytest.param({"caching": True}, id="loose-cached"),
    pytest.param({"tight": True, "caching": True, "stack_traces": True}, id="tight-cached-traces"),
]


@pytest.mark.parametrize("options", FORMS)
@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=tries(10), suppress_health_check=[HealthCheck.too_slow])
@given(choice=st.data())
def test_every_command_comes_back(choice: st.DataObject, version: int, options: dict[str, bool]) -> None:
    code = choice.draw(st.sampled_from([code for code in FRAMES if code in LAYOUTS[version]]))
    command = choice.draw(structures(code, version))
    form = WireFormat(version, **options)
    assert row(decode_one(encode_command(command, form), form), version) == row(command, version)


@pytest.mark.parametrize("code", [code for code in TABLE if code in LAYOUTS[12]])
def test_every_type_comes_back_with_nothing_in_it(code: int) -> None:
    if code in FRAMES and code not in range(23, 30):
        command = new_structure(code)
        for version in VERSIONS:
            if code in LAYOUTS[version]:
                form = PLAIN_FORMATS[version]
                assert row(decode_one(encode_command(command, form), form), version) == row(command, version)


@settings(max_examples=tries(60))
@given(choice=st.data())
def test_tight_and_loose_say_the_same(choice: st.DataObject) -> None:
    version = choice.draw(st.sampled_from((1, 9, 10, 11, 12)))
    code = choice.draw(st.sampled_from([code for code in FRAMES if code in LAYOUTS[version]]))
    command = choice.draw(structures(code, version))
    rows = [
        row(decode_one(encode_command(command, form), form), version)
        for form in (WireFormat(version), WireFormat(version, tight=True))
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("code", sorted(TABLE))
def test_the_table_names_attributes_of_its_classes(code: int) -> None:
    value = new_structure(code)
    assert value.code == code
    for field in TABLE[code]:
        assert hasattr(value, field.name)


def test_the_versions_differ_where_they_should() -> None:
    names = {version: [field.name for field in LAYOUTS[version][5]] for version in (3, 4, 9, 10)}
    assert "network_consumer_path" not in names[3]
    assert names[4] == names[9]
    assert names[10].index("client_id") == names[10].index("selector") + 1
    assert 20 not in LAYOUTS[1]
    assert [field.name for field in LAYOUTS[9][91]] == ["network_ttl", "network_broker_id"]
    assert [field.name for field in LAYOUTS[10][91]] == ["network_broker_id", "message_ttl", "consumer_ttl"]
    assert 92 in LAYOUTS[12]
    assert 92 not in LAYOUTS[11]
    assert set(CLASSES) < set(TABLE)


def test_a_stack_trace_travels_when_both_want_it() -> None:
    thrown = Throwable("java.lang.Exception", "no")
    thrown.frames.append(("a.B", "c", None, 7))
    thrown.cause = Throwable("java.io.IOException", None)
    form = WireFormat(12, stack_traces=True)
    back = decode_one(encode_command(ExceptionResponse(3, thrown), form), form)
    assert isinstance(back, ExceptionResponse)
    assert row(back.exception, 12) == row(thrown, 12)


def test_a_cached_value_is_sent_once_and_then_by_number() -> None:
    form = WireFormat(12, caching=True)
    body = b"\x0c\0\0\0\1\0"  # RemoveInfo, id 1, no response
    first = body + b"\1\0\x05" + b"\1\x78\1\0\1a" + bytes(8)
    second = body + b"\0\0\x05" + bytes(8)
    stream = b"".join(len(each).to_bytes(4) + each for each in (first, second))
    rows, code = decode([stream], form)
    assert code is None
    assert rows[0] == rows[1] == (12, 1, False, (120, "a"), 0)
    assert decode([len(second).to_bytes(4) + second], WireFormat(12, caching=True)) == ([], "DMQ5213")
    wrong = b"\x08\0\0\0\1\0" + b"\1\0\x05" + b"\1\x78\1\0\1a" + b"\0\0\x05"  # a connection id as destination
    assert decode([len(wrong).to_bytes(4) + wrong], WireFormat(12, caching=True)) == ([], "DMQ5208")
    beyond = body + b"\1\x7f\xff" + b"\1\x78\1\0\1a" + bytes(8)
    assert decode([len(beyond).to_bytes(4) + beyond], WireFormat(12, caching=True)) == ([], "DMQ5213")


def test_a_value_of_the_wrong_type_is_refused() -> None:
    consumer = ConsumerInfo()
    consumer.additional_predicate = NetworkBridgeFilter()
    assert isinstance(decode_one(encode_command(consumer, PLAIN_FORMATS[12]), PLAIN_FORMATS[12]), ConsumerInfo)
    remove = b"\x0c\0\0\0\1\0" + b"\1" + encode_command(consumer, PLAIN_FORMATS[12])[4:] + bytes(8)
    assert decode([len(remove).to_bytes(4) + remove], PLAIN_FORMATS[12]) == ([], "DMQ5208")


def test_nesting_is_bounded() -> None:
    inner = BrokerInfo()
    for _ in range(40):
        outer = BrokerInfo()
        outer.peer_broker_infos = [inner]
        inner = outer
    for form in (WireFormat(12), WireFormat(12, tight=True)):
        assert decode([encode_command(inner, form)], form) == ([], "DMQ5207")
    thrown = Throwable()
    for _ in range(40):
        next_one = Throwable()
        next_one.cause = thrown
        thrown = next_one
    form = WireFormat(12, stack_traces=True)
    assert decode([encode_command(ExceptionResponse(1, thrown), form)], form) == ([], "DMQ5207")


def test_a_negative_length_is_refused() -> None:
    frame = b"\x12\0\0\0\1\0" + bytes(8) + b"\1\xff\xff\xff\xff"  # ConnectionControl with a token
    rows, code = decode([len(frame).to_bytes(4) + frame], WireFormat(12))
    assert (rows, code) == ([], "DMQ5206")
    array = b"\x21\0\0\0\1\0" + bytes(4) + b"\1\xff\xff"
    assert decode([len(array).to_bytes(4) + array], WireFormat(12)) == ([], "DMQ5206")


def test_an_id_without_its_text_is_refused() -> None:
    frame = b"\x0c\0\0\0\1\0" + b"\1\x78\0" + bytes(8)
    assert decode([len(frame).to_bytes(4) + frame], WireFormat(12)) == ([], "DMQ5209")


@pytest.mark.parametrize("character", ["x", "\u00e4", "\u20ac", "\U0001f600", "\ud800", "\0"])
@pytest.mark.parametrize("tight", [False, True])
def test_a_text_that_does_not_fit_is_cut(character: str, tight: bool) -> None:
    # BROKER-4: what one peer may send, another could not get in its form; that must not hinder anybody.
    form = WireFormat(12, tight=tight)
    command = ConsumerInfo()
    command.selector = character * 140_000
    (cut,) = decoded(encode_command(command, form), form)
    assert isinstance(cut, ConsumerInfo)
    assert cut.selector
    assert command.selector.startswith(cut.selector)
    assert len(cut.selector) > 5_000


def test_a_text_that_just_fits_is_not_cut() -> None:
    command = ConsumerInfo()
    for tight, length in ((False, 65_535), (True, 32_766)):
        form = WireFormat(12, tight=tight)
        command.selector = "x" * length
        (whole,) = decoded(encode_command(command, form), form)
        assert isinstance(whole, ConsumerInfo)
        assert whole.selector == command.selector


def test_a_text_that_does_not_fit_into_what_is_stored_is_refused() -> None:
    with pytest.raises(MisuseError, match="DMQ5219"):
        encode_structure(ProducerId("x" * 70_000), WireFormat(12))


def test_a_type_that_the_version_has_not() -> None:
    with pytest.raises(MisuseError, match="DMQ5223"):
        encode_command(structure_of_version_three(), WireFormat(1))


def decoded(encoded: bytes, form: WireFormat) -> list[Structure]:
    decoder = OpenWireDecoder(OpenWireLimits())
    decoder.agreed(form)
    frame = decoder.next_frame(encoded)
    return [] if frame is None else [frame]


def structure_of_version_three() -> Structure:
    return new_structure(19)


def test_many_booleans_are_counted_in_two_or_three_bytes() -> None:
    for count in (10, 100, 600, 2500):
        command = new_structure(33)
        names: list[Structure | None] = [ConnectionId("c")] * count
        command.values = names  # type: ignore[attr-defined]
        form = WireFormat(12, tight=True)
        back = decode_one(encode_command(command, form), form)
        assert row(back, 12) == row(command, 12)


def test_a_tight_message_may_stand_encoded_on_its_own() -> None:
    # OpenWireFormat.tightUnmarshalNestedObject reads size, type and bits of its own when the flag says so.
    form = WireFormat(1, tight=True)
    dispatch = MessageDispatch()
    message = new_structure(28)
    dispatch.message = message  # type: ignore[assignment]
    plain = encode_command(dispatch, form)
    assert row(decode_one(plain, form), 1) == row(dispatch, 1)
    inner = encode_command(message, form)
    # bits: response, consumer, destination (null), message, "on its own"
    bits = bytes((0b11000,))
    body = b"\x15" + b"\1" + bits + bytes(4) + b"\x1c" + inner[:5] + inner[5:] + bytes(4)
    back = decode_one(len(body).to_bytes(4) + body, form)
    assert row(back, 1) == row(dispatch, 1)


def test_the_quick_response_is_the_encoded_one() -> None:
    for form in (WireFormat(1), WireFormat(12), WireFormat(12, tight=True)):
        response = Response(7)
        response.command_id = 3
        assert encode_response(7, form, 3) == encode_command(response, form)


@settings(max_examples=tries(60))
@given(choice=st.data())
def test_the_quick_way_of_acknowledgements_agrees_with_the_table(choice: st.DataObject) -> None:
    form = PLAIN_FORMATS[12]
    reader = AckReader(form)
    known = MessageId(ProducerId("ID:a", 1, 2), 3)
    for _ in range(3):
        ack = choice.draw(structures(22, 12))
        assert isinstance(ack, MessageAck)
        for ids in range(4):
            if ids:
                ack.poison_cause = None
                ack.first_message_id = known if ids > 1 else None
                ack.last_message_id = known
            frame = encode_command(ack, form)
            assert row(reader.read(frame, 4, len(frame)), 12) == row(ack, 12)
            with pytest.raises(PeerError):
                reader.read(frame, 4, len(frame) - 1)
            if ids:
                with pytest.raises(PeerError, match="DMQ5204"):
                    reader.read(frame[:-1] + b"\1", 4, len(frame))


def test_ids_have_the_text_that_java_prints() -> None:
    producer = ProducerId("ID:host-1:1", 2, 3)
    assert producer.key() == "ID:host-1:1:2:3"
    assert MessageId(producer, 4).key() == "ID:host-1:1:2:3:4"
    assert LocalTransactionId(5, ConnectionId("c")).key() == "TX:c:5"
    assert XATransactionId(1, b"\1", b"\2").key() == "XID:1:01:02"
    viewed = MessageId()
    viewed.text_view = "x"
    assert viewed.key() == "ID:x"


def test_refusals_concern_the_connection() -> None:
    with pytest.raises(PeerError) as refused:
        decode_one(b"\0\0\0\1\x0d", WireFormat(12))
    assert refused.value.scope is Scope.CONNECTION
    assert refused.value.code == "DMQ5203"
    assert MessageAck().code == 22
