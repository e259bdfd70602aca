"""The records a decision leaves behind, as bytes.

A record's first byte is its kind, its second the version of that kind. Integers are little-endian. Bodies of messages
are not part of the meta: the store keeps them beside it.

    STORED    kind ver priority body_kind | sequence u64 | message_id u64 | timestamp_ms u64 | expires_at_ms u64 |
              head_size u32 | queues u16 | address u16 | protocol u8 | user u16 | annotations u32 | flags u8 |
              queue ids u64 * queues | address | protocol | user | annotations (JSON)
    REMOVED   kind ver reason | queue id u64 | count u32 | sequence u64 * count
    COUNTED   kind ver 0      | queue id u64 | count u32 | (sequence u64, deliveries u32) * count
    REFERRED  kind ver 0      | queue id u64 | sequence u64      (one more queue keeps a stored message)
    IDS       kind ver | first id that is not reserved u64
    BINDING   kind ver | JSON {"queue"|"address"|"drop_queue"|"drop_address": ...}
    LEASE     kind ver | JSON {"group", "op", ...}

A record's fixed part is packed by one call of one Struct: one call per field costs five times as much.
"""

import json
from struct import Struct, pack
from typing import Final

from delosmq.engine.slots import Slot
from delosmq.model.errors import StorageError
from delosmq.model.ids import MessageId, Sequence, WallMs
from delosmq.model.message import Message

STORED: Final = 1
REMOVED: Final = 2
COUNTED: Final = 3
IDS: Final = 4
BINDING: Final = 5
LEASE: Final = 6
REFERRED: Final = 7

VERSION: Final = 1

DURABLE_FLAG: Final = 1
"""Sent as durable; a message without it is stored because a lease holds it."""

ACKNOWLEDGED: Final = 1
REPLACED: Final = 2
KILLED: Final = 3
PURGED: Final = 4

_STORED: Final = Struct("<BBBBQQQQIHHBHIB")
_QUEUE_ID: Final = Struct("<Q")
_REMOVED: Final = Struct("<BBBQI")
_REMOVED_ONE: Final = Struct("<BBBQIQ")
_SEQUENCE: Final = Struct("<Q")
_COUNT: Final = Struct("<QI")
_REFERRED: Final = Struct("<BBBQQ")
_IDS: Final = Struct("<BBQ")


def encode_stored(message: Message, queue_ids: list[int]) -> bytes:
    """The meta of a message that its queues now hold."""
    address = message.address.encode()
    protocol = message.protocol.encode()
    user = message.user.encode()
    annotations = b"" if message.annotations is None else json.dumps(message.annotations).encode()
    fixed = _STORED.pack(
        STORED,
        VERSION,
        message.priority,
        message.body_kind,
        message.sequence,
        message.message_id,
        message.timestamp_ms,
        message.expires_at_ms,
        len(message.head),
        len(queue_ids),
        len(address),
        len(protocol),
        len(user),
        len(annotations),
        DURABLE_FLAG if message.durable else 0,
    )
    queues = _QUEUE_ID.pack(queue_ids[0]) if len(queue_ids) == 1 else b"".join(map(_QUEUE_ID.pack, queue_ids))
    return b"".join((fixed, queues, address, protocol, user, annotations))


class StoredRecord:
    """A decoded STORED record: the message without head and body, which the store still holds."""

    def __init__(self, message: Message, head_size: int, queue_ids: list[int]) -> None:
        self.message = message
        self.head_size = head_size
        self.queue_ids = queue_ids


def decode_stored(meta: bytes) -> StoredRecord:
    """Reads a STORED record back."""
    (
        _,
        _,
        priority,
        body_kind,
        sequence,
        message_id,
        timestamp_ms,
        expires_at_ms,
        head_size,
        queues,
        address_size,
        protocol_size,
        user_size,
        annotations_size,
        flags,
    ) = _STORED.unpack_from(meta)
    at = _STORED.size
    queue_ids = [queue_id for (queue_id,) in _QUEUE_ID.iter_unpack(meta[at : at + _QUEUE_ID.size * queues])]
    at += _QUEUE_ID.size * queues
    address = meta[at : at + address_size].decode()
    at += address_size
    protocol = meta[at : at + protocol_size].decode()
    at += protocol_size
    user = meta[at : at + user_size].decode()
    at += user_size
    annotations = json.loads(meta[at : at + annotations_size]) if annotations_size else None
    message = Message(
        address,
        protocol,
        b"",
        b"",
        body_kind=body_kind,
        priority=priority,
        durable=flags & DURABLE_FLAG != 0,
        timestamp_ms=WallMs(timestamp_ms),
        expires_at_ms=expires_at_ms,
        user=user,
        annotations=annotations,
    )
    message.sequence = Sequence(sequence)
    message.message_id = MessageId(message_id)
    return StoredRecord(message, head_size, queue_ids)


