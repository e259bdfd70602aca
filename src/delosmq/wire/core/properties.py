"""The properties of a message, and the body of a map.

    00 | 01, count i32, count * (key as SimpleString, kind u8, value)

    kind 0 null, 2 boolean, 3 byte, 4 bytes (size i32), 5 short, 6 int, 7 long, 8 float, 9 double, 10 SimpleString,
    11 char (u16)

A message keeps them as they came. What the broker has to know is read there, and what must not stay is cut out, so that
all others remain as their sender wrote them.

Source: TypedProperties of the Java client.
"""

from struct import Struct, error
from typing import Final

from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST
from delosmq.model.properties import (
    BOOLEAN_KIND,
    BYTE_KIND,
    BYTES_KIND,
    CHAR_KIND,
    DOUBLE_KIND,
    FLOAT_KIND,
    INT_KIND,
    LONG_KIND,
    NULL_KIND,
    SHORT_KIND,
    STRING_KIND,
    TypedValue,
    narrowed,
)
from delosmq.model.reserved_names import CONNECTION_MARK, RESERVED, reads_as
from delosmq.wire.core import errors
from delosmq.wire.core.strings import decode_simple, encode_simple

GROUP_ID: Final = "_AMQ_GROUP_ID"
GROUP_SEQUENCE: Final = "_AMQ_GROUP_SEQUENCE"
SCHEDULED_DELIVERY: Final = "_AMQ_SCHED_DELIVERY"
DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
ROUTING_TYPE: Final = "_AMQ_ROUTING_TYPE"
CONTENT_TYPE: Final = "_AMQ_CONTENT_TYPE"
LARGE_BODY_SIZE: Final = "_AMQ_LARGE_SIZE"
LARGE_COMPRESSED: Final = "_AMQ_LARGE_COMPRESSED"
FORCED_DELIVERY: Final = "_hornetq.forced.delivery.seq"

NO_PROPERTIES: Final = b"\0"
MOST_ENTRIES: Final = 65_536
"""Of one message: what a hostile peer could otherwise have us build is a hundred times as large as its bytes."""
NULL_VALUE: Final = 0
BOOLEAN_VALUE: Final = 2
BYTES_VALUE: Final = 4
STRING_VALUE: Final = 10
CHAR_VALUE: Final = 11
_SMALLEST_ENTRY_BYTES: Final = 5
_COUNT_BYTES: Final = 5
_I32: Final = Struct(">i")
_unpack_i32: Final = _I32.unpack_from
_pack_i32: Final = _I32.pack
_STRING_START: Final = Struct(">Bi")
_WHERE: Final = "a message's properties"

MODEL_KINDS: Final = {
    0: NULL_KIND,
    2: BOOLEAN_KIND,
    3: BYTE_KIND,
    4: BYTES_KIND,
    5: SHORT_KIND,
    6: INT_KIND,
    7: LONG_KIND,
    8: FLOAT_KIND,
    9: DOUBLE_KIND,
    10: STRING_KIND,
    11: CHAR_KIND,
}
"""What the kinds of CORE are in the model."""
CORE_KINDS: Final = {kind: core for core, kind in MODEL_KINDS.items()}
FORMATS: Final = {
    BYTE_KIND: Struct(">b"),
    CHAR_KIND: Struct(">H"),
    SHORT_KIND: Struct(">h"),
    INT_KIND: Struct(">i"),
    LONG_KIND: Struct(">q"),
    DOUBLE_KIND: Struct(">d"),
    FLOAT_KIND: Struct(">f"),
}
_SIZES: Final = (0, -1, 1, 1, -1, 2, 4, 8, 4, 8, -1, 2)
"""Bytes of a value by its kind; -1 where there is no such kind, or the value says it."""


