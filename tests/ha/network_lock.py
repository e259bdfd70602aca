"""`delosmq run` with a lock that a test takes away, as a file server does with that of a broker it does not hear of.

The directory's lock has a number, in the file ``lock-number``. Who asks gets the lock of the present number; who holds
that of an earlier one is not told, so that nothing but the epoch tells it that another broker is active.
"""

import fcntl
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from delosmq.storage.lock import DirectoryLock

NUMBER = "lock-number"


def take_lock_away(directory: Path) -> None:
    """The next one who asks gets the lock."""
    path = directory / NUMBER
    new = path.with_suffix(".new")
    new.write_text(str(present(directory) + 1))
    new.rename(path)


def present(directory: Path) -> int:
    path = directory / NUMBER
    return int(path.read_text()) if path.exists() else 1


class ServerLock(DirectoryLock):
    """The lock of one number."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, wanted=False)
        self._directory = directory
        self._held = -1

    def try_to_take(self) -> bool:
        self.let_go()
        path = self._directory / f"{self.path.name}.{present(self._directory)}"
        self._held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.let_go()
            return False
        return True

    def let_go(self) -> None:
        if self._held != -1:
            os.close(self._held)
            self._held = -1

    def still_holds(self) -> bool:
        return True

    def filenos(self) -> Sequence[int]:
        return [self._held]

    def release(self) -> None:
        if hasattr(self, "_held"):
            self.let_go()
        super().release()


if __name__ == "__main__":
    from delosmq.cli.run import run_main

    sys.exit(run_main(sys.argv[2:], lock_of=ServerLock))
