"""The lock of a directory that one broker at a time may use."""

import fcntl
import os
from pathlib import Path
from types import TracebackType

from delosmq.model.errors import ConfigurationError


class DirectoryLock:
    """Held from construction until `release`, or until the process ends, however it ends.

    A forked child inherits the open file and would go on holding the lock after its parent's death: it has to close
    `fileno` first.

    Args:
        directory: made when it is missing; the lock is the file ``lock`` in it.

    Raises:
        ConfigurationError: somebody else holds it, or the directory can't be written.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / "lock"
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as failure:
            message = f"{self.path} can't be opened: {failure.strerror}; the broker must be able to write there"
            raise ConfigurationError("DMQ4032", message) from failure
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as failure:
            holder = os.pread(self._descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            message = f"{directory} is in use by the broker with process id {holder}; stop that one first"
            raise ConfigurationError("DMQ4031", message) from failure
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        self._held = True

    def fileno(self) -> int:
        """The descriptor that holds the lock."""
        return self._descriptor

    def release(self) -> None:
        """Lets others in; a second call does nothing. The file stays."""
        if self._held:
            self._held = False
            os.close(self._descriptor)

    def __enter__(self) -> "DirectoryLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
