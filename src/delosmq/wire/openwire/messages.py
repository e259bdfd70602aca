"""Reads and writes message frames quickly: what a broker relays is cut out, not decoded and encoded again.

    type u8 | command id i32 | flag | before | content | tail

``before`` ends with the flag that tells whether there is content, ``tail`` begins with the properties. Producers repeat
the start of ``before`` (ids, destination) from one message to the next, so that is compared with the last message's;
and most leave the optional fields out, so runs of fields are unpacked at once. Whatever looks different is read by the
table. A test holds the two against each other.
"""

from struct import Struct, error
from typing import Final

from delosmq.model.errors import PeerError
from delosmq.wire.openwire import errors
from delosmq.wire.openwire.codec import FieldReader, FieldWriter, encode_command
from delosmq.wire.openwire.commands import BLOB_MESSAGE, MessageCommand, MessageDispatch
from delosmq.wire.openwire.structures import (
    BYTES,
    MESSAGE_DISPATCH,
    Destination,
    MessageId,
    ProducerId,
    TransactionId,
)
from delosmq.wire.openwire.wire_format import MESSAGES, TABLE, WireFormat

_COMMAND: Final = Struct(">Bi?")
_unpack_command: Final = _COMMAND.unpack_from
_pack_command: Final = _COMMAND.pack
_COMMAND_BYTES: Final = 6
_LENGTH: Final = Struct(">i")
_unpack_length: Final = _LENGTH.unpack_from
_pack_length: Final = _LENGTH.pack
_LENGTH_BYTES: Final = 4
# producer sequence, broker sequence, original transaction -, group id -, group sequence, correlation id -, persistent,
# expiration, priority, reply to -, timestamp, type -, content flag. What has a "-" is null.
_RUN: Final = Struct(">qqBBiBBqbBqBB")
_unpack_run: Final = _RUN.unpack_from
_pack_run: Final = _RUN.pack
_RUN_BYTES: Final = 44
_EXPIRATION_IN_RUN: Final = 24
# data structure -, target consumer -, compressed, redelivery counter, path -, arrival, user -, received by bridge,
# droppable, cluster -, in time, out time, first of group
_END: Final = Struct(">BBBiBqBBBBqqB")
_unpack_end: Final = _END.unpack_from
_pack_end: Final = _END.pack
_END_BYTES: Final = 37
_IN_TIME_IN_END: Final = 20
_END_SINCE: Final = 10
_SEQUENCES_BYTES: Final = 16
_LONG_BYTES: Final = 8
_MOST_REMEMBERED_BYTES: Final = 1024

_NAMES: Final = [field.name for field in TABLE[23]]
_MESSAGE_ID_INDEX: Final = _NAMES.index("message_id")
_CONTENT_INDEX: Final = _NAMES.index("content")
assert TABLE[23][_CONTENT_INDEX].kind == BYTES


