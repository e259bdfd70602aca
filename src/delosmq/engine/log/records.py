"""The records a decision leaves behind, as bytes.

A record's first byte is its kind, its second the version of that kind. Integers are little-endian. Bodies of messages
are not part of the meta: the store keeps them beside it.

    STORED    kind ver priority body_kind | sequence u64 | message_id u64 | timestamp_ms u64 | expires_at_ms u64 |
              head_size u32 | queues u16 | address u16 | protocol u8 | user u16 | annotations u32 | flags u8 |
              queue ids u64 * queues | address | protocol | user | annotations (JSON)
    REMOVED   kind ver reason | queue id u64 | count u32 | sequence u64 * count
    COUNTED   kind ver 0      | queue id u64 | count u32 | (sequence u64, deliveries u32) * count
    SCHEDULED kind ver 0      | queue id u64 | count u32 | (sequence u64, deliveries u32, due_at_ms u64) * count
    REFERRED  kind ver 0      | queue id u64 | sequence u64      (one more queue keeps a stored message)
    IDS       kind ver | first id that is not reserved u64
    BINDING   kind ver | JSON {"queue"|"address"|"drop_queue"|"drop_address": ...}
    LEASE     kind ver | JSON {"group", "op", ...}      (version 2: {"op": "open", "selector", "wish", ...})
    DUPLICATE kind ver 0      | number u64 | number of the id forgotten for it u64 | transaction u64 | address u16 |
              id u16 | address | id              (counts at once with transaction 0, else with its commit)
    FORGOTTEN kind ver 0      | 0 u64 | count u32 | number u64 * count                    (duplicate ids)
    PROMISED  kind ver 0      | queue id u64 | count u32 | sequence u64 * count | transaction u64
              (acknowledged once the transaction is committed)
    DISCARDED kind ver 0      | transaction u64 | count u32 | index u64 * count
              (messages of a transaction that come to nothing)
    TRANSACTION kind ver | JSON {"op": "prepare"|"commit"|"rollback"|"forget", ...}
              (version 2: {"op": "prepare"|"publish"|"forget published", "app", ...}, of what sinks stage;
              version 3: "prepare" of a part that belongs to an attempt)

Versions 2 and 3 of STORED have more, each by its flag and in this order, behind the annotations:

    DUE       due_at_ms u64
    GROUP     group_sequence i64 | size u16 | group id
    SENT      the message exists once its transaction is committed: ``message_id`` is the id of the transaction,
              ``sequence`` the message's place in it. Its sequence is the first one of the commit plus that.
    COPY      place of the original u64 | size u16 | property      (with SENT: a divert's copy; the property is to get
              the id of its original, with the commit)
    DELAY     delay_ms u64    (with DUE, in version 3: it is the end of a delay, and not a time of day)

A record's fixed part is packed by one call of one Struct: one call per field costs five times as much.
"""

import json
from struct import Struct, pack
from typing import Final

from delosmq.engine.base.slots import Slot
from delosmq.engine.log.origin import OriginalPlace
from delosmq.model.errors import StorageError
from delosmq.model.message import Message

STORED: Final = 1
REMOVED: Final = 2
COUNTED: Final = 3
IDS: Final = 4
BINDING: Final = 5
LEASE: Final = 6
REFERRED: Final = 7
SCHEDULED: Final = 20
DUPLICATE: Final = 8
PROMISED: Final = 9
DISCARDED: Final = 10
TRANSACTION: Final = 11
FORGOTTEN: Final = 12

VERSION: Final = 1
STORED_VERSION: Final = 2
"""Of STORED records with a section by flag; the others stay version 1."""
DELAY_VERSION: Final = 3
"""Of those with DELAY, which a release that knows version 2 alone would overlook."""

STAGING_VERSION: Final = 2
"""Of TRANSACTION records about what sinks stage and publish, which other releases must not overlook."""
WISH_VERSION: Final = 2
"""Of LEASE records that open a group which does not take all of its queue: other releases would lease the rest."""
ATTEMPT_VERSION: Final = 3
"""Of those that say to which attempt a part belongs: releases that overlook it would not end those of dead ones."""
NEWEST: Final = {STORED: DELAY_VERSION, TRANSACTION: ATTEMPT_VERSION, LEASE: WISH_VERSION}
"""By kind; the others have version 1 alone."""

DURABLE_FLAG: Final = 1
"""Sent as durable; a message without it is stored because a lease holds it."""
DUE_FLAG: Final = 2
GROUP_FLAG: Final = 4
SENT_FLAG: Final = 8
COPY_FLAG: Final = 16
DELAY_FLAG: Final = 32

ACKNOWLEDGED: Final = 1
REPLACED: Final = 2
KILLED: Final = 3
PURGED: Final = 4
EXPIRED: Final = 5