class PropertyPlaces:
    """Where each property stands in encoded ones; goes from one to the next.

    Attributes:
        start: of the property, which begins with its key.
        kind: of its value, as CORE numbers it.
        value_at: where the value begins, behind its kind.
        end: of the property.
    """

    def __init__(self, encoded: bytes, at: int = 0) -> None:
        """
        Args:
            at: where the properties begin.

        Raises:
            PeerError: DMQ5604 to DMQ5608, more are announced than may follow.
        """
        self._encoded = encoded
        self.start: int = at
        self.kind: int = 0
        self.value_at: int = at
        self.end: int = at
        self.left: int = 0
        if at >= len(encoded):
            raise errors.truncated(_WHERE, "count", at)
        self.end = at + 1
        if encoded[at]:
            if at + _COUNT_BYTES > len(encoded):
                raise errors.truncated(_WHERE, "count", at)
            (count,) = _unpack_i32(encoded, at + 1)
            self.end = at + _COUNT_BYTES
            if count < 0 or count > MOST_ENTRIES or count * _SMALLEST_ENTRY_BYTES > len(encoded) - self.end:
                raise errors.too_many_entries(_WHERE, "count", count)
            self.left = count

    def next(self) -> bool:
        """Goes to the next property; False when there is none.

        Raises:
            PeerError: DMQ5604 to DMQ5607, it is malformed.
        """
        if self.left == 0:
            return False
        self.left -= 1
        encoded = self._encoded
        at = self.end
        self.start = at
        try:
            (size,) = _unpack_i32(encoded, at)
            if size < 0:
                raise errors.negative_length(_WHERE, "key", at)
            at += _I32.size + size
            kind = encoded[at]
            at += 1
            if kind >= len(_SIZES):
                raise errors.unknown_value(_WHERE, "kind", at - 1)
            self.kind = kind
            self.value_at = at
            size = _SIZES[kind]
            if size < 0:
                if kind != STRING_VALUE and kind != BYTES_VALUE:
                    raise errors.unknown_value(_WHERE, "kind", at - 1)
                (size,) = _unpack_i32(encoded, at)
                if size < 0:
                    raise errors.negative_length(_WHERE, "value", at)
                at += _I32.size
        except (IndexError, error):
            raise errors.truncated(_WHERE, "key or value", at) from None
        self.end = at + size
        if self.end > len(encoded):
            raise errors.truncated(_WHERE, "value", at)
        return True

    def key(self) -> str:
        """The name of the property."""
        return decode_simple(self._encoded[self.start + _I32.size : self.value_at - 1])

    def value(self) -> TypedValue:
        """Its value."""
        kind = self.kind
        at = self.value_at
        encoded = self._encoded
        if kind == STRING_VALUE:
            return TypedValue(STRING_KIND, decode_simple(encoded[at + _I32.size : self.end]))
        if kind == NULL_VALUE:
            return TypedValue(NULL_KIND, None)
        if kind == BOOLEAN_VALUE:
            return TypedValue(BOOLEAN_KIND, encoded[at] != 0)
        if kind == BYTES_VALUE:
            return TypedValue(BYTES_KIND, encoded[at + _I32.size : self.end])
        model_kind = MODEL_KINDS[kind]
        (number,) = FORMATS[model_kind].unpack_from(encoded, at)
        return TypedValue(model_kind, decode_character(number) if kind == CHAR_VALUE else number)


def decode_character(number: int) -> str:
    """A char; half a pair of surrogates becomes the replacement character."""
    return "\ufffd" if 0xD800 <= number <= 0xDFFF else chr(number)


def decode_properties(encoded: bytes, at: int = 0) -> dict[str, TypedValue]:
    """Properties in the order they were sent; the last of repeated ones wins.

    Raises:
        PeerError: DMQ5604 to DMQ5608, they are malformed.
    """
    entries: dict[str, TypedValue] = {}
    places = PropertyPlaces(encoded, at)
    while places.next():
        entries[places.key()] = places.value()
    return entries


def encode_properties(entries: dict[str, TypedValue]) -> bytes:
    """The reverse of `decode_properties`. Values that CORE has no kind for are left out."""
    pieces = [_entry(name, typed) for name, typed in entries.items()]
    return _joined([piece for piece in pieces if piece])


def _joined(pieces: list[bytes]) -> bytes:
    if not pieces:
        return NO_PROPERTIES
    return b"".join((b"\1", _pack_i32(len(pieces)), *pieces))


def _entry(name: str, typed: TypedValue) -> bytes:
    """A property as it travels; empty for values that CORE has no kind for."""
    value = encode_value(typed)
    if not value:
        return b""
    key = encode_simple(name)
    return b"".join((_pack_i32(len(key)), key, value))


def encode_value(typed: TypedValue) -> bytes:
    """Kind and value; empty when CORE has no such kind."""
    kind = typed.kind
    value = typed.value
    if isinstance(value, str):
        if kind == CHAR_KIND:
            return bytes((CHAR_VALUE,)) + encode_character(value)
        text = encode_simple(value)
        return _STRING_START.pack(STRING_VALUE, len(text)) + text
    if value is None:
        return b"\0"
    if isinstance(value, bool):
        return b"\x02\x01" if value else b"\x02\x00"
    if isinstance(value, bytes):
        return _STRING_START.pack(BYTES_VALUE, len(value)) + value
    if isinstance(value, dict | list):
        return b""
    fitting = narrowed(kind, value)
    return bytes((CORE_KINDS[fitting],)) + FORMATS[fitting].pack(value)


