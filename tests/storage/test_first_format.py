"""Journals of the first format, without a manifest, start; and a power cut at any step of a start does no harm."""

# BROKER-1

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from delosmq.model.ids import Position
from delosmq.storage.journal import open_journal
from delosmq.storage.journal.store import JournalStore
from tests.simulation.disk import SimDisk
from tests.simulation.process_kills import killed_start
from tests.simulation.syncer import StepSyncer
from tests.storage.bench import Bench
from tests.storage.support import NODE, SMALL, Kept, Listener, note

FIXTURES = Path(__file__).parent / "first_format"
BODY = b"body %d "


def unpack(name: str) -> dict[str, bytes]:
    with tarfile.open(FIXTURES / f"{name}.tar.xz") as archive:
        return {
            Path(member.name).name: (archive.extractfile(member) or io.BytesIO()).read()
            for member in archive
            if member.isfile()
        }


def put_on(disk: SimDisk, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        handle = disk.open(name, create=True)
        disk.pwritev(handle, [content], 0)
        disk.fdatasync(handle)
        disk.close(handle)
    disk.sync_directory()


def open_on(disk: SimDisk) -> tuple[JournalStore, Kept, int]:
    store = JournalStore(disk, SMALL, node_id=NODE, syncer=StepSyncer(disk), entropy=disk.random.randbytes)
    listener, kept = Listener(), Kept()
    store.attach(listener, listener.source)
    return store, kept, store.recover(kept)


def bodies(store: JournalStore, kept: Kept) -> list[bytes]:
    """Of every message that is still in the journal."""
    return [store.read(home) for home in kept.homes if home.size_bytes]


@pytest.mark.parametrize(("name", "position", "last"), [("clean", 52, b"last"), ("crash", 53, b"unsynced")])
def test_a_journal_of_the_first_format_starts(tmp_path: Path, name: str, position: int, last: bytes) -> None:
    for file, content in unpack(name).items():
        (tmp_path / file).write_bytes(content)
    for life in range(3):
        store = open_journal(tmp_path, SMALL, node_id=NODE, sync_process=False)
        listener, kept = Listener(), Kept()
        store.attach(listener, listener.source)
        assert store.recover(kept) == position + life
        if life == 0:
            assert kept.records[-1] == (position, last)
            assert [body.split(b" \0")[0] for body in bodies(store, kept)] == [
                (BODY % number).strip() for number in range(40)
            ]
        store.append(note(position + life + 1))
        store.wait_synced(Position(position + life + 1), 30)
        store.close(30)


def test_a_journal_that_could_not_start_for_its_many_segments_starts(tmp_path: Path) -> None:
    for file, content in unpack("full").items():
        (tmp_path / file).write_bytes(content)
    store = open_journal(tmp_path, SMALL, node_id=NODE, sync_process=False)
    listener, kept = Listener(), Kept()
    store.attach(listener, listener.source)
    position = store.recover(kept)
    assert position >= 575
    assert len(kept.records) == position
    assert bodies(store, kept) == [bytes(22_000)] * position
    store.append(note(position + 1))
    store.wait_synced(Position(position + 1), 30)
    store.close(30)


def second_format(random: Random) -> SimDisk:
    """Several segments, the last ones begun and not yet in the manifest."""
    bench = Bench(random)
    for _ in range(2):
        bench.release(*bench.fill_segment()[:-1])
    bench.sync()
    first = bench.open_number
    while bench.open_number == first:
        bench.put(bytes(3000))
        bench.store.flush()
    bench.note(b"unsynced")
    bench.store.flush()
    return bench.disk


def nothing_yet(random: Random) -> SimDisk:
    return SimDisk(random)


def first_format(name: str) -> Callable[[Random], SimDisk]:
    def make(random: Random) -> SimDisk:
        disk = SimDisk(random)
        put_on(disk, unpack(name))
        return disk

    return make


@pytest.mark.parametrize(
    "make", [nothing_yet, second_format, first_format("clean"), first_format("crash")], ids=["new", "2", "1", "1 torn"]
)
@pytest.mark.parametrize("seed", range(3))
def test_a_power_cut_at_any_step_of_a_start_loses_nothing(make: Callable[[Random], SimDisk], seed: int) -> None:
    step = 0
    while True:
        disk = make(Random(seed))
        _, expected, at_least = open_on(make(Random(seed)).power_cut())
        disk = disk.power_cut()
        if not killed_start(disk, SMALL, step):
            assert step > 5
            return
        again = disk.power_cut()
        store, kept, position = open_on(again)
        assert position == at_least
        assert kept.records == expected.records
        assert len(bodies(store, kept)) == len([home for home in expected.homes if home.size_bytes])
        step += 1
