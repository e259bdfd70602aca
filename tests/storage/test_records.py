"""Framing: what is written is read back, and nothing else is taken for it."""

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from delosmq.engine.log.log import Batch
from delosmq.model.ids import Position
from delosmq.model.message import Home
from delosmq.storage.journal import records
from delosmq.storage.journal.records import BATCH, DATA_START, FileHeader, Footer
from tests.storage.support import Kept

MARK = 0x1122334455667788
SEED = 7

blobs = st.binary(max_size=60)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    batch = Batch()
    batch.position = Position(draw(st.integers(1, 2**62)))
    for index, (meta, body) in enumerate(draw(st.lists(st.tuples(blobs, blobs), max_size=5))):
        batch.metas.append(meta)
        batch.bodies.append(body)
        if body:
            batch.stored.append((index, Home()))
    for segment in draw(st.lists(st.integers(0, 5), max_size=5)):
        home = Home()
        home.segment = segment
        batch.targets.append(home)
        if draw(st.booleans()):
            batch.released.append(home)
    return batch


def framed(batch: Batch, offset: int = DATA_START) -> tuple[bytes, records.Frame]:
    frame = records.frame_batch(batch, BATCH, offset, synced=3, mark=MARK, seed=SEED)
    return bytes(offset) + b"".join(frame.parts), frame


@given(batches())
def test_a_batch_is_read_back(batch: Batch) -> None:
    content, frame = framed(batch)
    assert len(content) == DATA_START + frame.length
    block = records.decode_block(content, DATA_START, mark=MARK, seed=SEED)
    assert block is not None
    assert (block.position, block.synced, block.stored) == (batch.position, 3, len(batch.stored))
    assert block.metas == batch.metas
    assert [content[at : at + size] for at, size in block.bodies] == batch.bodies
    assert block.rows == frame.rows
    assert block.accounts == records.collect_accounts(batch) == frame.accounts


@given(batches())
def test_homes_point_at_the_bodies(batch: Batch) -> None:
    content, frame = framed(batch)
    records.fill_homes(batch, frame.rows, 9)
    for index, home in batch.stored:
        assert home.segment == 9
        assert content[home.offset : home.offset + home.size_bytes] == batch.bodies[index]
        assert records.checked_body(content, home.offset - 4, home.size_bytes, SEED) is not None
    found = Kept()
    records.replay_rows(found, frame.rows, 9)
    assert found.records == [(batch.position, meta) for meta in batch.metas]
    assert {home.segment for home in found.homes} <= {9}


@given(batches(), st.integers(1, 3))
def test_records_replayed_some_at_a_time_are_the_same(batch: Batch, most: int) -> None:
    rows = framed(batch)[1].rows
    found = Kept()
    at = 0
    while at < len(rows):
        before = len(found.records)
        at = records.replay_rows(found, rows, 9, at, most)
        assert 0 < len(found.records) - before <= most
    assert found.records == [(batch.position, meta) for meta in batch.metas]


@given(blobs, blobs, st.integers(0, 3), st.integers(0, 2))
def test_a_record_without_lists_is_framed_as_with_them(meta: bytes, body: bytes, segment: int, kind: int) -> None:
    alone, listed = Batch(), Batch()
    for batch in (alone, listed):
        home = Home()
        if kind == 0:
            batch.add_stored(meta, body, home)
            continue
        home.segment = segment
        batch.add_removed(meta, home, kind == 1)
    assert listed.metas == [meta]
    assert (alone.sole, listed.sole) == (True, False)
    content, frame = framed(alone)
    expected, other = framed(listed)
    assert (content, frame.rows, frame.accounts, frame.cost) == (expected, other.rows, other.accounts, other.cost)
    assert records.collect_accounts(alone) == records.collect_accounts(listed)
    for batch, made in ((alone, frame), (listed, other)):
        records.fill_homes(batch, made.rows, 9)
    assert [vars_of(home) for _, home in alone.stored] == [vars_of(home) for _, home in listed.stored]


