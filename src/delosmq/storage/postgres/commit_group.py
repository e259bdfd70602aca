"""What one commit writes: batches as rows, the segments they begin, those that nothing needs any more, the state."""

from typing import Final

from crc32c import crc32c

from delosmq.engine.log.log import NO_BODY, Batch
from delosmq.storage.journal.records import (
    CRC_SIZE,
    ROW,
    U32,
    collect_accounts,
    fill_homes,
    pack_accounts,
    seed_of,
)

BODIES_START: Final = 64
"""Where the bodies of a segment begin: 0 says that a record has none."""
MOST_CONTENT_BYTES: Final = 1024 * 1024
"""Of a row of bodies: reading one small body of a large commit reads no more than that."""


class SegmentPart:
    """The batches of a commit that lie in one segment.

    Attributes:
        records: as the footers of the journal have them (`ROW`), one after the other.
        accounts: released messages by segment; a key with 0 is a segment that is only pinned.
        bodies: each behind its checksum; the stream of the segment from ``body_start`` on.
    """

    def __init__(self, segment: int, first_batch: int, body_start: int) -> None:
        self.segment = segment
        self.first_batch = first_batch
        self.last_batch = first_batch
        self.stored = 0
        self.accounts: dict[int, int] = {}
        self.records: list[bytes] = []
        self.body_start = body_start
        self.body_end = body_start
        self.bodies: list[bytes] = []
        self._seed = seed_of(segment)

    def add(self, batch: Batch) -> tuple[int, dict[int, int]]:
        """Takes a batch and fills its homes; its bytes without bodies, and the messages that it releases."""
        position = batch.position
        if batch.sole:
            rows = self._row(position, batch.meta, batch.body)
        else:
            if batch.stored and batch.released:
                for _, home in batch.stored:
                    home.segment = self.segment  # it may be released by the same batch
            rows = b"".join([self._row(position, *pair) for pair in zip(batch.metas, batch.bodies, strict=True)])
        accounts = collect_accounts(batch)
        stored = batch.stored_count
        if stored:
            fill_homes(batch, rows, self.segment)
            self.stored += stored
        if accounts:
            own = self.accounts
            for segment, released in accounts.items():
                own[segment] = own.get(segment, 0) + released
        self.records.append(rows)
        self.last_batch = position
        return len(rows), accounts

    def _row(self, position: int, meta: bytes, body: bytes) -> bytes:
        if not body:
            return ROW.pack(position, len(meta), 0, 0) + meta
        offset = self.body_end + CRC_SIZE
        self.bodies.append(U32.pack(crc32c(body, self._seed)))
        self.bodies.append(body)
        self.body_end = offset + len(body)
        return ROW.pack(position, len(meta), len(body), offset) + meta

    def packed_records(self) -> bytes:
        """The column of records, behind its checksum."""
        records = b"".join(self.records)
        return U32.pack(crc32c(records, self._seed)) + records

    def packed_accounts(self) -> bytes:
        return pack_accounts(self.accounts)

    def contents(self) -> list[tuple[int, bytes]]:
        """The rows of bodies: where each begins."""
        if not self.bodies:
            return []
        content = b"".join(self.bodies)
        size = len(content)
        return [
            (self.body_start + start, content[start : start + MOST_CONTENT_BYTES])
            for start in range(0, size, MOST_CONTENT_BYTES)
        ]

    def body(self, offset: int, size: int) -> bytes | None:
        """One of its bodies; None when it is not here."""
        if not self.body_start <= offset < self.body_end:
            return None
        at = offset - self.body_start
        return b"".join(self.bodies)[at : at + size]


class CommitGroup:
    """What came since the last commit was handed over.

    Attributes:
        last_batch: its newest.
        begun: segments that begin in it, and the last batch before each.
        freed: segments committed before that nothing needs once it is committed.
        garbage: of ``freed`` and ``begun``: their rows may be deleted afterwards.
        state: position and content of the engine's state, if it is a new one.
    """

    def __init__(self) -> None:
        self.parts: list[SegmentPart] = []
        self.last_batch = 0
        self.begun: dict[int, int] = {}
        self.freed: list[int] = []
        self.garbage: list[int] = []
        self.state: tuple[int, bytes] | None = None
        self.size_bytes = 0

    @property
    def changes_segments(self) -> bool:
        """Whether it takes more than one row of records and one of bodies."""
        return bool(
            len(self.parts) != 1
            or self.begun
            or self.freed
            or self.state is not None
            or self.parts[0].body_end - self.parts[0].body_start > MOST_CONTENT_BYTES
        )

    def free(self, segments: list[int]) -> None:
        """Nothing needs these segments once the state in this group holds."""
        for number in segments:
            self.garbage.append(number)
            if number in self.begun:
                del self.begun[number]
                self.parts = [part for part in self.parts if part.segment != number]
            else:
                self.freed.append(number)


def body_of(content: bytes, at: int, size: int, segment: int) -> bytes | None:
    """The body of ``size`` bytes at ``at``, behind its checksum; None when they do not agree."""
    body = content[at : at + size]
    if (
        at < CRC_SIZE
        or len(body) != size
        or U32.unpack_from(content, at - CRC_SIZE)[0] != crc32c(body, seed_of(segment))
    ):
        return None
    return body or NO_BODY


def checked_records(column: bytes, segment: int) -> bytes | None:
    """What `SegmentPart.packed_records` packed; None when it is damaged."""
    records = column[CRC_SIZE:]
    if len(column) < CRC_SIZE or U32.unpack_from(column)[0] != crc32c(records, seed_of(segment)):
        return None
    return records
