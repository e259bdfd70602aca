"""The open segment: batches become blocks, wait in memory, and are handed to the operating system at once.

Format and crash arguments: docs/storage-format.md.
"""

from delosmq.engine.log.log import NO_BODY, Batch
from delosmq.model.errors import StorageError
from delosmq.model.ids import Position
from delosmq.storage.journal.files import Files, write_all
from delosmq.storage.journal.records import (
    BATCH,
    DATA_START,
    STATE,
    Frame,
    encode_state_head,
    fill_homes,
    frame_batch,
)
from delosmq.storage.journal.segment_handles import SegmentHandles
from delosmq.storage.journal.segments import Ledger, Segment
from delosmq.storage.journal.spares import STATE_SHARE
from delosmq.storage.journal.status import JournalStatus


class OpenSegment:
    """The segment that is appended to.

    Attributes:
        segment: what is known of it.
        ledger: all that count, this one too.
        handles: of their files.
        status: whether the journal runs.
        last: position of the newest batch.
        written: of the newest one that the operating system has.
        synced: of the newest one that is known to be on the disk; each block says it.
    """

    def __init__(self, files: Files, ledger: Ledger) -> None:
        self._files = files
        self._parts: list[bytes] = []
        self._written_end = 0
        self.segment = Segment("", 0, mark=0, seed=0, size_bytes=0, base=0)
        self.ledger = ledger
        self.handles = SegmentHandles(files)
        self.status = JournalStatus(files)
        self.last = Position(0)
        self.written = Position(0)
        self.synced = Position(0)

    def begin(self, segment: Segment) -> None:
        """Goes on in another one; everything is written to the one before."""
        self.handles.open(segment)
        self.segment = segment
        self._written_end = segment.end
        self.ledger.add(segment)

    def frame(self, batch: Batch) -> Frame:
        """The batch as `take` would append it now."""
        segment = self.segment
        if not batch.sole and batch.stored and batch.released:
            for _, home in batch.stored:
                home.segment = segment.number  # it may be released by the same batch
        return frame_batch(batch, BATCH, segment.end, synced=self.synced, mark=segment.mark, seed=segment.seed)

    def take(self, batch: Batch, frame: Frame) -> None:
        """Appends a batch; it is written with the next `write`."""
        segment = self.segment
        stored = batch.stored_count
        if stored:
            fill_homes(batch, frame.rows, segment.number)
            self.ledger.store(segment, stored)
        if frame.accounts:
            self.ledger.account(segment, frame.accounts)
        self.last = segment.position = batch.position
        segment.end += frame.length
        segment.room -= frame.cost
        segment.rows += frame.rows
        segment.row_count += batch.record_count
        self._parts += frame.parts

    def append_state(self, state: bytes | None, state_position: Position, previous: int) -> None:
        """A state block: the engine's state as of ``state_position``, and the number of the segment before."""
        segment = self.segment
        block = Batch()
        block.position = self.last
        block.metas[:] = [encode_state_head(state_position, previous)]
        if state is not None:
            block.metas.append(state)
        block.bodies[:] = [NO_BODY] * len(block.metas)
        frame = frame_batch(block, STATE, segment.end, synced=self.synced, mark=segment.mark, seed=segment.seed)
        begins = segment.end == DATA_START
        if segment.room < frame.length or (begins and frame.length > segment.size_bytes // STATE_SHARE):
            self.fail(
                StorageError(
                    "DMQ3022",
                    f"{self._files.path(segment.name)}: the broker's state takes {frame.length} bytes of a journal "
                    f"file of {segment.size_bytes} bytes, more than any has room for; delete queues or lease groups",
                )
            )
            return
        segment.end += frame.length
        segment.room -= frame.length
        self._parts += frame.parts

    def write(self) -> None:
        """Hands everything appended to the operating system."""
        parts = self._parts
        if not parts or self.status.failure is not None:
            return
        segment = self.segment
        try:
            write_all(self._files, segment.handle, parts, self._written_end)
        except OSError as error:
            self.fail(error)
            return
        self._parts = []
        self._written_end = segment.end
        self.written = self.last
        self.handles.written(segment.handle)

    def write_through(self, end: int) -> None:
        """Sees to it that what lies before ``end`` can be read from the file."""
        if end > self._written_end:
            self.write()

    def fail(self, error: OSError | StorageError) -> None:
        """Ends the journal."""
        self.status.fail(error, self.segment.name)

    @property
    def path(self) -> str:
        """Of its file, for error messages."""
        return self._files.path(self.segment.name)
