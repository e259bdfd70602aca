"""The tables of one broker in PostgreSQL, and each statement on them.

| default name | rows |
|---|---|
| NODE_MANAGER_STORE | one: format, node id; the lease: epoch, holder, last batch, its end; the state of a pair |
| BINDINGS | segment 0: the engine's state; then one for each segment that counts |
| MESSAGES | one for each commit (and segment): the records of its batches, without bodies |
| LARGE_MESSAGES | the bodies of a segment, a stream of bytes cut at each commit and after each MiB |

Rows of the last two whose segment BINDINGS does not have are garbage; segments are never numbered twice.
"""

from typing import Final

from delosmq.model.settings import DatabaseStoreSettings
from delosmq.storage.postgres.connection import Statement

SWEPT_AT_ONCE: Final = 32
"""Rows of garbage that one statement deletes: of bodies at most 32 MiB, as a rule some milliseconds."""

_LEASE: Final = "clock_timestamp() + $1::float8 * interval '1 second'"


_HELD: Final = """
    WITH held AS (UPDATE {instance} SET last_batch = $4::bigint, lease_until = {lease}
        WHERE epoch = $2::bigint AND last_batch = $3::bigint RETURNING 1)"""
# lease in s, epoch, batch before, last batch | segment, first batch, stored, end of bodies, accounts, records |
# start of the bodies or null, bodies
_COMMIT: Final = """, records AS (INSERT INTO {messages}
        SELECT $5::bigint, $6::bigint, $4::bigint, $7::integer, $8::bigint, $9::bytea, $10::bytea FROM held),
    bodies AS (INSERT INTO {bodies} SELECT $5::bigint, $11::bigint, $12::bytea FROM held
        WHERE $11::bigint IS NOT NULL)
    SELECT count(*) FROM held"""
# the first four as above | arrays, of records: segments, first batches, last batches, stored, ends of bodies, accounts,
# records; of bodies: segments, starts, contents; of segments begun: numbers, bases; freed | position of the state or
# null, state
_COMMIT_WITH_SEGMENTS: Final = """, records AS (INSERT INTO {messages}
        SELECT one.* FROM held, unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
            $10::bytea[], $11::bytea[]) one),
    bodies AS (INSERT INTO {bodies}
        SELECT one.* FROM held, unnest($12::bigint[], $13::bigint[], $14::bytea[]) one),
    begun AS (INSERT INTO {bindings} SELECT one.* FROM held, unnest($15::bigint[], $16::bigint[]) one),
    freed AS (DELETE FROM {bindings} WHERE segment = ANY($17::bigint[]) AND EXISTS (SELECT FROM held)),
    state AS (UPDATE {bindings} SET base = $18::bigint, state = $19::bytea
        WHERE segment = 0 AND $18::bigint IS NOT NULL AND EXISTS (SELECT FROM held))
    SELECT count(*) FROM held"""
# lease in s, holder, record of the pair, epoch and state that it must have or null
_TAKE_OVER: Final = """
    UPDATE {instance} SET epoch = epoch + 1, holder = $2::text, pair_state = 'L', pair_record = $3::text,
        lease_until = {lease}
    WHERE lease_until < clock_timestamp()
        AND ($4::bigint IS NULL OR (epoch = $4::bigint AND pair_state = $5::text))
    RETURNING epoch, last_batch, node_id"""
_PAIR: Final = """
    SELECT epoch, pair_state, pair_record,
        ceil(greatest(0, extract(epoch FROM lease_until - clock_timestamp())) * 1000)::bigint FROM {instance}"""
_HOLDER: Final = """
    SELECT holder, ceil(greatest(0, extract(epoch FROM lease_until - clock_timestamp())) * 1000)::bigint,
        extract(epoch FROM lease_until)::text FROM {instance}"""
_RECORDS: Final = """
    SELECT segment, first_batch, last_batch, stored, body_end, accounts, records FROM {messages}
    WHERE (segment, first_batch) > ($1::bigint, $2::bigint) AND segment IN (SELECT segment FROM {bindings})
    ORDER BY segment, first_batch LIMIT $3::integer"""
_BODIES: Final = """
    SELECT body_start, content FROM {bodies} WHERE segment = $1::bigint AND body_start < $3::bigint
    AND body_start >= (SELECT coalesce(max(body_start), 0) FROM {bodies}
        WHERE segment = $1::bigint AND body_start <= $2::bigint) ORDER BY body_start"""
# The numbers of segments that have rows and do not count, found by a step in the index for each number.
_STRAY: Final = """
    WITH RECURSIVE found AS (SELECT min(segment) AS segment FROM {table} UNION ALL
        SELECT (SELECT min(segment) FROM {table} WHERE segment > found.segment) FROM found
        WHERE found.segment IS NOT NULL)
    SELECT segment FROM found WHERE segment IS NOT NULL AND segment NOT IN (SELECT segment FROM {bindings})"""
_SWEEP: Final = (
    "SET LOCAL synchronous_commit = off; WITH gone AS (DELETE FROM {table} WHERE ctid = ANY(ARRAY("
    "SELECT ctid FROM {table} WHERE segment = {{segment}} LIMIT {limit})) RETURNING 1) SELECT count(*) FROM gone"
)
_TABLES_WITH_GARBAGE: Final = ("messages", "bodies")


class Tables:
    """The statements, with the names that the configuration gives to the tables."""

    def __init__(self, settings: DatabaseStoreSettings) -> None:
        self.names = names = {
            "instance": settings.instance_table.lower(),
            "bindings": settings.bindings_table.lower(),
            "messages": settings.messages_table.lower(),
            "bodies": settings.bodies_table.lower(),
        }

        def statement(name: str, text: str, table: str = "") -> Statement:
            return Statement(name + table, text.format(**names, lease=_LEASE, table=names.get(table, "")))

        self.commit = statement("commit", _HELD + _COMMIT)
        self.commit_with_segments = statement("commit_with_segments", _HELD + _COMMIT_WITH_SEGMENTS)
        self.renew = statement("renew", "UPDATE {instance} SET lease_until = {lease} WHERE epoch = $2 RETURNING 1")
        # Waits for a commit under way, which holds the row; and, as a lock is written, until a synchronous standby has
        # what is read.
        self.look = statement("look", "SELECT epoch, last_batch FROM {instance} FOR UPDATE")
        self.take_over = statement("take_over", _TAKE_OVER)
        self.holder = statement("holder", _HOLDER)
        self.give_up = statement(
            "give_up",
            "UPDATE {instance} SET lease_until = 'epoch' WHERE epoch = $1 AND last_batch = $2 RETURNING 1",
        )
        self.pair = statement("pair", _PAIR)
        # Of a backup that is to make way, and at its end.
        self.say = statement("say", "UPDATE {instance} SET pair_state = $1::text WHERE epoch = $2")
        self.give_up_as = statement(
            "give_up_as",
            "UPDATE {instance} SET pair_state = $1::text, lease_until = 'epoch' WHERE epoch = $2",
        )
        self.state = statement("state", "SELECT base, state FROM {bindings} WHERE segment = 0")
        self.segments = statement("segments", "SELECT segment, base FROM {bindings} WHERE segment > 0 ORDER BY segment")
        self.records = statement("records", _RECORDS)
        self.bodies = statement("bodies", _BODIES)
        self.stray = [statement("stray_", _STRAY, table) for table in _TABLES_WITH_GARBAGE]
        self.sweeps = [_SWEEP.format(table=names[table], limit=SWEPT_AT_ONCE) for table in _TABLES_WITH_GARBAGE]