STORED_FIXED: Final = Struct("<BBBBQQQQIHHBHIB")
# With the id of the one queue that nearly every message has
_pack_stored_one: Final = Struct("<BBBBQQQQIHHBHIBQ").pack
QUEUE_ID: Final = Struct("<Q")
_REMOVED: Final = Struct("<BBBQI")
_REMOVED_ONE: Final = Struct("<BBBQIQ")
_SEQUENCE: Final = Struct("<Q")
_COUNT: Final = Struct("<QI")
_SCHEDULE: Final = Struct("<QIQ")
_REFERRED: Final = Struct("<BBBQQ")
_IDS: Final = Struct("<BBQ")
_FLAGS_AT: Final = STORED_FIXED.size - 1
DUE: Final = Struct("<Q")
GROUP: Final = Struct("<qH")
COPY: Final = Struct("<QH")
DELAY: Final = Struct("<Q")
_DUPLICATE: Final = Struct("<BBBQQQHH")


def encode_stored(message: Message, queue_ids: list[int]) -> bytes:
    """The meta of a message that its queues now hold."""
    if len(queue_ids) != 1 or _has_sections(message):
        return _encode_stored_sections(message, queue_ids, message.sequence, message.message_id, 0)
    address = message.address.encode()
    protocol = message.protocol.encode()
    user = message.user.encode()
    fixed = _pack_stored_one(
        STORED,
        VERSION,
        message.priority,
        message.body_kind,
        message.sequence,
        message.message_id,
        message.timestamp_ms,
        message.expires_at_ms,
        len(message.head),
        1,
        len(address),
        len(protocol),
        len(user),
        0,
        DURABLE_FLAG if message.durable else 0,
        queue_ids[0],
    )
    return b"".join((fixed, address, protocol, user))


def _has_sections(message: Message) -> bool:
    return message.due_at_ms != 0 or message.group_id != "" or message.annotations is not None


def encode_sent(
    message: Message, queue_ids: list[int], transaction: int, index: int, original: OriginalPlace | None = None
) -> bytes:
    """`encode_stored` of a message that its queues will hold once its transaction is committed."""
    if original is None:
        return _encode_stored_sections(message, queue_ids, index, transaction, SENT_FLAG)
    name = original.property_name.encode()
    copy = COPY.pack(original.place, len(name)) + name
    return _encode_stored_sections(message, queue_ids, index, transaction, SENT_FLAG | COPY_FLAG, copy=copy)


def _encode_stored_sections(
    message: Message, queue_ids: list[int], sequence: int, message_id: int, flags: int, *, copy: bytes = b""
) -> bytes:
    address = message.address.encode()
    protocol = message.protocol.encode()
    user = message.user.encode()
    annotations = b"" if message.annotations is None else json.dumps(message.annotations).encode()
    sections = b""
    if message.due_at_ms:
        flags |= DUE_FLAG
        sections += DUE.pack(message.due_at_ms)
    if message.group_id:
        flags |= GROUP_FLAG
        group = message.group_id.encode()
        sections += GROUP.pack(message.group_sequence, len(group)) + group
    sections += copy
    version = STORED_VERSION if flags else VERSION
    if message.due_at_ms and message.delay_ms:
        flags |= DELAY_FLAG
        sections += DELAY.pack(message.delay_ms)
        version = DELAY_VERSION
    fixed = STORED_FIXED.pack(
        STORED,
        version,
        message.priority,
        message.body_kind,
        sequence,
        message_id,
        message.timestamp_ms,
        message.expires_at_ms,
        len(message.head),
        len(queue_ids),
        len(address),
        len(protocol),
        len(user),
        len(annotations),
        flags | (DURABLE_FLAG if message.durable else 0),
    )
    queues = b"".join(map(QUEUE_ID.pack, queue_ids))
    return b"".join((fixed, queues, address, protocol, user, annotations, sections))


def is_sent(meta: bytes) -> bool:
    """Whether a STORED record waits for the commit of its transaction."""
    return meta[_FLAGS_AT] & SENT_FLAG != 0


def decode_sent_place(meta: bytes) -> tuple[int, int]:
    """Transaction of such a record, and the message's place in it."""
    fields = STORED_FIXED.unpack_from(meta)
    return int(fields[5]), int(fields[4])


def encode_removed(queue_id: int, reason: int, slots: list[Slot]) -> bytes:
    """References that are gone from a queue."""
    count = len(slots)
    # One call packs all sequences: half the time of one call each.
    return _REMOVED.pack(REMOVED, VERSION, reason, queue_id, count) + pack(
        f"<{count}Q", *[slot.sequence for slot in slots]
    )


class RemovedRecord:
    def __init__(self, queue_id: int, reason: int, sequences: list[int]) -> None:
        self.queue_id = queue_id
        self.reason = reason
        self.sequences = sequences


