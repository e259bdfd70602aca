"""The files of a journal that can lose what was not synced, as a machine does whose power fails.

A write goes to the file at once, and what it replaced is kept until the file is synced. Files that are made, filled,
cut, renamed or removed stay so: the journal waits for the disk with these, and few tests could tell the difference.
Nothing is forced onto the disk, as the test decides what survives: a sync costs nothing.
"""

import errno
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from delosmq.storage.journal.files import OsFiles

CUT = "a test made this disk fail"


@dataclass(frozen=True)
class Overwritten:
    """What was in a file before a write. ``number``: of the write."""

    number: int
    offset: int
    content: bytes


class SyncedFiles(OsFiles):
    """A directory. Called by the broker's thread and by the one that syncs."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._names: dict[int, str] = {}
        self._replaced: dict[str, list[Overwritten]] = {}
        self._writes = 0
        self._cut = False
        self._stalled = False
        self._sync_s = 0.0
        self._guard = threading.Condition(threading.RLock())

    def cut(self) -> None:
        """Takes back what was not synced, and fails from now on."""
        with self._guard:
            self._cut = True
            for name, replaced in self._replaced.items():
                handle = super().open(name)
                try:
                    for one in reversed(replaced):
                        os.pwrite(handle, one.content, one.offset)
                finally:
                    super().close(handle)
            self._replaced.clear()
            self._guard.notify_all()

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """A disk that takes writes and does not get done with syncs: nothing durable is confirmed in the block."""
        with self._guard:
            self._stalled = True
        try:
            yield
        finally:
            with self._guard:
                self._stalled = False
                self._guard.notify_all()

    @contextmanager
    def slow(self, sync_s: float) -> Iterator[None]:
        """A disk of which each sync takes so much longer."""
        with self._guard:
            self._sync_s = sync_s
        try:
            yield
        finally:
            with self._guard:
                self._sync_s = 0.0
                self._guard.notify_all()

    def fail(self) -> None:
        """A disk that fails for good: the broker stops with the next durable message, and `Broker.stop` raises why."""
        with self._guard:
            self._cut = True
            self._guard.notify_all()

    @property
    def unsynced_bytes(self) -> int:
        """How much a cut would take back."""
        with self._guard:
            return sum(len(one.content) for replaced in self._replaced.values() for one in replaced)

    def open(self, name: str, *, create: bool = False) -> int:
        with self._guard:
            self._refuse()
            handle = super().open(name, create=create)
            self._names[handle] = name
            return handle

    def close(self, handle: int) -> None:
        with self._guard:
            self._names.pop(handle, None)
            super().close(handle)

    def pwritev(self, handle: int, parts: Sequence[bytes], offset: int) -> int:
        with self._guard:
            self._refuse()
            size_bytes = sum(map(len, parts))
            before = super().pread(handle, size_bytes, offset)
            # Beyond the end of a file there were no bytes, and zeros are read as none.
            before += bytes(size_bytes - len(before))
            self._writes += 1
            self._replaced.setdefault(self._names[handle], []).append(Overwritten(self._writes, offset, before))
            return super().pwritev(handle, parts, offset)

    def truncate(self, handle: int, size_bytes: int) -> None:
        with self._guard:
            self._refuse()
            super().truncate(handle, size_bytes)

    def fill(self, handle: int, start: int, size_bytes: int) -> None:
        with self._guard:
            self._refuse()
            super().truncate(handle, size_bytes)

    def fdatasync(self, handle: int) -> None:
        with self._guard:
            self._sync(self._names[handle])

    def sync_directory(self) -> None:
        with self._guard:
            self._refuse()

    def sync_all(self, names: Sequence[str]) -> None:
        with self._guard:
            for name in names:
                self._sync(name)
            self._refuse()

    def rename(self, name: str, new_name: str) -> None:
        with self._guard:
            self._refuse()
            super().rename(name, new_name)
            self._replaced.pop(new_name, None)
            for handle, known in self._names.items():
                if known == name:
                    self._names[handle] = new_name
            if name in self._replaced:
                self._replaced[new_name] = self._replaced.pop(name)

    def remove(self, name: str) -> None:
        with self._guard:
            self._refuse()
            super().remove(name)
            self._replaced.pop(name, None)

    def _sync(self, name: str) -> None:
        """Has what was written to a file up to now survive a cut."""
        newest = self._writes
        if self._sync_s:
            self._guard.wait_for(lambda: self._cut or not self._sync_s, self._sync_s)
        self._guard.wait_for(lambda: self._cut or not self._stalled)
        self._refuse()
        left = [one for one in self._replaced.pop(name, ()) if one.number > newest]
        if left:
            self._replaced[name] = left

    def _refuse(self) -> None:
        if self._cut:
            raise OSError(errno.EIO, CUT)
