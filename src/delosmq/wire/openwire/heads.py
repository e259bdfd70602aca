"""How the broker keeps an OpenWire message: the ``head`` and ``body`` of `delosmq.model.message.Message`.

    form u8 (1) | type u8 | bound u8 | 6 * offset u32 | before | tail

The offsets count from the start of the head: the destination and its end, the broker's sequence in the message id,
the expiration, the tail, the broker's times within it (0 before version 3). ``before`` and ``tail`` are as in
`messages`, in the version that the protocol tag names, without the transaction. ``bound`` tells that they hold a data
structure, which other versions may encode differently. The content is the body; null and empty differ in the last byte
of ``before``.
"""

from struct import Struct
from typing import Final

from delosmq.model.message import (
    BYTES_BODY,
    EMPTY_BODY,
    MAP_BODY,
    OBJECT_BODY,
    STREAM_BODY,
    TEXT_BODY,
    Message,
)
from delosmq.wire.openwire import errors
from delosmq.wire.openwire.codec import FieldWriter
from delosmq.wire.openwire.commands import (
    ACTIVEMQ_MESSAGE,
    BLOB_MESSAGE,
    BYTES_MESSAGE,
    MAP_MESSAGE,
    OBJECT_MESSAGE,
    STREAM_MESSAGE,
    TEXT_MESSAGE,
    MessageCommand,
)
from delosmq.wire.openwire.messages import MessageReader
from delosmq.wire.openwire.wire_format import NEWEST_VERSION, OLDEST_VERSION, PLAIN_FORMATS

FAMILY: Final = "openwire"
PROTOCOL_TAGS: Final = {v: f"{FAMILY}/{v}" for v in range(OLDEST_VERSION, NEWEST_VERSION + 1)}
VERSION_OF_TAG: Final = {tag: version for version, tag in PROTOCOL_TAGS.items()}

BODY_KINDS: Final = {
    ACTIVEMQ_MESSAGE: EMPTY_BODY,
    BYTES_MESSAGE: BYTES_BODY,
    MAP_MESSAGE: MAP_BODY,
    OBJECT_MESSAGE: OBJECT_BODY,
    STREAM_MESSAGE: STREAM_BODY,
    TEXT_MESSAGE: TEXT_BODY,
    BLOB_MESSAGE: BYTES_BODY,
}
"""The kind of body of each type of message."""

HEAD_FORM: Final = 1
HEAD: Final = Struct(">BBB6I")
HEAD_BYTES: Final = HEAD.size
CODE_AT: Final = 1
_BOUND_AT: Final = 2
_TAIL_INDEX: Final = 7
_LENGTH: Final = Struct(">i")

_TIMES: Final = Struct(">qq")
_LONG_BYTES: Final = 8
_COMMAND_BYTES: Final = bytes(5)
_NULL: Final = b"\0"
_CONTENT: Final = "content"


def encode_head(message: MessageCommand, version: int, received_at_ms: int) -> bytes:
    """The head of a message that came in ``version``; its content is the body.

    Args:
        received_at_ms: wall clock; consumers see it as the broker's in-time. The out-time is left 0.
    """
    if not message.before or not message.tail:
        measure(message, version)
    before = message.before
    transaction_bytes = message.transaction_end - message.destination_end - 1
    if transaction_bytes:
        before = before[: message.destination_end] + _NULL + before[message.transaction_end :]
    tail = message.tail
    tail_at = HEAD_BYTES + len(before)
    times_at = message.times_at
    if times_at:
        tail = tail[:times_at] + _TIMES.pack(received_at_ms, 0) + tail[times_at + _TIMES.size :]
        times_at += tail_at
    shift = HEAD_BYTES - transaction_bytes
    fixed = HEAD.pack(
        HEAD_FORM,
        message.code,
        message.data_structure is not None,
        message.destination_at + HEAD_BYTES,
        message.destination_end + HEAD_BYTES,
        message.sequence_at + shift,
        message.expiration_at + shift,
        tail_at,
        times_at,
    )
    return fixed + before + tail


def measure(message: MessageCommand, version: int) -> None:
    """Encodes what stands before and behind the content anew, from the fields; for messages that did not come loosely
    encoded, or have changed fields."""
    if message.message_id is None:
        raise errors.missing("message_id")
    fields = PLAIN_FORMATS[version].layout[message.code]
    writer = FieldWriter(PLAIN_FORMATS[version])
    before = b""
    message.times_at = 0
    for field in fields:
        name = field.name
        if name == "destination":
            message.destination_at = writer.size
        elif name == "expiration":
            message.expiration_at = writer.size
        elif name == "broker_in_time":
            message.times_at = writer.size
        if name == _CONTENT:
            writer.flag(message.content is not None)
            before = writer.taken()
            continue
        writer.write(field, getattr(message, name))
        if name == "destination":
            message.destination_end = writer.size
        elif name == "transaction_id":
            message.transaction_end = writer.size
        elif name == "message_id":
            message.sequence_at = writer.size - _LONG_BYTES
    message.before = before
    message.tail = writer.taken()


class StoredReader:
    """Reads stored messages; quicker for those that began like the one before."""

    def __init__(self) -> None:
        self._readers: dict[int, MessageReader] = {}

    def decode(self, message: Message) -> MessageCommand:
        """The command of a stored message, with all its fields.

        Raises:
            MisuseError: DMQ5218, when the head is not ours.
        """
        command = self.decode_headers(message)
        head = message.head
        tail_at = HEAD.unpack_from(head)[_TAIL_INDEX]
        if head[tail_at - 1]:
            command.content = message.body
            command.before = head[HEAD_BYTES:tail_at]
        return command

    def decode_headers(self, message: Message) -> MessageCommand:
        """The same without content.

        Raises:
            MisuseError: DMQ5218, when the head is not ours.
        """
        head = message.head
        version = VERSION_OF_TAG.get(message.protocol, 0)
        if len(head) < HEAD_BYTES or head[0] != HEAD_FORM or not version:
            raise errors.not_a_head()
        tail_at = HEAD.unpack_from(head)[_TAIL_INDEX]
        start = head[CODE_AT : CODE_AT + 1] + _COMMAND_BYTES
        frame = b"".join((start, head[HEAD_BYTES : tail_at - 1], _NULL, head[tail_at:]))
        reader = self._readers.get(version)
        if reader is None:
            reader = MessageReader(PLAIN_FORMATS[version])
            self._readers[version] = reader
        return reader.read(frame, 0, len(frame))


def plain_code(message: Message) -> int:
    """The type of a stored message whose content was not compressed; 0 when that takes more than a look."""
    head = message.head
    if len(head) < HEAD_BYTES or head[0] != HEAD_FORM or head[_BOUND_AT] or message.protocol not in VERSION_OF_TAG:
        return 0
    at: int = HEAD.unpack_from(head)[_TAIL_INDEX]
    if at + _LENGTH.size < len(head) and head[at]:
        at += _LENGTH.size + _LENGTH.unpack_from(head, at + 1)[0]
    # Flags of the properties, or their last byte, the data structure, the target consumer and the compression.
    at += 1
    if at + 2 >= len(head) or head[at] or head[at + 1] or head[at + 2]:
        return 0
    return head[CODE_AT]


def has_content(message: Message) -> bool:
    """Whether the content of a stored message is not null."""
    return bool(message.head[HEAD.unpack_from(message.head)[_TAIL_INDEX] - 1])


def stored_body(message: MessageCommand) -> bytes:
    """The content as `Message` keeps it."""
    content = message.content
    return b"" if content is None else content
