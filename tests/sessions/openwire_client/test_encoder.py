"""What a client encodes quickly are the bytes that the table gives."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delosmq.sessions.openwire.client.encoder import CommandEncoder
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    ACTIVEMQ_MESSAGE,
    BLOB_MESSAGE,
    TEXT_MESSAGE,
    MessageAck,
    MessageCommand,
)
from delosmq.wire.openwire.structures import (
    MESSAGE_ACK,
    TOPIC,
    Command,
    ConnectionId,
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
    Throwable,
)
from delosmq.wire.openwire.wire_format import PLAIN_FORMATS, WireFormat
from tests.chance import tries
from tests.wire.openwire.support import structures

NEWEST = PLAIN_FORMATS[12]
FORMS = [
    *PLAIN_FORMATS[1:],
    WireFormat(12, tight=True),
    WireFormat(12, caching=True),
    WireFormat(12, stack_traces=True),
]
PRODUCERS = [ProducerId("ID:host-1", 1, 1), ProducerId("ID:host-1", 1, 2), None]
DESTINATIONS = [Destination("orders"), Destination("orders"), Destination("orders", TOPIC), Destination("other"), None]
TRANSACTIONS = [LocalTransactionId(1, ConnectionId("ID:c")), LocalTransactionId(2, ConnectionId("ID:c")), None]
CONSUMERS = [ConsumerId("ID:c", 1, 2), ConsumerId("ID:c", 1, 3), None]

longs = st.integers(-(1 << 63), (1 << 63) - 1)
ints = st.integers(-(1 << 31), (1 << 31) - 1)
blocks = st.none() | st.binary(max_size=20)


@st.composite
def messages(draw: st.DrawFn) -> MessageCommand:
    """As clients send them, in any order of producers, destinations and transactions."""
    message = MessageCommand(draw(st.sampled_from((ACTIVEMQ_MESSAGE, TEXT_MESSAGE))))
    message.command_id = draw(ints)
    message.response_required = draw(st.booleans())
    message.producer_id = draw(st.sampled_from(PRODUCERS))
    message.destination = draw(st.sampled_from(DESTINATIONS))
    message.transaction_id = draw(st.sampled_from(TRANSACTIONS))
    message.message_id = MessageId(message.producer_id, draw(longs), draw(longs))
    message.persistent = draw(st.booleans())
    message.priority = draw(st.integers(0, 9))
    message.expiration, message.timestamp = draw(longs), draw(longs)
    message.group_sequence, message.redelivery_counter = draw(ints), draw(ints)
    message.content, message.marshalled_properties = draw(blocks), draw(blocks)
    message.compressed = draw(st.booleans())
    return message


@st.composite
def acks(draw: st.DrawFn) -> MessageAck:
    ack = MessageAck()
    ack.command_id = draw(ints)
    ack.response_required = draw(st.booleans())
    ack.destination = draw(st.sampled_from(DESTINATIONS))
    ack.transaction_id = draw(st.sampled_from(TRANSACTIONS))
    ack.consumer_id = draw(st.sampled_from(CONSUMERS))
    ack.ack_type = draw(st.integers(-128, 127))
    ack.last_message_id = MessageId(draw(st.sampled_from(PRODUCERS)), draw(longs), draw(longs))
    first = MessageId(draw(st.sampled_from(PRODUCERS)), draw(longs), draw(longs))
    ack.first_message_id = draw(st.sampled_from((None, first, ack.last_message_id)))
    ack.message_count = draw(ints)
    return ack


def check(form: WireFormat, commands: list[Command]) -> None:
    encoder = CommandEncoder(form)
    for command in commands:
        assert encoder.encode(command) == encode_command(command, form)


@settings(max_examples=tries(100))
@given(st.sampled_from(FORMS), st.lists(messages() | acks(), min_size=2, max_size=6))
def test_what_repeats_is_encoded_as_by_the_table(form: WireFormat, commands: list[Command]) -> None:
    check(form, commands)


@settings(max_examples=tries(25))
@given(
    st.lists(
        st.sampled_from((MESSAGE_ACK, TEXT_MESSAGE, BLOB_MESSAGE)).flatmap(lambda code: structures(code, 12)),
        max_size=3,
    )
)
def test_so_is_what_has_any_field(commands: list[Command]) -> None:
    check(NEWEST, commands)


def ordinary() -> MessageCommand:
    message = MessageCommand(TEXT_MESSAGE)
    message.producer_id, message.destination = PRODUCERS[0], DESTINATIONS[0]
    message.message_id = MessageId(message.producer_id, 3)
    message.content = b"\0\0\0\5hello"
    return message


def set_text_view(message: MessageCommand) -> None:
    assert message.message_id is not None
    message.message_id.text_view = "ID:other"


def setting(name: str, value: object) -> Callable[[MessageCommand], None]:
    return lambda message: setattr(message, name, value)


SELDOM: dict[str, object] = {
    "message_id": None,
    "original_destination": DESTINATIONS[2],
    "original_transaction_id": TRANSACTIONS[0],
    "group_id": "g",
    "correlation_id": "c",
    "reply_to": DESTINATIONS[2],
    "type": "t",
    "data_structure": DESTINATIONS[2],
    "target_consumer_id": CONSUMERS[0],
    "broker_path": [],
    "user_id": "u",
    "cluster": [],
    "arrival": 7,
    "received_by_df_bridge": True,
    "droppable": True,
    "broker_in_time": 8,
    "broker_out_time": 9,
    "group_first_for_consumer": True,
}
CHANGES = {name: setting(name, value) for name, value in SELDOM.items()} | {"text_view": set_text_view}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_each_field_that_is_seldom_set_is_encoded(change: Callable[[MessageCommand], None]) -> None:
    changed = ordinary()
    change(changed)
    check(NEWEST, [ordinary(), changed, ordinary()])


def test_a_poisoned_message_has_its_cause() -> None:
    ack = MessageAck()
    ack.last_message_id = MessageId(PRODUCERS[0], 1)
    ack.poison_cause = Throwable("java.lang.Throwable", "too often")
    check(NEWEST, [ack])
