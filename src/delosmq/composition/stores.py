"""The store that a configuration asks for."""

import logging
from pathlib import Path

from delosmq.model.settings import BrokerSettings
from delosmq.storage.journal import open_journal
from delosmq.storage.journal.files import Files
from delosmq.storage.memory import MemoryStore
from delosmq.storage.port import ServedStore


def open_store(
    settings: BrokerSettings,
    *,
    sync_process: bool,
    logger: logging.Logger,
    accept_loss: bool = False,
    files: Files | None = None,
) -> ServedStore:
    """The store a configuration asks for, not recovered yet.

    Args:
        accept_loss, files: see `open_journal`.

    Raises:
        ConfigurationError: another broker uses its directory.
        StorageError: its directory can't be made or read.
    """
    if not settings.journal.directory:
        return MemoryStore()
    directory = Path(settings.journal.directory)
    return open_journal(
        directory,
        settings.journal,
        sync_process=sync_process,
        accept_loss=accept_loss,
        logger=logger,
        files=files,
    )
