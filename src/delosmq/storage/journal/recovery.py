"""Reading a journal back: which segments count, where the valid part ends, and whether that is a crash or a damage.

The rules and why they are safe stand in docs/storage-format.md, "Recovery".
"""

import logging
from collections.abc import Callable

from delosmq.engine.log import Replay
from delosmq.model.errors import StorageError
from delosmq.model.ids import Position
from delosmq.storage.journal.files import Files, read_header
from delosmq.storage.journal.records import (
    BATCH,
    DATA_START,
    FILE_HEADER_SIZE,
    FORMAT_MAGIC,
    FORMAT_VERSION,
    LIVE,
    STATE,
    TRAILER_SIZE,
    Block,
    FileHeader,
    Footer,
    decode_block,
    decode_file_header,
    decode_footer,
    decode_list,
    decode_state_head,
    replay_rows,
    trailer_extent,
)
from delosmq.storage.journal.spares import FILE_NAME

MARK_BYTES = 8


class Scan:
    """What the blocks of one segment say.

    Attributes:
        base: the last position before this segment.
        state, state_position: the newest state block of the run; a state of None says that there was none so far.
        end: behind the last block of the unbroken run from the start.
        position: the last one of that run.
        synced: the highest synced position any whole block of this segment speaks of, behind a damage too.
        broken: something of a block, or a whole one, lies behind ``end``.
        dropped: whole batches behind ``end``.
        listed: the newest list of live segments within the run.
    """

    def __init__(self, header: FileHeader, name: str) -> None:
        self.header = header
        self.name = name
        self.begun = False
        self.state: bytes | None = None
        self.state_position = 0
        self.listed: list[tuple[int, int, int]] = []
        self.base = 0
        self.end = DATA_START
        self.position = 0
        self.synced = 0
        self.broken = False
        self.dropped = 0
        self.stored = 0
        self.rows: list[bytes] = []
        self.row_count = 0
        self.accounts: dict[int, int] = {}

    def add(self, block: Block) -> bool:
        """Takes the next block of the run; False when it does not follow."""
        if block.kind == STATE and (not self.begun or block.position == self.position):
            self._take_state(block)
        elif not self.begun:
            return False
        elif block.kind == BATCH and block.position == self.position + 1:
            self.position = block.position
            self.stored += block.stored
            self.rows.append(block.rows)
            self.row_count += len(block.metas)
            for number, released in block.accounts.items():
                self.accounts[number] = self.accounts.get(number, 0) + released
        elif block.kind == LIVE and block.position == self.position:
            self.listed = decode_list(block.metas[0])
        else:
            return False
        self.end = block.at + block.length
        self.synced = max(self.synced, block.synced)
        return True

    def _take_state(self, block: Block) -> None:
        if not self.begun:
            self.begun = True
            self.base = self.position = block.position
        self.state_position, self.listed = decode_state_head(block.metas[0])
        self.state = block.metas[1] if len(block.metas) > 1 else None


def scan_segment(content: bytes, header: FileHeader, name: str, seed: int) -> Scan:
    """Reads the unbroken run of blocks, then looks for whole blocks behind it."""
    scan = Scan(header, name)
    at = DATA_START
    while (block := decode_block(content, at, mark=header.mark, seed=seed)) is not None and scan.add(block):
        at = scan.end
    mark = header.mark.to_bytes(MARK_BYTES, "little")
    scan.broken = content.startswith(mark, at)
    at = content.find(mark, at)
    while at >= 0:
        block = decode_block(content, at, mark=header.mark, seed=seed)
        if block is not None:
            scan.broken = True
            scan.dropped += block.kind == BATCH
            scan.synced = max(scan.synced, block.synced)
        at = content.find(mark, at + (1 if block is None else block.length))
    return scan


class Part:
    """A sealed segment that counts, as it was replayed."""

    def __init__(self, header: FileHeader, name: str, end: int, position: int) -> None:
        self.header = header
        self.name = name
        self.end = end
        self.position = position
        self.stored = 0
        self.accounts: dict[int, int] = {}
        self.rows_size = 0
        self.row_count = 0


