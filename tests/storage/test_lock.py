"""One broker at a time uses a journal, whatever path leads to it, and nothing of a dead one keeps the next out."""

# BROKER-1

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import delosmq
from delosmq.model.errors import ConfigurationError
from delosmq.storage import lock
from delosmq.storage.journal import JournalStore, open_journal
from delosmq.storage.lock import DirectoryLock
from tests.storage.support import NODE, SMALL

HOLD = """
import os, sys
from pathlib import Path
from delosmq.storage.lock import DirectoryLock
lock = DirectoryLock(Path(sys.argv[1]))
"""
FORK = """
if os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
"""
JOURNAL = """
import sys
from pathlib import Path
from delosmq.storage.journal import open_journal
from tests.storage.support import SMALL
store = open_journal(Path(sys.argv[1]), SMALL, sync_process=True)
print(store._syncer._pid, flush=True)
"""
WAIT = """
sys.stdin.read()
"""


def open_at(directory: Path, *, sync_process: bool = False) -> JournalStore:
    return open_journal(directory, SMALL, node_id=NODE, sync_process=sync_process)


def as_given(directory: Path) -> Path:
    return directory


def by_symbolic_link(directory: Path) -> Path:
    link = directory.parent / "link"
    link.symlink_to(directory)
    return link


def by_link_to_parent(directory: Path) -> Path:
    link = directory.parent.parent / "other"
    link.symlink_to(directory.parent)
    return link / directory.name


def relative(directory: Path) -> Path:
    return Path(os.path.relpath(directory))


def with_detour(directory: Path) -> Path:
    return directory / ".." / directory.name


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "data" / "journal"
    store = open_at(directory)
    yield directory
    store.close(1)


@pytest.mark.parametrize("path", [as_given, by_symbolic_link, by_link_to_parent, relative, with_detour])
@pytest.mark.parametrize("sync_process", [False, True])
def test_a_journal_in_use_is_refused_by_any_path(journal: Path, path: object, sync_process: bool) -> None:
    assert callable(path)
    other = path(journal)
    with pytest.raises(ConfigurationError, match=f"DMQ4031: {other} is in use by .* id {os.getpid()}; stop that one"):
        open_at(other, sync_process=sync_process)


def test_a_lock_file_removed_as_stale_lets_nobody_in(journal: Path) -> None:
    (journal / "lock").unlink()
    with pytest.raises(ConfigurationError, match=f"DMQ4031: {journal} is in use"):
        open_at(journal)


def test_a_closed_journal_is_free(tmp_path: Path) -> None:
    for sync_process in (True, False, True):
        open_at(tmp_path, sync_process=sync_process).close(1)


def test_a_broker_that_is_refused_leaves_the_lock_where_it_is(journal: Path) -> None:
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="DMQ4031"):
            open_at(journal)


def test_nothing_is_written_into_a_journal_in_use(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path):
        before = sorted(tmp_path.iterdir())
        with pytest.raises(ConfigurationError, match="DMQ4031"):
            open_journal(tmp_path, SMALL, sync_process=False)
        assert sorted(tmp_path.iterdir()) == before


def test_embedded_brokers_do_not_share_a_journal(tmp_path: Path) -> None:
    with delosmq.Broker(tmp_path / "one", http=False):
        (tmp_path / "two").mkdir()
        (tmp_path / "two" / "journal").symlink_to(tmp_path / "one" / "journal")
        with pytest.raises(ConfigurationError, match=r"DMQ4031: .*two/journal is in use"):
            delosmq.Broker(tmp_path / "two", http=False).start()
    with delosmq.Broker(tmp_path / "two", http=False):
        pass


def start(script: str, directory: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_process_forked_off_a_broker_keeps_nobody_out(tmp_path: Path) -> None:
    with start(HOLD + FORK + WAIT, tmp_path) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        holder.kill()
        holder.wait(30)
        DirectoryLock(tmp_path).release()
        # Its child reads on until here.


def test_after_kill_the_next_broker_waits_for_the_sync_process_of_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(JOURNAL + WAIT, tmp_path) as holder:
        assert holder.stdout is not None
        sync_process = int(holder.stdout.readline())
        os.kill(sync_process, signal.SIGSTOP)  # as a slow disk does
        holder.kill()
        holder.wait(30)
        monkeypatch.setattr(lock, "PATIENCE_S", 0.0)
        with pytest.raises(ConfigurationError, match=f"DMQ4031.*{holder.pid}"):
            open_at(tmp_path)
        monkeypatch.undo()
        os.kill(sync_process, signal.SIGCONT)
        open_at(tmp_path).close(1)


def test_a_lock_says_the_process_and_nothing_of_a_longer_id(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("12345678901234567\n")
    with DirectoryLock(tmp_path) as lock:
        assert lock.path.read_text() == f"{os.getpid()}\n"
