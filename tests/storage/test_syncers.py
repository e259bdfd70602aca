"""Both syncers do the same: sync, prepare, remove, and tell of errors. The process ends with its parent."""

import errno
import itertools
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.model.errors import StorageError
from delosmq.model.ids import Position
from delosmq.storage.journal.files import Files, Order, OsFiles
from delosmq.storage.journal.manifest import MANIFEST_NAME, NewManifest
from delosmq.storage.journal.records import FileHeader, encode_file_header
from delosmq.storage.journal.store import JournalStore
from delosmq.storage.journal.sync.sync_process import FRAME, Frames, SyncProcess
from delosmq.storage.journal.sync.syncer import Prepared, Replaced, Report, Synced, Syncer, SyncerDied, SyncThread
from tests.patience import PATIENCE_S
from tests.storage.support import NODE, SMALL, Kept, Listener, note

HEADER = encode_file_header(FileHeader(1, NODE, 5, 70_000))


class BrokenFiles(OsFiles):
    """Fails every sync."""

    def fdatasync(self, handle: int) -> None:
        raise OSError(errno.EIO, "broken")


class FullFiles(OsFiles):
    """Has no room."""

    def fill(self, handle: int, start: int, size_bytes: int) -> None:
        raise OSError(errno.ENOSPC, "full")


class NamelessFiles(OsFiles):
    """Has no room for names."""

    def sync_directory(self) -> None:
        raise OSError(errno.ENOSPC, "full")


def open_syncer(kind: type[Syncer], files: Files) -> Syncer:
    return kind(files)  # type: ignore[call-arg]


