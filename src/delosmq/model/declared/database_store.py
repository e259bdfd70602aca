"""The settings of the store in PostgreSQL, each declared once: its element in ``<database-store>``, its parser, its
default, and what the manual says of it. Defaults of tables are Artemis's.
"""

import re
from dataclasses import MISSING, dataclass
from typing import Final

from delosmq.model.values import Setting, at_least, at_restart, declared, parse_text

LEAST_LEASE_MS: Final = 300
_TABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
"""Longer ones PostgreSQL cuts."""


def parse_table_name(text: str) -> str:
    """A name that needs no quotes."""
    if not _TABLE_NAME.fullmatch(text):
        raise ValueError("the name of a table, of up to 63 letters, digits and _, without its schema")
    return text


@dataclass(frozen=True)
class DatabaseStoreSettings:
    """Where the tables of a broker lie, and how it holds them. Beside what each setting declares:

    Attributes:
        options: the URL as libpq's options, without user and password.
    """

    url: str = at_restart(
        MISSING,
        "`jdbc:postgresql://host:port/database`, with several hosts when a standby may be promoted",
        parse_text,
        written="jdbc-connection-url",
    )
    options: tuple[tuple[str, str], ...] = ()
    user: str = at_restart("", "who logs in at the database", str, written="jdbc-user")
    password: str = at_restart(
        "",
        "its password; better as `${NAME}` of the environment than in the file",
        str,
        written="jdbc-password",
        repr=False,
    )
    instance_table: str = at_restart(
        "NODE_MANAGER_STORE", "table of the lease", parse_table_name, written="node-manager-store-table-name"
    )
    bindings_table: str = at_restart(
        "BINDINGS", "table of queues and segments", parse_table_name, written="bindings-table-name"
    )
    messages_table: str = at_restart("MESSAGES", "table of records", parse_table_name, written="message-table-name")
    bodies_table: str = at_restart(
        "LARGE_MESSAGES", "table of bodies, of all sizes", parse_table_name, written="large-message-table-name"
    )
    network_timeout_ms: int = at_restart(
        20_000,
        "a database that has not answered for so long is connected anew; 0 for never",
        at_least(0),
        unit="ms",
        written="jdbc-network-timeout",
    )
    lock_renew_period_ms: int = at_restart(
        300,
        "how often the lease is renewed (Artemis: 4000); less than half of jdbc-lock-expiration",
        at_least(50),
        unit="ms",
        written="jdbc-lock-renew-period",
    )
    lock_expiration_ms: int = at_restart(
        1_200,
        "how long after its last renewal another broker may take over (Artemis: 20000)",
        at_least(LEAST_LEASE_MS),
        unit="ms",
        written="jdbc-lock-expiration",
    )


DATABASE_SETTINGS: Final[dict[str, Setting]] = declared(DatabaseStoreSettings)
"""By field."""
