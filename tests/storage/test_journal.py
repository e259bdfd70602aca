"""The segment journal: rolling, freeing, space, failures."""

import logging
from random import Random

import pytest

from delosmq.model.errors import InvariantError, MisuseError, StorageError
from delosmq.model.ids import MonotonicNs, Position
from delosmq.model.message import Home
from delosmq.model.settings import JournalSettings
from delosmq.storage.journal.files import Order
from delosmq.storage.journal.records import seed_of
from delosmq.storage.journal.recovery.recovery import Recovery
from delosmq.storage.journal.reserve import PAID_AT_ONCE
from delosmq.storage.journal.store import JournalStore
from tests.simulation.disk import SimDisk
from tests.simulation.syncer import StepSyncer
from tests.storage.bench import Bench
from tests.storage.on_disk import RESERVE
from tests.storage.support import NODE, SMALL, Kept, Listener, State, note, store_message

FULL = 64 * 1024


def test_a_restart_gives_state_and_records(bench: Bench) -> None:
    bench.note(b"one")
    bench.put(b"body")
    bench.sync()
    bench.listener.source.now = b"newer"
    bench.start()
    assert bench.kept.records == [(1, b"one"), (2, b"stored")]
    assert bench.kept.states == [(2, b"state")]
    assert bench.store.read(bench.kept.homes[1]) == b"body"


def test_the_first_flush_after_a_restart_renews_the_state(bench: Bench) -> None:
    bench.note(b"one")
    bench.sync()
    bench.start()
    bench.listener.source.now = b"engine stands"
    bench.sync()
    bench.note(b"two")
    bench.sync()
    bench.start()
    assert bench.kept.states == [(1, b"engine stands")]
    assert bench.kept.records == [(2, b"two")]


def test_a_crash_before_that_flush_keeps_the_old_state_and_what_follows_it(bench: Bench) -> None:
    bench.sync()
    bench.note(b"one")
    bench.sync()
    bench.listener.source.now = b"newer"
    for _ in range(3):
        bench.start()
    assert bench.kept.states == [(0, b"state")]
    assert bench.kept.records == [(1, b"one")]


def test_a_roll_takes_the_state_of_the_last_batch(bench: Bench) -> None:
    bench.listener.source.now = b"rolled"
    homes = bench.fill_segment()
    bench.start()
    assert bench.kept.states == [(len(homes), b"rolled")]


def test_released_segments_are_recycled_in_any_order(bench: Bench) -> None:
    first, second, third = bench.fill_segment(), bench.fill_segment(), bench.fill_segment()
    for home in second:
        bench.release(home)
    fourth = bench.fill_segment()
    assert second[0].segment not in bench.segments
    assert first[0].segment in bench.segments
    bench.start()
    kept = {home.segment for home in bench.kept.homes}
    assert second[0].segment not in kept
    assert {first[0].segment, third[0].segment, fourth[0].segment} <= kept


def test_a_steady_flow_makes_no_more_files(bench: Bench) -> None:
    for _ in range(12):
        bench.release(*bench.fill_segment())
    assert bench.open_number > 12
    assert len(bench.disk.files) <= 6


def test_a_removal_stays_while_its_target_does(bench: Bench) -> None:
    first = bench.fill_segment()
    second = bench.fill_segment()
    bench.release(first[0])  # lies in the third segment
    third = bench.fill_segment()
    for home in third:
        bench.release(home)
    pinned = third[0].segment
    bench.fill_segment()
    assert pinned in bench.segments
    for home in first[1:]:
        bench.release(home)
    bench.fill_segment()
    assert first[0].segment not in bench.segments
    assert pinned not in bench.segments
    assert second[0].segment in bench.segments


def test_files_are_not_reused_before_the_list_without_them_is_synced(bench: Bench) -> None:
    first = bench.fill_segment()
    name = bench.name_of(first[0].segment)
    bench.release(*first)
    bench.fill()
    bench.store.flush()
    ordered: list[str] = []
    for _ in range(2):
        bench.store.on_readable()
        ordered += [order.name for order in bench.syncer.orders if isinstance(order, Order)]
        assert name not in ordered
        bench.make_ready(2)
    bench.sync_only()
    for _ in range(2):
        bench.fill()
        ordered += [order.name for order in bench.syncer.orders if isinstance(order, Order)]
    assert name in ordered


def sealed_segments(bench: Bench) -> list[tuple[int, int, dict[int, int], int]]:
    """Number, messages, accounts and end of each, as the next start would read them."""
    recovery = Recovery(bench.disk, NODE, seed_of, logging.getLogger())
    recovery.read()
    recovery.replay(Kept())
    return [(part.header.number, part.stored, part.accounts, part.end) for part in recovery.parts]