def children() -> set[int]:
    """The processes that this one has forked."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that ends meanwhile has forked none
            found.update(int(pid) for pid in (task / "children").read_text().split())
    return found


def forked(files: Files) -> tuple[SyncProcess, int]:
    """A sync process and its number."""
    before = children()
    syncer = SyncProcess(files)
    (pid,) = children() - before
    return syncer, pid


def reports(syncer: Syncer, count: int) -> list[Report]:
    found: list[Report] = []
    while len(found) < count:
        got = syncer.wait(PATIENCE_S)
        assert got, "no answer"
        found += got
    return found


KINDS = pytest.mark.parametrize("kind", [SyncThread, SyncProcess], ids=["thread", "process"])


@KINDS
def test_files_are_prepared_recycled_and_removed(kind: type[Syncer], tmp_path: Path) -> None:
    syncer = open_syncer(kind, OsFiles(tmp_path))
    (tmp_path / "short").write_bytes(b"stale" * 100)
    (tmp_path / "gone").write_bytes(b"")
    syncer.remove("gone")
    syncer.prepare(Order("new", HEADER, 70_000))
    syncer.prepare(Order("short", HEADER, 70_000))
    assert reports(syncer, 2) == [Prepared("new", None), Prepared("short", None)]
    syncer.close()
    syncer.close()
    assert (tmp_path / "new").read_bytes() == HEADER + bytes(70_000 - len(HEADER))
    assert (tmp_path / "short").read_bytes() == HEADER + (b"stale" * 100)[len(HEADER) :] + bytes(69_500)
    assert sorted(os.listdir(tmp_path)) == ["new", "short"]
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600


@KINDS
def test_a_sync_of_many_files_is_one_answer(kind: type[Syncer], tmp_path: Path) -> None:
    files = OsFiles(tmp_path)
    syncer = open_syncer(kind, files)
    handles = [files.open(f"file{number}", create=True) for number in range(150)]
    syncer.sync(7, handles)
    assert reports(syncer, 1) == [Synced(7, None)]
    syncer.close()
    for handle in handles:
        files.close(handle)


@KINDS
def test_a_sync_of_nothing_is_answered(kind: type[Syncer], tmp_path: Path) -> None:
    syncer = open_syncer(kind, OsFiles(tmp_path))
    syncer.sync(7, [])
    assert reports(syncer, 1) == [Synced(7, None)]
    syncer.close()


@KINDS
@pytest.mark.parametrize(("files", "unchanged"), [(FullFiles, True), (NamelessFiles, False)])
def test_a_manifest_that_is_not_replaced_tells_whether_it_is_unchanged(
    kind: type[Syncer], files: type[OsFiles], unchanged: bool, tmp_path: Path
) -> None:
    syncer = open_syncer(kind, files(tmp_path))
    syncer.replace_manifest(7, NewManifest(b"new", 5))
    (report,) = reports(syncer, 1)
    assert isinstance(report, Replaced)
    assert report.error is not None
    assert (report.ticket, report.error.errno, report.unchanged) == (7, errno.ENOSPC, unchanged)
    syncer.close()


@KINDS
def test_a_manifest_is_replaced(kind: type[Syncer], tmp_path: Path) -> None:
    (tmp_path / MANIFEST_NAME).write_bytes(b"old")
    syncer = open_syncer(kind, OsFiles(tmp_path))
    syncer.replace_manifest(7, NewManifest(b"new", 5))
    assert reports(syncer, 1) == [Replaced(7, None)]
    syncer.close()
    assert (tmp_path / MANIFEST_NAME).read_bytes() == b"new\0\0"
    assert os.listdir(tmp_path) == [MANIFEST_NAME]


@KINDS
def test_errors_come_back(kind: type[Syncer], tmp_path: Path) -> None:
    files = BrokenFiles(tmp_path)
    syncer = open_syncer(kind, files)
    handle = files.open("file", create=True)
    syncer.sync(1, [handle])
    (report,) = reports(syncer, 1)
    assert isinstance(report, Synced)
    assert report.error is not None
    assert report.error.errno == errno.EIO
    syncer.close()
    files.close(handle)


@KINDS
def test_a_file_that_has_no_room_is_removed_again(kind: type[Syncer], tmp_path: Path) -> None:
    syncer = open_syncer(kind, FullFiles(tmp_path))
    syncer.prepare(Order("new", HEADER, 70_000))
    (report,) = reports(syncer, 1)
    assert isinstance(report, Prepared)
    assert report.error is not None
    assert (report.name, report.error.errno) == ("new", errno.ENOSPC)
    assert os.listdir(tmp_path) == []
    syncer.close()


def test_a_dead_sync_process_fails_the_journal(tmp_path: Path) -> None:
    syncer, pid = forked(OsFiles(tmp_path))
    listener = Listener()
    store = JournalStore(OsFiles(tmp_path), SMALL, node_id=NODE, syncer=syncer)
    store.attach(listener, listener.source)
    store.recover(Kept())
    os.kill(pid, signal.SIGKILL)
    store.append(note(1))
    with pytest.raises(StorageError, match="DMQ3019"):
        store.wait_synced(Position(1), 10)
    assert len(listener.failures) == 1
    assert listener.synced == []
    with pytest.raises(StorageError, match="DMQ3019"):
        store.close(1)


def test_the_sync_process_ignores_the_signals_that_end_its_parent(tmp_path: Path) -> None:
    syncer, pid = forked(OsFiles(tmp_path))
    syncer.prepare(Order("first", HEADER, 70_000))
    reports(syncer, 1)
    os.kill(pid, signal.SIGINT)
    os.kill(pid, signal.SIGTERM)
    syncer.prepare(Order("second", HEADER, 70_000))
    assert reports(syncer, 1) == [Prepared("second", None)]
    syncer.close()


PARENT = """
import os, signal, sys
from pathlib import Path
from delosmq.storage.journal.files import OsFiles
from delosmq.storage.journal.sync.sync_process import FRAME, Frames, SyncProcess
syncer = SyncProcess(OsFiles(Path(sys.argv[1])))
sys.stdout.write("x")
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_sync_process_ends_with_its_parent(tmp_path: Path) -> None:
    # The child holds the pipe as well: reading to its end is waiting for both to be gone.
    parent = subprocess.run([sys.executable, "-c", PARENT, str(tmp_path)], capture_output=True, timeout=60, check=False)
    assert parent.returncode == -signal.SIGKILL
    assert parent.stdout == b"x"


