"""The bodies of CORE messages to and from those of the hub form.

    text     00 null | 01, SimpleString            object   size i32, Java serialisation, relayed as it is
    bytes    as they are                           map      as properties
    stream   values: kind u8, value; a string is 00 null | 01, String
    default  as its sender wrote it, often nothing

Other types than bytes may have four NULs where they have nothing. Behind a text or a map more may follow, which Java
clients do not read. A compressed body is zlib.

Source: the message classes of artemis-jms-client, StreamMessageUtil and TextMessageUtil of artemis-core-client.
"""

import zlib
from struct import Struct, error
from typing import Final

from delosmq.model.bodies import decode_map_body, decode_stream_body, encode_map_body, encode_stream_body
from delosmq.model.errors import PeerError
from delosmq.model.message import BYTES_BODY, EMPTY_BODY, MAP_BODY, OBJECT_BODY, STREAM_BODY, TEXT_BODY
from delosmq.model.properties import BOOLEAN_KIND, BYTES_KIND, CHAR_KIND, STRING_KIND, TypedContent, TypedValue
from delosmq.wire.core import errors
from delosmq.wire.core.message import BYTES_TYPE, DEFAULT_TYPE, MAP_TYPE, OBJECT_TYPE, STREAM_TYPE, TEXT_TYPE
from delosmq.wire.core.properties import (
    BOOLEAN_VALUE,
    BYTES_VALUE,
    CHAR_VALUE,
    FORMATS,
    MODEL_KINDS,
    MOST_ENTRIES,
    NULL_VALUE,
    STRING_VALUE,
    decode_character,
    decode_properties,
    encode_properties,
    encode_value,
)
from delosmq.wire.core.strings import add_string, decode_simple, decode_string, encode_simple

MAX_INFLATED_BYTES: Final = 10 * 1024 * 1024
"""As large as the body of a STOMP frame may be: 10 KB that inflate have the broker build no more than others send."""

BODY_KINDS: Final = {
    OBJECT_TYPE: OBJECT_BODY,
    TEXT_TYPE: TEXT_BODY,
    BYTES_TYPE: BYTES_BODY,
    MAP_TYPE: MAP_BODY,
    STREAM_TYPE: STREAM_BODY,
}
"""The kind of body of each type of message that says it."""
_TYPES: Final = {kind: core_type for core_type, kind in BODY_KINDS.items()}
_NOTHING: Final = bytes(4)
_I32: Final = Struct(">i")
_TEXT_START: Final = Struct(">Bi")
_NULL_TEXT: Final = 0
_STREAM: Final = "the body of a stream"
_TRUE: Final = b"\x02\xff"
_FALSE: Final = b"\x02\x00"
"""Flags of streams; those of properties are 01."""


def body_kind(core_type: int, body: bytes) -> int:
    """What a body is; one of a type that does not say it is empty, or bytes."""
    kind = BODY_KINDS.get(core_type)
    if kind is not None:
        return kind
    return EMPTY_BODY if core_type == DEFAULT_TYPE and (not body or body == _NOTHING) else BYTES_BODY


def hub_body(core_type: int, body: bytes) -> tuple[bytes, int]:
    """The body in the hub form, and its kind: text as UTF-8, maps and streams as JSON text, others as they are. Null is
    empty, and what is not what its type says is bytes. Of the default type, which tools of Artemis send with a text in
    it, a text is read as well."""
    try:
        return _hub_body(core_type, body)
    except PeerError:
        return body, BYTES_BODY


def _hub_body(core_type: int, body: bytes) -> tuple[bytes, int]:
    kind = body_kind(core_type, body)
    if kind == BYTES_BODY and core_type != DEFAULT_TYPE:
        return body, kind
    if not body or body == _NOTHING:
        return _empty(kind), kind
    if core_type == TEXT_TYPE:
        return decode_text(body).encode("utf-8", "replace"), kind
    if core_type == MAP_TYPE:
        return encode_map_body(decode_properties(body)), kind
    if core_type == STREAM_TYPE:
        return encode_stream_body(decode_stream(body)), kind
    if core_type == OBJECT_TYPE:
        return decode_object(body), kind
    if body[0] and len(body) >= _TEXT_START.size and _TEXT_START.unpack_from(body)[1] == len(body) - _TEXT_START.size:
        return decode_text(body).encode("utf-8", "replace"), TEXT_BODY
    return body, kind


def _empty(kind: int) -> bytes:
    return b"{}" if kind == MAP_BODY else b"[]" if kind == STREAM_BODY else b""


def core_body(body: bytes, kind: int) -> tuple[bytes, int]:
    """The encoding of a body in the hub form, and the type of its message; bytes when it is not what ``kind`` says."""
    if kind == TEXT_BODY:
        return encode_text(body.decode("utf-8", "replace")), TEXT_TYPE
    if kind == MAP_BODY:
        entries = decode_map_body(body)
        if entries is not None:
            plain = {name: _without_parts(typed) for name, typed in entries.items()}
            return encode_properties(plain), MAP_TYPE
    elif kind == STREAM_BODY:
        values = decode_stream_body(body)
        if values is not None:
            return encode_stream(values), STREAM_TYPE
    elif kind == OBJECT_BODY:
        return _I32.pack(len(body)) + body if body else b"", OBJECT_TYPE
    elif kind == EMPTY_BODY:
        return body, DEFAULT_TYPE
    return body, BYTES_TYPE