class MessageReader:
    """Reads the messages of one connection; remembers how the last one began."""

    def __init__(self, form: WireFormat) -> None:
        self._form = form
        self._start: bytes = b""
        self._like: MessageCommand = MessageCommand()
        self._like_producer: ProducerId | None = None

    def read(self, encoded: bytes, at: int, end: int) -> MessageCommand:
        """The message with its type at ``at`` and the end of its frame at ``end``.

        Raises:
            PeerError: as `FieldReader.read_command`; DMQ5209 when it has no message id.
        """
        try:
            return self._read(encoded, at, end)
        except (IndexError, error):
            raise errors.truncated(encoded[at]) from None

    def content_at(self, encoded: bytes, at: int) -> int:
        """Where the content of the message begins that has its type at ``at`` and a frame that reaches beyond
        ``encoded``; -1 when that is not certain."""
        message = MessageCommand()
        try:
            end = self._read_before(message, encoded, at, len(encoded))
        except (IndexError, error, PeerError):
            return -1
        return end + _LENGTH_BYTES if encoded[end - 1] and end + _LENGTH_BYTES <= len(encoded) else -1

    def _read(self, encoded: bytes, at: int, end: int) -> MessageCommand:
        message = MessageCommand()
        at = self._read_before(message, encoded, at, end)
        if encoded[at - 1]:
            (length,) = _unpack_length(encoded, at)
            if length < 0:
                raise errors.negative_length("body", length)
            at += _LENGTH_BYTES
            if at + length > end:
                raise IndexError
            message.content = encoded[at : at + length]
            at += length
        self._read_tail(message, encoded, at, end)
        return message

    def _read_before(self, message: MessageCommand, encoded: bytes, at: int, end: int) -> int:
        """Up to the flag of the content; returns what follows that."""
        message.code, message.command_id, message.response_required = _unpack_command(encoded, at)
        start = at + _COMMAND_BYTES
        if self._start and encoded.startswith(self._start, start):
            self._repeat_start(message)
        else:
            self._read_start(message, encoded, start, end)
        at = self._read_run(message, encoded, start, end)
        message.before = encoded[start:at]
        return at

    def _repeat_start(self, message: MessageCommand) -> None:
        like = self._like
        message.producer_id = like.producer_id
        message.destination = like.destination
        message.transaction_id = like.transaction_id
        message.original_destination = like.original_destination
        message.message_id = MessageId(self._like_producer)
        message.destination_at = like.destination_at
        message.destination_end = like.destination_end
        message.transaction_end = like.transaction_end
        message.sequence_at = like.sequence_at

    def _read_start(self, message: MessageCommand, encoded: bytes, start: int, end: int) -> None:
        """Up to the message id, and remembers it for the next message."""
        fields = self._form.layout[message.code]
        reader = FieldReader(encoded, start, end, self._form)
        reader.read_fields(message, fields[:1])
        message.destination_at = reader.at - start
        reader.read_fields(message, fields[1:2])
        message.destination_end = reader.at - start
        reader.read_fields(message, fields[2:3])
        message.transaction_end = reader.at - start
        reader.read_fields(message, fields[3 : _MESSAGE_ID_INDEX + 1])
        message_id = message.message_id
        if message_id is None:
            raise errors.missing("message_id")
        message.sequence_at = reader.at - start - _LONG_BYTES
        length = message.sequence_at - _LONG_BYTES
        if message_id.text_view is None and length <= _MOST_REMEMBERED_BYTES:
            self._start = encoded[start : start + length]
            self._like_producer = message_id.producer_id
            self._like = _start_of(message)

    def _read_run(self, message: MessageCommand, encoded: bytes, start: int, end: int) -> int:
        """From the message id's numbers to the content's flag; returns what follows that."""
        at = start + message.sequence_at - _LONG_BYTES
        until = at + _RUN_BYTES
        if until > end:
            raise IndexError
        (
            producer_sequence,
            broker_sequence,
            transaction,
            group,
            group_sequence,
            correlation,
            persistent,
            expiration,
            priority,
            reply_to,
            timestamp,
            kind,
            _,
        ) = _unpack_run(encoded, at)
        message_id = message.message_id
        if message_id is not None:
            message_id.producer_sequence_id = producer_sequence
            message_id.broker_sequence_id = broker_sequence
        if transaction or group or correlation or reply_to or kind:
            return self._read_run_slowly(message, encoded, start, end)
        message.group_sequence = group_sequence
        message.persistent = persistent != 0
        message.expiration_at = message.sequence_at - _LONG_BYTES + _EXPIRATION_IN_RUN
        message.expiration = expiration
        message.priority = priority
        message.timestamp = timestamp
        return until

    def _read_run_slowly(self, message: MessageCommand, encoded: bytes, start: int, end: int) -> int:
        reader = FieldReader(encoded, start + message.sequence_at + _LONG_BYTES, end, self._form)
        for field in self._form.layout[message.code][_MESSAGE_ID_INDEX + 1 : _CONTENT_INDEX]:
            if field.name == "expiration":
                message.expiration_at = reader.at - start
            setattr(message, field.name, reader.read(field))
        reader.flag()
        return reader.at

    def _read_tail(self, message: MessageCommand, encoded: bytes, at: int, end: int) -> None:
        if at >= end:
            raise IndexError
        message.tail = encoded[at:end]
        start = at
        at += 1
        if encoded[start]:
            (length,) = _unpack_length(encoded, at)
            if length < 0:
                raise errors.negative_length("properties", length)
            at += _LENGTH_BYTES
            if at + length > end:
                raise IndexError
            message.marshalled_properties = encoded[at : at + length]
            at += length
        if end - at == _END_BYTES and self._form.version >= _END_SINCE:
            (
                structure,
                target,
                compressed,
                redelivery,
                path,
                arrival,
                user,
                by_bridge,
                droppable,
                cluster,
                in_time,
                out_time,
                first,
            ) = _unpack_end(encoded, at)
            if not (structure or target or path or user or cluster):
                message.compressed = compressed != 0
                message.redelivery_counter = redelivery
                message.arrival = arrival
                message.received_by_df_bridge = by_bridge != 0
                message.droppable = droppable != 0
                message.times_at = at - start + _IN_TIME_IN_END
                message.broker_in_time = in_time
                message.broker_out_time = out_time
                message.group_first_for_consumer = first != 0
                return
        self._read_tail_slowly(message, FieldReader(encoded, at, end, self._form), start)

    def _read_tail_slowly(self, message: MessageCommand, reader: FieldReader, start: int) -> None:
        for field in self._form.layout[message.code][_CONTENT_INDEX + 2 :]:
            if field.name == "broker_in_time":
                message.times_at = reader.at - start
            setattr(message, field.name, reader.read(field))
        if reader.at != reader.end:
            raise errors.left_over(message.code, reader.end - reader.at)


