"""The children of ``<ha-policy>``."""

from typing import Final

from delosmq.config.broker_xml.catalog.table import Table, in_effect, in_effect_of, refused, table
from delosmq.model.settings import BackupPolicy, PrimaryPolicy

_NO_SCALE_DOWN: Final = "the messages of a broker that stops would not move to another one; remove it"

HA_POLICY: Final[Table] = table(
    [
        in_effect("primary-only", "no backup, as without `<ha-policy>`"),
        in_effect("live-only", "older name of primary-only"),
        in_effect("shared-store", "holds `<primary>` or `<backup>`: of the brokers that share a store one is active"),
        refused(
            "replication",
            "no journal is copied to another broker; let both use one store, with <shared-store>: a <database-store> "
            "in PostgreSQL, which replicates it to another machine, or a <journal-directory> that both machines reach",
        ),
    ]
)
"""Below ``<ha-policy>``."""

PRIMARY_ONLY: Final[Table] = table([refused("scale-down", _NO_SCALE_DOWN)])
"""Below ``<primary-only>``."""

SHARED_STORE: Final[Table] = table(
    [
        in_effect("primary", "this broker should be the active one"),
        in_effect("master", "older name of primary"),
        in_effect("backup", "this broker takes over"),
        in_effect("slave", "older name of backup"),
        refused("colocated", "one process is one broker; start the backup as an instance of its own"),
    ]
)
"""Below ``<shared-store>``."""

PRIMARY: Final[Table] = table(in_effect_of(PrimaryPolicy))
"""Below ``<primary>``."""

BACKUP: Final[Table] = table(in_effect_of(BackupPolicy), [refused("scale-down", _NO_SCALE_DOWN)])
"""Below ``<backup>``."""
