"""A damaged journal: a torn tail is cut off and told, anything else refuses the start and names file and offset."""

# BROKER-1

import logging

import pytest

from delosmq.model.errors import StorageError
from delosmq.storage.journal.records import DATA_START
from tests.storage.bench import Bench


def test_a_torn_last_batch_is_cut_and_told(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.note(b"first")
    bench.sync()
    end = bench.open_segment.end
    bench.note(b"torn")
    bench.store.flush()
    name = bench.open_segment.name
    bench.damage(name, end + 50)
    with caplog.at_level(logging.WARNING):
        bench.start()
    assert bench.kept.records == [(1, b"first")]
    assert f"DMQ3011: /sim/{name}: offset {end}: torn tail after batch 1 cut off" in caplog.text


def test_later_whole_batches_behind_a_tear_are_dropped_and_counted(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.note(b"first")
    bench.sync()
    end = bench.open_segment.end
    for _ in range(3):
        bench.note(b"unsynced")
    bench.store.flush()
    bench.damage(bench.open_segment.name, end)
    with caplog.at_level(logging.WARNING):
        bench.start()
    assert bench.position == 1
    assert "2 later batches dropped" in caplog.text


def test_a_clean_end_is_not_told(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.note()
    bench.sync()
    with caplog.at_level(logging.WARNING):
        bench.start()
    assert bench.position == 1
    assert caplog.text == ""


def test_what_a_tear_left_behind_never_comes_back(bench: Bench) -> None:
    bench.put(b"first")
    bench.sync()
    end = bench.open_segment.end
    for _ in range(3):
        bench.put(b"ghost")
    bench.store.flush()
    bench.damage(bench.open_segment.name, end)
    for _ in range(3):
        bench.start()
        bench.put(b"newer")
        bench.sync()
    bench.start()
    assert [bench.store.read(home) for home in bench.kept.homes] == [b"first", b"newer", b"newer", b"newer"]


def test_damage_below_a_synced_batch_refuses_the_start(bench: Bench) -> None:
    bench.note(b"first")
    end = bench.open_segment.end
    bench.note(b"second")
    bench.sync()
    bench.note(b"third")
    bench.sync()
    name = bench.open_segment.name
    bench.damage(name, end + 60)
    with pytest.raises(StorageError, match=rf"DMQ3010.*{name}: offset {end}: damaged; batch 2"):
        bench.start()


def test_damage_to_the_last_batch_after_a_clean_stop_refuses_the_start(bench: Bench) -> None:
    end = bench.open_segment.end
    bench.note()
    bench.store.close(1)
    bench.damage(bench.open_segment.name, end + 10)
    with pytest.raises(StorageError, match=f"DMQ3010.*offset {end}"):
        bench.start()


def test_damage_in_a_sealed_segment_without_footer_refuses_the_start(bench: Bench) -> None:
    homes = bench.fill_segment()
    name = bench.name_of(homes[0].segment)
    bench.note()
    bench.sync()
    bench.note()
    bench.sync()
    bench.damage(name, 64 * 1024 - 10)  # the footer: only then the blocks are read
    bench.damage(name, homes[3].offset)
    with pytest.raises(StorageError, match=rf"DMQ3010.*{name}: offset {homes[2].offset + 3000}"):
        bench.start()


def test_a_damaged_body_is_refused_when_it_is_read(bench: Bench) -> None:
    homes = bench.fill_segment()
    name = bench.name_of(homes[0].segment)
    for _ in range(2):
        bench.note()
        bench.sync()
    bench.damage(name, homes[1].offset + 5)
    bench.start()
    assert bench.store.read(bench.kept.homes[0]) == bytes(3000)
    with pytest.raises(StorageError, match=rf"DMQ3040.*{name}: offset {homes[1].offset}: damaged body"):
        bench.store.read(bench.kept.homes[1])


def test_a_damaged_state_block_refuses_the_start(bench: Bench) -> None:
    bench.fill_segment()
    bench.note()
    bench.sync()
    bench.note()
    bench.sync()
    name = bench.open_segment.name
    bench.damage(name, DATA_START + 20)
    with pytest.raises(StorageError, match=f"DMQ3010.*{name}: offset {DATA_START}"):
        bench.start()


def test_a_state_block_whose_mark_is_damaged_is_found_through_the_footer_before_it(bench: Bench) -> None:
    bench.fill_segment()
    bench.note()
    bench.sync()
    bench.note()
    bench.sync()
    name = bench.open_segment.name
    bench.damage(name, DATA_START)
    with pytest.raises(StorageError, match=f"DMQ3010.*{name}: offset {DATA_START}"):
        bench.start()


def test_a_missing_segment_refuses_the_start(bench: Bench) -> None:
    homes = bench.fill_segment()
    del bench.disk.files[bench.name_of(homes[0].segment)]
    with pytest.raises(
        StorageError, match=r"DMQ3009: /sim/journal-000001.dmq: segment 1 is in no file .*the file is missing"
    ):
        bench.start()


def test_another_nodes_journal_is_refused(bench: Bench) -> None:
    with pytest.raises(StorageError, match=r"DMQ3008.*belongs to node 000102"):
        bench.start(node_id=bytes(16))


def test_a_foreign_file_is_refused(bench: Bench) -> None:
    handle = bench.disk.open("journal-000099.dmq", create=True)
    bench.disk.pwritev(handle, [b"SQLite format 3\0" * 20], 0)
    with pytest.raises(StorageError, match=r"DMQ3007.*journal-000099.dmq: offset 0: no valid journal header"):
        bench.start()


def test_an_unknown_version_is_refused(bench: Bench) -> None:
    bench.disk.files[bench.open_segment.name].seen[8] = 9
    with pytest.raises(StorageError, match=r"DMQ3006.*journal format 9 is unknown"):
        bench.start()


def test_a_copied_segment_is_refused(bench: Bench) -> None:
    handle = bench.disk.open("journal-000099.dmq", create=True)
    bench.disk.pwritev(handle, [bytes(bench.disk.files[bench.open_segment.name].seen)], 0)
    with pytest.raises(StorageError, match=r"DMQ3012.*journal-000099.dmq: holds segment 1"):
        bench.start()


def test_other_files_in_the_directory_do_not_matter(bench: Bench) -> None:
    bench.disk.open("lost+found", create=True)
    bench.start()


def test_an_unfinished_spare_is_made_ready_again(bench: Bench) -> None:
    handle = bench.disk.open("journal-000050.dmq", create=True)
    bench.disk.fill(handle, 0, 1000)
    bench.start()
    bench.sync()
    assert {len(file.seen) for name, file in bench.disk.files.items() if name != "manifest"} <= {0, 64 * 1024}
