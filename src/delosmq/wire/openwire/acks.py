"""Reads and writes acknowledgements quickly: one comes for almost every message that goes out.

    type u8 (22) | command id i32 | flag | destination | transaction | consumer
    | ack type u8 | first id | last id | count i32 | flag

A consumer repeats the start, and its message ids name few producers, so both are compared with what came before. What
looks different is read by the table. A test holds the two against each other.
"""

from struct import Struct, error
from typing import Final

from delosmq.wire.openwire import errors
from delosmq.wire.openwire.codec import FieldReader, FieldWriter, encode_command
from delosmq.wire.openwire.commands import MessageAck
from delosmq.wire.openwire.structures import (
    MESSAGE_ACK,
    ConsumerId,
    Destination,
    MessageId,
    ProducerId,
    TransactionId,
)
from delosmq.wire.openwire.wire_format import WireFormat

QUICK_SINCE: Final = 10
"""Older versions have no text view in their message ids."""

_unpack_command: Final = Struct(">Bi?").unpack_from
_pack_size_and_command: Final = Struct(">iBi?").pack
_COMMAND_BYTES: Final = 6
_END: Final = Struct(">iB")
_unpack_end: Final = _END.unpack_from
_pack_end: Final = _END.pack
_END_BYTES: Final = 5
_SEQUENCES: Final = Struct(">qq")
_unpack_sequences: Final = _SEQUENCES.unpack_from
_pack_sequences: Final = _SEQUENCES.pack
_SEQUENCES_BYTES: Final = 16
# flag, message id, no text view, flag, producer id, flag: then the length of its connection id.
_ID_START: Final = bytes((1, 110, 0, 1, 123, 1))
_ID_START_BYTES: Final = 6
_LENGTH_BYTES: Final = 2
_FIRST_ID_INDEX: Final = 4
_MOST_REMEMBERED: Final = 64
_MOST_REMEMBERED_BYTES: Final = 1024


class AckReader:
    def __init__(self, form: WireFormat) -> None:
        self._form = form
        self._start: bytes = b""
        self._like: MessageAck = MessageAck()
        self._producers: dict[bytes, ProducerId] = {}
        self._at: int = 0
        self._odd: bool = False

    def read(self, encoded: bytes, at: int, end: int) -> MessageAck:
        """The acknowledgement with its type at ``at`` and the end of its frame at ``end``.

        Raises:
            PeerError: as `FieldReader.read_command`.
        """
        try:
            ack = self._read(encoded, at, end)
        except (IndexError, error):
            raise errors.truncated(MESSAGE_ACK) from None
        if ack is None:
            read = FieldReader(encoded, at, end, self._form).read_command()
            assert isinstance(read, MessageAck)  # by its type code
            ack = read
        return ack

    def _read(self, encoded: bytes, at: int, end: int) -> MessageAck | None:
        """None when something looks different."""
        ack = MessageAck()
        _, ack.command_id, ack.response_required = _unpack_command(encoded, at)
        self._at = at + _COMMAND_BYTES
        if self._start and encoded.startswith(self._start, self._at):
            like = self._like
            ack.destination = like.destination
            ack.transaction_id = like.transaction_id
            ack.consumer_id = like.consumer_id
            self._at += len(self._start)
        else:
            self._read_start(ack, encoded, end)
        ack.ack_type = encoded[self._at]
        self._at += 1
        self._odd = ack.ack_type > 127
        first_at = self._at
        ack.first_message_id = self._message_id(encoded)
        last_at = self._at
        if last_at + last_at - first_at + _END_BYTES == end and encoded.startswith(encoded[first_at:last_at], last_at):
            # A message alone is named twice.
            ack.last_message_id = ack.first_message_id
            self._at = last_at + last_at - first_at
        else:
            ack.last_message_id = self._message_id(encoded)
        if self._odd or self._at + _END_BYTES != end:
            return None
        ack.message_count, poisoned = _unpack_end(encoded, self._at)
        return None if poisoned else ack

    def _read_start(self, ack: MessageAck, encoded: bytes, end: int) -> None:
        start = self._at
        reader = FieldReader(encoded, start, end, self._form)
        reader.read_fields(ack, self._form.layout[MESSAGE_ACK][:3])
        self._at = reader.at
        if reader.at - start <= _MOST_REMEMBERED_BYTES:
            self._start = encoded[start : reader.at]
            like = MessageAck()
            like.destination = ack.destination
            like.transaction_id = ack.transaction_id
            like.consumer_id = ack.consumer_id
            self._like = like

    def _message_id(self, encoded: bytes) -> MessageId | None:
        at = self._at
        if self._odd:
            return None
        if encoded[at] == 0:
            self._at = at + 1
            return None
        if not encoded.startswith(_ID_START, at):
            self._odd = True
            return None
        start = at
        at += _ID_START_BYTES
        at += _LENGTH_BYTES + (encoded[at] << 8) + encoded[at + 1] + _SEQUENCES_BYTES
        producer = self._producers.get(encoded[start:at])
        if producer is None:
            # Read by the table this time, and known the next.
            self._odd = True
            self._remember(encoded, start, at)
            return None
        sequence, broker_sequence = _unpack_sequences(encoded, at)
        self._at = at + _SEQUENCES_BYTES
        return MessageId(producer, sequence, broker_sequence)

    def _remember(self, encoded: bytes, start: int, at: int) -> None:
        if at - start > _MOST_REMEMBERED_BYTES or at + _SEQUENCES_BYTES > len(encoded):
            return
        if len(self._producers) >= _MOST_REMEMBERED:
            self._producers.clear()
        whole = FieldReader(encoded, start, at + _SEQUENCES_BYTES, self._form)
        field = self._form.layout[MESSAGE_ACK][_FIRST_ID_INDEX]
        message_id = whole.nested(field)
        if isinstance(message_id, MessageId) and message_id.producer_id is not None:
            self._producers[encoded[start:at]] = message_id.producer_id


