"""Messages as a store gives them back: STORED records read, bodies loaded.

Messages share what those shared that were sent: the texts of a record, which are the same for all that one user sends
to one address by one protocol, and a head that repeats. Without it a small message takes twice the memory after a
restart that it took before.
"""

import json
from struct import Struct
from typing import Final

from delosmq.engine.log.log import Store
from delosmq.engine.log.origin import OriginalPlace
from delosmq.engine.log.records import (
    COPY,
    COPY_FLAG,
    DELAY,
    DELAY_FLAG,
    DUE,
    DUE_FLAG,
    DURABLE_FLAG,
    GROUP,
    GROUP_FLAG,
    QUEUE_ID,
    SENT_FLAG,
    STORED_FIXED,
)
from delosmq.model.ids import MessageId, Sequence, WallMs
from delosmq.model.message import Home, Message

SHARED_AT_MOST: Final = 1_000
"""Different tails, texts and heads that are remembered. More of them are forgotten all at once, and gathered anew."""
LARGEST_SHARED_HEAD: Final = 4 * 1024
"""In bytes. Larger ones are rarely alike."""
LOADED_AT_ONCE: Final = 500
"""Bodies asked for in one call: enough for large reads, few enough that none is in memory twice for long."""

_unpack_front: Final = Struct("<4BQQQQI").unpack_from
_FRONT_SIZE: Final = 40
"""What precedes the count of queues in a record: what is behind is alike in many."""


class StoredRecord:
    """A decoded STORED record.

    Attributes:
        message: its size is known. Until its body is loaded its head consists of zeros.
        queue_ids: other records may share the list: don't change it.
        original: of a divert's copy in a transaction.
    """

    def __init__(self, message: Message, queue_ids: list[int], original: OriginalPlace | None) -> None:
        self.message = message
        self.queue_ids = queue_ids
        self.original = original


class _Tail:
    """What stands in a record behind the size of the head."""

    def __init__(self, address: str, protocol: str, user: str, durable: bool, queue_ids: list[int]) -> None:
        self.address = address
        self.protocol = protocol
        self.user = user
        self.durable = durable
        self.queue_ids = queue_ids
        self.common: bool = True
        self.annotations: dict[str, str] | None = None
        self.due_at_ms: int = 0
        self.delay_ms: int = 0
        self.group_id: str = ""
        self.group_sequence: int = 0
        self.original: OriginalPlace | None = None


