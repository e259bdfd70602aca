"""Reading the bodies of stored messages."""

from typing import Final

from delosmq.engine.log.log import NO_BODY
from delosmq.model.errors import InvariantError, StorageError
from delosmq.model.message import Home
from delosmq.storage.journal.files import Files
from delosmq.storage.journal.open_segment import OpenSegment
from delosmq.storage.journal.records import CRC_SIZE, checked_body
from delosmq.storage.journal.segments import Segment

READ_AHEAD_BYTES: Final = 128 * 1024
"""In one call, where more bodies are asked for than the next: of small ones hundreds lie in it."""


class StoredBodies:
    """The bodies in the segments that count."""

    def __init__(self, files: Files, opened: OpenSegment) -> None:
        self._files = files
        self._opened = opened

    def read(self, homes: list[Home]) -> list[bytes]:
        """Those at ``homes``, which are in the order of the journal.

        Raises:
            StorageError: one is damaged, or can't be read.
            InvariantError: its segment is gone.
        """
        bodies: list[bytes] = []
        segment: Segment | None = None
        window = b""
        start = end = 0
        for home in homes:
            size = home.size_bytes
            if size == 0:
                bodies.append(NO_BODY)
                continue
            front = home.offset - CRC_SIZE
            if segment is None or segment.number != home.segment or front < start or home.offset + size > end:
                segment = self._segment_of(home)
                start = front
                # What is asked for alone is read alone.
                ahead = 0 if home is homes[-1] else READ_AHEAD_BYTES
                window = self._pread(segment, start, max(size + CRC_SIZE, ahead))
                end = start + len(window)
            body = checked_body(window, front - start, size, segment.seed)
            if body is None:
                raise StorageError(
                    "DMQ3040",
                    f"{self._files.path(segment.name)}: offset {home.offset}: damaged body of {size} bytes; "
                    "restore the journal directory from a backup",
                )
            bodies.append(body)
        return bodies

    def _segment_of(self, home: Home) -> Segment:
        segment = self._opened.ledger.find(home.segment)
        if segment is None:
            raise InvariantError(
                "DMQ3021", f"segment {home.segment} is no longer there, its body at {home.offset} asked"
            )
        return segment

    def _pread(self, segment: Segment, offset: int, size_bytes: int) -> bytes:
        if segment is self._opened.segment:
            self._opened.write_through(offset + size_bytes)
        try:
            return self._files.pread(self._opened.handles.for_reading(segment), size_bytes, offset)
        except OSError as error:
            raise StorageError(
                "DMQ3016", f"{self._files.path(segment.name)}: offset {offset}: can't be read: {error}"
            ) from error
