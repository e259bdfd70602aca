r"""Reads and writes commands by the table in `layout`.

    frame          size i32 (without itself) | type u8 | fields
    tight frame    size i32 | type u8 | bits | fields
    bits           number of bytes (u8, or C0 u8, or 80 u16) | the bytes, each from its low bit on

A flag is a byte, or a bit when tightly encoded; "flag?" below means: only if the flag before is set.

    string   flag ? length u16, modified UTF-8        tight: flag ? flag "ASCII"; the same
    bytes    flag ? length i32, bytes
    long     i64                                      tight: two flags tell of 0, 2, 4 or 8 bytes
    nested   flag ? type u8, fields                   tight messages: flag "encoded on its own" before their fields
    cached   flag "in full", number i16, nested?      when caching, else nested
    array    flag ? count i16, nested values
    throwable flag ? class string, message string     with stack traces: count i16, frames (3 strings, i32), throwable

Source: BaseDataStreamMarshaller, BooleanStream and OpenWireFormat of the Java client.
"""

from struct import Struct, error
from typing import Final

from delosmq.wire.openwire import errors
from delosmq.wire.openwire.commands import MessageCommand, Response
from delosmq.wire.openwire.modified_utf8 import LONGEST_BYTES, cut_text, decode_text, encode_text
from delosmq.wire.openwire.structures import (
    ARRAY,
    BLOCK,
    BYTE,
    BYTES,
    CACHED,
    FLAG,
    INT,
    LONG,
    NAME,
    NESTED,
    RESPONSE,
    STRING,
    THROWABLE,
    Command,
    Field,
    Structure,
    Throwable,
)
from delosmq.wire.openwire.wire_format import MESSAGES, WireFormat, new_structure

MOST_DEPTH: Final = 32
"""Of nested values and causes."""

_U16: Final = Struct(">H")
_I16: Final = Struct(">h")
_I32: Final = Struct(">i")
_U32: Final = Struct(">I")
_I64: Final = Struct(">q")
_RESPONSE: Final = Struct(">iBi?i")
_RESPONSE_SIZE: Final = _RESPONSE.size - 4
_LARGEST_I16: Final = (1 << 15) - 1
_LONG_COUNT: Final = 0xC0
_VERY_LONG_COUNT: Final = 0x80
_NOT_CACHED: Final = -1
# What a tight string may take. Source: tightMarshalString1.
_LONGEST_TIGHT_BYTES: Final = (1 << 15) - 2

Value = Structure | Throwable | str | bytes | int | bool | list[Structure | None] | None