def vars_of(home: Home) -> tuple[int, int, int]:
    return home.segment, home.offset, home.size_bytes


@given(batches(), st.data())
def test_no_changed_byte_passes(batch: Batch, draw: st.DataObject) -> None:
    content, frame = framed(batch)
    at = draw.draw(st.integers(DATA_START, DATA_START + frame.length - 1))
    damaged = bytearray(content)
    damaged[at] ^= draw.draw(st.integers(1, 255))
    assert records.decode_block(bytes(damaged), DATA_START, mark=MARK, seed=SEED) is None


@given(batches(), st.integers(1, 20))
def test_a_cut_batch_is_none(batch: Batch, missing: int) -> None:
    content, _ = framed(batch)
    assert records.decode_block(content[:-missing], DATA_START, mark=MARK, seed=SEED) is None


@given(batches())
def test_bytes_of_another_segment_are_none(batch: Batch) -> None:
    content, _ = framed(batch)
    assert records.decode_block(content, DATA_START, mark=MARK, seed=SEED + 1) is None
    assert records.decode_block(content, DATA_START, mark=MARK + 1, seed=SEED) is None


def test_a_body_of_another_segment_is_none() -> None:
    batch = Batch()
    batch.metas[:], batch.bodies[:] = [b"m"], [b"body"]
    content, frame = framed(batch)
    found = Kept()
    records.replay_rows(found, frame.rows, 1)
    (home,) = found.homes
    stored = content[home.offset - 4 : home.offset + home.size_bytes]
    assert records.checked_body(stored, 0, 4, SEED) == b"body"
    assert records.checked_body(stored, 0, 4, SEED + 1) is None


@given(batches(), st.integers(0, 100), st.integers(0, 255))
def test_a_footer_is_read_back_or_refused(batch: Batch, at: int, change: int) -> None:
    _, frame = framed(batch)
    footer = Footer(5000, 12, 11, 4)
    footer.stored = 3
    footer.accounts = frame.accounts
    footer.row_count = len(batch.metas)
    content = frame.rows + records.encode_trailer(footer, crc32c(frame.rows, SEED), len(frame.rows), MARK)
    assert records.trailer_extent(content[-records.TRAILER_SIZE :], MARK) == len(content)
    found = records.decode_footer(content, MARK, SEED)
    assert found is not None
    assert (found.end, found.position, found.synced, found.next_segment, found.stored) == (5000, 12, 11, 4, 3)
    assert (found.rows, found.accounts, found.row_count) == (frame.rows, frame.accounts, len(batch.metas))
    damaged = bytearray(content)
    damaged[at % len(content)] ^= change
    assert (records.decode_footer(bytes(damaged), MARK, SEED) is None) == (change != 0)


def test_a_file_header_is_read_back_or_refused() -> None:
    content = records.encode_file_header(FileHeader(5, bytes(16), MARK, 65536))
    assert len(content) == 64
    header = records.decode_file_header(content)
    assert header is not None
    assert (header.number, header.node_id, header.mark, header.size_bytes) == (5, bytes(16), MARK, 65536)
    for at in range(64):
        damaged = bytearray(content)
        damaged[at] ^= 1
        assert records.decode_file_header(bytes(damaged)) is None
    assert records.decode_file_header(content[:63]) is None


def test_the_layout_is_the_documented_one() -> None:
    batch = Batch()
    batch.position = Position(2)
    batch.metas[:], batch.bodies[:] = [b"me"], [b"bod"]
    content, frame = framed(batch, 0)
    assert content[:8] == MARK.to_bytes(8, "little")
    assert content[12:48].hex() == ("410000000200000000000000030000000000000001000000000000000000000001000000")
    assert content[48:58] == bytes.fromhex("0200000003000000") + b"me"
    assert content[62:] == b"bod"
    assert frame.length == 65
