"""Messages: the quick way agrees with the table; a consumer gets what was sent, but for what the broker says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delosmq.model.conversion import Conversions
from delosmq.model.errors import MisuseError, PeerError
from delosmq.model.ids import MessageId as BrokerMessageId
from delosmq.model.ids import Sequence, WallMs
from delosmq.model.message import BYTES_BODY, TEXT_BODY, Message
from delosmq.wire.openwire.codec import FieldReader, encode_command
from delosmq.wire.openwire.commands import (
    TEXT_MESSAGE,
    MessageCommand,
    MessageDispatch,
    NetworkBridgeFilter,
    ProducerAck,
)
from delosmq.wire.openwire.conversion import OpenWireConversion
from delosmq.wire.openwire.dispatch import DispatchEncoder, Route
from delosmq.wire.openwire.heads import BODY_KINDS, PROTOCOL_TAGS, StoredReader, encode_head, stored_body
from delosmq.wire.openwire.messages import DispatchReader, MessageReader
from delosmq.wire.openwire.primitives import decode_map
from delosmq.wire.openwire.structures import (
    TOPIC,
    ConnectionId,
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
)
from delosmq.wire.openwire.wire_format import LAYOUTS, MESSAGES, PLAIN_FORMATS, TABLE, WireFormat
from delosmq.wire.stomp.conversion import StompConversion
from tests.chance import tries
from tests.wire.openwire.support import decode_one, row, structures

CONSUMER = ConsumerId("ID:c", 1, 2)
CONVERSIONS = Conversions({"openwire": OpenWireConversion(), "stomp": StompConversion()})
QUEUE = Route(Destination("orders"))
FIELDS = [field.name for field in TABLE[29]]


def ordinary(content: bytes | None = b"\0\0\0\5hello") -> MessageCommand:
    """As the Java client sends it."""
    message = MessageCommand(TEXT_MESSAGE)
    message.command_id = 7
    message.response_required = True
    message.producer_id = ProducerId("ID:host-1", 1, 1)
    message.destination = Destination("orders")
    message.message_id = MessageId(message.producer_id, 3)
    message.persistent = True
    message.priority = 4
    message.timestamp = 1_700_000_000_000
    message.content = content
    return message


def stored(command: MessageCommand, version: int = 12, **settings: dict[str, str]) -> Message:
    """As the broker keeps it, after a way over the wire."""
    sent = decode_one(encode_command(command, PLAIN_FORMATS[version]), PLAIN_FORMATS[version])
    assert isinstance(sent, MessageCommand)
    message = Message(
        "orders",
        PROTOCOL_TAGS[version],
        encode_head(sent, version, 55),
        stored_body(sent),
        body_kind=BODY_KINDS[sent.code],
        priority=sent.priority,
        durable=sent.persistent,
        timestamp_ms=WallMs(sent.timestamp),
        expires_at_ms=sent.expiration,
        annotations=settings.get("annotations"),
    )
    message.sequence = Sequence(99)
    message.message_id = BrokerMessageId(1234)
    return message


def dispatched(message: Message, form: WireFormat, route: Route = QUEUE, first: bool = False) -> MessageDispatch:
    encoder = DispatchEncoder(form, CONSUMER, CONVERSIONS, "node")
    frame = b"".join(encoder.encode(message, route, 2, 66, first_of_group=first))
    dispatch = decode_one(frame, form)
    assert isinstance(dispatch, MessageDispatch)
    assert dispatch.redelivery_counter == 2
    assert row(dispatch.consumer_id, 12) == row(CONSUMER, 12)
    return dispatch


def differences(left: MessageCommand, right: MessageCommand) -> dict[str, object]:
    """The fields of ``right`` that ``left`` does not share."""
    return {
        name: row(getattr(right, name), 12)
        for name in FIELDS
        if row(getattr(left, name), 12) != row(getattr(right, name), 12)
    }


@pytest.mark.parametrize("version", [1, 2, 3, 9, 10, 12])
@settings(max_examples=tries(25))
@given(choice=st.data())
def test_the_quick_way_agrees_with_the_table(choice: st.DataObject, version: int) -> None:
    codes = [code for code in sorted(MESSAGES) if code in LAYOUTS[version]]
    form = PLAIN_FORMATS[version]
    reader = MessageReader(form)
    for _ in range(3):
        command = choice.draw(structures(choice.draw(st.sampled_from(codes)), version))
        # Repeats, with and without what most producers leave out, go through all branches.
        for sparse in (False, True, True):
            if sparse:
                for name in ("group_id", "correlation_id", "reply_to", "type", "original_transaction_id"):
                    setattr(command, name, None)
                for name in ("data_structure", "target_consumer_id", "broker_path", "user_id", "cluster"):
                    setattr(command, name, None)
            frame = encode_command(command, form)
            quick = reader.read(frame, 4, len(frame))
            table = FieldReader(frame, 4, len(frame), form).read_command()
            assert row(quick, version) == row(table, version)
            assert isinstance(table, MessageCommand)
            assert encode_head(quick, version, 5) == encode_head(table, version, 5)


@pytest.mark.parametrize("version", [1, 2, 9, 11, 12])
@settings(max_examples=tries(20))
@given(choice=st.data())
def test_a_stored_message_is_what_was_sent(choice: st.DataObject, version: int) -> None:
    codes = [code for code in sorted(MESSAGES) if code in LAYOUTS[version]]
    command = choice.draw(structures(choice.draw(st.sampled_from(codes)), version))
    assert isinstance(command, MessageCommand)
    back = StoredReader().decode(stored(command, version))
    expected: dict[str, object] = {"transaction_id": None} if command.transaction_id is not None else {}
    if version >= 3:
        expected |= {
            name: value
            for name, value in (("broker_in_time", 55), ("broker_out_time", 0))
            if getattr(command, name) != value
        }
    if command.content == b"":
        command.content = back.content
    assert differences(command, back) == expected


@pytest.mark.parametrize("consumer", [1, 2, 9, 10, 11, 12])
@pytest.mark.parametrize("producer", [1, 2, 9, 10, 11, 12])
@settings(max_examples=tries(5))
@given(choice=st.data())
def test_a_consumer_of_any_version_gets_what_was_sent(choice: st.DataObject, producer: int, consumer: int) -> None:
    oldest = min(producer, consumer)
    codes = [code for code in sorted(MESSAGES) if code in LAYOUTS[oldest]]
    command = choice.draw(structures(choice.draw(st.sampled_from(codes)), oldest))
    assert isinstance(command, MessageCommand)
    message = stored(command, producer)
    replaces = choice.draw(st.booleans())
    route = Route(Destination("there", TOPIC), replaces=replaces, original=Destination("here"))
    forms = [WireFormat(consumer), WireFormat(consumer, tight=True), WireFormat(consumer, caching=True)]
    rows = []
    for form in forms:
        dispatch = dispatched(message, form, route, first=True)
        assert row(dispatch.destination, consumer) == (TOPIC, "there")
        assert dispatch.message is not None
        got = dispatch.message
        # What a spliced message was sent with stays; it is only the dispatch's counter that clients look at.
        got.command_id, got.response_required, got.redelivery_counter = 0, False, 0
        rows.append(row(got, consumer))
        assert got.transaction_id is None
        assert got.message_id is not None
        assert got.message_id.broker_sequence_id == 99
        if consumer >= 10:
            assert got.group_first_for_consumer
        if consumer >= 3:
            assert got.broker_out_time == 66
        if replaces:
            assert row(got.destination, consumer) == (TOPIC, "there")
            original = command.original_destination or Destination("here")
            assert row(got.original_destination, consumer) == row(original, consumer)
        changed = {
            *("transaction_id", "message_id", "broker_in_time", "broker_out_time", "group_first_for_consumer"),
            *("redelivery_counter", "destination", "original_destination"),
        }
        if command.data_structure is not None:
            changed.add("data_structure")
        assert differences(command, got).keys() <= changed
    assert rows[0] == rows[1] == rows[2]


def test_the_spliced_frame_is_the_encoded_one() -> None:
    encoder = DispatchEncoder(PLAIN_FORMATS[12], CONSUMER, CONVERSIONS, "node")
    for content in (None, b"", b"\0\0\0\1x", b"\0\0\1\0" + b"x" * 256):
        for producer in (10, 11, 12):
            message = stored(ordinary(content), producer)
            message.expires_at_ms = 77
            for route in (QUEUE, Route(Destination("v", TOPIC), replaces=True, original=Destination("o"))):
                spliced = b"".join(encoder.encode(message, route, 0, 66))
                assert spliced == encode_command(encoder.command(message, route, 0, 66), PLAIN_FORMATS[12])


def test_a_data_structure_goes_out_as_the_consumer_s_version_has_it() -> None:
    command = ordinary()
    bridge = NetworkBridgeFilter()
    bridge.network_ttl = bridge.message_ttl = 3
    command.data_structure = bridge
    message = stored(command, 9)
    got = dispatched(message, PLAIN_FORMATS[12]).message
    assert got is not None
    assert isinstance(got.data_structure, NetworkBridgeFilter)
    again = dispatched(message, PLAIN_FORMATS[8]).message
    assert again is not None
    assert isinstance(again.data_structure, NetworkBridgeFilter)
    assert again.data_structure.network_ttl == 3


def test_what_the_consumer_s_version_has_no_type_for_is_left_out() -> None:
    command = ordinary()
    command.code = 29
    command.data_structure = ProducerAck()
    got = dispatched(stored(command), PLAIN_FORMATS[1]).message
    assert got is not None
    assert (got.code, got.data_structure, got.content) == (23, None, command.content)


def test_a_transaction_is_not_stored() -> None:
    command = ordinary()
    command.transaction_id = LocalTransactionId(5, ConnectionId("ID:c"))
    assert stored(command).head == stored(ordinary()).head


def test_changed_fields_are_measured_again() -> None:
    command = decode_one(encode_command(ordinary(), PLAIN_FORMATS[12]), PLAIN_FORMATS[12])
    assert isinstance(command, MessageCommand)
    command.user_id = "ann"
    command.before = b""
    message = Message("orders", "openwire/12", encode_head(command, 12, 1), b"x", timestamp_ms=WallMs(1))
    assert StoredReader().decode(message).user_id == "ann"


def test_nothing_to_give_has_neither_message_nor_destination() -> None:
    for form in (WireFormat(1), WireFormat(12), WireFormat(12, tight=True)):
        end = decode_one(DispatchEncoder(form, CONSUMER, CONVERSIONS, "node").encode_end(), form)
        assert isinstance(end, MessageDispatch)
        assert (end.destination, end.message, end.redelivery_counter) == (None, None, 0)


def test_a_dead_letter_tells_where_it_was_sent_and_why() -> None:
    notes = {"_AMQ_ORIG_ADDRESS": "orders", "_AMQ_ORIG_QUEUE": "orders", "dlqDeliveryFailureCause": "no"}
    message = stored(ordinary(), annotations=notes | {"originalExpiration": "12"})
    got = dispatched(message, PLAIN_FORMATS[12], Route(Destination("ActiveMQ.DLQ"))).message
    assert got is not None
    assert row(got.destination, 12) == (100, "ActiveMQ.DLQ")
    assert row(got.original_destination, 12) == (100, "orders")
    entries = decode_map(got.marshalled_properties or b"")
    assert {name: (each.kind, each.value) for name, each in entries.items()} == {
        "dlqDeliveryFailureCause": (9, "no"),
        "originalExpiration": (6, 12),
    }
    broken = ordinary()
    broken.marshalled_properties = b"\0\0"
    got = dispatched(stored(broken, annotations=notes), PLAIN_FORMATS[12]).message
    assert got is not None
    assert got.marshalled_properties == b"\0\0"


def test_a_message_of_another_protocol_has_an_id_of_its_own() -> None:
    message = Message(
        "orders",
        "stomp/12",
        b"destination:orders\ncorrelation-id:c\nx:1\n",
        b"hello",
        body_kind=TEXT_BODY,
        priority=7,
        durable=True,
        timestamp_ms=WallMs(11),
        expires_at_ms=12,
        group_id="g",
        group_sequence=3,
        annotations={"_AMQ_ORIG_ADDRESS": "t", "_AMQ_ORIG_ROUTING_TYPE": "0"},
    )
    keys = set()
    got = None
    for number in (1, 2, (1 << 31) - 2, (1 << 31) - 1, 1 << 31, 1 << 60):
        message.message_id = BrokerMessageId(number)
        message.sequence = Sequence(number)
        got = dispatched(message, PLAIN_FORMATS[12]).message
        assert got is not None
        assert got.message_id is not None
        assert got.message_id.producer_sequence_id < 1 << 31
        keys.add(got.message_id.key())
    assert got is not None
    assert len(keys) == 6
    assert min(keys) == "ID:node:-1:-1:0:1"
    assert (got.code, got.content, got.correlation_id) == (TEXT_MESSAGE, b"\0\0\0\5hello", "c")
    assert (got.priority, got.persistent, got.timestamp, got.expiration) == (7, True, 11, 12)
    assert (got.group_id, got.group_sequence) == ("g", 3)
    assert row(got.original_destination, 12) == (TOPIC, "t")
    assert list(decode_map(got.marshalled_properties or b"")) == ["x"]


def test_a_message_needs_an_id() -> None:
    command = ordinary()
    command.message_id = None
    with pytest.raises(PeerError, match="DMQ5209"):
        decode_one(encode_command(command, WireFormat(12)), WireFormat(12))
    tight = WireFormat(12, tight=True)
    message = decode_one(encode_command(command, tight), tight)
    assert isinstance(message, MessageCommand)
    with pytest.raises(PeerError, match="DMQ5209"):
        encode_head(message, 12, 1)


def test_a_head_of_another_form_is_named() -> None:
    for head in (b"", b"\2" + bytes(60), b"x"):
        with pytest.raises(MisuseError, match="DMQ5218"):
            StoredReader().decode(Message("a", "openwire/12", head, b"", body_kind=BYTES_BODY, timestamp_ms=WallMs(1)))


def test_the_window_counts_content_and_properties() -> None:
    command = ordinary(b"12345")
    command.marshalled_properties = b"123"
    assert command.size_bytes() == 1032
    assert ordinary(None).size_bytes() == 1024


def dispatch_of(
    message: MessageCommand | None, consumer: ConsumerId = CONSUMER, redelivery: int = 2
) -> MessageDispatch:
    dispatch = MessageDispatch()
    dispatch.consumer_id = consumer
    dispatch.destination = Destination("orders")
    dispatch.message = message
    dispatch.redelivery_counter = redelivery
    return dispatch


@pytest.mark.parametrize("version", [1, 3, 9, 12])
@given(draws=st.data())
@settings(max_examples=tries(50))
def test_dispatches_read_quickly_are_those_of_the_table(version: int, draws: st.DataObject) -> None:
    form = PLAIN_FORMATS[version]
    drawn = draws.draw(st.lists(structures(TEXT_MESSAGE, version), min_size=1, max_size=4))
    commands = [one for one in drawn if isinstance(one, MessageCommand)]
    reader = DispatchReader(form)
    ends = [dispatch_of(None), dispatch_of(ordinary(None)), dispatch_of(ordinary(), ConsumerId("ID:d", 1, 2), 0)]
    for dispatch in [dispatch_of(ordinary()), *map(dispatch_of, commands), *ends]:
        frame = encode_command(dispatch, form)
        quick = reader.read(frame, 4, len(frame))
        table = FieldReader(frame, 4, len(frame), form).read_command()
        assert isinstance(table, MessageDispatch)
        assert encode_command(quick, form) == encode_command(table, form) == frame
        assert (quick.redelivery_counter, quick.message is None) == (table.redelivery_counter, table.message is None)


def test_a_dispatch_that_ends_too_early_is_refused_as_by_the_table() -> None:
    form = PLAIN_FORMATS[12]
    whole = encode_command(dispatch_of(ordinary()), form)
    reader = DispatchReader(form)
    reader.read(whole, 4, len(whole))
    for length in range(10, len(whole)):
        with pytest.raises(PeerError):
            reader.read(whole[:length], 4, length)
