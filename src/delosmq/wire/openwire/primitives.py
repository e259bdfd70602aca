"""Primitive maps, and values with a tag for their type: properties, map bodies and stream bodies.

    map    count i32 (-1 null) | count * (key length u16, key | tagged value)
    list   count i32 | count * tagged value
    value  tag u8 | what the tag says

The tags are the kinds of `delosmq.model.properties`, and BIG_STRING, a string with a length of 32 bits.
Source: MarshallingSupport of the Java client.
"""

from struct import Struct, error
from typing import Final

from delosmq.model.properties import (
    BOOLEAN_KIND,
    BYTE_KIND,
    BYTES_KIND,
    CHAR_KIND,
    DOUBLE_KIND,
    FLOAT_KIND,
    INT_KIND,
    LIST_KIND,
    LONG_KIND,
    MAP_KIND,
    NULL_KIND,
    SHORT_KIND,
    STRING_KIND,
    TypedValue,
    narrowed,
)
from delosmq.wire.openwire import errors
from delosmq.wire.openwire.modified_utf8 import LONGEST_BYTES, decode_text, encode_text

BIG_STRING: Final = 13
MOST_DEPTH: Final = 32
MOST_ENTRIES: Final = 65_536
"""Of all maps and lists of one decode together: what a hostile peer could otherwise have us build is a hundred times as
large as its bytes."""

# Shorter strings are sent with a length of 16 bits. Source: MarshallingSupport.marshalString.
_BIG_FROM_CHARACTERS: Final = 8191
_SMALLEST_ENTRY_BYTES: Final = 3

_U16: Final = Struct(">H")
_I32: Final = Struct(">i")
_FORMATS: Final = {
    BYTE_KIND: Struct(">b"),
    CHAR_KIND: Struct(">H"),
    SHORT_KIND: Struct(">h"),
    INT_KIND: Struct(">i"),
    LONG_KIND: Struct(">q"),
    DOUBLE_KIND: Struct(">d"),
    FLOAT_KIND: Struct(">f"),
}


class PrimitiveReader:
    """Reads ``encoded`` from its start.

    Attributes:
        at: offset of the next byte.
    """

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self.at: int = 0
        self._depth: int = 0
        self._entries: int = 0

    def at_end(self) -> bool:
        return self.at >= len(self._encoded)

    def read_map(self) -> dict[str, TypedValue]:
        """A primitive map; empty for null. The last of repeated keys wins.

        Raises:
            PeerError: DMQ5204 to DMQ5212, when it is malformed or exceeds a limit.
        """
        try:
            return self._map()
        except (IndexError, error):
            raise errors.truncated(MAP_KIND) from None

    def read_value(self) -> TypedValue:
        """A tagged value.

        Raises:
            PeerError: as `read_map`.
        """
        try:
            return self._value()
        except (IndexError, error):
            raise errors.truncated(self._encoded[0] if self._encoded else 0) from None

    def _map(self) -> dict[str, TypedValue]:
        self._enter()
        entries: dict[str, TypedValue] = {}
        for _ in range(self._count(_SMALLEST_ENTRY_BYTES)):
            key = self._text(_U16)
            entries[key] = self._value()
        self._depth -= 1
        return entries

    def _list(self) -> list[TypedValue]:
        self._enter()
        values = [self._value() for _ in range(self._count(1))]
        self._depth -= 1
        return values

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise errors.too_deep(MOST_DEPTH)

    def _count(self, smallest_bytes: int) -> int:
        count = max(0, self._number(_I32))
        self._entries += count
        if self._entries > MOST_ENTRIES or count * smallest_bytes > len(self._encoded) - self.at:
            raise errors.too_many_entries(self._entries, MOST_ENTRIES)
        return count

    def _number(self, form: Struct) -> int:
        (number,) = form.unpack_from(self._encoded, self.at)
        self.at += form.size
        return int(number)

    def _block(self, form: Struct, what: str) -> bytes:
        length = self._number(form)
        if length < 0:
            raise errors.negative_length(what, length)
        end = self.at + length
        if end > len(self._encoded):
            raise IndexError
        block = self._encoded[self.at : end]
        self.at = end
        return block

    def _text(self, form: Struct) -> str:
        return decode_text(self._block(form, "string"))

    def _value(self) -> TypedValue:
        kind = self._encoded[self.at]
        self.at += 1
        if kind == STRING_KIND:
            return TypedValue(STRING_KIND, self._text(_U16))
        if kind == BIG_STRING:
            return TypedValue(STRING_KIND, self._text(_I32))
        if kind == NULL_KIND:
            return TypedValue(NULL_KIND, None)
        if kind == BOOLEAN_KIND:
            self.at += 1
            return TypedValue(BOOLEAN_KIND, self._encoded[self.at - 1] != 0)
        if kind == BYTES_KIND:
            return TypedValue(BYTES_KIND, self._block(_I32, "byte array"))
        if kind == MAP_KIND:
            return TypedValue(MAP_KIND, self._map())
        if kind == LIST_KIND:
            return TypedValue(LIST_KIND, self._list())
        form = _FORMATS.get(kind)
        if form is None:
            raise errors.unknown_tag(kind)
        (number,) = form.unpack_from(self._encoded, self.at)
        self.at += form.size
        return TypedValue(kind, chr(number) if kind == CHAR_KIND else number)