def encode_removed(queue_id: int, reason: int, slots: list[Slot]) -> bytes:
    """References that are gone from a queue."""
    count = len(slots)
    # One call packs all sequences: half the time of one call each.
    return _REMOVED.pack(REMOVED, VERSION, reason, queue_id, count) + pack(
        f"<{count}Q", *[slot.sequence for slot in slots]
    )


def encode_removed_one(queue_id: int, reason: int, slot: Slot) -> bytes:
    """`encode_removed` of one reference, the most frequent record of all."""
    return _REMOVED_ONE.pack(REMOVED, VERSION, reason, queue_id, 1, slot.sequence)


class RemovedRecord:
    """A decoded REMOVED record."""

    def __init__(self, queue_id: int, reason: int, sequences: list[int]) -> None:
        self.queue_id = queue_id
        self.reason = reason
        self.sequences = sequences


def decode_removed(meta: bytes) -> RemovedRecord:
    """Reads a REMOVED record back."""
    _, _, reason, queue_id, _ = _REMOVED.unpack_from(meta)
    sequences = [sequence for (sequence,) in _SEQUENCE.iter_unpack(meta[_REMOVED.size :])]
    return RemovedRecord(queue_id, reason, sequences)


def encode_counted(queue_id: int, slots: list[Slot]) -> bytes:
    """Delivery counts of references that went back to their queue."""
    parts = [_REMOVED.pack(COUNTED, VERSION, 0, queue_id, len(slots))]
    for slot in slots:
        parts.append(_COUNT.pack(slot.sequence, slot.delivery_count))
    return b"".join(parts)


class CountedRecord:
    """A decoded COUNTED record: ``(sequence, deliveries)`` pairs."""

    def __init__(self, queue_id: int, counts: list[tuple[int, int]]) -> None:
        self.queue_id = queue_id
        self.counts = counts


def decode_counted(meta: bytes) -> CountedRecord:
    """Reads a COUNTED record back."""
    _, _, _, queue_id, _ = _REMOVED.unpack_from(meta)
    counts = [(sequence, deliveries) for sequence, deliveries in _COUNT.iter_unpack(meta[_REMOVED.size :])]
    return CountedRecord(queue_id, counts)


def encode_referenced(queue_id: int, sequence: int) -> bytes:
    """One more queue keeps a message that is stored already."""
    return _REFERRED.pack(REFERRED, VERSION, 0, queue_id, sequence)


def decode_referenced(meta: bytes) -> tuple[int, int]:
    """Reads a REFERRED record back: queue id and sequence."""
    _, _, _, queue_id, sequence = _REFERRED.unpack(meta)
    return queue_id, sequence


def encode_ids(reserved_below: int) -> bytes:
    """Ids up to here (exclusive) may have been given out."""
    return _IDS.pack(IDS, VERSION, reserved_below)


def decode_ids(meta: bytes) -> int:
    """Reads an IDS record back."""
    _, _, reserved_below = _IDS.unpack(meta)
    return int(reserved_below)


def encode_json(kind: int, value: dict[str, object]) -> bytes:
    """A BINDING or LEASE record; rare, so JSON."""
    return bytes((kind, VERSION)) + json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def decode_json(meta: bytes) -> dict[str, object]:
    """Reads a BINDING or LEASE record back."""
    value: dict[str, object] = json.loads(meta[2:])
    return value


def check_version(meta: bytes) -> int:
    """The kind of a record.

    Raises:
        StorageError: the record was written by a newer DelosMQ.
    """
    if meta[1] > VERSION:
        raise StorageError(
            "DMQ2301",
            f"the journal holds a record of kind {meta[0]} version {meta[1]}, this DelosMQ reads up to {VERSION};"
            " start it with the release that wrote the journal, or a newer one",
        )
    return meta[0]
