"""The segment journal: the embedded durable store."""

import logging
from pathlib import Path

from delosmq.model.errors import StorageError
from delosmq.model.settings import JournalSettings
from delosmq.storage.journal.files import OsFiles
from delosmq.storage.journal.store import JournalStore
from delosmq.storage.journal.sync_process import SyncProcess
from delosmq.storage.journal.syncer import SyncThread

__all__ = ["JournalStore", "open_journal"]

DIRECTORY_MODE = 0o700


def open_journal(
    directory: Path,
    settings: JournalSettings,
    *,
    node_id: bytes,
    sync_process: bool,
    logger: logging.Logger | None = None,
) -> JournalStore:
    """A journal in ``directory`` (made when missing), still to be attached and recovered.

    Args:
        node_id: the 16 bytes of the instance's UUID.
        sync_process: True forks the sync process, which must happen before threads and the loop start; False uses
            threads, for brokers embedded in somebody else's process.

    Raises:
        StorageError: the directory can't be made, or a setting is out of range.
    """
    try:
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError("DMQ3025", f"{directory}: the journal directory can't be made: {error}") from error
    files = OsFiles(directory)
    syncer = SyncProcess(files) if sync_process else SyncThread(files)
    try:
        return JournalStore(files, settings, node_id=node_id, syncer=syncer, logger=logger)
    except StorageError:
        syncer.close()
        raise
