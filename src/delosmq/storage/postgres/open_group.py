"""The group of batches that the next commit writes, and the segments that they lie in.

Segments are accounted for as those of the journal are (docs/decisions/0005): one counts the messages that live in it,
is pinned by removals, and goes as a whole. Here it is a number in the rows, and what it holds has no fixed bound.
"""

from typing import Final

from delosmq.engine.log.log import Batch
from delosmq.engine.log.ports import StateSource
from delosmq.model.errors import InvariantError, MisuseError
from delosmq.model.ids import Position
from delosmq.storage.journal.records import DATA_START, seed_of
from delosmq.storage.journal.segments import Ledger, Segment
from delosmq.storage.postgres.commit_group import BODIES_START, CommitGroup, SegmentPart

STATE_SHARE: Final = 8
"""The state, which is written once a segment, is at most this part of what is written."""
MOST_SEGMENT_BYTES: Final = 2 * 1024**3
"""Offsets of bodies have 32 bits; a batch that begins below this ends before 4 GiB."""


class OpenGroup:
    """Takes batches.

    Args:
        segment_bytes: a segment is closed when it holds so much.

    Attributes:
        group: what is to be committed next.
        last: position of the newest batch.
        ledger: segments that count.
        segment: the open one.
        state_is_old: the state in the table is of the life before; `renew_state` replaces it.
    """

    def __init__(self, segment_bytes: int) -> None:
        self._segment_bytes = segment_bytes
        self._limit_bytes = DATA_START + segment_bytes
        self._source: StateSource | None = None
        self._body_end = BODIES_START
        self.group = CommitGroup()
        self.last = Position(0)
        self.ledger = Ledger()
        self.segment = Segment("", 0, mark=0, seed=0, size_bytes=0, base=0)
        self.state_is_old = True

    def attach(self, source: StateSource) -> None:
        self._source = source

    def begin(self, last: Position) -> None:
        """The first segment of this life, behind those in the ledger."""
        self.last = last
        self._begin_segment(max([segment.number for segment in self.ledger.all()], default=0) + 1)

    def take(self, batch: Batch) -> None:
        """Appends a batch and fills its homes."""
        if batch.position != self.last + 1:
            raise InvariantError("DMQ3064", f"batch {batch.position} does not follow batch {self.last}")
        group = self.group
        segment = self.segment
        parts = group.parts
        part = parts[-1] if parts else None
        if part is None or part.segment != segment.number:
            part = SegmentPart(segment.number, batch.position, self._body_end)
            parts.append(part)
        before = part.body_end
        size, accounts = part.add(batch)
        stored = batch.stored_count
        if stored:
            self.ledger.store(segment, stored)
        if accounts:
            self.ledger.account(segment, accounts)
        size += part.body_end - before
        self._body_end = part.body_end
        self.last = segment.position = batch.position
        segment.end += size
        segment.row_count += batch.record_count
        group.last_batch = batch.position
        group.size_bytes += size
        if segment.end >= self._limit_bytes:
            self._roll()

    def hand_over(self) -> CommitGroup:
        """The group to commit now; what comes next belongs to another one."""
        group = self.group
        group.last_batch = self.last
        self.group = CommitGroup()
        return group

    def renew_state(self) -> None:
        """Puts the engine's state into the group, and frees what the one before still covered."""
        self._write_state(self.segment)

    def victim(self, percentage: int) -> int:
        """See `Ledger.victim`."""
        return self.ledger.victim(self.segment, percentage, self._limit_bytes)

    def _roll(self) -> None:
        segment = self.segment
        segment.sealed(0, segment.row_count)
        self._write_state(None)
        self._begin_segment(segment.number + 1)

    def _begin_segment(self, number: int) -> None:
        segment = Segment(f"segment {number}", number, mark=0, seed=seed_of(number), size_bytes=0, base=self.last)
        self.segment = segment
        self.ledger.add(segment)
        self.group.begun[number] = self.last
        self._body_end = BODIES_START

    def _write_state(self, open_segment: Segment | None) -> None:
        self.state_is_old = False
        self.group.state = (self.last, self._engine_state())
        freed = self.ledger.free(open_segment, self.last)
        self.group.free([segment.number for segment in freed])

    def _engine_state(self) -> bytes:
        if self._source is None:
            raise MisuseError("DMQ3068", "a store writes the state after attach only: attach the source of the state")
        state = self._source.state()
        wanted = max(self._segment_bytes, STATE_SHARE * len(state))
        self._limit_bytes = DATA_START + min(wanted, MOST_SEGMENT_BYTES)
        return state
