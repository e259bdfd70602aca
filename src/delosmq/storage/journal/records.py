"""Framing of the journal: file headers, blocks and footers. Pure; the byte layouts are drawn in docs/storage-format.md.

All integers are little-endian and unsigned. A *mark* is a random number that each segment gets anew: every block of the
segment begins with it, so that a search for blocks behind damage isn't fooled by what a peer put into a body.
"""

import struct
from typing import Final

from crc32c import crc32c

from delosmq.engine.log.log import Batch
from delosmq.engine.log.ports import Replay
from delosmq.model.ids import Position
from delosmq.model.message import Home

FORMAT_MAGIC: Final = b"DELOSMQJ"
FORMAT_VERSION: Final = 2
FIRST_FORMAT: Final = 1
"""Without a manifest: state and list blocks name the segments that count."""
DATA_START: Final = 4096
"""Where the first block lies: the file header has a sector of its own, whatever the sector size (512 or 4,096)."""

FILE_HEADER: Final = struct.Struct("<8sIIQ16sQQ")
FILE_HEADER_SIZE: Final = 60

BATCH: Final = 1
STATE: Final = 2
LIVE: Final = 3

# mark, crc | length, position, synced, records, stored, accounts, kind
BLOCK_START: Final = struct.Struct("<QI")
BLOCK_REST: Final = struct.Struct("<IQQIIII")
BLOCK_START_SIZE: Final = 12
BLOCK_SIZE: Final = 48
# The same with one record behind it: ..., meta length, body length
BLOCK_REST_ONE: Final = struct.Struct("<IQQIIIIII")
LENGTHS: Final = struct.Struct("<II")
LENGTHS_SIZE: Final = 8
U32: Final = struct.Struct("<I")
CRC_SIZE: Final = 4
# segment, messages of it that lost their last reference with this batch
ACCOUNT: Final = struct.Struct("<QI")
ACCOUNT_SIZE: Final = 12
# position, meta length, body length, body offset (0 without a body)
ROW: Final = struct.Struct("<QIII")
ROW_SIZE: Final = 20
# mark, crc | row bytes, rows, accounts, stored, end, last position, synced, next segment
TRAILER_REST: Final = struct.Struct("<IIIIQQQQ")
TRAILER_SIZE: Final = 60
# segment, end, last position
LISTED: Final = struct.Struct("<QQQ")

STATE_POSITION: Final = struct.Struct("<Q")
# position of the state, number of the segment before
STATE_HEAD: Final = struct.Struct("<QQ")
STATE_BLOCK_SIZE: Final = BLOCK_SIZE + 2 * LENGTHS_SIZE + 16
"""Of a state block, without the state."""

NO_ACCOUNTS: Final = b""


class FileHeader:
    """What a journal file says about itself.

    Attributes:
        number: of the segment the file holds or is prepared for; never used twice in a journal.
        node_id: 16 bytes, of the broker that has the journal.
        mark: begins every block of this segment.
        version: of the format the segment is written in.
    """

    def __init__(self, number: int, node_id: bytes, mark: int, size_bytes: int, version: int = FORMAT_VERSION) -> None:
        self.version = version
        self.number = number
        self.node_id = node_id
        self.mark = mark
        self.size_bytes = size_bytes


class Frame:
    """A batch as bytes.

    Attributes:
        parts: to be written one after the other.
        length: of all parts together.
        rows: what the footer will say about the records.
        accounts: released messages by segment; a key with 0 is a segment that is only pinned.
        cost: what the batch takes of its segment, footer included, in bytes.
    """

    def __init__(self, parts: list[bytes], length: int, rows: bytes, accounts: dict[int, int]) -> None:
        self.parts = parts
        self.length = length
        self.rows = rows
        self.accounts = accounts
        self.cost = length + len(rows) + ACCOUNT_SIZE * len(accounts)


class Block:
    """A block read back.

    Attributes:
        at, length: where it lies in its file.
        synced: the highest position known to be synced when it was written.
        rows: as in a footer.
    """

    def __init__(self, at: int, length: int, kind: int, position: int, synced: int) -> None:
        self.at = at
        self.length = length
        self.kind = kind
        self.position = position
        self.synced = synced
        self.stored = 0
        self.accounts: dict[int, int] = {}
        self.rows: bytes = b""
        self.metas: list[bytes] = []
        self.bodies: list[tuple[int, int]] = []


