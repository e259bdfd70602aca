"""Archives of messages and of records, made for the tests of the audit without a broker and without Spark."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delosmq.spark.archive.marker import MARKER, PARQUET, ArchiveClaim
from delosmq.spark.schema import arrow_schema, column_names

NAMES = column_names(include_headers=True)
NOON_MS = 1_772_366_400_000
"""2026-03-01 12:00 UTC: times of the tests are told from here."""


def message(number: int, queue: str = "orders", **more: Any) -> dict[str, Any]:
    """A row of an archive: the message `number` of its queue, a second after the one before."""
    given = {
        "body": b"x" * 10,
        "message_id": f"ID:{number}",
        "address": queue,
        "queue": queue,
        "sequence": number,
        "priority": 4,
        "durable": True,
        "timestamp": datetime.fromtimestamp(NOON_MS / 1_000 + number, UTC),
        "redelivered": False,
        "delivery_count": 0,
        "protocol": "STOMP",
        "properties": {},
        "body_kind": "text",
        **more,
    }
    return {name: given.get(name) for name in NAMES}


def record(event: str, number: int, at_ms: int, queue: str = "orders", **more: Any) -> dict[str, Any]:
    """A record of the message `number`, which was accepted a second after the one before; `at_ms` is after that."""
    accepted_ms = NOON_MS + 1_000 * number
    return {
        "time_ms": accepted_ms + at_ms,
        "event": event,
        "address": queue,
        "queue": queue,
        "sequence": number,
        "message_id": f"ID:{number}",
        "accepted_ms": accepted_ms,
        **more,
    }


def make_archive(place: Path, messages: Sequence[Mapping[str, Any]], source: str = "queue:orders") -> str:
    """An archive as the pipeline writes it, of one day and one batch."""
    place.mkdir()
    (place / MARKER).write_text(ArchiveClaim(PARQUET, (source,)).text)
    for address in {row["address"] for row in messages}:
        folder = place / "day=2026-03-01" / f"address={address}" / "batch=q1-000000001"
        folder.mkdir(parents=True)
        columns = [name for name in NAMES if name != "address"]
        schema = pa.schema([arrow_schema(NAMES).field(name) for name in columns])
        rows = [{name: row[name] for name in columns} for row in messages if row["address"] == address]
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / "part-0.parquet")
    return str(place)


def make_events(place: Path, records: Sequence[Mapping[str, Any]], damaged: Sequence[str] = ()) -> str:
    """An archive of `records`, two messages of them, with `damaged` lines in the second."""
    lines = [json.dumps(one) for one in records]
    half = len(lines) // 2
    bodies = ("\n".join(part).encode() for part in (lines[:half], [*damaged, *lines[half:]]))
    told = [message(number, "audit", address="delosmq.events", body=body) for number, body in enumerate(bodies, 1)]
    return make_archive(place, told, "queue:audit")
