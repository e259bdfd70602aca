"""The tables of one broker in PostgreSQL: how they are made, and how it is seen that they are DelosMQ's."""

from typing import Final

from delosmq.model.errors import StorageError
from delosmq.storage.postgres.connection import DatabaseConnection, DatabaseError, Statement, whole
from delosmq.storage.postgres.tables import Tables

FORMAT: Final = 1
MADE_MEANWHILE: Final = ("42P07", "23505", "42710")
"""Two brokers made the tables at once."""
STATE_ROW: Final = 0
_COLUMNS: Final = {
    "instance": "one:boolean format:integer node_id:bytea epoch:bigint holder:text last_batch:bigint "
    "lease_until:timestamp with time zone pair_state:text pair_record:text",
    "bindings": "segment:bigint base:bigint state:bytea",
    "messages": "segment:bigint first_batch:bigint last_batch:bigint stored:integer body_end:bigint "
    "accounts:bytea records:bytea",
    "bodies": "segment:bigint body_start:bigint content:bytea",
}


def prepare(tables: Tables, connection: DatabaseConnection, node_id: bytes) -> None:
    """Makes the tables where there are none, and checks those that there are.

    Raises:
        StorageError: they are another program's or of a newer release, or the server may lose what it confirmed.
        DatabaseError: they can't be made or read.
    """
    names = tables.names
    check_server(connection)
    found = _found(names, connection)
    if any(found.values()) and not all(found.values()):
        found = _found(names, connection)  # another broker may have made all of them after the look at the first
    if not any(found.values()):
        try:
            connection.run_text(_creation(names, node_id))
        except DatabaseError as error:
            if error.state not in MADE_MEANWHILE:
                raise
            prepare(tables, connection, node_id)  # the other broker's are there now
        return
    for table, columns in found.items():
        if columns != _COLUMNS[table]:
            what = "is missing" if not columns else "has other columns"
            raise StorageError(
                "DMQ3061",
                f"table '{names[table]}' of the database is not one of DelosMQ's: it {what}; give this broker "
                "a schema of its own (?currentSchema=... in jdbc-connection-url) or other names of tables",
            )
    (row,) = connection.run(Statement("format", f"SELECT format FROM {names['instance']}"))
    if whole(row[0]) != FORMAT:
        raise StorageError(
            "DMQ3062",
            f"the tables in the database have format {whole(row[0])}, this DelosMQ reads {FORMAT}; start the "
            "release that wrote them",
        )


def check_server(connection: DatabaseConnection) -> None:
    """Of each new session: settings of a role or of the server may have changed.

    Raises:
        StorageError: the server may lose what it confirmed.
        DatabaseError: it takes reads only, or does not answer.
    """
    text = (
        "SELECT current_setting('fsync'), current_setting('synchronous_commit'), "
        "current_setting('full_page_writes'), current_setting('transaction_read_only')"
    )
    (row,) = connection.run_text(text)
    fsync, synchronous_commit, full_page_writes, read_only = [(value or b"").decode() for value in row]
    for name, value in (
        ("fsync", fsync),
        ("synchronous_commit", synchronous_commit),
        ("full_page_writes", full_page_writes),
    ):
        if value == "off":
            raise StorageError(
                "DMQ3063",
                f"{name} is off at the database, which would lose confirmed messages in a crash; set it to on in "
                "postgresql.conf, or for this user or database",
            )
    if read_only == "on":
        raise DatabaseError("25006", "the database takes reads only")


def _creation(names: dict[str, str], node_id: bytes) -> str:
    return f"""
        CREATE TABLE {names["instance"]} (one boolean PRIMARY KEY CHECK (one), format integer NOT NULL,
            node_id bytea NOT NULL, epoch bigint NOT NULL, holder text NOT NULL, last_batch bigint NOT NULL,
            lease_until timestamptz NOT NULL, pair_state text NOT NULL, pair_record text NOT NULL)
            WITH (fillfactor = 10);
        CREATE TABLE {names["bindings"]} (segment bigint PRIMARY KEY, base bigint NOT NULL, state bytea);
        CREATE TABLE {names["messages"]} (segment bigint, first_batch bigint, last_batch bigint NOT NULL,
            stored integer NOT NULL, body_end bigint NOT NULL, accounts bytea NOT NULL, records bytea NOT NULL,
            PRIMARY KEY (segment, first_batch));
        CREATE TABLE {names["bodies"]} (segment bigint, body_start bigint, content bytea NOT NULL,
            PRIMARY KEY (segment, body_start));
        ALTER TABLE {names["messages"]} ALTER COLUMN records SET STORAGE EXTERNAL;
        ALTER TABLE {names["bodies"]} ALTER COLUMN content SET STORAGE EXTERNAL;
        INSERT INTO {names["bindings"]} VALUES ({STATE_ROW}, 0, NULL);
        INSERT INTO {names["instance"]}
            VALUES (true, {FORMAT}, '\\x{node_id.hex()}', 0, '', 0, 'epoch', 'N', '{{}}')"""


def _found(names: dict[str, str], connection: DatabaseConnection) -> dict[str, str]:
    return {table: _columns_of(connection, name) for table, name in names.items()}


def _columns_of(connection: DatabaseConnection, table: str) -> str:
    """As `_COLUMNS` has them; "" for no such table where the session looks for tables."""
    rows = connection.run(
        Statement(
            "columns",
            """SELECT attname || ':' || format_type(atttypid, atttypmod) FROM pg_attribute
            WHERE attrelid = to_regclass($1::text) AND attnum > 0 AND NOT attisdropped ORDER BY attnum""",
        ),
        table,
    )
    return " ".join([(row[0] or b"").decode() for row in rows])