class AckWriter:
    """Writes the acknowledgements of one connection: what a consumer repeats is kept."""

    def __init__(self, form: WireFormat) -> None:
        self._form = form
        self._quick: bool = form.plain and form.version >= QUICK_SINCE
        self._start: bytes = b""
        self._destination: Destination | None = None
        self._transaction_id: TransactionId | None = None
        self._consumer_id: ConsumerId | None = None
        self._id_start: bytes = b""
        self._producer_id: ProducerId | None = None

    def write(self, ack: MessageAck) -> bytes:
        """The frame, as `encode_command` has it."""
        first, last = ack.first_message_id, ack.last_message_id
        if (
            not self._quick
            or ack.poison_cause is not None
            or last is None
            or last.text_view is not None
            or (first is not None and first.text_view is not None)
        ):
            return encode_command(ack, self._form)
        if (
            ack.consumer_id is not self._consumer_id
            or ack.destination is not self._destination
            or ack.transaction_id is not self._transaction_id
            or not self._start
        ):
            self._remember_start(ack)
        last_id = self._encoded_id(last)
        first_id = b"\0" if first is None else last_id if first is last else self._encoded_id(first)
        rest = b"".join(
            (self._start, bytes((ack.ack_type & 0xFF,)), first_id, last_id, _pack_end(ack.message_count, 0))
        )
        size = _COMMAND_BYTES + len(rest)
        return _pack_size_and_command(size, MESSAGE_ACK, ack.command_id, ack.response_required) + rest

    def _remember_start(self, ack: MessageAck) -> None:
        writer = FieldWriter(self._form, cuts=True)
        for field in self._form.layout[MESSAGE_ACK][:3]:
            writer.write(field, getattr(ack, field.name))
        self._start = writer.taken()
        self._consumer_id = ack.consumer_id
        self._destination = ack.destination
        self._transaction_id = ack.transaction_id

    def _encoded_id(self, message_id: MessageId) -> bytes:
        producer_id = message_id.producer_id
        if producer_id is None or producer_id is not self._producer_id:
            writer = FieldWriter(self._form, cuts=True)
            writer.write(self._form.layout[MESSAGE_ACK][_FIRST_ID_INDEX], message_id)
            self._id_start = writer.taken()[:-_SEQUENCES_BYTES]
            self._producer_id = producer_id
        return self._id_start + _pack_sequences(message_id.producer_sequence_id, message_id.broker_sequence_id)
