"""The first format, which had no manifest: the newest segment with a complete list says which segments count.

Frozen: this reads what releases before the manifest wrote. The rules stand in docs/decisions/0049-manifest.md.
"""

from delosmq.model.errors import StorageError
from delosmq.storage.journal.records import DATA_START, FIRST_FORMAT
from delosmq.storage.journal.recovery.scan import DAMAGED, MARK_BYTES, MISSING, Reading, Scan, torn_tail


class FirstFormat:
    """Decides what counts of a journal that has no manifest yet."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._damage: tuple[str, int, int] | None = None
        self._lost = 0
        self._tail: Scan | None = None

    def decide(self) -> None:
        """Finds tail and list.

        Raises:
            StorageError: damage at or below the highest position known to be synced.
        """
        reading = self._reading
        for number in reading.numbers(FIRST_FORMAT):
            scan = self._scan_candidate(number)
            if scan is None:
                continue
            if self._complete(scan):
                self._tail = scan
                break
            self._lost += scan.position - scan.base
        self._look_behind()
        self._judge()
        reading.tail = self._tail
        if self._tail is not None:
            reading.listed = self._tail.listed

    def _scan_candidate(self, number: int) -> Scan | None:
        """The scan of a segment that was begun; None for one without its state block."""
        name, header = self._reading.headers[number]
        handle = self._reading.files.open(name)
        try:
            start = self._reading.files.pread(handle, MARK_BYTES, DATA_START)
        finally:
            self._reading.files.close(handle)
        if start != header.mark.to_bytes(MARK_BYTES, "little"):
            return None
        return self._take_evidence(number)

    def _take_evidence(self, number: int) -> Scan | None:
        scan = self._reading.scan(number)
        self._reading.evidence = max(self._reading.evidence, scan.synced)
        if not scan.begun:
            self._damage = (scan.name, DATA_START, scan.dropped)
            return None
        self._reading.scans[number] = scan
        if scan.broken:
            self._damage = (scan.name, scan.end, scan.dropped)
        return scan

    def _complete(self, candidate: Scan) -> bool:
        """Whether all that ``candidate`` builds on is there. If not it was never synced, or there is damage."""
        for number, end, position in candidate.listed:
            if number not in self._reading.headers:
                raise StorageError(
                    MISSING,
                    f"{self._reading.files.path(candidate.name)}: offset {DATA_START}: names segment {number}, which "
                    "is in no file of this directory; restore the journal directory from a backup",
                )
            if position <= self._reading.evidence:
                continue
            scan = self._reading.scan(number, end)
            self._reading.evidence = max(self._reading.evidence, scan.synced)
            if scan.end != end or scan.position != position:
                self._damage = (scan.name, scan.end, scan.dropped)
                return False
            self._reading.scans[number] = scan
        return True

    def _look_behind(self) -> None:
        """The footer of the tail may name a successor with a damaged state block: what does that one know?"""
        if self._tail is None:
            return
        header = self._tail.header
        footer = self._reading.read_footer(self._tail.name, header)
        # A successor that was read already has said what it knows.
        if (
            footer is None
            or footer.next_segment not in self._reading.headers
            or footer.next_segment in self._reading.scans
        ):
            return
        if footer.next_segment > header.number:
            self._take_evidence(footer.next_segment)

    def _judge(self) -> None:
        position = 0 if self._tail is None else self._tail.position
        if self._damage is None and position >= self._reading.evidence:
            return
        name, offset, dropped = self._damage or (
            self._reading.names[-1] if self._tail is None else self._tail.name,
            DATA_START,
            0,
        )
        path = self._reading.files.path(name)
        if position < self._reading.evidence:
            raise StorageError(
                DAMAGED,
                f"{path}: offset {offset}: damaged; batch {position + 1} can't be read though batch "
                f"{self._reading.evidence} was on the disk; restore the journal directory from a backup",
            )
        self._reading.logger.warning(torn_tail(path, offset, position, dropped + self._lost, self._reading.evidence))
