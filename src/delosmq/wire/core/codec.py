"""Reads and writes packets by the fields that their classes declare.

    frame          size i32 (without itself) | type i8 | channel i64 | fields

    flag           FF or 00 (01 within messages)       bytes          size i32, bytes
    or null        flag, then the value                list           count i32, values
    xid            format i32, branch qualifier as bytes, global id as bytes
    transport      name, factory class as Strings, count i32, count * (key as String, kind u8, value)
    routing        i8: 0 multicast, 1 anycast, -1 none

What follows the last field that is known is skipped, as newer peers send more.

Source: PacketImpl, XidCodecSupport, TransportConfiguration and BufferHelper of the Java client.
"""

from collections.abc import Callable
from struct import Struct, error
from typing import Final

from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST
from delosmq.model.properties import BOOLEAN_KIND, INT_KIND, LONG_KIND, STRING_KIND, TypedValue
from delosmq.wire.core import errors
from delosmq.wire.core.connection_packets import CONNECTION_PACKETS
from delosmq.wire.core.message import CoreMessageReader
from delosmq.wire.core.message_packets import (
    SessionReceiveContinuation,
    SessionSendContinuation,
    SessionSendLarge,
    add_message_packet,
    read_receive,
    read_receive_large,
    read_send,
)
from delosmq.wire.core.packet import (
    ATTRIBUTES,
    BYTE,
    BYTES,
    END_FOR_OLDER,
    FLAG,
    FLAG_OR_NULL,
    INT,
    INT_OR_NULL,
    LONG,
    LONG_OR_NULL,
    ROUTING,
    ROUTINGS,
    SESS_ACKNOWLEDGE,
    SESS_FLOWTOKEN,
    SESS_INDIVIDUAL_ACKNOWLEDGE,
    SESS_RECEIVE_LARGE_MSG,
    SESS_RECEIVE_MSG,
    SESS_SEND,
    SESS_SEND_LARGE,
    SIMPLE_STRING,
    SIMPLE_STRING_OR_NULL,
    SIMPLE_STRINGS,
    STRING,
    STRING_OR_NULL,
    VERSIONS,
    XID,
    XIDS,
    CoreXid,
    Packet,
    PacketField,
    PacketFields,
    QueueAttributes,
    TransportConfiguration,
)
from delosmq.wire.core.queue_packets import QUEUE_PACKETS
from delosmq.wire.core.session_packets import SESSION_PACKETS, Acknowledge, ConsumerFlowCredit, IndividualAcknowledge
from delosmq.wire.core.strings import (
    LONG_FROM_UNITS,
    SHORT_BELOW_UNITS,
    add_simple,
    add_string,
    decode_characters,
    decode_simple,
)

_FRAME: Final = Struct(">ibq")
_pack_frame: Final = _FRAME.pack
FRAME_BYTES: Final = 13
"""Size, type and channel."""
_I32: Final = Struct(">i")
_I64: Final = Struct(">q")
_ACK: Final = Struct(">qqB")
_CREDIT: Final = Struct(">qi")
_pack_i32: Final = _I32.pack
_pack_i64: Final = _I64.pack
_MODEL_ROUTINGS: Final = {0: MULTICAST, 1: ANYCAST, -1: ANY_ROUTING}
_CORE_ROUTINGS: Final = {routing: number for number, routing in _MODEL_ROUTINGS.items()}
_PARAM_KINDS: Final = (BOOLEAN_KIND, INT_KIND, LONG_KIND, STRING_KIND)
"""Of a transport, by the numbers on the wire."""
_SMALLEST_PARAM_BYTES: Final = 6
_SMALLEST_XID_BYTES: Final = 12
_FLAG_BYTES: Final = {True: b"\xff", False: b"\0"}
_PRESENT: Final = b"\1"
_ABSENT: Final = b"\0"

_DECLARED: Final[tuple[Callable[..., Packet], ...]] = (
    *CONNECTION_PACKETS,
    *SESSION_PACKETS,
    *QUEUE_PACKETS,
    SessionSendContinuation,
    SessionReceiveContinuation,
)


