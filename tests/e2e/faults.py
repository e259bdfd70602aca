"""A directory whose disk gets full or broken when a test says so."""

import errno
import threading
from pathlib import Path

from delosmq.engine.base.events import EngineEvents
from delosmq.model.settings import JournalSettings
from delosmq.storage.journal import JournalStore
from delosmq.storage.journal.files import OsFiles
from delosmq.storage.journal.sync.syncer import SyncThread
from tests.patience import PATIENCE_S

NODE = bytes(range(16))
SMALL_JOURNAL = JournalSettings("journal", file_size_bytes=64 * 1024)


class FaultyFiles(OsFiles):
    """Real files.

    Attributes:
        full: no file can be made any longer.
        broken: syncs fail.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.full = False
        self.broken = False

    def fill(self, handle: int, start: int, size_bytes: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().fill(handle, start, size_bytes)

    def fdatasync(self, handle: int) -> None:
        if self.broken:
            raise OSError(errno.EIO, "Input/output error")
        super().fdatasync(handle)


def journal_on(files: FaultyFiles) -> JournalStore:
    return JournalStore(files, SMALL_JOURNAL, node_id=NODE, syncer=SyncThread(files))


class Watch(EngineEvents):
    """Tells a test when producers are blocked, and when no longer."""

    def __init__(self) -> None:
        self._blocked = threading.Event()
        self._unblocked = threading.Event()

    def address_blocked(self, address: str) -> None:
        self._unblocked.clear()
        self._blocked.set()

    def address_unblocked(self, address: str) -> None:
        self._unblocked.set()

    def wait_blocked(self) -> None:
        assert self._blocked.wait(PATIENCE_S), "producers are never blocked"

    def wait_unblocked(self) -> None:
        assert self._unblocked.wait(PATIENCE_S), "producers stay blocked"
