"""Recovery of a journal at start: where the valid part ends, and whether that is a crash or a damage.

The rules and why they are safe stand in docs/storage-format.md, "Recovery".
"""

import logging
from collections.abc import Callable
from typing import Final

from delosmq.model.errors import StorageError
from delosmq.storage.journal.files import Files
from delosmq.storage.journal.manifest import MANIFEST_NAME, RESTORE, Manifest, Sealed, load
from delosmq.storage.journal.records import DATA_START, FORMAT_VERSION
from delosmq.storage.journal.recovery.first_format import FirstFormat
from delosmq.storage.journal.recovery.scan import DAMAGED, MARK_BYTES, MISSING, Reading, Scan, torn_tail
from delosmq.storage.journal.spares import file_name, slot_of

DAMAGED_SUFFIX: Final = ".damaged"
"""Of a journal file that was gone without: not read again, nor removed."""


class Recovery(Reading):
    """One pass over a journal at start.

    Args:
        accept_loss: an operator has asked to go on without what is missing or damaged; each loss is told.

    Attributes:
        manifest: None for a journal that has had none.
        position: of the last batch; later ones get higher positions than any that was ever on the disk.
        highest_number: no segment of this journal has a higher one.
        lossy: something was lost, and the operator goes on without it.
    """

    def __init__(
        self,
        files: Files,
        node_id: bytes,
        seed_of: Callable[[int], int],
        logger: logging.Logger,
        *,
        accept_loss: bool = False,
    ) -> None:
        self._accept_loss = accept_loss
        self.lossy = False
        super().__init__(files, node_id, seed_of, logger)
        self._later: dict[int, Scan] = {}
        self.manifest: Manifest | None = None
        self.position = 0
        self.highest_number = max(self.headers, default=0)

    def read(self) -> None:
        """Decides what counts.

        Raises:
            StorageError: something that was synced is missing or damaged; another node's or a foreign file.
        """
        try:
            manifest = load(self.files, self._node_id)
            if manifest is None and self.numbers(FORMAT_VERSION):
                raise StorageError(
                    "DMQ3031", f"{self.files.path(MANIFEST_NAME)}: missing, it says which segments count: {RESTORE}"
                )
        except StorageError as error:
            self.lose(error)
            self._decide_without()
            return
        self.manifest = manifest
        if manifest is None or manifest.opened == 0:
            FirstFormat(self).decide()
            self.position = 0 if self.tail is None else self.tail.position
            return
        self.highest_number = max(self.highest_number, manifest.opened)
        self._decide(manifest)

    def lose(self, error: StorageError, damaged: str = "") -> None:
        """What can't be had: the start ends here, unless the operator goes on without it. A file that is ``damaged``
        within is kept under another name: later segments say how many of its messages were removed, not which, so what
        is left of it can't be used."""
        if not self._accept_loss:
            raise error
        self.logger.error(
            "DMQ3032: going on without it, as --accept-loss says; messages may be lost, and acknowledged ones may "
            f"come back: {error}"
        )
        self.lossy = True
        if damaged:
            self.files.rename(damaged, damaged + DAMAGED_SUFFIX)
            self.names.remove(damaged)

    def _unsettled(self) -> list[str]:
        # The manifest besides: a process may have ended between its change and its sync, and files are used again on
        # its word.
        return [*super()._unsettled(), *([MANIFEST_NAME] if MANIFEST_NAME in self.files.names() else [])]

    def _decide(self, manifest: Manifest) -> None:
        self.evidence = manifest.synced
        for one in manifest.sealed.values():
            if one.number in self.headers:
                self.listed.append((one.number, one.end, one.position))
            else:
                self.lose(self._missing(one.number, one.file, f"held batches up to {one.position}"))
        self._scan_later(manifest.opened)
        tail = self._find_opened(manifest)
        if tail is None:
            # What was sealed last has a state, too.
            number, end, _ = self.listed.pop() if self.listed else (0, 0, 0)
            self.tail = self.scan(number, end) if number else None
        else:
            self.scans[tail.header.number] = tail
            while (after := self._successor(tail)) is not None:
                self.listed.append((tail.header.number, tail.end, tail.position))
                self.scans[after.header.number] = tail = after
            self.tail = tail
        self._judge()

    def _scan_later(self, opened: int) -> None:
        """Segments that were begun after the manifest was last written: nothing in them has been confirmed, and what
        they know of earlier ones counts."""
        for number in self.numbers(FORMAT_VERSION):
            if number <= opened or not self._is_begun(number):
                continue
            scan = self.scan(number)
            self._later[number] = scan
            self.evidence = max(self.evidence, scan.synced)

    def _is_begun(self, number: int) -> bool:
        name, header = self.headers[number]
        handle = self.files.open(name)
        try:
            start = self.files.pread(handle, MARK_BYTES, DATA_START)
        finally:
            self.files.close(handle)
        return start == header.mark.to_bytes(MARK_BYTES, "little")

    def _successor(self, tail: Scan) -> Scan | None:
        for number, scan in self._later.items():
            if scan.begun and scan.previous == tail.header.number and scan.base == tail.position:
                return self._later.pop(number)
        return None

    def _find_opened(self, manifest: Manifest) -> Scan | None:
        """The segment that the manifest calls the newest one: its beginning has been on the disk."""
        number = manifest.opened
        if number not in self.headers:
            self.lose(self._missing(number, manifest.file, f"may have held confirmed batches after {manifest.base}"))
            return None
        name, header = self.headers[number]
        size = self._size(name)
        scan = self.scan(number)
        self.evidence = max(self.evidence, scan.synced)
        if not scan.begun or scan.base != manifest.base:
            self.lose(
                StorageError(
                    DAMAGED,
                    f"{self.files.path(name)}: offset {DATA_START}: damaged; the segment was begun and synced, and may"
                    f" have held confirmed batches after {manifest.base}: {RESTORE}",
                )
            )
            return None
        if size < header.size_bytes:
            self.lose(
                StorageError(
                    "DMQ3033",
                    f"{self.files.path(name)}: {size} bytes long instead of {header.size_bytes}; confirmed batches"
                    f" after {scan.position} may be missing: {RESTORE}",
                )
            )
        return scan

    def _size(self, name: str) -> int:
        handle = self.files.open(name)
        try:
            return self.files.size(handle)
        finally:
            self.files.close(handle)

    def _missing(self, number: int, file: int, held: str) -> StorageError:
        name = file_name(file)
        if name not in self.names:
            found = "the file is missing"
        elif (size := self._size(name)) == 0:
            found = "the file is empty"
        else:
            other = next((str(one) for one, (where, _) in self.headers.items() if where == name), None)
            found = f"it holds segment {other}" if other else f"its {size} bytes begin without a header"
        return StorageError(
            MISSING,
            f"{self.files.path(name)}: segment {number} is in no file of this directory, and {held};"
            f" {found}: {RESTORE}",
        )

    def _judge(self) -> None:
        tail = self.tail
        position = base = 0
        name, offset, dropped, broken = MANIFEST_NAME, 0, 0, False
        if tail is not None:
            position, base = tail.position, tail.base
            name, offset, dropped, broken = tail.name, tail.end, tail.dropped, tail.broken
        self.position = max(position, self.evidence)
        path = self.files.path(name)
        if position < self.evidence:
            self.lose(
                StorageError(
                    DAMAGED,
                    f"{path}: offset {offset}: damaged; batch {position + 1} can't be read though batch {self.evidence}"
                    f" was on the disk: {RESTORE}",
                )
            )
        elif broken or self._later:
            dropped += sum(max(0, scan.position - max(scan.base, base)) for scan in self._later.values())
            self.logger.warning(torn_tail(path, offset, position, dropped, self.evidence))

    def _decide_without(self) -> None:
        """Without a manifest: whatever is whole counts, from the newest segment down."""
        newest = 0
        for number in sorted(self.headers, reverse=True):
            if not self._is_begun(number):
                continue
            scan = self.scan(number)
            self.evidence = max(self.evidence, scan.synced)
            if self.tail is None:
                if scan.begun:
                    newest = scan.base
                    self.tail = self.scans[number] = scan
                continue
            name, header = self.headers[number]
            footer = self.read_footer(name, header)
            end, position = (scan.end, scan.position) if footer is None else (footer.end, footer.position)
            if position > newest or not (scan.begun or footer):
                continue  # what an earlier crash had left behind
            if footer is None and position != newest:
                # It may have gone on: it is lost when it is read.
                position = newest
            newest = scan.base if scan.begun else position
            self.listed.append((number, end, position))
        self.listed.reverse()
        self.manifest = manifest = Manifest(self._node_id, 0)
        for number, end, position in self.listed:
            manifest.sealed[number] = Sealed(number, slot_of(self.headers[number][0]), end, position)
        if self.tail is not None:
            manifest.opened, manifest.base = self.tail.header.number, self.tail.base
            manifest.file = slot_of(self.tail.name)
        self.position = max(self.evidence, 0 if self.tail is None else self.tail.position)