def decode_map(encoded: bytes) -> dict[str, TypedValue]:
    """A primitive map that fills ``encoded``.

    Raises:
        PeerError: as `PrimitiveReader.read_map`, and DMQ5220 when more follows.
    """
    reader = PrimitiveReader(encoded)
    entries = reader.read_map()
    if not reader.at_end():
        raise errors.not_an_end(reader.at)
    return entries


def decode_stream(encoded: bytes) -> list[TypedValue]:
    """Tagged values one after the other.

    Raises:
        PeerError: as `PrimitiveReader.read_value`, and DMQ5212 for more than `MOST_ENTRIES`.
    """
    reader = PrimitiveReader(encoded)
    values: list[TypedValue] = []
    while not reader.at_end():
        if len(values) >= MOST_ENTRIES:
            raise errors.too_many_entries(len(values) + 1, MOST_ENTRIES)
        values.append(reader.read_value())
    return values


def encode_map(entries: dict[str, TypedValue]) -> bytes:
    """The reverse of `decode_map`. Keys too long for the format are left out."""
    pieces: list[bytes] = []
    _add_map(entries, pieces)
    return b"".join(pieces)


def encode_stream(values: list[TypedValue]) -> bytes:
    pieces: list[bytes] = []
    for value in values:
        _add_value(value, pieces)
    return b"".join(pieces)


def _add_map(entries: dict[str, TypedValue], pieces: list[bytes]) -> None:
    keys = [(encode_text(key), value) for key, value in entries.items()]
    fitting = [(key, value) for key, value in keys if len(key) <= LONGEST_BYTES]
    pieces.append(_I32.pack(len(fitting)))
    for key, value in fitting:
        pieces.append(_U16.pack(len(key)) + key)
        _add_value(value, pieces)


def _add_value(typed: TypedValue, pieces: list[bytes]) -> None:
    kind = typed.kind
    value = typed.value
    if isinstance(value, str):
        if kind == CHAR_KIND:
            pieces.append(bytes((CHAR_KIND,)) + encode_character(value))
            return
        text = encode_text(value)
        if len(value) < _BIG_FROM_CHARACTERS:
            pieces.append(bytes((STRING_KIND,)) + _U16.pack(len(text)) + text)
        else:
            pieces.append(bytes((BIG_STRING,)) + _I32.pack(len(text)) + text)
    elif value is None:
        pieces.append(bytes((NULL_KIND,)))
    elif isinstance(value, bool):
        pieces.append(bytes((BOOLEAN_KIND, value)))
    elif isinstance(value, bytes):
        pieces.append(bytes((BYTES_KIND,)) + _I32.pack(len(value)) + value)
    elif isinstance(value, dict):
        pieces.append(bytes((MAP_KIND,)))
        _add_map(value, pieces)
    elif isinstance(value, list):
        pieces.append(bytes((LIST_KIND,)) + _I32.pack(len(value)))
        for each in value:
            _add_value(each, pieces)
    else:
        pieces.append(_encode_number(kind, value))


def encode_character(character: str) -> bytes:
    """16 bits; the replacement character for what is no single one of those."""
    number = ord(character) if len(character) == 1 else 0xFFFD
    return _U16.pack(number if number <= 0xFFFF else 0xFFFD)


def _encode_number(kind: int, value: int | float) -> bytes:
    """As ``kind`` if it fits, otherwise as the smallest kind that does."""
    fitting = narrowed(kind, value)
    return bytes((fitting,)) + _FORMATS[fitting].pack(value)