class StoredMessages:
    """Reads the messages of a store at its start."""

    def __init__(self) -> None:
        self._tails: dict[bytes, _Tail] = {}
        self._texts: dict[str, str] = {}
        self._heads: dict[bytes, bytes] = {}
        # Zeros by their number.
        self._blanks: dict[int, bytes] = {}
        # By segment.
        self._awaited: dict[int, list[Message]] = {}

    # -- records -------------------------------------------------------------------------------------------------

    def decode(self, meta: bytes, home: Home) -> StoredRecord:
        """Reads a STORED record; its message lies at ``home``."""
        _, _, priority, body_kind, sequence, message_id, timestamp_ms, expires_at_ms, head_size = _unpack_front(meta)
        key = meta[_FRONT_SIZE:]
        tail = self._tails.get(key)
        if tail is None:
            tail = self._decode_tail(meta)
            if tail.common:
                if len(self._tails) >= SHARED_AT_MOST:
                    self._tails.clear()
                self._tails[key] = tail
        blank = self._blanks.get(head_size)
        message = Message(
            tail.address,
            tail.protocol,
            blank if blank is not None else self._blank(head_size),
            b"",
            body_kind=body_kind,
            priority=priority,
            durable=tail.durable,
            timestamp_ms=WallMs(timestamp_ms),
            expires_at_ms=expires_at_ms,
            user=tail.user,
            annotations=tail.annotations,
            due_at_ms=tail.due_at_ms,
            group_id=tail.group_id,
            group_sequence=tail.group_sequence,
        )
        message.delay_ms = tail.delay_ms
        message.sequence = Sequence(sequence)
        # As a rule they are equal: one number object then, when not compiled.
        message.message_id = MessageId(message.sequence if message_id == sequence else message_id)
        message.home = home
        message.encoded_size_bytes = home.size_bytes
        return StoredRecord(message, tail.queue_ids, tail.original)

    def _decode_tail(self, meta: bytes) -> _Tail:
        fields = STORED_FIXED.unpack_from(meta)
        queues, address_size, protocol_size, user_size, annotations_size, flags = fields[9:]
        at = STORED_FIXED.size
        queue_ids = [queue_id for (queue_id,) in QUEUE_ID.iter_unpack(meta[at : at + QUEUE_ID.size * queues])]
        at += QUEUE_ID.size * queues
        ends = (at + address_size, at + address_size + protocol_size)
        tail = _Tail(
            self._text(meta[at : ends[0]]),
            self._text(meta[ends[0] : ends[1]]),
            self._text(meta[ends[1] : ends[1] + user_size]),
            flags & DURABLE_FLAG != 0,
            queue_ids,
        )
        at = ends[1] + user_size
        # What has more than this has it for itself, as a rule; annotations may be changed besides.
        tail.common = annotations_size == 0 and flags & ~(DURABLE_FLAG | SENT_FLAG) == 0
        if annotations_size:
            noted = json.loads(meta[at : at + annotations_size])
            tail.annotations = {self._shared(name): self._shared(value) for name, value in noted.items()}
            at += annotations_size
        if flags & DUE_FLAG:
            (tail.due_at_ms,) = DUE.unpack_from(meta, at)
            at += DUE.size
        if flags & GROUP_FLAG:
            tail.group_sequence, group_size = GROUP.unpack_from(meta, at)
            at += GROUP.size
            tail.group_id = self._text(meta[at : at + group_size])
            at += group_size
        if flags & COPY_FLAG:
            place, name_size = COPY.unpack_from(meta, at)
            at += COPY.size
            tail.original = OriginalPlace(place, meta[at : at + name_size].decode())
            at += name_size
        if flags & DELAY_FLAG:
            (tail.delay_ms,) = DELAY.unpack_from(meta, at)
        return tail

    def _text(self, encoded: bytes) -> str:
        return self._shared(encoded.decode())

    def _shared(self, text: str) -> str:
        known = self._texts.get(text)
        if known is not None:
            return known
        if len(self._texts) >= SHARED_AT_MOST:
            self._texts.clear()
        self._texts[text] = text
        return text

    def _blank(self, size: int) -> bytes:
        blank = bytes(size)
        if size <= LARGEST_SHARED_HEAD:
            self._blanks[size] = blank
        return blank

    # -- bodies --------------------------------------------------------------------------------------------------

    def await_body(self, message: Message) -> None:
        """A message is alive: `load` loads its head and body."""
        home = message.home
        assert home is not None  # it was decoded from there
        waiting = self._awaited.get(home.segment)
        if waiting is None:
            waiting = self._awaited[home.segment] = []
        waiting.append(message)

    def load(self, store: Store) -> None:
        """Loads what awaits its body, in the order in which it is stored.

        Raises:
            StorageError: a body is damaged or can't be read.
        """
        for segment in sorted(self._awaited):
            messages = self._awaited.pop(segment)
            if not _are_in_order(messages):
                messages.sort(key=_offset)
            for first in range(0, len(messages), LOADED_AT_ONCE):
                part = messages[first : first + LOADED_AT_ONCE]
                homes = [message.home for message in part if message.home is not None]
                for message, encoded in zip(part, store.read_in_order(homes), strict=True):
                    self._complete(message, encoded)

    def _complete(self, message: Message, encoded: bytes) -> None:
        size = len(message.head)
        head = encoded[:size]
        message.body = encoded[size:]
        known = self._heads.get(head)
        if known is None:
            known = head
            if size <= LARGEST_SHARED_HEAD:
                if len(self._heads) >= SHARED_AT_MOST:
                    self._heads.clear()
                self._heads[head] = head
        message.head = known


def _offset(message: Message) -> int:
    return 0 if message.home is None else message.home.offset


def _are_in_order(messages: list[Message]) -> bool:
    last = 0
    for message in messages:
        offset = _offset(message)
        if offset < last:
            return False
        last = offset
    return True