def decode_text(body: bytes) -> str:
    """The body of a text message; "" for null.

    Raises:
        PeerError: DMQ5604 to DMQ5606, it is malformed.
    """
    if not body or body[0] == _NULL_TEXT:
        return ""
    where = "the body of a text"
    if len(body) < _TEXT_START.size:
        raise errors.truncated(where, "size", 1)
    _, size = _TEXT_START.unpack_from(body)
    if size < 0:
        raise errors.negative_length(where, "text", 1)
    if size & 1:
        raise errors.not_a_string(where, "text", 1)
    if size > len(body) - _TEXT_START.size:
        raise errors.truncated(where, "text", 1)
    return decode_simple(body[_TEXT_START.size : _TEXT_START.size + size])


def encode_text(text: str | None) -> bytes:
    """The reverse of `decode_text`."""
    if text is None:
        return bytes((_NULL_TEXT,))
    encoded = encode_simple(text)
    return _TEXT_START.pack(1, len(encoded)) + encoded


def decode_object(body: bytes) -> bytes:
    """What Java serialised; it is never looked at.

    Raises:
        PeerError: DMQ5604 or DMQ5606, it is malformed.
    """
    where = "the body of an object"
    if len(body) < _I32.size:
        raise errors.truncated(where, "size", 0)
    (size,) = _I32.unpack_from(body)
    if size < 0:
        raise errors.negative_length(where, "object", 0)
    if size > len(body) - _I32.size:
        raise errors.truncated(where, "object", 0)
    return body[_I32.size : _I32.size + size]


def decode_stream(body: bytes) -> list[TypedValue]:
    """The values of a stream message.

    Raises:
        PeerError: DMQ5604 to DMQ5608, it is malformed, or has more than `MOST_ENTRIES`.
    """
    values: list[TypedValue] = []
    at = 0
    try:
        while at < len(body):
            if len(values) >= MOST_ENTRIES:
                raise errors.too_many_entries(_STREAM, "values", len(values) + 1)
            value, at = _stream_value(body, at)
            values.append(value)
    except (IndexError, error):
        raise errors.truncated(_STREAM, "value", at) from None
    except UnicodeDecodeError:
        raise errors.not_a_string(_STREAM, "value", at) from None
    return values


def _stream_value(body: bytes, at: int) -> tuple[TypedValue, int]:
    """The value that begins at ``at``, and where it ends."""
    kind = body[at]
    at += 1
    if kind == STRING_VALUE:
        if not body[at]:
            return TypedValue(STRING_KIND, None), at + 1
        text, end = decode_string(body, at + 1)
        return TypedValue(STRING_KIND, text), end
    if kind == BOOLEAN_VALUE:
        return TypedValue(BOOLEAN_KIND, body[at] != 0), at + 1
    if kind == BYTES_VALUE:
        (size,) = _I32.unpack_from(body, at)
        at += _I32.size
        if size < 0:
            raise errors.negative_length(_STREAM, "value", at)
        if size > len(body) - at:
            raise IndexError
        return TypedValue(BYTES_KIND, body[at : at + size]), at + size
    model_kind = MODEL_KINDS.get(kind)
    if model_kind is None or kind == NULL_VALUE:
        raise errors.unknown_value(_STREAM, "kind", at - 1)
    form = FORMATS[model_kind]
    (number,) = form.unpack_from(body, at)
    value: TypedContent = decode_character(number) if kind == CHAR_VALUE else number
    return TypedValue(model_kind, value), at + form.size


def encode_stream(values: list[TypedValue]) -> bytes:
    """The reverse of `decode_stream`. Maps and lists, which CORE has no kind for, become their JSON text."""
    pieces: list[bytes] = []
    for typed in values:
        plain = _without_parts(typed)
        value = plain.value
        if value is None:
            pieces.append(bytes((STRING_VALUE, 0)))
        elif isinstance(value, str) and plain.kind != CHAR_KIND:
            pieces.append(bytes((STRING_VALUE, 1)))
            add_string(value, pieces)
        elif isinstance(value, bool):
            pieces.append(_TRUE if value else _FALSE)
        else:
            pieces.append(encode_value(plain))
    return b"".join(pieces)


def _without_parts(typed: TypedValue) -> TypedValue:
    value = typed.value
    if isinstance(value, dict):
        return TypedValue(STRING_KIND, encode_map_body(value).decode("ascii"))
    if isinstance(value, list):
        return TypedValue(STRING_KIND, encode_stream_body(value).decode("ascii"))
    return typed


def inflate(body: bytes, limit_bytes: int) -> bytes:
    """What was compressed.

    Raises:
        PeerError: DMQ5614, it is not zlib.
        InflatedTooFarError: DMQ5615, it inflates to more than the limit.
    """
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(body, limit_bytes + 1)
    except zlib.error:
        raise errors.not_inflatable() from None
    if len(inflated) > limit_bytes:
        raise errors.inflates_too_far(limit_bytes)
    if not inflater.eof:
        raise errors.not_inflatable()
    return inflated