class FieldReader:
    """Reads the fields of one frame: ``encoded`` from ``at`` up to ``end``.

    Every method may raise PeerError, or IndexError and struct.error when the frame ends too early.
    """

    def __init__(self, encoded: bytes, at: int, end: int, form: WireFormat) -> None:
        self.encoded = encoded
        self.at = at
        self.end = end
        self._form = form
        self._tight: bool = form.tight
        self._bits: bytes = b""
        self._bit: int = 0
        self._depth: int = 0

    def read_command(self) -> Structure:
        """The type and all fields.

        Raises:
            PeerError: DMQ5203 to DMQ5213, scope connection.
        """
        code = self.encoded[self.at]
        try:
            if self._tight:
                self.at += 1
                self._read_bits()
                self.at -= 1
            value = self._structure(code)
        except (IndexError, error):
            raise errors.truncated(code) from None
        if self.at != self.end:
            raise errors.left_over(code, self.end - self.at)
        return value

    def read_start(self) -> Structure:
        """The type, and what all commands begin with; nothing else is looked at.

        Raises:
            PeerError: DMQ5204, scope connection.
        """
        code = self.encoded[self.at]
        self.at += 1
        value = new_structure(code)
        try:
            if self._tight:
                self._read_bits()
            if isinstance(value, Command):
                value.command_id = self._number(_I32)
                value.response_required = self.flag()
        except (IndexError, error):
            raise errors.truncated(code) from None
        return value

    def read_fields(self, target: Structure, fields: tuple[Field, ...]) -> None:
        """Fills attributes of ``target``."""
        for field in fields:
            setattr(target, field.name, self.read(field))

    def read(self, field: Field) -> Value:
        kind = field.kind
        if kind == FLAG:
            return self.flag()
        if kind == STRING:
            return self.string()
        if kind == NESTED:
            return self.nested(field)
        if kind == CACHED:
            return self._cached(field)
        if kind == LONG:
            return self._long()
        if kind == INT:
            return self._number(_I32)
        if kind == BYTE:
            number = self._take(1)[0]
            return number - 256 if number > 127 else number
        if kind == BYTES:
            return self.block()
        if kind == NAME:
            return self._name(field)
        if kind == ARRAY:
            return self._array(field)
        if kind == THROWABLE:
            return self._throwable()
        block = self.block()
        if block is None:
            raise errors.missing(field.name)
        return block

    def flag(self) -> bool:
        if self._tight:
            bit = self._bit
            self._bit = bit + 1
            return self._bits[bit >> 3] & 1 << (bit & 7) != 0
        return self._take(1)[0] != 0

    def string(self) -> str | None:
        if not self.flag():
            return None
        ascii_only = self.flag() if self._tight else False
        encoded = self._take(self._number(_U16))
        # What claims to be ASCII is one byte per character.
        return encoded.decode("latin-1") if ascii_only else decode_text(encoded)

    def block(self) -> bytes | None:
        if not self.flag():
            return None
        length = self._number(_I32)
        if length < 0:
            raise errors.negative_length("byte array", length)
        return self._take(length)

    def nested(self, field: Field) -> Structure | None:
        """A value with its type; None for null. Refuses types that do not belong into ``field``."""
        if not self.flag():
            return None
        if self.at >= self.end:
            raise IndexError
        code = self.encoded[self.at]
        if field.of and code not in field.of:
            raise errors.wrong_type(field.name, code)
        return self._structure(code)

    def _structure(self, code: int) -> Structure:
        fields = self._form.layout.get(code)
        if fields is None:
            raise errors.unknown_type(code, self._form.version)
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise errors.too_deep(MOST_DEPTH)
        self.at += 1
        if self._tight and self._depth > 1 and code in MESSAGES and self.flag():
            # Encoded on its own: size, type and bits stand before its fields. Clients have not sent this for long.
            self._take(5)
            self._read_bits()
        value = new_structure(code)
        if isinstance(value, Command):
            value.command_id = self._number(_I32)
            value.response_required = self.flag()
        self.read_fields(value, fields)
        self._depth -= 1
        return value

    def _cached(self, field: Field) -> Structure | None:
        form = self._form
        if not form.caching:
            return self.nested(field)
        in_full = self.flag()
        index = self._number(_I16)
        if in_full:
            value = self.nested(field)
            form.remember(index, value)
            return value
        value = form.recall(index)
        if value is not None and field.of and value.code not in field.of:
            raise errors.wrong_type(field.name, value.code)
        return value

    def _array(self, field: Field) -> list[Structure | None] | None:
        if not self.flag():
            return None
        count = self._number(_I16)
        if count < 0:
            raise errors.negative_length("array", count)
        return [self.nested(field) for _ in range(count)]

    def _throwable(self) -> Throwable | None:
        if not self.flag():
            return None
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise errors.too_deep(MOST_DEPTH)
        thrown = Throwable(self.string(), self.string())
        if self._form.stack_traces:
            for _ in range(self._number(_I16)):
                names = self.string(), self.string(), self.string()
                thrown.frames.append((names[0], names[1], names[2], self._number(_I32)))
            thrown.cause = self._throwable()
        self._depth -= 1
        return thrown

    def _name(self, field: Field) -> str:
        name = self.string()
        if name is None:
            raise errors.missing(field.name)
        return name

    def _long(self) -> int:
        if not self._tight:
            return self._number(_I64)
        high = self.flag()
        low = self.flag()
        if high:
            return self._number(_I64 if low else _U32)
        return self._number(_U16) if low else 0

    def _number(self, form: Struct) -> int:
        at = self.at
        self.at = at + form.size
        if self.at > self.end:
            raise IndexError
        (number,) = form.unpack_from(self.encoded, at)
        return int(number)

    def _take(self, count: int) -> bytes:
        at = self.at
        self.at = at + count
        if self.at > self.end:
            raise IndexError
        return self.encoded[at : self.at]

    def _read_bits(self) -> None:
        count = self._take(1)[0]
        if count == _LONG_COUNT:
            count = self._take(1)[0]
        elif count == _VERY_LONG_COUNT:
            count = self._number(_U16)
        self._bits = self._take(count)
        self._bit = 0