def test_what_the_syncer_says_after_death_is_death(tmp_path: Path) -> None:
    syncer, pid = forked(OsFiles(tmp_path))
    os.kill(pid, signal.SIGKILL)
    (report,) = reports(syncer, 1)
    assert isinstance(report, SyncerDied)
    syncer.close()


class ListedFiles(OsFiles):
    """Writes down what was synced, from whichever process."""

    def fdatasync(self, handle: int) -> None:
        with (self.path_of_list).open("a") as listed:
            listed.write(f"{os.fstat(handle).st_ino}\n")

    @property
    def path_of_list(self) -> Path:
        return Path(self.path("listed"))


def test_the_sync_process_syncs_the_file_that_is_meant_though_its_number_was_another_ones(tmp_path: Path) -> None:
    files = ListedFiles(tmp_path)
    syncer = SyncProcess(files)
    inodes: list[int] = []
    ticket = 0

    def sync(*handles: int) -> None:
        nonlocal ticket
        ticket += 1
        inodes.extend(os.fstat(handle).st_ino for handle in handles)
        syncer.sync(ticket, handles)
        assert reports(syncer, 1) == [Synced(ticket, None)]

    first = files.open("first", create=True)
    sync(first)
    sync(first)
    files.close(first)
    other = files.open("other", create=True)
    assert other == first, "the number is free again"
    sync(other)
    sync(other)
    third = files.open("third", create=True)
    sync(other, third)
    sync(third)
    sync()
    sync(third)
    syncer.close()
    files.close(other)
    files.close(third)
    assert [int(line) for line in files.path_of_list.read_text().split()] == inodes


def test_the_sync_process_keeps_the_last_files_only(tmp_path: Path) -> None:
    files = OsFiles(tmp_path)
    syncer, pid = forked(files)
    counts: list[int] = []
    for ticket in range(1, 6):
        handle = files.open(f"file{ticket}", create=True)
        syncer.sync(ticket, [handle])
        assert reports(syncer, 1) == [Synced(ticket, None)]
        counts.append(len(os.listdir(f"/proc/{pid}/fd")))
        files.close(handle)
    assert counts == [counts[0]] * 5
    syncer.close()


@given(
    st.lists(st.tuples(st.integers(0, 255), st.one_of(st.binary(max_size=40), st.just(bytes(200_000)))), max_size=8),
    st.lists(st.integers(1, 70_000), min_size=1, max_size=20),
)
def test_frames_come_whole_however_they_are_cut(sent: list[tuple[int, bytes]], sizes: list[int]) -> None:
    stream = b"".join(FRAME.pack(kind, len(payload)) + payload for kind, payload in sent)
    frames = Frames()
    got: list[tuple[int, bytes]] = []
    at = 0
    for size in itertools.cycle(sizes):
        got += frames.add(stream[at : at + size])
        at += size
        if at >= len(stream):
            break
    assert got == sent
    assert not frames.begun


class TogetherFiles(OsFiles):
    """Its syncs end when three are under way."""

    together = threading.Barrier(3)

    def fdatasync(self, handle: int) -> None:
        self.together.wait(60)

    def sync_directory(self) -> None:
        self.together.wait(60)


def test_what_a_start_syncs_it_waits_for_together(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).touch()
    TogetherFiles(tmp_path).sync_all(["a", "b"])


def test_a_sync_of_several_that_fails_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(OSError, match="broken"):
        BrokenFiles(tmp_path).sync_all(["a"])
    with pytest.raises(FileNotFoundError):
        OsFiles(tmp_path).sync_all(["missing"])
