"""A process is killed between a change on the disk and its sync: the next start must not build on what is in the page
cache only, or a power cut after it shows a journal without files that were confirmed."""

# BROKER-1

import copy
import errno
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from delosmq.model.errors import StorageError
from delosmq.storage.journal.manifest import MANIFEST_NAME, NewManifest
from tests.simulation.disk import SimDisk
from tests.simulation.process_kills import STEPS_OF_A_START, killed_start
from tests.storage.bench import Bench
from tests.storage.support import SMALL

SEEDS = range(8)
MOST_STEPS = 7


def used(seed: int) -> Bench:
    """A journal in which files have been used again, with one more to free."""
    bench = Bench(Random(seed))
    kept = bench.fill_segment()
    for _ in range(3):
        homes = bench.fill_segment()
        bench.release(*kept)
        bench.sync()
        kept = homes
    bench.release(*kept)
    bench.sync()
    return bench


def an_edit(bench: Bench) -> None:
    bench.fill()
    bench.note()
    bench.store.flush()


def a_new_manifest(bench: Bench) -> None:
    """The old one is nearly full, and there was no room for another one at the start."""
    content = bench.content(MANIFEST_NAME)
    bench.replace(MANIFEST_NAME, content[: len(content.rstrip(b"\0")) + 200])
    bench.disk.process_crash()
    bench.disk.free_bytes = SMALL.file_size_bytes
    bench.start()
    bench.disk.free_bytes = None
    bench.note()
    bench.store.flush()
    assert isinstance(bench.syncer.syncs[0][4], NewManifest)


def a_new_file(bench: Bench) -> None:
    bench.disk.process_crash()
    bench.start(settings=replace(SMALL, spare_files=9))
    while getattr(bench.syncer.orders[0], "name", "") in bench.disk.files:
        bench.syncer.step_order()


WAYS: dict[str, Callable[[Bench], None]] = {
    "an edit": an_edit,
    "a new manifest": a_new_manifest,
    "a new file": a_new_file,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_power_may_go_at_any_step_of_the_start_after_a_kill(seed: int, way: str) -> None:
    bench = used(seed)
    confirmed = bench.position
    WAYS[way](bench)
    before = bench.disk, bench.syncer
    for steps in range(MOST_STEPS):
        disk, syncer = copy.deepcopy(before)
        syncer.killed_after(steps)
        for step in range(STEPS_OF_A_START):
            found = copy.deepcopy(disk)
            found.random = Random(f"{seed} {steps} {step}")
            killed_start(found, SMALL, step)
            check(bench, found.power_cut(), confirmed)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_power_may_go_some_time_after_the_start_after_a_kill(seed: int, way: str) -> None:
    for steps in range(MOST_STEPS):
        bench = used(seed)
        WAYS[way](bench)
        bench.syncer.killed_after(steps)
        bench.start()
        for _ in range(2):
            bench.release(*bench.fill_segment())
            bench.sync()
        check(bench, bench.disk.power_cut(), bench.position)


def check(bench: Bench, found: SimDisk, confirmed: int) -> None:
    """The journal starts, with all that was confirmed."""
    bench.disk = found
    bench.start()
    assert bench.position >= confirmed


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("step", ["rename", "sync_directory"])
def test_a_new_manifest_that_may_have_its_name_ends_the_journal(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    """The old one may be without a name: edits in it would be nowhere after a restart."""
    real = getattr(bench.disk, step)

    def fails_when_done(*names: str) -> None:
        real(*names)
        raise OSError(number, "simulated")

    confirmed = bench.position
    a_new_manifest(bench)
    old = bench.disk.files[MANIFEST_NAME]
    monkeypatch.setattr(bench.disk, step, fails_when_done)
    bench.syncer.step_sync()
    bench.store.on_readable()
    assert [str(error)[:7] for error in bench.listener.failures] == ["DMQ3019"]
    assert old not in bench.disk.handles.values()
    monkeypatch.undo()
    bench.disk.process_crash()
    check(bench, bench.disk, confirmed)


@pytest.mark.parametrize("step", ["rename", "sync_directory"])
def test_a_start_whose_new_manifest_may_have_its_name_ends(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    bench.replace("manifest", bench.content("manifest")[:9000])
    real = getattr(bench.disk, step)

    def fails_when_done(*names: str) -> None:
        real(*names)
        if "manifest.new" not in bench.disk.files and len(bench.content("manifest")) > 9000:
            raise OSError(errno.ENOSPC, "simulated")

    monkeypatch.setattr(bench.disk, step, fails_when_done)
    with pytest.raises(StorageError, match="DMQ3034: /sim/manifest"):
        bench.start()
