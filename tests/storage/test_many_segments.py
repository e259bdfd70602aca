"""A backlog of many more segments than any list in one of them could name."""

# BROKER-1

from pathlib import Path

import pytest

from delosmq.model.ids import Position
from delosmq.model.message import Home
from delosmq.storage.journal import JournalStore, open_journal
from delosmq.storage.journal.files import Files, OsFiles
from delosmq.storage.journal.manifest import MANIFEST_NAME, Edit, Manifest, load
from delosmq.storage.journal.segments import Ledger, Segment
from delosmq.storage.journal.sync.syncer import wait_readable
from tests.storage.bench import Bench
from tests.storage.on_disk import manifest_mark
from tests.storage.support import NODE, SMALL, Kept, Listener, note, release, store_message

pytestmark = pytest.mark.slow

MESSAGES = 1_200
"""Two of them fill a segment. A state block of the first format had room for 330 segments."""
BODY = bytes(22_000)


def opened(directory: Path) -> tuple[JournalStore, Kept, Listener]:
    store = open_journal(directory, SMALL, node_id=NODE, sync_process=False)
    listener, kept = Listener(), Kept()
    store.attach(listener, listener.source)
    store.recover(kept)
    return store, kept, listener


def manifest_of(files: Files) -> Manifest:
    manifest = load(files, NODE)
    assert manifest is not None
    return manifest


def settle(store: JournalStore, listener: Listener, position: int) -> None:
    """Waits for what was written and for a file to go on with."""
    store.wait_synced(Position(position), 60)
    while listener.space and listener.space[-1]:
        wait_readable(store.fileno(), 60)
        store.on_readable()


def test_a_backlog_of_many_small_segments_is_kept_and_goes_away(tmp_path: Path) -> None:
    store, _, listener = opened(tmp_path)
    homes: list[Home] = []
    for position in range(1, MESSAGES + 1):
        batch, home = store_message(position, BODY)
        store.append(batch)
        homes.append(home)
        if store.takes(2 * len(BODY)):
            store.flush()
        else:
            settle(store, listener, position)
    settle(store, listener, MESSAGES)
    assert len(manifest_of(OsFiles(tmp_path)).sealed) > 500
    store.close(60)
    store, kept, listener = opened(tmp_path)
    assert [home.size_bytes for home in kept.homes] == [len(BODY)] * MESSAGES
    assert store.read(kept.homes[0]) == store.read(kept.homes[-1]) == BODY
    for position, home in enumerate(kept.homes, MESSAGES + 1):
        store.append(release(position, home))
        if position % 100 == 0:
            settle(store, listener, position)
    store.append(note(2 * MESSAGES + 1))
    settle(store, listener, 2 * MESSAGES + 1)
    assert not listener.failures
    assert len(manifest_of(OsFiles(tmp_path)).sealed) < 20
    store.close(60)
    assert len([name for name in tmp_path.iterdir() if name.suffix == ".dmq"]) < 30
    store, kept, _ = opened(tmp_path)
    assert len([home for home in kept.homes if home.size_bytes]) < 40
    store.close(60)


def test_a_roll_tells_the_manifest_what_is_new_and_no_more(bench: Bench) -> None:
    sizes: list[int] = []
    sync = bench.syncer.sync

    def watched(ticket: int, handles: list[int], position: int = 0, edit: Edit | None = None) -> None:
        if edit is not None:
            sizes.append(len(edit.content))
        sync(ticket, handles, position, edit)

    bench.syncer.sync = watched  # type: ignore[assignment]
    for _ in range(60):
        bench.fill_segment()
    assert len(sizes) >= 60
    assert max(sizes) < 200


def test_a_manifest_is_written_anew_before_it_is_full(bench: Bench) -> None:
    bench.sync()
    size = len(bench.content(MANIFEST_NAME))
    kept = bench.fill_segment()
    marks = set()
    for _ in range(4_000):
        bench.roll()
        marks.add(manifest_mark(bench.disk))
    assert 2 < len(marks) < 7
    assert len(bench.content(MANIFEST_NAME)) < 2 * size
    bench.start()
    assert len([home for home in bench.kept.homes if home.size_bytes]) == len(kept)


def test_a_full_disk_does_not_stop_the_broker_because_of_its_manifest(bench: Bench) -> None:
    bench.fill_segment()
    bench.sync()
    bench.disk.free_bytes = 0
    for _ in range(1_800):
        bench.roll()
    assert not bench.listener.failures
    assert manifest_of(bench.disk).crowded
    bench.disk.free_bytes = None
    bench.store.tick(0)
    bench.roll()
    bench.roll()
    assert not manifest_of(bench.disk).crowded
    bench.start()


class CountingLedger(Ledger):
    """Counts how often it asks whether a segment is pinned."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def pinned(self, segment: Segment) -> bool:
        self.asked += 1
        return super().pinned(segment)


def test_segments_that_pin_each_other_are_freed_in_one_pass_whichever_was_empty_first() -> None:
    ledger = CountingLedger()
    numbers = range(1, 301)
    for number in numbers:
        segment = Segment("", number, mark=1, seed=1, size_bytes=64 * 1024, base=number)
        segment.stored = segment.live = 1
        segment.accounts = {number - 1: 1}
        ledger.add(segment)
    for number in reversed(numbers):
        ledger.release({number: 1})
    assert [segment.number for segment in ledger.free(None, 1_000)] == list(numbers)
    assert ledger.asked == len(numbers)


def test_a_segment_to_empty_is_searched_for_a_part_at_a_time() -> None:
    ledger = Ledger()
    for number in range(1, 502):
        segment = Segment("", number, mark=1, seed=1, size_bytes=64 * 1024, base=number)
        segment.stored = 10
        segment.live = 1 if number == 450 else 3
        segment.end += 40_000
        segment.sealed(1_000, 10)
        ledger.add(segment)
    opened = ledger.all()[-1]
    assert [ledger.victim(opened, 50, 64 * 1024) for _ in range(6)] == [0, 0, 450, 0, 0, 450]
