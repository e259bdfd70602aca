"""The store that a configuration asks for."""

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from delosmq.config.shared_configuration import configuration_digests
from delosmq.model.errors import ConfigurationError, InvariantError
from delosmq.model.settings import BackupPolicy, BrokerSettings, DatabaseStoreSettings, PrimaryPolicy
from delosmq.storage.activation import Activation, Role
from delosmq.storage.journal import open_journal
from delosmq.storage.journal.files import Files
from delosmq.storage.memory import MemoryStore
from delosmq.storage.port import ServedStore
from delosmq.storage.shared_directory import DirectoryActivation, LockOf, open_unlocked


def open_store(
    settings: BrokerSettings,
    *,
    sync_process: bool,
    logger: logging.Logger,
    accept_loss: bool = False,
    files: Files | None = None,
    activation: Activation | None = None,
) -> ServedStore:
    """The store a configuration asks for, not recovered yet.

    Args:
        accept_loss, files: see `open_journal`.
        activation: what `open_activation` gave, and by now active.

    Raises:
        ConfigurationError: another broker uses its directory, or is to; or what reaches its database is not installed.
        StorageError: its directory can't be made or read.
    """
    if not settings.journal.directory:
        return MemoryStore()
    if settings.ha_policy is not None and activation is None:
        raise ConfigurationError(
            "DMQ6037",
            f"broker '{settings.name}' shares its store, as <ha-policy> says, and an embedded broker waits for no "
            "other; start it with `delosmq run`, or remove <ha-policy>",
        )
    if settings.database is not None:
        return _open_database(settings, settings.database, logger, activation)
    if activation is not None and type(activation) is not DirectoryActivation:
        raise InvariantError("DMQ6036", f"a journal is opened with the lock of its directory, not with {activation!r}")
    return open_journal(
        Path(settings.journal.directory),
        settings.journal,
        sync_process=sync_process,
        accept_loss=accept_loss,
        logger=logger,
        files=files,
        activation=activation,
    )


def open_activation(settings: BrokerSettings, lock_of: LockOf = open_unlocked) -> Activation | None:
    """By what a broker becomes active that shares its store; None for one that does not.

    Args:
        lock_of: makes the lock of a shared directory.

    Raises:
        ConfigurationError: the shared directory can't be used.
    """
    policy = settings.ha_policy
    if policy is None:
        return None
    role = Role.PRIMARY if isinstance(policy, PrimaryPolicy) else Role.BACKUP
    makes_way = isinstance(policy, BackupPolicy) and policy.allow_failback
    if settings.database is not None:
        return _database_activation(settings, settings.database, role, makes_way=makes_way)
    return DirectoryActivation(
        Path(settings.journal.directory),
        role,
        makes_way=makes_way,
        configuration=configuration_digests(settings),
        lock_of=lock_of,
    )


def _open_database(
    settings: BrokerSettings,
    database: DatabaseStoreSettings,
    logger: logging.Logger,
    activation: Activation | None,
) -> ServedStore:
    with _with_psycopg():
        from delosmq.storage.postgres.activation import PostgresActivation
        from delosmq.storage.postgres.store import PostgresStore
    takeover = activation.takeover if type(activation) is PostgresActivation else None
    if activation is not None and takeover is None:
        raise InvariantError("DMQ6042", f"tables are opened by who has taken them over, not with {activation!r}")
    return PostgresStore(database, settings.journal, logger=logger, takeover=takeover)


def _database_activation(
    settings: BrokerSettings, database: DatabaseStoreSettings, role: Role, *, makes_way: bool
) -> Activation:
    with _with_psycopg():
        from delosmq.storage.postgres.activation import PostgresActivation
    return PostgresActivation(
        database,
        role,
        node_id=uuid.uuid4().bytes,
        makes_way=makes_way,
        configuration=configuration_digests(settings),
    )


@contextmanager
def _with_psycopg() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ConfigurationError(
            "DMQ6040",
            f"<database-store> needs psycopg, which can't be loaded ({error}); install it with "
            "`pip install 'delosmq[postgres]'`",
        ) from error