class Footer:
    """The end of a sealed segment: its records without their bodies."""

    def __init__(self, end: int, position: int, synced: int, next_segment: int) -> None:
        self.end = end
        self.position = position
        self.synced = synced
        self.next_segment = next_segment
        self.stored = 0
        self.accounts: dict[int, int] = {}
        self.rows: bytes = b""
        self.row_count = 0


def encode_file_header(header: FileHeader) -> bytes:
    front = FILE_HEADER.pack(
        FORMAT_MAGIC, FORMAT_VERSION, 0, header.number, header.node_id, header.mark, header.size_bytes
    ).ljust(FILE_HEADER_SIZE, b"\0")
    return front + U32.pack(crc32c(front))


def decode_file_header(content: bytes) -> FileHeader | None:
    """The header, or None when ``content`` (the first 64 bytes of a file) is not a whole one of a known version."""
    if len(content) < FILE_HEADER_SIZE + CRC_SIZE:
        return None
    front = content[:FILE_HEADER_SIZE]
    if U32.unpack_from(content, FILE_HEADER_SIZE)[0] != crc32c(front):
        return None
    magic, version, _, number, node_id, mark, size_bytes = FILE_HEADER.unpack_from(front)
    if magic != FORMAT_MAGIC or version not in {FIRST_FORMAT, FORMAT_VERSION}:
        return None
    return FileHeader(number, node_id, mark, size_bytes, version)


def seed_of(number: int) -> int:
    """The start value of every checksum in segment ``number``: stale bytes of the file's former life can't pass."""
    return number & 0xFFFFFFFF


def collect_accounts(batch: Batch) -> dict[int, int]:
    """Segment -> messages of it released by ``batch``; 0 for segments of which it only removes references."""
    if batch.sole:
        target = batch.target
        # 0: a home that no store has filled.
        return {target.segment: 1 if batch.releases else 0} if target is not None and target.segment else {}
    accounts: dict[int, int] = {}
    for home in batch.targets:
        accounts[home.segment] = 0
    for home in batch.released:
        segment = home.segment
        accounts[segment] = accounts.get(segment, 0) + 1
    # Homes that no store has filled.
    accounts.pop(0, None)
    return accounts


def frame_batch(batch: Batch, kind: int, offset: int, *, synced: int, mark: int, seed: int) -> Frame:
    """The bytes of ``batch`` at ``offset``. Touches no home."""
    count = batch.record_count
    if count == 1:
        return _frame_one(batch, kind, offset, synced=synced, mark=mark, seed=seed)
    accounts = collect_accounts(batch) if batch.targets or batch.released else {}
    packed = pack_accounts(accounts) if accounts else NO_ACCOUNTS
    rows: list[bytes] = []
    parts: list[bytes] = []
    at = offset + BLOCK_SIZE + len(packed)
    front = packed
    for index in range(count):
        meta = batch.metas[index]
        body = batch.bodies[index]
        front += LENGTHS.pack(len(meta), len(body)) + meta
        at += LENGTHS_SIZE + len(meta)
        if not body:
            rows.append(ROW.pack(batch.position, len(meta), 0, 0) + meta)
            continue
        at += CRC_SIZE
        rows.append(ROW.pack(batch.position, len(meta), len(body), at) + meta)
        parts.append(front + U32.pack(crc32c(body, seed)))
        parts.append(body)
        front = b""
        at += len(body)
    parts.append(front)
    rest = BLOCK_REST.pack(at - offset, batch.position, synced, count, len(batch.stored), len(accounts), kind)
    checksum = crc32c(rest, seed)
    for index in range(0, len(parts), 2):
        checksum = crc32c(parts[index], checksum)
    parts[0] = BLOCK_START.pack(mark, checksum) + rest + parts[0]
    return Frame(parts, at - offset, b"".join(rows), accounts)