class Recovery:
    """One pass over a journal at start.

    Attributes:
        names: all journal files.
        parts: the sealed segments that count, oldest first.
        tail: the newest segment that counts; None for an empty journal.
        highest_number: no segment of this journal has a higher one.
    """

    def __init__(self, files: Files, node_id: bytes, seed_of: Callable[[int], int], logger: logging.Logger) -> None:
        self._files = files
        self._node_id = node_id
        self._seed_of = seed_of
        self._logger = logger
        self._headers: dict[int, tuple[str, FileHeader]] = {}
        self._scans: dict[int, Scan] = {}
        self._evidence = 0
        self._damage: tuple[str, int, int] | None = None
        self._lost = 0
        self.names: list[str] = []
        self.parts: list[Part] = []
        self.tail: Scan | None = None
        self.highest_number = 0

    def read(self) -> None:
        """Decides what counts.

        Raises:
            StorageError: damage at or below the highest position known to be synced; another node's or a foreign file.
        """
        self.names = sorted(name for name in self._files.names() if FILE_NAME.fullmatch(name))
        for name in self.names:
            self._read_header(name)
        self.highest_number = max(self._headers, default=0)
        for number in sorted(self._headers, reverse=True):
            scan = self._scan_candidate(number)
            if scan is None:
                continue
            if self._complete(scan):
                self.tail = scan
                break
            self._lost += scan.position - scan.base
        self._look_behind()
        self._judge()

    def settle(self) -> None:
        """Syncs what was read but isn't known to be synced: after a mere process crash it lay in the page cache."""
        for scan in self._scans.values():
            handle = self._files.open(scan.name)
            try:
                self._files.fdatasync(handle)
            finally:
                self._files.close(handle)

    def replay(self, replay: Replay) -> None:
        """Hands out state and records, oldest first."""
        tail = self.tail
        if tail is None:
            return
        if tail.state is not None:
            replay.replay_state(Position(tail.state_position), tail.state)
        for number, end, position in tail.listed:
            name, header = self._headers[number]
            part = Part(header, name, end, position)
            rows = self._read_part(part)
            part.rows_size = len(rows)
            self.parts.append(part)
            replay_rows(replay, rows, number)
        for rows in tail.rows:
            replay_rows(replay, rows, tail.header.number)

    def _read_header(self, name: str) -> None:
        content = read_header(self._files, name)
        header = decode_file_header(content)
        path = self._files.path(name)
        if header is None:
            version = int.from_bytes(content[8:12], "little")
            if content.startswith(FORMAT_MAGIC) and version != FORMAT_VERSION:
                raise StorageError(
                    "DMQ3006", f"{path}: journal format {version} is unknown here; start the version that wrote it"
                )
            if content.strip(b"\0"):
                raise StorageError(
                    "DMQ3007",
                    f"{path}: offset 0: no valid journal header; if the file isn't this broker's, move it away, "
                    "else restore the journal directory from a backup",
                )
            return
        if header.node_id != self._node_id:
            raise StorageError(
                "DMQ3008",
                f"{path}: belongs to node {header.node_id.hex()}, this is node {self._node_id.hex()}; "
                "give each broker a journal directory of its own",
            )
        if header.number in self._headers:
            raise StorageError(
                "DMQ3012",
                f"{path}: holds segment {header.number}, and so does {self._headers[header.number][0]}; "
                "move the file away that is a copy",
            )
        self._headers[header.number] = (name, header)

    def _content(self, name: str, size_bytes: int = -1) -> bytes:
        handle = self._files.open(name)
        try:
            return self._files.pread(handle, self._files.size(handle) if size_bytes < 0 else size_bytes, 0)
        finally:
            self._files.close(handle)

    def _scan(self, number: int, limit: int = -1) -> Scan:
        name, header = self._headers[number]
        return scan_segment(self._content(name, limit), header, name, self._seed_of(number))

    def _scan_candidate(self, number: int) -> Scan | None:
        """The scan of a segment that was begun; None for one whose state block isn't there."""
        name, header = self._headers[number]
        handle = self._files.open(name)
        try:
            start = self._files.pread(handle, MARK_BYTES, DATA_START)
        finally:
            self._files.close(handle)
        if start != header.mark.to_bytes(MARK_BYTES, "little"):
            return None
        return self._take_evidence(number)

    def _take_evidence(self, number: int) -> Scan | None:
        scan = self._scan(number)
        self._evidence = max(self._evidence, scan.synced)
        if not scan.begun:
            self._damage = (scan.name, DATA_START, scan.dropped)
            return None
        self._scans[number] = scan
        if scan.broken:
            self._damage = (scan.name, scan.end, scan.dropped)
        return scan

    def _complete(self, candidate: Scan) -> bool:
        """Whether all that ``candidate`` builds on is there. If not it was never synced, or there is damage."""
        for number, end, position in candidate.listed:
            if number not in self._headers:
                raise StorageError(
                    "DMQ3009",
                    f"{self._files.path(candidate.name)}: offset {DATA_START}: names segment {number}, which is in no "
                    "file of this directory; restore the journal directory from a backup",
                )
            if position <= self._evidence:
                continue
            scan = self._scan(number, end)
            self._evidence = max(self._evidence, scan.synced)
            if scan.end != end or scan.position != position:
                self._damage = (scan.name, scan.end, scan.dropped)
                return False
            self._scans[number] = scan
        return True

    def _look_behind(self) -> None:
        """The footer of the tail may name a successor whose state block is damaged: what does that one know?"""
        if self.tail is None:
            return
        header = self.tail.header
        footer = self._read_footer(self.tail.name, header)
        # A successor that was read already has said what it knows.
        if footer is None or footer.next_segment not in self._headers or footer.next_segment in self._scans:
            return
        if footer.next_segment > header.number:
            self._take_evidence(footer.next_segment)

    def _judge(self) -> None:
        position = 0 if self.tail is None else self.tail.position
        if self._damage is None and position >= self._evidence:
            return
        name, offset, dropped = self._damage or (self.names[-1] if self.tail is None else self.tail.name, DATA_START, 0)
        path = self._files.path(name)
        if position < self._evidence:
            raise StorageError(
                "DMQ3010",
                f"{path}: offset {offset}: damaged; batch {position + 1} can't be read though batch {self._evidence} "
                "was on the disk; restore the journal directory from a backup",
            )
        self._logger.warning(
            "DMQ3011: %s: offset %d: torn tail after batch %d cut off, %d later batches dropped; nothing confirmed is "
            "lost, nothing to do",
            path,
            offset,
            position,
            dropped + self._lost,
        )

    def _read_part(self, part: Part) -> bytes:
        number = part.header.number
        scan = self._scans.pop(number, None)
        if scan is None:
            footer = self._read_footer(part.name, part.header)
            if footer is not None and footer.end == part.end and footer.position == part.position:
                part.stored = footer.stored
                part.accounts = footer.accounts
                part.row_count = footer.row_count
                return footer.rows
            scan = self._scan(number, part.end)
        if scan.end != part.end or scan.position != part.position:
            raise StorageError(
                "DMQ3010",
                f"{self._files.path(part.name)}: offset {scan.end}: damaged; batches {scan.position + 1} to "
                f"{part.position} can't be read though they were on the disk; restore the journal directory from a "
                "backup",
            )
        part.stored = scan.stored
        part.accounts = scan.accounts
        part.row_count = scan.row_count
        return b"".join(scan.rows)

    def _read_footer(self, name: str, header: FileHeader) -> Footer | None:
        handle = self._files.open(name)
        try:
            size = self._files.size(handle)
            trailer = self._files.pread(handle, TRAILER_SIZE, max(0, size - TRAILER_SIZE))
            extent = trailer_extent(trailer, header.mark)
            if extent == 0 or extent > size - FILE_HEADER_SIZE:
                return None
            return decode_footer(
                self._files.pread(handle, extent, size - extent), header.mark, self._seed_of(header.number)
            )
        finally:
            self._files.close(handle)
