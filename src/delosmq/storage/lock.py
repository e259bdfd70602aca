"""The lock of a directory that one broker at a time may use."""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from delosmq.model.errors import ConfigurationError

LOCK_FILE: Final = "lock"
PATIENCE_S: Final = 10.0
"""For the sync process of a broker that was killed: it ends once its last sync or fill has."""
LOOK_EVERY_S: Final = 0.02

_locked: set[int] = set()


def _close_in_child() -> None:
    """A process that is forked off a broker's, for whatever reason, holds nothing."""
    for descriptor in _locked:
        os.close(descriptor)
    _locked.clear()


os.register_at_fork(after_in_child=_close_in_child)


class DirectoryLock:
    """Held from construction until `release`, or until the process ends, however it ends.

    The directory itself is locked and a file in it. Two names of one directory (symbolic links, mounts) are the same
    lock; a file that was removed as "stale" lets no second broker in; and on NFS, which locks no directories, the file
    is locked.

    Args:
        directory: made when it is missing.
        wanted: False only opens it, for those who `try_to_take` it later.

    Raises:
        ConfigurationError: another broker holds it, or the directory can't be written or locked.
    """

    def __init__(self, directory: Path, *, wanted: bool = True) -> None:
        self.path = directory / LOCK_FILE
        self._descriptors: list[int] = []
        try:
            self._folder, self._file = self._open_both(directory)
            if wanted:
                self._take(directory)
        except BaseException:
            self.release()
            raise

    def _open_both(self, directory: Path) -> tuple[int, int]:
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = self._open(self.path, os.O_RDWR | os.O_CREAT)
            return self._open(directory, os.O_RDONLY | os.O_DIRECTORY), file
        except FileExistsError as failure:
            message = f"{directory} is a file and no directory; name another"
            raise ConfigurationError("DMQ4032", message) from failure
        except OSError as failure:
            message = f"{self.path} can't be opened: {failure.strerror}; the broker must be able to write there"
            raise ConfigurationError("DMQ4032", message) from failure

    def _take(self, directory: Path) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self.try_to_take():
            owner = self.owner
            if not _has_ended(owner) or time.monotonic() > deadline:
                message = (
                    f"{directory} is in use by the broker with process id {owner or 'unknown'}; stop that one first,"
                    " or give this one a directory of its own"
                )
                raise ConfigurationError("DMQ4031", message)
            time.sleep(LOOK_EVERY_S)

    def try_to_take(self) -> bool:
        """Whether it is held now; may be asked again.

        Raises:
            ConfigurationError: the file system has no locks.
        """
        if not self._lock(self._folder, is_file=False):
            return False
        if not self._lock(self._file, is_file=True):
            fcntl.flock(self._folder, fcntl.LOCK_UN)
            return False
        content = f"{os.getpid()}\n".encode("ascii")
        os.pwrite(self._file, content, 0)
        # Cutting waits for the disk, and most ids of processes have as many digits.
        if os.fstat(self._file).st_size > len(content):
            os.ftruncate(self._file, len(content))
        return True

    def let_go(self) -> None:
        """Lets others in; `try_to_take` may get it again."""
        for descriptor in self._descriptors:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def still_holds(self) -> bool:
        """Whether what `try_to_take` got is held still: a network file system may take it from a broker that it did not
        hear of, or the directory may have been replaced."""
        with contextlib.suppress(FileNotFoundError):  # removed as "stale": the directory is locked still
            found, held = os.stat(self.path), os.fstat(self._file)
            if (found.st_dev, found.st_ino) != (held.st_dev, held.st_ino):
                return False
        # Asked again, a lock that is held changes nothing; one that was lost is had by another one.
        return self._lock(self._folder, is_file=False) and self._lock(self._file, is_file=True)

    @property
    def owner(self) -> str:
        """The process id that the file names; "" for none."""
        return os.pread(self._file, 20, 0).decode("ascii", "replace").partition("\n")[0].strip()

    def _open(self, path: Path, flags: int) -> int:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
        self._descriptors.append(descriptor)
        _locked.add(descriptor)
        return descriptor

    def _lock(self, descriptor: int, *, is_file: bool) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as failure:
            if failure.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                return False
            if is_file:
                message = (
                    f"{self.path} can't be locked: {failure.strerror}; use a file system with locks (on NFS the"
                    " server's lock service must run), or another directory"
                )
                raise ConfigurationError("DMQ4036", message) from failure
        return True

    def filenos(self) -> Sequence[int]:
        """The descriptors that hold the lock."""
        return self._descriptors

    def release(self) -> None:
        """Lets others in; a second call does nothing. The file stays."""
        for descriptor in self._descriptors:
            if descriptor in _locked:
                _locked.discard(descriptor)
                os.close(descriptor)
        self._descriptors = []

    def __enter__(self) -> "DirectoryLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _has_ended(owner: str) -> bool:
    """Whether a process of this id is gone. What still holds its lock is then its sync process, on the way out."""
    if not owner.isdecimal():
        return False
    with contextlib.suppress(OSError):
        # A dead one that its parent has not asked for is still there; the state follows the name in brackets.
        return Path(f"/proc/{owner}/stat").read_text("utf-8", "replace").rpartition(") ")[2][:1] in {"Z", "X"}
    try:
        os.kill(int(owner), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
