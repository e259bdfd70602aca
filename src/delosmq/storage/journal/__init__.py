"""The segment journal: the embedded durable store."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from delosmq.model.errors import StorageError
from delosmq.model.settings import JournalSettings
from delosmq.storage.activation import Fence
from delosmq.storage.activation_file import ActivationFile, ActivationRecord, EpochFence
from delosmq.storage.journal.files import Files, OsFiles
from delosmq.storage.journal.recovery.node_id import load_node_id
from delosmq.storage.journal.store import JournalStore
from delosmq.storage.journal.sync.epoch_files import EpochFiles
from delosmq.storage.journal.sync.sync_process import SyncProcess
from delosmq.storage.journal.sync.syncer import SyncThread
from delosmq.storage.lock import DirectoryLock
from delosmq.storage.shared_directory import DirectoryActivation

__all__ = ["JournalStore", "open_journal"]

DIRECTORY_MODE = 0o700


def open_journal(
    directory: Path,
    settings: JournalSettings,
    *,
    sync_process: bool,
    node_id: bytes | None = None,
    accept_loss: bool = False,
    logger: logging.Logger | None = None,
    files: Files | None = None,
    activation: DirectoryActivation | None = None,
) -> JournalStore:
    """A journal in ``directory`` (made when missing), locked until it is closed, still to be attached and recovered.

    Args:
        sync_process: True forks the sync process, which must happen before threads and the loop start; False uses
            threads, for brokers embedded in another program.
        node_id: the 16 bytes that the journal's files bear; None takes those of the directory.
        accept_loss: start without what is missing or damaged, which is told (DMQ3032), instead of refusing.
        files: what the journal writes by; None for the operating system's own.
        activation: has the lock of ``directory`` already, and keeps it when the journal is closed.

    Raises:
        ConfigurationError: another broker uses the directory, or it can't be locked.
        StorageError: the directory can't be made, or a setting is out of range.
    """
    try:
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError("DMQ3025", f"{directory}: the journal directory can't be made: {error}") from error
    lock = DirectoryLock(directory) if activation is None else None
    try:
        node_id = node_id or load_node_id(directory)
        files = OsFiles(directory) if files is None else files
        if activation is None:
            holds: Sequence[int] = () if lock is None else lock.filenos()
            epoch, fence = _epoch_of_one_alone(directory)
        else:
            holds, epoch, fence = activation.filenos(), activation.epoch, activation.fence()
        if fence is not None:
            files = EpochFiles(files, epoch, fence)
        # The sync process holds the lock as well: it may outlive a broker that is killed, and still writes then.
        syncer = SyncProcess(files, holds) if sync_process else SyncThread(files)
        try:
            return JournalStore(
                files,
                settings,
                node_id=node_id,
                syncer=syncer,
                lock=lock,
                accept_loss=accept_loss,
                logger=logger,
                epoch=epoch,
            )
        except StorageError:
            syncer.close()
            raise
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def _epoch_of_one_alone(directory: Path) -> tuple[int, Fence | None]:
    """The next epoch of a directory that brokers shared once; 0 and no fence for one that none did."""
    file = ActivationFile(directory)
    newest = file.epoch()
    if not newest:
        return 0, None
    epoch = newest + 1
    file.begin(epoch, ActivationRecord(f"a broker without ha-policy, process {os.getpid()}"))
    return epoch, EpochFence(file, epoch)