class MessageWriter:
    """Writes the messages of one connection, the reverse: a producer repeats the start, which is kept."""

    def __init__(self, form: WireFormat) -> None:
        self._form = form
        self._quick: bool = form.plain and form.version >= _END_SINCE
        self._start: bytes = b""
        self._producer_id: ProducerId | None = None
        self._destination: Destination | None = None
        self._transaction_id: TransactionId | None = None

    def write(self, message: MessageCommand) -> bytes:
        """The frame, as `encode_command` has it."""
        if not self._quick or not _is_ordinary(message):
            return encode_command(message, self._form)
        message_id = message.message_id
        assert message_id is not None  # by `_is_ordinary`
        content = message.content
        properties = message.marshalled_properties
        body = b"" if content is None else _pack_length(len(content)) + content
        run = _pack_run(
            message_id.producer_sequence_id,
            message_id.broker_sequence_id,
            0,
            0,
            message.group_sequence,
            0,
            message.persistent,
            message.expiration,
            message.priority,
            0,
            message.timestamp,
            0,
            content is not None,
        )
        end = _pack_end(
            0,
            0,
            message.compressed,
            message.redelivery_counter,
            0,
            message.arrival,
            0,
            message.received_by_df_bridge,
            message.droppable,
            0,
            message.broker_in_time,
            message.broker_out_time,
            message.group_first_for_consumer,
        )
        start = self._start_for(message)
        listed = b"\0" if properties is None else b"".join((b"\1", _pack_length(len(properties)), properties))
        command = _pack_command(message.code, message.command_id, message.response_required)
        size = _COMMAND_BYTES + len(start) + _RUN_BYTES + len(body) + len(listed) + _END_BYTES
        return b"".join((_pack_length(size), command, start, run, body, listed, end))

    def _start_for(self, message: MessageCommand) -> bytes:
        """Up to the message id's numbers."""
        destination, like = message.destination, self._destination
        if (
            not self._start
            or message.producer_id is not self._producer_id
            or message.transaction_id is not self._transaction_id
            or destination is None
            or like is None
            or destination.name != like.name
            or destination.code != like.code
        ):
            writer = FieldWriter(self._form, cuts=True)
            for field in self._form.layout[message.code][: _MESSAGE_ID_INDEX + 1]:
                writer.write(field, getattr(message, field.name))
            self._start = writer.taken()[:-_SEQUENCES_BYTES]
            self._producer_id = message.producer_id
            self._destination = destination
            self._transaction_id = message.transaction_id
        return self._start


