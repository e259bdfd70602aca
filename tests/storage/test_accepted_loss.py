"""An operator goes on without what is lost: everything that is left is there, and the next start is an ordinary one."""

# BROKER-1

import logging
from random import Random

import pytest

from delosmq.model.errors import StorageError
from delosmq.model.message import Home
from delosmq.storage.journal.manifest import MANIFEST_NAME, load
from delosmq.storage.journal.records import DATA_START
from tests.simulation.disk import Killed
from tests.simulation.process_kills import STEPS_OF_A_START
from tests.storage.bench import Bench
from tests.storage.support import NODE
from tests.storage.test_newest_file import EARLIER, Case, blank

HISTORIES = range(60)


def without_footer(bench: Bench, segment: int) -> str:
    """A sealed segment whose footer is gone: its blocks are read."""
    name = bench.name_of(segment)
    manifest = load(bench.disk, NODE)
    assert manifest is not None
    content = bench.content(name)
    bench.replace(name, blank(content, manifest.sealed[segment].end, len(content)))
    return name


def test_a_sealed_file_that_is_damaged_within_is_gone_without_and_kept(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    homes = [bench.fill_segment() for _ in range(3)]
    segment = homes[1][0].segment
    name = without_footer(bench, segment)
    bench.damage(name, homes[1][3].offset)
    damaged = bench.content(name)
    with pytest.raises(StorageError, match=f"DMQ3010: /sim/{name}: .*--accept-loss"):
        bench.start()
    bench.start(accept_loss=True)
    assert f"/sim/{name}: offset " in caplog.text
    assert bench.content(f"{name}.damaged") == damaged
    left = [home.offset for part in (homes[0], homes[2]) for home in part]
    assert [home.offset for home in bench.kept.homes] == left
    for home in bench.kept.homes:
        assert bench.store.read(home) == bytes(3000)
    bench.start()
    assert [home.offset for home in bench.kept.homes] == left


def test_what_is_removed_from_a_file_that_is_damaged_within_is_not_counted_twice(bench: Bench) -> None:
    """Without a manifest: later segments hold removals of messages that can't be read any more."""
    first, second = bench.fill_segment(), bench.fill_segment()
    bench.release(*first[2:])
    bench.fill_segment()
    name = without_footer(bench, first[0].segment)
    bench.damage(name, first[4].offset)
    bench.delete(MANIFEST_NAME)
    bench.start(accept_loss=True)
    assert f"{name}.damaged" in bench.disk.files
    kept = [home for home in bench.kept.homes if home.segment == second[0].segment]
    bench.release(*kept)
    bench.fill_segment()
    bench.start()
    bench.start()


def test_a_file_without_its_beginning_is_believed_by_its_footer_without_a_manifest(bench: Bench) -> None:
    first = bench.fill_segment()
    bench.fill_segment()
    bench.damage(bench.name_of(first[0].segment), DATA_START + 20)
    bench.delete(MANIFEST_NAME)
    bench.start(accept_loss=True)
    assert [home.offset for home in bench.kept.homes][: len(first)] == [home.offset for home in first]
    assert bench.store.read(bench.kept.homes[0]) == bytes(3000)


def harm(bench: Bench, random: Random) -> None:
    names = sorted(name for name in bench.disk.files if name.endswith(".dmq"))
    for name in random.sample(names, random.randrange(1, min(3, len(names)) + 1)):
        content = bench.content(name)
        kind = random.randrange(4)
        if kind == 0:
            bench.delete(name)
        elif kind == 1:
            bench.replace(name, content[: random.randrange(len(content))])
        elif kind == 2:
            bench.replace(name, blank(content, 0, 64))
        else:
            bench.damage(name, random.randrange(DATA_START, len(content) // 2))
    if random.random() < 0.3:
        bench.delete(MANIFEST_NAME)


def harmed(seed: int) -> Bench:
    random = Random(seed)
    bench = Bench(Random(seed))
    Case(bench, random.choice(list(EARLIER)))
    if random.random() < 0.5:
        bench.store.close(1)
    harm(bench, random)
    return bench


def read_error(bench: Bench, home: Home) -> StorageError | None:
    try:
        bench.store.read(home)
    except StorageError as error:
        return error
    return None


def go_on(bench: Bench) -> None:
    """All that the journal says is there can be read and removed, and more comes."""
    for home in bench.kept.homes:
        if home.size_bytes:
            error = read_error(bench, home)
            assert error is None or error.code == "DMQ3040"
    bench.note(b"later")
    bench.sync()
    bench.fill_segment()


@pytest.mark.parametrize("seed", HISTORIES)
def test_any_harm_can_be_gone_on_with_once(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    bench = harmed(seed)
    for accept_loss in (True, False, False):
        bench.start(accept_loss=accept_loss)
        go_on(bench)
        if seed % 2:
            bench.store.close(1)


@pytest.mark.parametrize("seed", range(0, 60, 10))
def test_a_start_with_a_loss_that_is_killed_is_repeated(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    for step in range(STEPS_OF_A_START):
        bench = harmed(seed)
        bench.disk.steps_left = step
        try:
            bench.start(accept_loss=True)
        except Killed:
            bench.disk.steps_left = None
            bench.disk = bench.disk.power_cut()
            bench.start(accept_loss=True)
        bench.disk.steps_left = None
        go_on(bench)
        bench.start()
