"""Writing the footers of sealed segments, in slices, so that the loop never writes megabytes at once."""

from collections import deque
from typing import Final

from crc32c import crc32c

from delosmq.storage.journal.files import Files, write_all
from delosmq.storage.journal.records import ACCOUNT_SIZE, TRAILER_SIZE, Footer, encode_trailer
from delosmq.storage.journal.segments import CLOSED, Segment

SLICE_BYTES: Final = 256 * 1024
"""Copied to the page cache in about 0.1 ms."""


class _PendingFooter:
    def __init__(self, segment: Segment, next_segment: int) -> None:
        self.segment = segment
        self.next_segment = next_segment
        self.written = 0
        self.checksum = segment.seed


class FooterWriter:
    """Footers still to be written. Until the trailer stands there is no footer, and a restart reads the blocks."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._waiting: deque[_PendingFooter] = deque()
        self._finished: list[Segment] = []

    @property
    def waiting(self) -> bool:
        return bool(self._waiting)

    def add(self, segment: Segment, next_segment: int) -> None:
        """Takes over the rows of a sealed segment."""
        self._waiting.append(_PendingFooter(segment, next_segment))

    def remove(self, segments: list[Segment]) -> None:
        """A freed segment needs no footer."""
        gone = {segment.number for segment in segments}
        self._waiting = deque(pending for pending in self._waiting if pending.segment.number not in gone)
        self._finished = [segment for segment in self._finished if segment.number not in gone]

    def trickle(self, synced: int) -> int:
        """Writes the next slice; returns the handle to sync when a footer is complete, else `CLOSED`."""
        pending = self._waiting[0]
        # Behind the next roll there is no reason to hurry, but a second one waiting would pile up.
        size = SLICE_BYTES if len(self._waiting) == 1 else len(pending.segment.rows)
        if not self._write_slice(pending, size, synced):
            return CLOSED
        self._waiting.popleft()
        pending.segment.rows = bytearray()
        self._finished.append(pending.segment)
        return pending.segment.handle

    def take_finished(self) -> list[Segment]:
        """Segments with a footer that the sync now asked for covers: nothing is written to them any more."""
        finished = self._finished
        self._finished = []
        return finished

    def finish_short(self, segment: Segment, next_segment: int, synced: int) -> None:
        """Writes the footer right behind the blocks and cuts the file there: what a restart left half empty."""
        end = segment.end + len(segment.rows) + ACCOUNT_SIZE * len(segment.accounts) + TRAILER_SIZE
        size = self._files.size(segment.handle)
        if end < size:
            self._files.truncate(segment.handle, end)
        pending = _PendingFooter(segment, next_segment)
        self._write_slice(pending, len(segment.rows), synced)
        segment.rows = bytearray()

    def _write_slice(self, pending: _PendingFooter, size: int, synced: int) -> bool:
        segment = pending.segment
        content = bytes(segment.rows[pending.written : pending.written + size])
        accounts_size = ACCOUNT_SIZE * len(segment.accounts)
        start = self._files.size(segment.handle) - TRAILER_SIZE - accounts_size - len(segment.rows)
        pending.checksum = crc32c(content, pending.checksum)
        parts = [content]
        complete = pending.written + len(content) == len(segment.rows)
        if complete:
            footer = Footer(segment.end, segment.position, synced, pending.next_segment)
            footer.stored = segment.stored
            footer.accounts = segment.accounts
            footer.row_count = segment.row_count
            parts.append(encode_trailer(footer, pending.checksum, len(segment.rows), segment.mark))
        write_all(self._files, segment.handle, parts, start + pending.written)
        pending.written += len(content)
        return complete
