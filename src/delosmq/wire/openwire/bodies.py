"""The bodies of OpenWire messages to and from those of the hub form.

    text     length i32 (-1 null) | modified UTF-8
    map      primitive map            stream   tagged values
    object   Java serialisation, relayed as it is; bytes as they are

Compressed, all this is zlib; of bytes messages the uncompressed length (i32) stands before it.
Source: the message classes of the Java client.
"""

import zlib
from struct import Struct
from typing import Final

from delosmq.model.bodies import decode_map_body, decode_stream_body, encode_map_body, encode_stream_body
from delosmq.model.message import EMPTY_BODY, MAP_BODY, OBJECT_BODY, STREAM_BODY, TEXT_BODY
from delosmq.wire.openwire import errors
from delosmq.wire.openwire.commands import (
    ACTIVEMQ_MESSAGE,
    BYTES_MESSAGE,
    MAP_MESSAGE,
    OBJECT_MESSAGE,
    STREAM_MESSAGE,
    TEXT_MESSAGE,
    MessageCommand,
)
from delosmq.wire.openwire.modified_utf8 import decode_text, encode_text
from delosmq.wire.openwire.primitives import decode_map, decode_stream, encode_map, encode_stream

MAX_INFLATED_BYTES: Final = 10 * 1024 * 1024
"""As large as the body of a STOMP frame may be: 10 KB that inflate have the broker build no more than others send."""

_I32: Final = Struct(">i")


def hub_body(message: MessageCommand, max_inflated_bytes: int = MAX_INFLATED_BYTES) -> bytes:
    """The body in the hub form: text as UTF-8, maps and streams as JSON text, others as they are. Null is empty.

    Raises:
        PeerError: DMQ5204 to DMQ5222, when it is malformed.
        InflatesTooFarError: nothing of it is kept, and no more than ``max_inflated_bytes`` was ever there.
    """
    code = message.code
    content = message.content
    if content is None:
        content = b""
    elif message.compressed and content:
        content = inflate(content, code == BYTES_MESSAGE, max_inflated_bytes)
    if code == TEXT_MESSAGE:
        return text_body(content)
    if code == MAP_MESSAGE:
        return encode_map_body(decode_map(content) if content else {})
    if code == STREAM_MESSAGE:
        return encode_stream_body(decode_stream(content))
    return content


def text_body(content: bytes) -> bytes:
    """The content of a text message as UTF-8.

    Raises:
        PeerError: it is malformed.
    """
    if not content:
        return b""
    if len(content) < _I32.size:
        raise errors.not_a_text()
    (length,) = _I32.unpack_from(content)
    text = content[_I32.size :]
    if length == -1 and not text:
        return b""
    if length != len(text):
        raise errors.not_a_text()
    return text if text.isascii() else decode_text(text).encode("utf-8", "replace")


def inflate(content: bytes, with_length: bool, limit_bytes: int) -> bytes:
    """What was compressed.

    Args:
        with_length: the length stands before it; more than that is cut off.

    Raises:
        PeerError: DMQ5216, it is not zlib.
        InflatesTooFarError: DMQ5217, it inflates to more than the limit.
    """
    wanted = limit_bytes
    if with_length:
        if len(content) < _I32.size:
            raise errors.not_inflatable()
        (wanted,) = _I32.unpack_from(content)
        content = content[_I32.size :]
        if wanted > limit_bytes:
            raise errors.inflates_too_far(limit_bytes)
        if wanted <= 0:
            return b""
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(content, wanted if with_length else wanted + 1)
    except zlib.error:
        raise errors.not_inflatable() from None
    if with_length:
        if len(inflated) < wanted:
            raise errors.not_inflatable()
    elif len(inflated) > wanted:
        raise errors.inflates_too_far(limit_bytes)
    elif not inflater.eof:
        raise errors.not_inflatable()
    return inflated


def deflated_body(message: MessageCommand) -> bytes:
    """A compressed body as zlib wrote it."""
    content = message.content
    if content is None:
        return b""
    return content[_I32.size :] if message.code == BYTES_MESSAGE else content


def set_body(message: MessageCommand, body: bytes, kind: int) -> None:
    """Gives ``message`` the type and content for a body in the hub form; bytes when it is not what ``kind`` says."""
    message.code = BYTES_MESSAGE
    message.content = body or None
    if kind == TEXT_BODY:
        encoded = encode_text(body.decode("utf-8", "replace"))
        message.code = TEXT_MESSAGE
        message.content = _I32.pack(len(encoded)) + encoded
    elif kind == MAP_BODY:
        entries = decode_map_body(body)
        if entries is not None:
            message.code = MAP_MESSAGE
            message.content = encode_map(entries) if entries else None
    elif kind == STREAM_BODY:
        values = decode_stream_body(body)
        if values is not None:
            message.code = STREAM_MESSAGE
            message.content = encode_stream(values)
    elif kind == OBJECT_BODY:
        message.code = OBJECT_MESSAGE
    elif kind == EMPTY_BODY:
        message.code = ACTIVEMQ_MESSAGE