def _is_ordinary(message: MessageCommand) -> bool:
    """Whether all optional fields are left out but those that `MessageWriter` writes."""
    message_id = message.message_id
    return (
        message_id is not None
        and message_id.text_view is None
        and message_id.producer_id is message.producer_id
        and message.original_destination is None
        and message.original_transaction_id is None
        and message.group_id is None
        and message.correlation_id is None
        and message.reply_to is None
        and message.type is None
        and message.data_structure is None
        and message.target_consumer_id is None
        and message.broker_path is None
        and message.user_id is None
        and message.cluster is None
        and message.code != BLOB_MESSAGE
    )


def _start_of(message: MessageCommand) -> MessageCommand:
    """What `MessageReader._repeat_start` takes over, and nothing that holds on to a body."""
    like = MessageCommand()
    like.producer_id = message.producer_id
    like.destination = message.destination
    like.transaction_id = message.transaction_id
    like.original_destination = message.original_destination
    like.destination_at = message.destination_at
    like.destination_end = message.destination_end
    like.transaction_end = message.transaction_end
    like.sequence_at = message.sequence_at
    return like


class DispatchReader:
    """Reads what consumers get, likewise: the start is repeated from one dispatch to the next.

        type u8 | command id i32 | flag | consumer | destination | flag, message | redelivery counter i32

    What looks different, or is wrong, is read by the table.
    """

    def __init__(self, form: WireFormat) -> None:
        self._form = form
        self._messages: MessageReader = MessageReader(form)
        self._start: bytes = b""
        self._like: MessageDispatch = MessageDispatch()

    def read(self, encoded: bytes, at: int, end: int) -> MessageDispatch:
        """The dispatch whose type stands at ``at`` and whose frame stops at ``end``.

        Raises:
            PeerError: as `FieldReader.read_command`.
        """
        try:
            dispatch = self._read(encoded, at, end)
        except (IndexError, error, PeerError):
            dispatch = None
        if dispatch is None:
            read = FieldReader(encoded, at, end, self._form).read_command()
            assert isinstance(read, MessageDispatch)  # by its type code
            dispatch = read
        return dispatch

    def _read(self, encoded: bytes, at: int, end: int) -> MessageDispatch | None:
        """None when something looks different."""
        dispatch = MessageDispatch()
        _, dispatch.command_id, dispatch.response_required = _unpack_command(encoded, at)
        start = at + _COMMAND_BYTES
        if self._start and encoded.startswith(self._start, start):
            dispatch.consumer_id = self._like.consumer_id
            dispatch.destination = self._like.destination
            at = start + len(self._start)
        else:
            reader = FieldReader(encoded, start, end, self._form)
            reader.read_fields(dispatch, self._form.layout[MESSAGE_DISPATCH][:2])
            at = reader.at
            if at - start <= _MOST_REMEMBERED_BYTES:
                self._start = encoded[start:at]
                self._like = MessageDispatch()
                self._like.consumer_id = dispatch.consumer_id
                self._like.destination = dispatch.destination
        counter_at = end - _LENGTH_BYTES
        if not encoded[at] or encoded[at + 1] not in MESSAGES or counter_at <= at:
            return None
        dispatch.message = self._messages.read(encoded, at + 1, counter_at)
        (dispatch.redelivery_counter,) = _unpack_length(encoded, counter_at)
        return dispatch
