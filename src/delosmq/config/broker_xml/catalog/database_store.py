"""The children of ``<store>``."""

from typing import Final

from delosmq.config.broker_xml.catalog.table import (
    Table,
    in_effect,
    in_effect_of,
    not_yet,
    refused_all,
    table,
)
from delosmq.model.settings import DatabaseStoreSettings

STORE: Final[Table] = table(
    [
        in_effect("file-store", "messages are kept in the journal, as without `<store>`"),
        in_effect("database-store", "messages are kept in [PostgreSQL](#a-store-in-postgresql)"),
    ]
)
"""Below ``<store>``."""

DATABASE_STORE: Final[Table] = table(
    [in_effect("jdbc-driver-class-name", "`org.postgresql.Driver` or nothing: no Java class is loaded")],
    in_effect_of(DatabaseStoreSettings),
    [
        not_yet("page-store-table-name", "nothing pages yet"),
        not_yet("jdbc-max-page-size-bytes", "nothing pages yet"),
        not_yet("jdbc-journal-sync-period", "commits are grouped by what waits for them"),
        not_yet("jdbc-lock-acquisition-timeout", "a broker waits for the lease for as long as its ha-policy says"),
        not_yet("jdbc-allowed-time-diff", "the clock of the database alone decides when a lease ends"),
        *refused_all(
            "data-source-class-name data-source-properties data-source-property",
            "Java classes can't run here; write jdbc-connection-url, jdbc-user and jdbc-password",
        ),
    ],
)
"""Below ``<database-store>``."""
