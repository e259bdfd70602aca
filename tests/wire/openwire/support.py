"""What the tests of the OpenWire codec share: any value of any type, comparable rows, and one way to decode."""

from hypothesis import strategies as st

from delosmq.model.errors import PeerError
from delosmq.wire.openwire.codec import Value
from delosmq.wire.openwire.commands import MessageCommand
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, encode_wire_format_info
from delosmq.wire.openwire.structures import (
    ARRAY,
    BLOCK,
    BYTE,
    BYTES,
    FLAG,
    INT,
    LONG,
    NAME,
    STRING,
    THROWABLE,
    Command,
    Field,
    MessageId,
    Structure,
    Throwable,
)
from delosmq.wire.openwire.wire_format import LAYOUTS, MESSAGES, WireFormat, new_structure

FRAMES = [code for code in LAYOUTS[12] if code < 100 and code not in (55, 91)]
Row = tuple[object, ...]

texts = st.text(max_size=12)
longs = st.one_of(
    st.sampled_from((0, 1, -1, 0xFFFF, 0x10000, 0xFFFFFFFF, 1 << 32)), st.integers(-(1 << 63), (1 << 63) - 1)
)


@st.composite
def structures(draw: st.DrawFn, code: int, version: int, depth: int = 0) -> Structure:
    """A value of type ``code``, with all fields that ``version`` has."""
    value = new_structure(code)
    if isinstance(value, Command):
        value.command_id = draw(st.integers(-(1 << 31), (1 << 31) - 1))
        value.response_required = draw(st.booleans())
    for field in LAYOUTS[version][code]:
        if not (code in MESSAGES and field.name == "message_id"):
            setattr(value, field.name, draw(field_values(field, version, depth)))
    if isinstance(value, MessageCommand):
        message_id = draw(structures(110, version, depth + 1))
        assert isinstance(message_id, MessageId)
        value.message_id = message_id
    return value


def field_values(field: Field, version: int, depth: int) -> st.SearchStrategy[object]:
    """Any value that the field may hold."""
    kind = field.kind
    if kind == FLAG:
        return st.booleans()
    if kind == BYTE:
        return st.integers(-128, 127)
    if kind == INT:
        return st.integers(-(1 << 31), (1 << 31) - 1)
    if kind == LONG:
        return longs
    if kind == STRING:
        return st.none() | texts
    if kind == NAME:
        return texts
    if kind == BYTES:
        return st.none() | st.binary(max_size=20)
    if kind == BLOCK:
        return st.binary(max_size=20)
    if kind == THROWABLE:
        return st.none() | st.builds(Throwable, st.none() | texts, st.none() | texts)
    known = [code for code in sorted(field.of or (10, 55, 100, 110, 123)) if code in LAYOUTS[version]]
    if depth > 2 or not known:
        return st.none()
    nested = st.none() | st.sampled_from(known).flatmap(lambda code: structures(code, version, depth + 1))
    return st.none() | st.lists(nested, max_size=3) if kind == ARRAY else nested


def row(value: Value, version: int) -> object:
    """All that a value holds, to compare by."""
    if isinstance(value, Structure):
        names = [field.name for field in LAYOUTS[version][value.code]]
        start: Row = (value.command_id, value.response_required) if isinstance(value, Command) else ()
        return (value.code, *start, *[row(getattr(value, name), version) for name in names])
    if isinstance(value, Throwable):
        return (value.class_name, value.message, tuple(value.frames), row(value.cause, version))
    if isinstance(value, list):
        return [row(each, version) for each in value]
    return value


HELLO = encode_wire_format_info(WireFormatInfo())


def open_decoder(form: WireFormat, limits: OpenWireLimits | None = None) -> OpenWireDecoder:
    """A decoder behind the negotiation."""
    decoder = OpenWireDecoder(limits or OpenWireLimits())
    assert isinstance(decoder.next_frame(HELLO), WireFormatInfo)
    decoder.agreed(form)
    return decoder


def decode(
    chunks: list[bytes], form: WireFormat, limits: OpenWireLimits | None = None
) -> tuple[list[object], str | None]:
    """Rows of the commands, and the code of the refusal."""
    decoder = open_decoder(form, limits)
    rows: list[object] = []
    for chunk in chunks:
        try:
            command = decoder.next_frame(chunk)
            while command is not None:
                rows.append(row(command, form.version))
                command = decoder.next_frame()
        except PeerError as refusal:
            return rows, refusal.code
    return rows, None


def decode_one(frame: bytes, form: WireFormat) -> Structure:
    """The only command of a stream."""
    decoder = open_decoder(form)
    command = decoder.next_frame(frame)
    assert command is not None
    assert decoder.buffered_bytes == 0
    return command
