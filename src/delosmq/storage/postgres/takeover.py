"""Taking the tables over: the epoch is raised where the lease has ended."""

import os
import platform
from dataclasses import dataclass

from delosmq.model.settings import DatabaseStoreSettings
from delosmq.storage.activation import LeaseClock
from delosmq.storage.postgres.connection import DatabaseConnection, whole
from delosmq.storage.postgres.epoch_lease import EpochLease
from delosmq.storage.postgres.tables import Tables


@dataclass(frozen=True)
class Takeover:
    """The tables are this broker's from an epoch on.

    Attributes:
        lease: what its holder may believe.
        node_id: as the tables have it.
    """

    lease: EpochLease
    node_id: bytes


def holder_name() -> str:
    """This process, for people."""
    return f"{platform.node()}, process {os.getpid()}"


def take_over(
    connection: DatabaseConnection,
    tables: Tables,
    settings: DatabaseStoreSettings,
    record: str,
    expected: tuple[int, str] | None = None,
) -> Takeover | None:
    """Raises the epoch, unless another broker's lease runs.

    Args:
        record: of the pair, as JSON; see `PostgresActivation`.
        expected: epoch and state of the pair that were seen before; None whatever they are.

    Raises:
        DatabaseError: it is not known whether it was.
    """
    asked = LeaseClock().monotonic_ns()
    epoch, state = (None, None) if expected is None else expected
    rows = connection.run(tables.take_over, settings.lock_expiration_ms / 1000, holder_name(), record, epoch, state)
    if not rows:
        return None
    lease = EpochLease(
        whole(rows[0][0]), whole(rows[0][1]), expiration_ns=settings.lock_expiration_ms * 1_000_000, asked_ns=asked
    )
    return Takeover(lease, rows[0][2] or b"")
