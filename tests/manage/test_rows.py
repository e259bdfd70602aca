"""Rows mean the same as those made in the plainest way, whatever stands beside each other in a lease."""

import asyncio
import io
import logging
import zlib
from typing import Final

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import naive_rows
from benchmarks.naive_rows import CONVERSIONS
from delosmq.engine.api import Slot
from delosmq.manage.http.arrow import SLICE_ROWS, RowStream
from delosmq.model.ids import MessageId, Sequence, WallMs
from delosmq.model.message import BYTES_BODY, MAP_BODY, TEXT_BODY, Message
from delosmq.model.properties import BOOLEAN_KIND, DOUBLE_KIND, INT_KIND, STRING_KIND, TypedValue
from delosmq.sessions.lease.columns import NAMES
from delosmq.wire.openwire.commands import BYTES_MESSAGE, MAP_MESSAGE, OBJECT_MESSAGE, TEXT_MESSAGE, MessageCommand
from delosmq.wire.openwire.heads import BODY_KINDS, encode_head, stored_body
from delosmq.wire.openwire.primitives import encode_map
from delosmq.wire.openwire.structures import Destination, ProducerId
from delosmq.wire.openwire.structures import MessageId as OpenWireId
from delosmq.wire.stomp.conversion import encode_lines
from delosmq.wire.stomp.versions import V10, V11, V12

QUEUE: Final = "orders"
SAYS: Final = st.text("abé:\\\n", max_size=4)
STOMP_NAMES: Final = st.sampled_from(
    (
        "destination",
        "correlation-id",
        "reply-to",
        "type",
        "content-type",
        "JMSXGroupID",
        "amq-msg-type",
        "colour",
        "size",
    )
)
OPTIONAL: Final = st.none() | st.text("abé", max_size=3)
VALUES: Final = st.one_of(
    st.builds(TypedValue, st.just(STRING_KIND), st.text("abé", max_size=3)),
    st.builds(TypedValue, st.just(INT_KIND), st.integers(-(1 << 31), (1 << 31) - 1)),
    st.builds(TypedValue, st.just(BOOLEAN_KIND), st.booleans()),
    st.builds(TypedValue, st.just(DOUBLE_KIND), st.floats(allow_nan=False)),
)


@st.composite
def stomp_messages(draw: st.DrawFn) -> Message:
    version = draw(st.sampled_from((V10, V11, V12)))
    head = encode_lines(draw(st.lists(st.tuples(STOMP_NAMES, SAYS), max_size=5)), version)
    return Message(
        "a",
        f"stomp/{version}",
        head,
        draw(st.binary(max_size=5)),
        body_kind=draw(st.sampled_from((TEXT_BODY, BYTES_BODY, MAP_BODY))),
        timestamp_ms=WallMs(0),
    )


@st.composite
def openwire_messages(draw: st.DrawFn) -> Message:
    command = MessageCommand(draw(st.sampled_from((TEXT_MESSAGE, BYTES_MESSAGE, MAP_MESSAGE, OBJECT_MESSAGE))))
    command.destination = Destination("a")
    command.message_id = OpenWireId(ProducerId("ID:c", 1, 1), draw(st.integers(1, 3)))
    command.content = draw(st.none() | st.sampled_from((b"", b"\0\0\0\2ab", b"\0\0\0\1\xff", b"\0\0\0\0", b"x")))
    command.compressed = draw(st.booleans())
    if command.compressed and command.content and draw(st.booleans()):
        command.content = zlib.compress(command.content)
    command.correlation_id, command.type = draw(OPTIONAL), draw(OPTIONAL)
    command.group_id = draw(OPTIONAL)
    command.reply_to = draw(st.none() | st.just(Destination("back")))
    entries = draw(st.dictionaries(st.sampled_from(("colour", "size")), VALUES, max_size=2))
    command.marshalled_properties = encode_map(entries) if entries else draw(st.none() | st.just(b"\0\0\0\1?"))
    head = encode_head(command, 12, 0)
    kind = BODY_KINDS[command.code]
    return Message("a", "openwire/12", head, stored_body(command), body_kind=kind, timestamp_ms=WallMs(0))


@st.composite
def unknown_messages(draw: st.DrawFn) -> Message:
    return Message("a", "carrier-pigeon", b"?", draw(st.binary(max_size=3)), timestamp_ms=WallMs(0))


@st.composite
def slots(draw: st.DrawFn) -> Slot:
    message = draw(st.one_of(stomp_messages(), openwire_messages(), unknown_messages()))
    message.address = draw(st.sampled_from(("a", "b")))
    message.priority = draw(st.sampled_from((4, 9)))
    message.durable = draw(st.booleans())
    message.timestamp_ms = WallMs(draw(st.integers(0, 1 << 41)))
    message.expires_at_ms = draw(st.sampled_from((0, 1_700_000_000_000)))
    message.user = draw(st.sampled_from(("", "ann")))
    message.annotations = draw(st.none() | st.just({"_AMQ_ORIG_ADDRESS": "x", "colour": "grey"}))
    message.message_id = MessageId(draw(st.integers(1, 9)))
    message.sequence = Sequence(draw(st.integers(1, 1 << 40)))
    slot = Slot(message, True)
    slot.delivery_count = draw(st.integers(1, 3))
    return slot


def served(rows: list[Slot], names: tuple[str, ...]) -> pyarrow.Table:
    async def read() -> bytes:
        stream = RowStream(rows, names, QUEUE, conversions=CONVERSIONS, logger=logging.getLogger("rows"))
        response = await stream.response()
        return b"".join([bytes(chunk) async for chunk in response.body_iterator if not isinstance(chunk, str)])

    with pyarrow.ipc.open_stream(io.BytesIO(asyncio.run(read()))) as reader:
        found = reader.read_all()
    found.validate(full=True)
    return found


@given(st.lists(slots(), max_size=8), st.sets(st.sampled_from(NAMES), min_size=1), st.integers(1, 3))
def test_rows_are_those_of_the_plain_way(found: list[Slot], names: set[str], times: int) -> None:
    wanted = tuple(name for name in NAMES if name in names)
    rows = [slot for slot in found for _ in range(times)]
    assert served(rows, wanted).equals(naive_rows.table(rows, wanted, QUEUE, CONVERSIONS))


@pytest.mark.parametrize("names", [("body",), ("body", "body_kind", "properties"), NAMES])
def test_slices_follow_each_other_without_a_gap(names: tuple[str, ...]) -> None:
    rows = []
    for i in range(2 * SLICE_ROWS + 3):
        head = f"destination:a\nnumber:{i}\n".encode() if i % 3 else b"destination:a\n"
        message = Message("a", "stomp/12", head, b"%d" % i, timestamp_ms=WallMs(i))
        message.sequence = Sequence(i + 1)
        rows.append(Slot(message, True))
    assert served(rows, names).equals(naive_rows.table(rows, names, QUEUE, CONVERSIONS))


def test_headers_that_cannot_be_read_take_no_body_away() -> None:
    message = Message("a", "stomp/12", b"colour:\\x\n", b"tea", body_kind=TEXT_BODY, timestamp_ms=WallMs(0))
    whole = served([Slot(message, True)], ("body", "type", "properties", "body_kind"))
    assert whole.to_pylist() == [{"body": b"tea", "type": None, "properties": [], "body_kind": "text"}]