def _frame_one(batch: Batch, kind: int, offset: int, *, synced: int, mark: int, seed: int) -> Frame:
    """The same for one record, which is what nearly every batch has."""
    position = batch.position
    sole = batch.sole
    meta = batch.meta if sole else batch.metas[0]
    body = batch.body if sole else batch.bodies[0]
    meta_size = len(meta)
    body_size = len(body)
    stored = batch.stored_count
    accounts = collect_accounts(batch)
    packed = pack_accounts(accounts) if accounts else NO_ACCOUNTS
    length = BLOCK_SIZE + LENGTHS_SIZE + len(packed) + meta_size
    if body_size:
        length += CRC_SIZE
        row = ROW.pack(position, meta_size, body_size, offset + length) + meta
        tail = meta + U32.pack(crc32c(body, seed))
        length += body_size
    else:
        row = ROW.pack(position, meta_size, 0, 0) + meta
        tail = meta
    if packed:
        rest = BLOCK_REST.pack(length, position, synced, 1, stored, len(accounts), kind)
        rest += packed + LENGTHS.pack(meta_size, body_size) + tail
    else:
        rest = BLOCK_REST_ONE.pack(length, position, synced, 1, stored, 0, kind, meta_size, body_size) + tail
    front = BLOCK_START.pack(mark, crc32c(rest, seed)) + rest
    return Frame([front, body] if body_size else [front], length, row, accounts)


def pack_accounts(accounts: dict[int, int]) -> bytes:
    return b"".join([ACCOUNT.pack(segment, released) for segment, released in accounts.items()])


def unpack_accounts(content: bytes, at: int, count: int) -> dict[int, int]:
    accounts: dict[int, int] = {}
    for index in range(count):
        segment, released = ACCOUNT.unpack_from(content, at + index * ACCOUNT_SIZE)
        accounts[segment] = released
    return accounts


def decode_block(content: bytes, at: int, *, mark: int, seed: int) -> Block | None:
    """The block at ``at``, or None when no whole and undamaged block of this segment begins there.

    ``content`` is the file from its first byte on, so that ``at`` and the offsets in the rows are file offsets.
    """
    if at + BLOCK_SIZE > len(content):
        return None
    found_mark, checksum = BLOCK_START.unpack_from(content, at)
    if found_mark != mark:
        return None
    length, position, synced, count, stored, account_count, kind = BLOCK_REST.unpack_from(
        content, at + BLOCK_START_SIZE
    )
    end = at + length
    if end > len(content) or length < BLOCK_SIZE + account_count * ACCOUNT_SIZE + count * LENGTHS_SIZE:
        return None
    view = memoryview(content)
    block = Block(at, length, kind, position, synced)
    block.stored = stored
    rows: list[bytes] = []
    front = at + BLOCK_START_SIZE
    computed: int = seed
    cursor = at + BLOCK_SIZE + account_count * ACCOUNT_SIZE
    for _ in range(count):
        if cursor + LENGTHS_SIZE > end:
            return None
        meta_size, body_size = LENGTHS.unpack_from(content, cursor)
        cursor += LENGTHS_SIZE
        meta = content[cursor : cursor + meta_size]
        cursor += meta_size
        body_at = 0
        if body_size:
            body_at = cursor + CRC_SIZE
            if body_at + body_size > end:
                return None
            computed = crc32c(view[front:body_at], computed)
            if U32.unpack_from(content, cursor)[0] != crc32c(view[body_at : body_at + body_size], seed):
                return None
            cursor = front = body_at + body_size
        block.metas.append(meta)
        block.bodies.append((body_at, body_size))
        rows.append(ROW.pack(position, meta_size, body_size, body_at) + meta)
    if cursor != end or crc32c(view[front:end], computed) != checksum:
        return None
    block.accounts = unpack_accounts(content, at + BLOCK_SIZE, account_count)
    block.rows = b"".join(rows)
    return block


def checked_body(content: bytes, at: int, size: int, seed: int) -> bytes | None:
    """The body of ``size`` bytes behind its checksum, which is at ``at``; None when they do not agree."""
    start = at + CRC_SIZE
    body = content[start : start + size]
    if len(body) != size or U32.unpack_from(content, at)[0] != crc32c(body, seed):
        return None
    return body


def encode_trailer(footer: Footer, rows_checksum: int, rows_size: int, mark: int) -> bytes:
    """Accounts and trailer, to be written behind the rows so that the trailer ends with the file.

    ``rows_checksum`` is the crc32c of the rows, started with the segment's seed.
    """
    accounts = pack_accounts(footer.accounts)
    rest = TRAILER_REST.pack(
        rows_size,
        footer.row_count,
        len(footer.accounts),
        footer.stored,
        footer.end,
        footer.position,
        footer.synced,
        footer.next_segment,
    )
    checksum = crc32c(accounts + rest, rows_checksum)
    return accounts + BLOCK_START.pack(mark, checksum) + rest


