"""The files of segments that are open, and which of them a sync has to cover."""

from delosmq.storage.journal.files import Files
from delosmq.storage.journal.segments import CLOSED, Segment


class SegmentHandles:
    """Opens and closes the files of segments."""

    def __init__(self, files: Files) -> None:
        self._files = files
        # In the order in which they were first written to since the last sync.
        self._unsynced: dict[int, None] = {}
        self._reading: Segment | None = None

    def open(self, segment: Segment) -> None:
        segment.handle = self._files.open(segment.name)

    def for_reading(self, segment: Segment) -> int:
        """A handle for reading; of the segments no longer written one stays open, the last one read."""
        if segment.handle == CLOSED:
            if self._reading is not None and self._reading is not segment:
                self.close(self._reading)
            self.open(segment)
            self._reading = segment
        return segment.handle

    def close(self, segment: Segment) -> None:
        """May be repeated. What was written to it and not synced is for another handle to sync."""
        if segment.handle != CLOSED:
            self._unsynced.pop(segment.handle, None)
            self._files.close(segment.handle)
            segment.handle = CLOSED
        if self._reading is segment:
            self._reading = None

    def written(self, handle: int) -> None:
        """Something was written to it, which the next sync has to cover."""
        self._unsynced[handle] = None

    def take_unsynced(self) -> list[int]:
        """The files that the sync asked for now has to cover."""
        handles = list(self._unsynced)
        self._unsynced.clear()
        return handles

    def sync_now(self) -> None:
        """Returns when everything written is on the disk. Raises OSError."""
        for handle in self.take_unsynced():
            self._files.fdatasync(handle)