def decode_removed(meta: bytes) -> RemovedRecord:
    """Reads a REMOVED record back."""
    if len(meta) == _REMOVED_ONE.size:
        _, _, reason, queue_id, _, sequence = _REMOVED_ONE.unpack(meta)
        return RemovedRecord(queue_id, reason, [sequence])
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


def encode_scheduled(queue_id: int, slots: list[Slot]) -> bytes:
    """References that wait in their queue until they are due, with their delivery counts."""
    parts = [_REMOVED.pack(SCHEDULED, VERSION, 0, queue_id, len(slots))]
    for slot in slots:
        parts.append(_SCHEDULE.pack(slot.sequence, slot.delivery_count, slot.due_at_ms))
    return b"".join(parts)


class ScheduledRecord:
    """A decoded SCHEDULED record: ``(sequence, deliveries, due_at_ms)`` each."""

    def __init__(self, queue_id: int, times: list[tuple[int, int, int]]) -> None:
        self.queue_id = queue_id
        self.times = times


def decode_scheduled(meta: bytes) -> ScheduledRecord:
    """Reads a SCHEDULED record back."""
    _, _, _, queue_id, _ = _REMOVED.unpack_from(meta)
    times = [(sequence, deliveries, due) for sequence, deliveries, due in _SCHEDULE.iter_unpack(meta[_REMOVED.size :])]
    return ScheduledRecord(queue_id, times)


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


def encode_json(kind: int, value: dict[str, object], version: int = VERSION) -> bytes:
    """A BINDING, LEASE or TRANSACTION record; rare, so JSON."""
    return bytes((kind, version)) + json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def decode_json(meta: bytes) -> dict[str, object]:
    """Reads such a record back."""
    value: dict[str, object] = json.loads(meta[2:])
    return value


def encode_duplicate(address: str, duplicate_id: bytes, number: int, evicted: int, transaction: int) -> bytes:
    """An id that an address has seen."""
    name = address.encode()
    fixed = _DUPLICATE.pack(DUPLICATE, VERSION, 0, number, evicted, transaction, len(name), len(duplicate_id))
    return fixed + name + duplicate_id


class DuplicateRecord:
    def __init__(self, meta: bytes) -> None:
        _, _, _, number, evicted, transaction, address_size, id_size = _DUPLICATE.unpack_from(meta)
        self.number: int = number
        self.evicted: int = evicted
        self.transaction: int = transaction
        at = _DUPLICATE.size
        self.address: str = meta[at : at + address_size].decode()
        at += address_size
        self.duplicate_id: bytes = meta[at : at + id_size]


def encode_forgotten(numbers: list[int]) -> bytes:
    """Duplicate ids that don't count any more."""
    return _REMOVED.pack(FORGOTTEN, VERSION, 0, 0, len(numbers)) + pack(f"<{len(numbers)}Q", *numbers)


def encode_discarded(transaction: int, indexes: list[int]) -> bytes:
    """Messages of a transaction that come to nothing."""
    return _REMOVED.pack(DISCARDED, VERSION, 0, transaction, len(indexes)) + pack(f"<{len(indexes)}Q", *indexes)


def decode_numbers(meta: bytes) -> tuple[int, list[int]]:
    """Reads a FORGOTTEN or DISCARDED record back: the id and the numbers."""
    _, _, _, owner, _ = _REMOVED.unpack_from(meta)
    return owner, [number for (number,) in _SEQUENCE.iter_unpack(meta[_REMOVED.size :])]


def encode_promised(transaction: int, queue_id: int, slots: list[Slot]) -> bytes:
    """References that a transaction acknowledges."""
    count = len(slots)
    fixed = _REMOVED.pack(PROMISED, VERSION, 0, queue_id, count)
    return fixed + pack(f"<{count + 1}Q", *[slot.sequence for slot in slots], transaction)


def decode_promised(meta: bytes) -> tuple[int, int, list[int]]:
    """Reads a PROMISED record back: transaction, queue id, sequences."""
    _, _, _, queue_id, _ = _REMOVED.unpack_from(meta)
    numbers = [number for (number,) in _SEQUENCE.iter_unpack(meta[_REMOVED.size :])]
    return numbers[-1], queue_id, numbers[:-1]


def check_version(meta: bytes) -> int:
    """The kind of a record.

    Raises:
        StorageError: the record was written by a newer DelosMQ.
    """
    if meta[1] > VERSION and meta[1] > NEWEST.get(meta[0], VERSION):
        newest = NEWEST.get(meta[0], VERSION)
        raise StorageError(
            "DMQ2301",
            f"the journal holds a record of kind {meta[0]} version {meta[1]}, this DelosMQ reads that kind up to"
            f" version {newest}; start it with the release that wrote the journal, or a newer one",
        )
    return meta[0]