def trailer_extent(trailer: bytes, mark: int) -> int:
    """How many bytes the whole footer has, judging by its last `TRAILER_SIZE` bytes; 0 when they are no trailer."""
    if len(trailer) != TRAILER_SIZE or BLOCK_START.unpack_from(trailer)[0] != mark:
        return 0
    rows_size, _, account_count, _, _, _, _, _ = TRAILER_REST.unpack_from(trailer, BLOCK_START_SIZE)
    extent: int = rows_size + account_count * ACCOUNT_SIZE + TRAILER_SIZE
    return extent


def decode_footer(content: bytes, mark: int, seed: int) -> Footer | None:
    """The footer that ``content`` is, or None when it is damaged."""
    start = len(content) - TRAILER_SIZE
    if start < 0 or trailer_extent(content[start:], mark) != len(content):
        return None
    checksum = BLOCK_START.unpack_from(content, start)[1]
    rows_size, count, account_count, stored, end, position, synced, next_segment = TRAILER_REST.unpack_from(
        content, start + BLOCK_START_SIZE
    )
    view = memoryview(content)
    computed = crc32c(view[:start], seed)
    if crc32c(view[start + BLOCK_START_SIZE :], computed) != checksum:
        return None
    footer = Footer(end, position, synced, next_segment)
    footer.stored = stored
    footer.accounts = unpack_accounts(content, rows_size, account_count)
    footer.rows = content[:rows_size]
    footer.row_count = count
    return footer


def replay_rows(replay: Replay, rows: bytes, segment: int, at: int = 0, most: int = 1 << 62) -> int:
    """Replays each record's position, meta and the home of its body, in order.

    Args:
        at: of the first row; most: so many of them.

    Returns:
        Where the next row is.
    """
    size = len(rows)
    unpack = ROW.unpack_from
    while at < size and most > 0:
        most -= 1
        position, meta_size, body_size, offset = unpack(rows, at)
        at += ROW_SIZE
        end = at + meta_size
        home = Home()
        home.segment = segment
        home.offset = offset
        home.size_bytes = body_size
        replay.replay_record(Position(position), rows[at:end], home)
        at = end
    return at


def fill_homes(batch: Batch, rows: bytes, segment: int) -> None:
    """Writes into the homes of the stored messages where ``rows`` says that their bodies lie."""
    if batch.sole:
        alone = batch.home
        if alone is not None:
            _, _, alone.size_bytes, alone.offset = ROW.unpack_from(rows)
            alone.segment = segment
        return
    if len(batch.metas) == 1:
        for _, home in batch.stored:
            _, _, home.size_bytes, home.offset = ROW.unpack_from(rows)
            home.segment = segment
        return
    places: list[tuple[int, int]] = []
    at = 0
    for meta in batch.metas:
        _, _, body_size, offset = ROW.unpack_from(rows, at)
        places.append((offset, body_size))
        at += ROW_SIZE + len(meta)
    for index, home in batch.stored:
        home.offset, home.size_bytes = places[index]
        home.segment = segment


def encode_state_head(state_position: int, previous: int) -> bytes:
    """The first record of a state block: the position its state was taken at, and the segment before this one."""
    return STATE_HEAD.pack(state_position, previous)


def decode_state_head(content: bytes) -> tuple[int, int]:
    """Position of the state, and number of the segment before."""
    position, previous = STATE_HEAD.unpack_from(content)
    return position, previous


def decode_list(content: bytes) -> list[tuple[int, int, int]]:
    """The live segments of the first format: (number, end of its blocks, last position) each, ascending."""
    return [(number, end, position) for number, end, position in LISTED.iter_unpack(content)]


def decode_first_state_head(content: bytes) -> tuple[int, list[tuple[int, int, int]]]:
    """The same of the first format: the position its state was taken at, then the list."""
    position: int = STATE_POSITION.unpack_from(content)[0]
    return position, decode_list(content[STATE_POSITION.size :])