def test_footers_say_what_the_blocks_say(bench: Bench) -> None:
    homes = [home for _ in range(3) for home in bench.fill_segment()]
    bench.release(*homes[:4])
    bench.sync()
    bench.start()
    by_footers = bench.kept
    sealed = sealed_segments(bench)
    for file in bench.disk.files.values():
        file.seen[-1] ^= 0xFF
    bench.start()
    assert bench.kept.records == by_footers.records
    assert [(h.segment, h.offset, h.size_bytes) for h in bench.kept.homes] == [
        (h.segment, h.offset, h.size_bytes) for h in by_footers.homes
    ]
    assert sealed_segments(bench)[: len(sealed)] == sealed


def test_a_restart_reads_footers_not_bodies(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(4):
        bench.fill_segment()
    bench.note()
    bench.sync()
    bench.note()
    bench.sync()
    read: dict[int, int] = {}
    pread = bench.disk.pread

    def counted(handle: int, size_bytes: int, offset: int) -> bytes:
        content = pread(handle, size_bytes, offset)
        read[id(bench.disk.handles[handle])] = read.get(id(bench.disk.handles[handle]), 0) + len(content)
        return content

    monkeypatch.setattr(bench.disk, "pread", counted)
    first = bench.disk.files[bench.name_of(1)]
    bench.start()
    assert 0 < read[id(first)] < 3000


def test_bodies_read_in_order_are_those_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimDisk(Random(1))
    settings = JournalSettings(file_size_bytes=1024 * 1024)
    store = JournalStore(disk, settings, node_id=NODE, syncer=StepSyncer(disk))
    store.attach(Listener(), State())
    position = store.recover(Kept())
    homes: list[Home] = []
    # Far more than one read, small ones and one that is larger than a read, in two segments.
    for size in (*range(700), 200_000, *range(700), 0, *range(700)):
        batch, home = store_message(position + len(homes) + 1, bytes([size % 256]) * size)
        store.append(batch)
        homes.append(home)
        if len(homes) % 100 == 0:
            store.wait_synced(Position(position + len(homes)), 60.0)
    expected = [store.read(home) for home in homes]
    reads: list[int] = []
    pread = disk.pread

    def counted(handle: int, size_bytes: int, offset: int) -> bytes:
        reads.append(size_bytes)
        return pread(handle, size_bytes, offset)

    monkeypatch.setattr(disk, "pread", counted)
    for stride in (1, 2, 300):
        assert store.read_in_order(homes[::stride]) == expected[::stride]
    reads.clear()
    assert store.read_in_order(homes) == expected
    assert len({home.segment for home in homes if home.size_bytes}) == 2
    assert len(reads) < 20


def test_a_damaged_body_is_found_among_those_read_in_order(bench: Bench) -> None:
    homes = [bench.put(b"body %d" % k) for k in range(9)]
    bench.sync()
    at = homes[4].offset
    bench.disk.pwritev(bench.disk.open(bench.name_of(homes[4].segment)), [b"X"], at)
    assert bench.store.read_in_order(homes[:4]) == [b"body %d" % k for k in range(4)]
    with pytest.raises(StorageError, match=f"DMQ3040: .*offset {at}: damaged body of 6 bytes"):
        bench.store.read_in_order(homes)


def test_syncs_are_grouped(bench: Bench) -> None:
    bench.sync()
    bench.note()
    bench.store.flush()
    for _ in range(5):
        bench.note()
        bench.store.flush()
    assert len(bench.syncer.syncs) == 1
    bench.syncer.step_sync()
    bench.store.on_readable()
    assert bench.listener.synced == [1]
    bench.syncer.step_sync()
    bench.store.on_readable()
    assert bench.listener.synced == [1, 6]


def test_short_writes_are_completed(bench: Bench) -> None:
    bench.disk.short_writes = True
    homes = bench.fill_segment()
    bench.start()
    assert [bench.store.read(home) for home in bench.kept.homes] == [bytes(3000)] * len(homes)


def test_a_failing_sync_ends_all_confirmation(bench: Bench) -> None:
    bench.sync()
    bench.note()
    bench.disk.failing_syncs = 1
    bench.sync()
    assert bench.listener.synced == []
    (failure,) = bench.listener.failures
    assert str(failure).startswith("DMQ3019: /sim/journal-000001.dmq: writing or syncing failed")
    with pytest.raises(StorageError, match="DMQ3019"):
        bench.note()
    with pytest.raises(StorageError, match="DMQ3019"):
        bench.wait()
    with pytest.raises(StorageError, match="DMQ3019"):
        bench.store.close(1)
    assert (bench.listener.synced, len(bench.listener.failures)) == ([], 1)


def test_a_failing_write_ends_all_confirmation(bench: Bench) -> None:
    bench.note()
    bench.disk.failing_writes = 1
    bench.store.flush()
    bench.syncer.run_all()
    bench.store.on_readable()
    assert (bench.listener.synced, len(bench.listener.failures)) == ([], 1)


def test_a_full_disk_stops_messages_but_not_removals_and_recovers(bench: Bench) -> None:
    homes = bench.fill_segment()
    bench.disk.free_bytes = 0
    while not bench.listener.space:
        homes.append(bench.put(bytes(3000)))
        bench.sync()
    assert (bench.listener.space, bench.listener.full) == ([True], [True])
    while bench.room > RESERVE + 4000:
        bench.note(bytes(1000))
        bench.sync()
    with pytest.raises(StorageError, match=r"DMQ3004.*no room for messages"):
        bench.store.append(store_message(bench.position + 1, bytes(8000))[0])
    for home in homes:
        bench.release(home)
        bench.sync()
    assert bench.listener.space[:2] == [True, False], "the freed segments are the room"
    assert bench.listener.space[-1] is False
    assert bench.listener.full[:2] == [True, False]
    assert bench.put(b"again").segment
    bench.sync()
    assert bench.listener.failures == []


def test_a_file_that_is_not_ready_yet_is_no_full_disk(bench: Bench) -> None:
    bench.sync()
    while not bench.listener.space:
        bench.put(bytes(3000))
    assert (bench.listener.space, bench.listener.full) == ([True], [])
    most = bench.room - RESERVE
    assert (bench.store.takes(most), bench.store.takes(most + 1)) == (True, False)
    bench.sync()
    assert (bench.listener.space, bench.listener.full) == ([True, False], [])
    assert bench.store.takes(most + 1)


def test_a_second_try_that_fails_tells_nothing_new(bench: Bench) -> None:
    bench.sync()
    bench.disk.free_bytes = 0
    while not bench.listener.space:
        bench.put(bytes(3000))
    assert bench.listener.full == []
    bench.sync()
    for second in range(3):
        bench.store.tick(MonotonicNs(second * 10**9))
        bench.sync()
    assert (bench.listener.space, bench.listener.full) == ([True], [True])


def test_space_that_comes_back_is_noticed_at_a_tick(bench: Bench) -> None:
    bench.sync()
    bench.disk.free_bytes = 0
    while not bench.listener.space:
        bench.put(bytes(3000))
        bench.sync()
    bench.store.tick(MonotonicNs(0))
    bench.sync()
    assert bench.listener.space == [True]
    bench.disk.free_bytes = 10 * FULL
    bench.store.tick(MonotonicNs(10**9))
    bench.sync()
    assert bench.listener.space == [True, False]


def use_up(bench: Bench, more: int, size_bytes: int = 2000) -> None:
    """Notes till the disk is full, the reserve is gone and so many notes have no room; each is part of the state."""
    bench.disk.free_bytes = 0
    while bench.position - max(bench.listener.synced, default=bench.position) < more:
        assert not bench.listener.failures
        bench.note(b"%*d" % (size_bytes, bench.position + 1))
        bench.listener.source.now = b"%d" % bench.position
        bench.store.flush()
        bench.syncer.run_all()
        bench.store.on_readable()


def test_what_finds_the_reserve_used_up_is_written_when_there_is_a_file(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    use_up(bench, 100)
    written = bench.position - 100
    assert (bench.open_segment.position, bench.listener.synced[-1]) == (written, written), "nobody is told before"
    assert sum("DMQ3026" in record.message for record in caplog.records) == 1
    assert (bench.store.takes(0), bench.store.compaction_victim()) == (False, 0)
    with pytest.raises(StorageError, match=r"DMQ3004.*no room for messages"):
        bench.store.append(store_message(bench.position + 1, b"body")[0])
    with pytest.raises(InvariantError, match="DMQ3001"):
        bench.store.append(note(bench.position + 2, b"too far"))
    bench.disk.free_bytes = 20 * FULL
    bench.store.tick(MonotonicNs(0))
    bench.sync()  # which looks whether all is synced
    assert (bench.listener.space[-1], bench.listener.full[-1]) == (False, False)
    assert bench.put(b"again").segment
    bench.sync()
    bench.start()
    last = bench.kept.records.pop()
    assert (last[1], bench.kept.records) == (
        b"stored",
        [(position, b"%2000d" % position) for position, _ in bench.kept.records],
    )
    assert bench.kept.records[-1][0] == last[0] - 1
    assert bench.kept.states[0][1] == b"%d" % bench.kept.states[0][0]


def test_batches_that_waited_for_room_go_into_several_files(bench: Bench) -> None:
    use_up(bench, 1_200)
    bench.disk.free_bytes = 100 * FULL
    bench.store.tick(MonotonicNs(0))
    bench.sync()
    assert bench.listener.space[-1] is False
    before = bench.store.read(bench.put(b"body"))
    bench.sync()
    bench.start()
    assert before == b"body"
    assert bench.kept.states[0][1] == b"%d" % bench.kept.states[0][0]


@pytest.mark.parametrize("turns", range(12))
def test_a_crash_meanwhile_loses_only_what_nobody_was_told(bench: Bench, turns: int) -> None:
    use_up(bench, 60)
    bench.disk.free_bytes = 20 * FULL
    bench.store.tick(MonotonicNs(0))
    for turn in range(turns):
        bench.syncer.step_sync() if turn % 2 else bench.syncer.step_order()
        bench.store.on_readable()
    told = bench.listener.synced[-1]
    bench.disk = bench.disk.power_cut()
    bench.start()
    assert bench.position >= told
    assert bench.kept.states[0][1] in (b"state", b"%d" % bench.kept.states[0][0])
    assert [p for p, _ in bench.kept.records] == list(range(bench.kept.records[0][0], bench.position + 1))


def test_a_journal_that_is_closed_without_room_says_what_is_not_on_the_disk(bench: Bench) -> None:
    use_up(bench, 3)
    with pytest.raises(StorageError, match=r"DMQ3023.*the last 3 acknowledgements are not on it"):
        bench.store.close(1.0)
    written = bench.position - 3
    bench.disk.free_bytes = None
    bench.start()
    assert bench.position == written


def test_a_journal_that_has_room_again_when_it_is_closed_writes_what_waited(bench: Bench) -> None:
    use_up(bench, SMALL.spare_files * PAID_AT_ONCE + 10, size_bytes=20)
    bench.disk.free_bytes = 20 * FULL
    bench.store.tick(MonotonicNs(0))
    bench.syncer.run_all()
    bench.store.on_readable()
    last = bench.position
    assert bench.open_segment.position < last
    bench.store.close(1.0)
    bench.start()
    assert bench.position == last


def test_no_file_can_be_made_at_start() -> None:
    disk = SimDisk(Random(1))
    disk.free_bytes = 0
    store = JournalStore(disk, JournalSettings(file_size_bytes=FULL), node_id=NODE, syncer=StepSyncer(disk))
    store.attach(Listener(), State())
    with pytest.raises(StorageError, match=r"DMQ3034: /sim/manifest: can't be made .*free some space"):
        store.recover(Kept())


def test_a_batch_too_large_changes_nothing(bench: Bench) -> None:
    batch, home = store_message(1, bytes(FULL * 3 // 4))
    with pytest.raises(StorageError, match=r"DMQ3003.*a journal-file-size larger than 65536"):
        bench.store.append(batch)
    assert home.segment == 0
    bench.note()
    bench.wait()
    bench.start()
    assert bench.kept.records == [(1, b"note")]


def test_a_large_batch_is_preceded_by_a_roll_that_repeats_the_state(bench: Bench) -> None:
    bench.sync()
    bench.listener.source.now = b"state of the batch in hand"
    homes = [bench.put(bytes(size)) for size in (25_000, 18_000, 25_000)]
    assert [home.segment for home in homes] == [1, 1, 2]
    assert bench.store.read(homes[2]) == bytes(25_000), "which writes it"
    bench.start()
    assert bench.kept.states == [(0, b"state")]
    assert [position for position, _ in bench.kept.records] == [1, 2, 3]
    assert [len(bench.store.read(home)) for home in bench.kept.homes] == [25_000, 18_000, 25_000]


def test_a_message_may_be_released_by_the_batch_that_stores_it(bench: Bench) -> None:
    batch, home = store_message(1, b"gone at once")
    batch.targets[:] = batch.released[:] = [home]
    bench.store.append(batch)
    bench.position = 1
    bench.sync()
    bench.roll()
    bench.roll()
    assert home.segment == 1
    assert 1 not in bench.segments


def test_a_message_without_body_has_a_home(bench: Bench) -> None:
    home = bench.put(b"")
    assert (home.segment, bench.store.read(home)) == (1, b"")
    bench.release(home)
    with pytest.raises(InvariantError, match="DMQ3020"):
        bench.release(home)


def test_what_was_just_appended_can_be_read(bench: Bench) -> None:
    home = bench.put(b"body")
    assert bench.store.read(home) == b"body"


def test_misuse_is_named(bench: Bench) -> None:
    with pytest.raises(MisuseError, match="DMQ3014"):
        bench.store.recover(Kept())
    with pytest.raises(StorageError, match=r"DMQ3013.*journal-file-size is 1000"):
        JournalStore(bench.disk, JournalSettings(file_size_bytes=1000), node_id=NODE, syncer=bench.syncer)
    bench.store.close(1)
    with pytest.raises(StorageError, match="DMQ3024"):
        bench.store.append(note(1))
    with pytest.raises(StorageError, match="DMQ3024"):
        bench.store.wait_synced(Position(1), 1)