class FieldWriter:
    """Collects the encoded fields of one frame.

    Attributes:
        size: bytes collected so far, without the bits of tight encoding.
    """

    def __init__(self, form: WireFormat, *, cuts: bool = False) -> None:
        """
        Args:
            cuts: texts too long for a field are cut instead of refused.
        """
        self._form = form
        self._cuts = cuts
        self._tight: bool = form.tight
        self._pieces: list[bytes] = []
        self._bits: bytearray = bytearray()
        self._bit: int = 0
        self.size: int = 0

    def frame(self, command: Structure) -> bytes:
        self._structure(command, False)
        body = b"".join(self._pieces)
        if self._tight:
            body = b"".join((body[:1], self._count_of_bits(), self._bits, body[1:]))
        return _I32.pack(len(body)) + body

    def taken(self) -> bytes:
        """Takes what was collected; begins anew."""
        taken = b"".join(self._pieces)
        self._pieces = []
        self.size = 0
        return taken

    def write(self, field: Field, value: object) -> None:
        kind = field.kind
        if kind in (NESTED, CACHED):
            assert value is None or isinstance(value, Structure)  # by the types of the commands
            self._reference(value, kind == CACHED)
        elif kind == FLAG:
            self.flag(value is True)
        elif kind in (STRING, NAME):
            assert value is None or isinstance(value, str)
            self._string(value)
        elif kind == ARRAY:
            assert value is None or isinstance(value, list)
            self._array(value)
        elif kind in (BYTES, BLOCK):
            assert value is None or isinstance(value, bytes)
            self._block(value)
        elif kind == THROWABLE:
            assert value is None or isinstance(value, Throwable)
            self._throwable(value)
        else:
            assert isinstance(value, int)
            self._whole_number(kind, value)

    def flag(self, value: bool) -> None:
        if self._tight:
            bit = self._bit
            if bit & 7 == 0:
                self._bits.append(0)
            if value:
                self._bits[bit >> 3] |= 1 << (bit & 7)
            self._bit = bit + 1
        else:
            self._add(b"\1" if value else b"\0")

    def _add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.size += len(piece)

    def _structure(self, value: Structure, nested: bool) -> None:
        code = value.code
        self._add(bytes((code,)))
        if self._tight and nested and isinstance(value, MessageCommand):
            self.flag(False)
        if isinstance(value, Command):
            self._add(_I32.pack(value.command_id))
            self.flag(value.response_required)
        fields = self._form.layout.get(code)
        if fields is None:
            raise errors.not_in_version(code, self._form.version)
        for field in fields:
            self.write(field, getattr(value, field.name))

    def _reference(self, value: Structure | None, cached: bool) -> None:
        if cached and self._form.caching:
            # In full each time: a number would only save bytes.
            self.flag(True)
            self._add(_I16.pack(_NOT_CACHED))
        self.flag(value is not None)
        if value is not None:
            self._structure(value, True)

    def _string(self, text: str | None) -> None:
        self.flag(text is not None)
        if text is None:
            return
        encoded = encode_text(text)
        limit = _LONGEST_TIGHT_BYTES if self._tight else LONGEST_BYTES
        if len(encoded) > limit:
            if not self._cuts:
                raise errors.text_too_long(len(encoded))
            text, encoded = cut_text(text, limit)
        if self._tight:
            self.flag(len(encoded) == len(text))
        self._add(_U16.pack(len(encoded)))
        self._add(encoded)

    def _block(self, block: bytes | None) -> None:
        self.flag(block is not None)
        if block is not None:
            self._add(_I32.pack(len(block)))
            self._add(block)

    def _array(self, values: list[Structure | None] | None) -> None:
        self.flag(values is not None)
        if values is not None:
            self._add(_I16.pack(min(len(values), _LARGEST_I16)))
            for value in values[:_LARGEST_I16]:
                self._reference(value, False)

    def _throwable(self, thrown: Throwable | None) -> None:
        self.flag(thrown is not None)
        if thrown is None:
            return
        self._string(thrown.class_name)
        self._string(thrown.message)
        if self._form.stack_traces:
            self._add(_I16.pack(len(thrown.frames)))
            for class_name, method, file, line in thrown.frames:
                self._string(class_name)
                self._string(method)
                self._string(file)
                self._add(_I32.pack(line))
            self._throwable(thrown.cause)

    def _whole_number(self, kind: int, value: int) -> None:
        if kind == INT:
            self._add(_I32.pack(value))
        elif kind == BYTE:
            self._add(bytes((value & 0xFF,)))
        elif not self._tight:
            self._add(_I64.pack(value))
        elif value == 0:
            self.flag(False)
            self.flag(False)
        elif 0 < value <= 0xFFFF:
            self.flag(False)
            self.flag(True)
            self._add(_U16.pack(value))
        elif 0 < value <= 0xFFFFFFFF:
            self.flag(True)
            self.flag(False)
            self._add(_U32.pack(value))
        else:
            self.flag(True)
            self.flag(True)
            self._add(_I64.pack(value))

    def _count_of_bits(self) -> bytes:
        count = len(self._bits)
        if count < 64:
            return bytes((count,))
        return bytes((_LONG_COUNT, count)) if count < 256 else bytes((_VERY_LONG_COUNT,)) + _U16.pack(count)


def encode_response(correlation_id: int, form: WireFormat, command_id: int = 0) -> bytes:
    """The frame of an ordinary Response, quickly: one follows each synchronous send."""
    if form.tight:
        response = Response(correlation_id)
        response.command_id = command_id
        return encode_command(response, form)
    return _RESPONSE.pack(_RESPONSE_SIZE, RESPONSE, command_id, False, correlation_id)


def encode_command(command: Structure, form: WireFormat) -> bytes:
    """The frame of a command, as the peer wants it. Texts that are too long for their fields are cut: fewer fit when
    they are tightly encoded, so that what one peer may send another could not get.

    Raises:
        MisuseError: DMQ5223, the peer's version has no such command.
    """
    return FieldWriter(form, cuts=True).frame(command)


def encode_structure(value: Structure | None, form: WireFormat) -> bytes:
    """A value as it stands in a field of a loosely encoded frame: flag, type, fields."""
    writer = FieldWriter(form)
    writer.flag(value is not None)
    return writer.taken() + (b"" if value is None else FieldWriter(form).frame(value)[4:])