def encode_character(character: str) -> bytes:
    """16 bits; the replacement character for what is no single one of those."""
    number = ord(character) if len(character) == 1 else 0xFFFD
    return FORMATS[CHAR_KIND].pack(number if number <= 0xFFFF else 0xFFFD)


def with_properties(encoded: bytes, drop: frozenset[str], add: dict[str, TypedValue]) -> bytes:
    """The same properties without some, and with others, which replace what has their names. All else stays as it is.

    Raises:
        PeerError: DMQ5604 to DMQ5608, they are malformed.
    """
    kept: list[bytes] = []
    places = PropertyPlaces(encoded)
    while places.next():
        key = places.key()
        if key not in drop and key not in add:
            kept.append(encoded[places.start : places.end])
    for name, typed in add.items():
        entry = _entry(name, typed)
        if entry:
            kept.append(entry)
    return _joined(kept)


class BrokerProperties:
    """What a message's properties ask of the broker.

    Attributes:
        encoded: the properties, without the reserved ones, which only the broker sets.
        group_id: "" for none.
        due_at_ms: wall clock, 0 for at once.
        duplicate_id: empty for none.
        routing: by the model's numbers; `ANY_ROUTING` when nothing is asked for.
        connection_mark: what the sender says of its connection, for no-local; "" for nothing.
    """

    def __init__(self) -> None:
        self.encoded: bytes = NO_PROPERTIES
        self.group_id: str = ""
        self.group_sequence: int = 0
        self.due_at_ms: int = 0
        self.duplicate_id: bytes = b""
        self.routing: int = ANY_ROUTING
        self.connection_mark: str = ""


_CLAIMS: Final = RESERVED.difference((CONNECTION_MARK,)).union((FORCED_DELIVERY,))
"""What only the broker may say. The mark of the connection is set by Java clients themselves; a forced delivery they
would take for the end of what there is."""
_MOST_REMEMBERED_BYTES: Final = 1024


class BrokerPropertyReader:
    """Reads them for the messages of one session, which often repeat the last one's."""

    def __init__(self) -> None:
        self._last: bytes = b""
        self._last_read: BrokerProperties = BrokerProperties()

    def read(self, encoded: bytes) -> BrokerProperties:
        """What encoded properties ask for; not to be changed.

        Raises:
            PeerError: DMQ5604 to DMQ5608, they are malformed.
        """
        if encoded == self._last:
            return self._last_read
        found = read_broker_properties(encoded)
        if len(encoded) <= _MOST_REMEMBERED_BYTES:
            self._last = encoded
            self._last_read = found
        return found


def read_broker_properties(encoded: bytes) -> BrokerProperties:
    """What encoded properties ask for.

    Raises:
        PeerError: DMQ5604 to DMQ5608, they are malformed.
    """
    found = BrokerProperties()
    claims: list[tuple[int, int]] = []
    places = PropertyPlaces(encoded)
    while places.next():
        key = places.key()
        if not _is_read(key, found, places) and reads_as(key, _CLAIMS):
            claims.append((places.start, places.end))
    found.encoded = encoded if not claims else _without(encoded, claims)
    return found


def _is_read(key: str, found: BrokerProperties, places: PropertyPlaces) -> bool:
    """Takes a property over; False when it means nothing to the broker."""
    if key == ROUTING_TYPE:
        number = _whole(places.value())
        found.routing = ANYCAST if number == 1 else MULTICAST if number == 0 else ANY_ROUTING
    elif key == CONNECTION_MARK:
        found.connection_mark = _text(places.value())
    elif key == GROUP_ID:
        found.group_id = _text(places.value())
    elif key == GROUP_SEQUENCE:
        found.group_sequence = _whole(places.value())
    elif key == SCHEDULED_DELIVERY:
        found.due_at_ms = max(_whole(places.value()), 0)
    elif key == DUPLICATE_ID:
        value = places.value().value
        found.duplicate_id = value if isinstance(value, bytes) else _text(places.value()).encode()
    else:
        return False
    return True


def _whole(typed: TypedValue) -> int:
    value = typed.value
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _text(typed: TypedValue) -> str:
    return "" if typed.value is None else str(typed.value)


def _without(encoded: bytes, claims: list[tuple[int, int]]) -> bytes:
    (count,) = _unpack_i32(encoded, 1)
    left = count - len(claims)
    if left <= 0:
        return NO_PROPERTIES
    pieces = [b"\1", _pack_i32(left)]
    at = _COUNT_BYTES
    for start, end in claims:
        pieces.append(encoded[at:start])
        at = end
    pieces.append(encoded[at:])
    return b"".join(pieces)
