"""Reading the files of a journal: headers, blocks, footers."""

import logging
from collections.abc import Callable

from delosmq.engine.log.ports import Replay
from delosmq.model.errors import StorageError
from delosmq.model.ids import Position
from delosmq.storage.journal.files import Files, read_header
from delosmq.storage.journal.manifest import RESTORE, UNKNOWN_FORMAT, foreign
from delosmq.storage.journal.records import (
    BATCH,
    DATA_START,
    FILE_HEADER_SIZE,
    FIRST_FORMAT,
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
    decode_first_state_head,
    decode_footer,
    decode_list,
    decode_state_head,
    replay_rows,
    trailer_extent,
)
from delosmq.storage.journal.spares import FILE_NAME

MARK_BYTES = 8
PIECE_BYTES = 32 * 1024
ZERO_PIECE = bytes(PIECE_BYTES)
MISSING = "DMQ3009"
DAMAGED = "DMQ3010"


def torn_tail(path: str, offset: int, position: int, dropped: int, evidence: int) -> str:
    """What the log says of a segment that ends amid a batch."""
    return (
        f"DMQ3011: {path}: offset {offset}: torn tail after batch {position} cut off, {dropped} later batches dropped."
        " A crash leaves this of what was not synced yet; everything known to have been synced (up to batch"
        f" {evidence}) is there"
    )


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
        previous: the segment before this one; 0 for none.
        listed: first format: the newest list of live segments within the run.
    """

    def __init__(self, header: FileHeader, name: str) -> None:
        self.header = header
        self.name = name
        self.begun = False
        self.state: bytes | None = None
        self.state_position = 0
        self.previous = 0
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
        elif block.kind == LIVE and block.position == self.position and self.header.version == FIRST_FORMAT:
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
        if self.header.version == FIRST_FORMAT:
            self.state_position, self.listed = decode_first_state_head(block.metas[0])
        else:
            self.state_position, self.previous = decode_state_head(block.metas[0])
        self.state = block.metas[1] if len(block.metas) > 1 else None


def scan_segment(content: bytes, header: FileHeader, name: str, seed: int) -> Scan:
    """Reads the unbroken run of blocks, then looks for whole blocks behind it."""
    scan = Scan(header, name)
    at = DATA_START
    while (block := decode_block(content, at, mark=header.mark, seed=seed)) is not None and scan.add(block):
        at = scan.end
    mark = _mark_bytes(header)
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


def _mark_bytes(header: FileHeader) -> bytes:
    return header.mark.to_bytes(MARK_BYTES, "little")


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


class Reading:
    """The files of a journal at start, and what of them counts, once that is decided.

    Attributes:
        names: all journal files.
        headers: number -> file and header, of all formats.
        scans: segments with blocks that were read, and that are not known to be synced.
        evidence: the highest position that anything read says was synced.
        listed: number, end and last position of the sealed segments that count, oldest first.
        tail: the newest segment that counts; None for an empty journal.
        parts: the sealed segments as they were replayed.
    """

    def __init__(self, files: Files, node_id: bytes, seed_of: Callable[[int], int], logger: logging.Logger) -> None:
        self.files = files
        self.logger = logger
        self._node_id = node_id
        self._seed_of = seed_of
        self.headers: dict[int, tuple[str, FileHeader]] = {}
        self.scans: dict[int, Scan] = {}
        self.evidence = 0
        self.names = sorted(name for name in files.names() if FILE_NAME.fullmatch(name))
        self.parts: list[Part] = []
        self.listed: list[tuple[int, int, int]] = []
        self.tail: Scan | None = None
        for name in self.names:
            self._read_header(name)

    def lose(self, error: StorageError, damaged: str = "") -> None:
        """What can't be had: the start ends here. ``damaged`` is a file that is lost as a whole."""
        raise error

    def numbers(self, version: int) -> list[int]:
        """Segments of one format, newest first."""
        return sorted(
            (number for number, (_, header) in self.headers.items() if header.version == version), reverse=True
        )

    def settle(self) -> None:
        """Syncs what was read but isn't known to be synced, and the names of files: after a mere process crash it lay
        in the page cache."""
        self.files.sync_all(self._unsettled())

    def _unsettled(self) -> list[str]:
        """The files of which that is so."""
        return [scan.name for scan in self.scans.values()]

    def replay(self, replay: Replay) -> None:
        """Yields state and records, oldest first."""
        tail = self.tail
        if tail is None:
            return
        if tail.state is not None:
            replay.replay_state(Position(tail.state_position), tail.state)
        for number, end, position in self.listed:
            name, header = self.headers[number]
            part = Part(header, name, end, position)
            rows = self._read_part(part)
            if rows is None:
                continue
            part.rows_size = len(rows)
            self.parts.append(part)
            replay_rows(replay, rows, number)
        for rows in tail.rows:
            replay_rows(replay, rows, tail.header.number)

    def _read_header(self, name: str) -> None:
        content = read_header(self.files, name)
        header = decode_file_header(content)
        path = self.files.path(name)
        if header is None:
            version = int.from_bytes(content[8:12], "little")
            if content.startswith(FORMAT_MAGIC) and version not in {FIRST_FORMAT, FORMAT_VERSION}:
                raise StorageError(
                    UNKNOWN_FORMAT, f"{path}: journal format {version} is unknown here; start the version that wrote it"
                )
            if content.startswith(FORMAT_MAGIC):
                self.lose(
                    StorageError(DAMAGED, f"{path}: offset 0: damaged; which segment it holds is not known: {RESTORE}")
                )
            elif content.strip(b"\0"):
                raise StorageError(
                    "DMQ3007",
                    f"{path}: offset 0: no valid journal header; if the file isn't this broker's, move it away, "
                    "else restore the journal directory from a backup",
                )
            return
        if header.node_id != self._node_id:
            raise foreign(path, header.node_id, self._node_id)
        if header.number in self.headers:
            raise StorageError(
                "DMQ3012",
                f"{path}: holds segment {header.number}, and so does {self.headers[header.number][0]}; "
                "move the file away that is a copy",
            )
        self.headers[header.number] = (name, header)

    def _content(self, name: str, size_bytes: int = -1) -> bytes:
        handle = self.files.open(name)
        try:
            return self.files.pread(handle, self.files.size(handle) if size_bytes < 0 else size_bytes, 0)
        finally:
            self.files.close(handle)

    def _written(self, name: str) -> bytes:
        """The content without the zeros at its end, which most of a file is that is not full."""
        used = at = 0
        handle = self.files.open(name)
        try:
            while piece := self.files.pread(handle, PIECE_BYTES, at):
                at += len(piece)
                if piece != ZERO_PIECE:
                    used = at
            # A mark that ends with zeros is whole.
            return self.files.pread(handle, used + MARK_BYTES, 0)
        finally:
            self.files.close(handle)

    def scan(self, number: int, limit: int = -1) -> Scan:
        name, header = self.headers[number]
        if limit < 0:
            content = self._written(name)
            scan = scan_segment(content, header, name, self._seed_of(number))
            if content.find(_mark_bytes(header), scan.end) < 0:
                return scan
            # A block behind the unbroken run may end with zeros.
        return scan_segment(self._content(name, limit), header, name, self._seed_of(number))

    def _read_part(self, part: Part) -> bytes | None:
        """What is to be replayed of a segment; None when it is lost."""
        number = part.header.number
        scan = self.scans.pop(number, None)
        if scan is None:
            footer = self.read_footer(part.name, part.header)
            if footer is not None and footer.end == part.end and footer.position == part.position:
                part.stored = footer.stored
                part.accounts = footer.accounts
                part.row_count = footer.row_count
                return footer.rows
            scan = self.scan(number, part.end)
        if scan.end != part.end or scan.position != part.position:
            self.lose(
                StorageError(
                    DAMAGED,
                    f"{self.files.path(part.name)}: offset {scan.end}: damaged; batches {scan.position + 1} to "
                    f"{part.position} can't be read though they were on the disk: {RESTORE}, without all of this file",
                ),
                part.name,
            )
            return None
        part.stored = scan.stored
        part.accounts = scan.accounts
        part.row_count = scan.row_count
        return b"".join(scan.rows)

    def read_footer(self, name: str, header: FileHeader) -> Footer | None:
        handle = self.files.open(name)
        try:
            size = self.files.size(handle)
            trailer = self.files.pread(handle, TRAILER_SIZE, max(0, size - TRAILER_SIZE))
            extent = trailer_extent(trailer, header.mark)
            if extent == 0 or extent > size - FILE_HEADER_SIZE:
                return None
            return decode_footer(
                self.files.pread(handle, extent, size - extent), header.mark, self._seed_of(header.number)
            )
        finally:
            self.files.close(handle)
