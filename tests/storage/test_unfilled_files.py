"""Of a file that is not full a start reads what was written, and keeps none of the zeros behind it."""

# BROKER-1

import logging
import tracemalloc
from dataclasses import replace
from random import Random

import pytest

from delosmq.storage.journal.records import seed_of
from delosmq.storage.journal.recovery.recovery import Recovery
from delosmq.storage.journal.recovery.scan import PIECE_BYTES, scan_segment
from tests.simulation.disk import SimDisk
from tests.storage.bench import Bench
from tests.storage.support import NODE, SMALL

LARGE = replace(SMALL, file_size_bytes=8 * 1024 * 1024, spare_files=1)
WHOLE = replace(SMALL, file_size_bytes=256 * 1024)


class Files(SimDisk):
    """Tells how much was read at a time."""

    largest = 0

    def pread(self, handle: int, size_bytes: int, offset: int) -> bytes:
        content = super().pread(handle, size_bytes, offset)
        self.largest = max(self.largest, len(content))
        return content


def test_a_start_on_a_large_file_with_little_in_it_takes_little_memory(bench: Bench) -> None:
    bench.start(settings=LARGE)
    bench.note(b"one")
    bench.sync()
    disk = bench.disk = Files(Random(1))
    disk.files = dict(bench.syncer.disk.files)
    disk.kept_names = dict(disk.files)
    tracemalloc.start()
    try:
        bench.start(settings=LARGE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert bench.kept.records == [(1, b"one")]
    assert disk.largest < LARGE.file_size_bytes // 8
    assert peak < LARGE.file_size_bytes


@pytest.mark.parametrize("synced", [True, False])
@pytest.mark.parametrize("size", [1, 100, PIECE_BYTES - 4096, PIECE_BYTES, 3 * PIECE_BYTES])
def test_a_message_of_zeros_at_the_end_is_there(bench: Bench, size: int, synced: bool) -> None:
    bench.start(settings=WHOLE)
    bench.note(b"before")
    home = bench.put(bytes(size))
    if synced:
        bench.sync()
    else:
        bench.store.flush()
    bench.start(settings=WHOLE)
    assert bench.position == 2
    assert [meta for _, meta in bench.kept.records] == [b"before", b"stored"]
    assert bench.store.read(bench.kept.homes[1]) == bytes(size)
    assert bench.kept.homes[1].offset == home.offset


@pytest.mark.parametrize("seed", range(40))
def test_what_is_left_out_changes_nothing_of_what_a_start_finds(seed: int) -> None:
    random = Random(seed)
    bench = Bench(random)
    bench.start(settings=WHOLE)
    for _ in range(random.randrange(1, 12)):
        body = random.randbytes(random.randrange(2_000)) + bytes(random.choice([0, 10, 20_000, 40_000]))
        bench.put(body)
        if random.random() < 0.3:
            bench.sync()
        if bench.room < 100_000:
            break
    bench.store.flush()
    opened = bench.open_segment
    file, end = opened.name, opened.end
    for _ in range(random.randrange(3)):
        bench.damage(file, random.randrange(4096, end), random.choice([1, 8, 600]))
    recovery = Recovery(bench.disk, NODE, seed_of, logging.getLogger())
    number = opened.header.number
    found = recovery.scan(number)
    _, header = recovery.headers[number]
    whole = scan_segment(bench.content(file), header, file, seed_of(number))
    assert vars(found) == vars(whole)