def _layouts() -> dict[int, tuple[PacketField, ...]]:
    layouts: dict[int, tuple[PacketField, ...]] = {}
    for packet in _DECLARED:
        noted: list[PacketField] = []
        code = packet(fields=PacketFields(noted)).code
        layouts[code] = tuple(noted)
    return layouts


CLASSES: Final[dict[int, Callable[..., Packet]]] = {packet().code: packet for packet in _DECLARED}
"""The class of each type, but for those with whole messages."""
TABLE: Final = _layouts()
"""The fields of each of these types, in the order in which they travel."""
WHOLE_MESSAGES: Final = frozenset((SESS_SEND, SESS_RECEIVE_MSG, SESS_SEND_LARGE, SESS_RECEIVE_LARGE_MSG))
"""Types that are read and written by hand."""


def _layouts_of(version: int) -> dict[int, tuple[PacketField, ...]]:
    return {code: tuple(field for field in fields if field.since <= version) for code, fields in TABLE.items()}


_LAYOUTS: Final[dict[int, dict[int, tuple[PacketField, ...]]]] = {version: _layouts_of(version) for version in VERSIONS}


class PacketReader:
    """Reads the packets of one connection.

    Args:
        version: what both sides have agreed on.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        self._layout: dict[int, tuple[PacketField, ...]] = _LAYOUTS[version]
        self._messages: CoreMessageReader = CoreMessageReader()
        self._encoded: bytes = b""
        self._at: int = 0
        self._end: int = 0
        self._code: int = 0
        self._field: str = ""
        self._ended: bool = False

    def knows(self, code: int) -> bool:
        """Whether there is such a type."""
        return code in self._layout or code in WHOLE_MESSAGES

    def read(self, encoded: bytes, at: int, end: int) -> Packet:
        """The packet with its type at ``at`` and the end of its frame at ``end``.

        Raises:
            PeerError: DMQ5603 to DMQ5608, scope connection.
        """
        code = encoded[at]
        if code > 127:
            code -= 256
        (channel,) = _I64.unpack_from(encoded, at + 1)
        packet = self._read(code, encoded, at + FRAME_BYTES - _I32.size, end)
        packet.channel = channel
        packet.size_bytes = end - at + _I32.size
        return packet

    def _read(self, code: int, encoded: bytes, at: int, end: int) -> Packet:
        if code == SESS_SEND:
            return read_send(self._messages, encoded, at, end, self.version)
        if code == SESS_RECEIVE_MSG:
            return read_receive(self._messages, encoded, at, end)
        if code in (SESS_ACKNOWLEDGE, SESS_INDIVIDUAL_ACKNOWLEDGE) and end - at >= _ACK.size:
            consumer_id, message_id, required = _ACK.unpack_from(encoded, at)
            if code == SESS_ACKNOWLEDGE:
                return Acknowledge(consumer_id, message_id, required != 0)
            return IndividualAcknowledge(consumer_id, message_id, required != 0)
        if code == SESS_FLOWTOKEN and end - at >= _CREDIT.size:
            consumer_id, credits = _CREDIT.unpack_from(encoded, at)
            return ConsumerFlowCredit(consumer_id, credits)
        if code == SESS_SEND_LARGE:
            return SessionSendLarge(self._messages.read_headers(encoded, at, end))
        if code == SESS_RECEIVE_LARGE_MSG:
            return read_receive_large(self._messages, encoded, at, end)
        fields = self._layout.get(code)
        if fields is None:
            raise errors.unknown_type(code)
        packet = CLASSES[code]()
        self._encoded = encoded
        self._at = at
        self._end = end
        self._code = code
        self._ended = False
        try:
            self._read_fields(packet, fields)
        except (IndexError, error):
            raise errors.truncated(self._where(), self._field, self._at) from None
        except UnicodeDecodeError:
            raise errors.not_a_string(self._where(), self._field, self._at) from None
        finally:
            self._encoded = b""
        return packet

    def _where(self) -> str:
        return f"a packet of type {self._code}"

    def _read_fields(self, target: Packet | QueueAttributes, fields: tuple[PacketField, ...]) -> None:
        for field in fields:
            kind = field.kind
            if kind == END_FOR_OLDER:
                self._ended = self._ended or self._at >= self._end
            if self._ended:
                return
            self._field = field.name
            if kind == ATTRIBUTES:
                self._read_fields(getattr(target, field.name), field.parts)
            elif kind != END_FOR_OLDER and not (field.unless and getattr(target, field.unless)):
                setattr(target, field.name, self._value(kind))

    def _value(self, kind: int) -> object:
        if kind == FLAG:
            return self._flag()
        if kind == INT:
            return self._number(_I32)
        if kind == LONG:
            return self._number(_I64)
        if kind == SIMPLE_STRING:
            return self._simple()
        if kind == STRING:
            return self._string()
        if kind == BYTES:
            return self._block()
        if kind == XID:
            return self._xid()
        if kind == BYTE:
            number = self._take(1)[0]
            return number - 256 if number > 127 else number
        if kind == ROUTING:
            return self._routing()
        if kind == SIMPLE_STRINGS:
            return [self._simple() for _ in range(self._count(_I32.size))]
        if kind == XIDS:
            return [self._xid() for _ in range(self._count(_SMALLEST_XID_BYTES))]
        if kind == ROUTINGS:
            return [self._routing() for _ in range(self._count(1))]
        # All others may be null.
        if not self._flag():
            return None
        if kind == SIMPLE_STRING_OR_NULL:
            return self._simple()
        if kind == STRING_OR_NULL:
            return self._string()
        if kind == FLAG_OR_NULL:
            return self._flag()
        if kind == INT_OR_NULL:
            return self._number(_I32)
        return self._number(_I64) if kind == LONG_OR_NULL else self._transport()

    def _take(self, count: int) -> bytes:
        at = self._at
        if count < 0:
            raise errors.negative_length(self._where(), self._field, at)
        if at + count > self._end:
            raise IndexError
        self._at = at + count
        return self._encoded[at : at + count]

    def _number(self, form: Struct) -> int:
        at = self._at
        if at + form.size > self._end:
            raise IndexError
        (number,) = form.unpack_from(self._encoded, at)
        self._at = at + form.size
        return int(number)

    def _count(self, smallest_bytes: int) -> int:
        count = self._number(_I32)
        if count < 0:
            raise errors.negative_length(self._where(), self._field, self._at)
        if count * smallest_bytes > self._end - self._at:
            raise errors.too_many_entries(self._where(), self._field, count)
        return count

    def _flag(self) -> bool:
        return self._take(1)[0] != 0

    def _simple(self) -> str:
        size = self._number(_I32)
        if size > 0 and size & 1:
            raise errors.not_a_string(self._where(), self._field, self._at)
        return decode_simple(self._take(size))

    def _string(self) -> str:
        units = self._number(_I32)
        if units < SHORT_BELOW_UNITS:
            return self._take(2 * units).decode("utf-16-be", "replace")
        if units < LONG_FROM_UNITS:
            size = self._take(2)
            return decode_characters(self._take(size[0] << 8 | size[1]))
        return self._simple()

    def _block(self) -> bytes:
        return self._take(self._number(_I32))

    def _xid(self) -> CoreXid:
        format_id = self._number(_I32)
        branch_qualifier = self._block()
        return CoreXid(format_id, branch_qualifier, self._block())

    def _routing(self) -> int:
        number = self._take(1)[0]
        routing = _MODEL_ROUTINGS.get(number - 256 if number > 127 else number)
        if routing is None:
            raise errors.unknown_value(self._where(), self._field, self._at - 1)
        return routing

    def _transport(self) -> TransportConfiguration:
        name = self._string()
        factory = self._string()
        params: dict[str, TypedValue] = {}
        for _ in range(self._count(_SMALLEST_PARAM_BYTES)):
            key = self._string()
            number = self._take(1)[0]
            if number >= len(_PARAM_KINDS):
                raise errors.unknown_value(self._where(), self._field, self._at - 1)
            kind = _PARAM_KINDS[number]
            if kind == BOOLEAN_KIND:
                params[key] = TypedValue(kind, self._flag())
            elif kind == STRING_KIND:
                params[key] = TypedValue(kind, self._string())
            else:
                params[key] = TypedValue(kind, self._number(_I32 if kind == INT_KIND else _I64))
        return TransportConfiguration(name, factory, params)


def encode_packet(packet: Packet, version: int) -> bytes:
    """The whole frame, with its size; notes that in the packet.

    Raises:
        MisuseError: DMQ5612, there is no such type.
    """
    pieces: list[bytes] = [b""]
    if not add_message_packet(packet, version, pieces):
        fields = _LAYOUTS[version].get(packet.code)
        if fields is None:
            raise errors.no_such_type(packet.code)
        _add_fields(packet, fields, pieces)
    size = FRAME_BYTES + sum([len(piece) for piece in pieces])
    pieces[0] = _pack_frame(size - _I32.size, packet.code, packet.channel)
    packet.size_bytes = size
    return b"".join(pieces)


def _add_fields(target: object, fields: tuple[PacketField, ...], pieces: list[bytes]) -> None:
    for field in fields:
        kind = field.kind
        if kind == END_FOR_OLDER or (field.unless and getattr(target, field.unless)):
            continue
        value = getattr(target, field.name)
        if kind == ATTRIBUTES:
            _add_fields(value, field.parts, pieces)
        else:
            _add_value(kind, value, pieces)


def _add_value(kind: int, value: object, pieces: list[bytes]) -> None:
    if value is None:
        pieces.append(_ABSENT)
    elif isinstance(value, bool):
        if kind == FLAG_OR_NULL:
            pieces.append(_FLAG_BYTES[True])
        pieces.append(_FLAG_BYTES[value])
    elif isinstance(value, int):
        _add_number(kind, value, pieces)
    elif isinstance(value, str):
        if kind in (SIMPLE_STRING_OR_NULL, STRING_OR_NULL):
            pieces.append(_PRESENT)
        if kind in (SIMPLE_STRING, SIMPLE_STRING_OR_NULL):
            add_simple(value, pieces)
        else:
            add_string(value, pieces)
    elif isinstance(value, bytes):
        pieces.append(_pack_i32(len(value)))
        pieces.append(value)
    elif isinstance(value, CoreXid):
        _add_xid(value, pieces)
    elif isinstance(value, TransportConfiguration):
        pieces.append(_FLAG_BYTES[True])
        _add_transport(value, pieces)
    elif isinstance(value, list):
        pieces.append(_pack_i32(len(value)))
        of = SIMPLE_STRING if kind == SIMPLE_STRINGS else XID if kind == XIDS else ROUTING
        for each in value:
            _add_value(of, each, pieces)


def _add_number(kind: int, value: int, pieces: list[bytes]) -> None:
    if kind == ROUTING:
        pieces.append(bytes((_CORE_ROUTINGS[value] & 0xFF,)))
    elif kind == BYTE:
        pieces.append(bytes((value & 0xFF,)))
    else:
        if kind in (INT_OR_NULL, LONG_OR_NULL):
            pieces.append(_FLAG_BYTES[True])
        pieces.append(_pack_i32(value) if kind in (INT, INT_OR_NULL) else _pack_i64(value))


def _add_xid(xid: CoreXid, pieces: list[bytes]) -> None:
    pieces.append(_pack_i32(xid.format_id))
    for part in (xid.branch_qualifier, xid.global_transaction_id):
        pieces.append(_pack_i32(len(part)))
        pieces.append(part)


def _add_transport(transport: TransportConfiguration, pieces: list[bytes]) -> None:
    add_string(transport.name, pieces)
    add_string(transport.factory_class_name, pieces)
    pieces.append(_pack_i32(len(transport.params)))
    for name, typed in transport.params.items():
        add_string(name, pieces)
        value = typed.value
        pieces.append(bytes((_PARAM_KINDS.index(typed.kind),)))
        if isinstance(value, str):
            add_string(value, pieces)
        elif isinstance(value, bool):
            pieces.append(_FLAG_BYTES[value])
        elif isinstance(value, int):
            pieces.append(_pack_i32(value) if typed.kind == INT_KIND else _pack_i64(value))
