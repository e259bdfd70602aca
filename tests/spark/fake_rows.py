"""The messages of the fake broker: as rows, as selectors see them, and as Arrow streams."""

import io
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from delosmq.model.properties import Properties
from delosmq.selectors.errors import SelectorError
from delosmq.selectors.selector import parse_selector
from delosmq.spark.schema import COLUMNS, arrow_schema

SLICE_ROWS = 500
START = datetime(2026, 3, 1, 23, 50, tzinfo=UTC)
COLUMN_OF = {
    "JMSPriority": "priority",
    "priority": "priority",
    "JMSType": "type",
    "type": "type",
    "JMSXGroupID": "group_id",
    "JMSCorrelationID": "correlation_id",
    "correlation-id": "correlation_id",
}
"""What selectors and headers of STOMP call the columns."""


@dataclass
class Problem(Exception):
    """An RFC 9457 answer."""

    status: int
    condition: str
    detail: str
    unknown: str = ""


@dataclass
class FakeQueue:
    """A queue: messages in order, those leased out included (as in delivery)."""

    name: str
    address: str
    ready: list[dict[str, Any]] = field(default_factory=list)
    leased: list[dict[str, Any]] = field(default_factory=list)
    newest: int = 0


def make_message(sequence: int, queue: FakeQueue, body: bytes) -> dict[str, Any]:
    return {
        "body": body,
        "message_id": f"ID:{sequence}",
        "address": queue.address,
        "queue": queue.name,
        "sequence": sequence,
        "priority": 4,
        "durable": True,
        "timestamp": START + timedelta(seconds=sequence),
        "expiration": None,
        "redelivered": False,
        "delivery_count": 1,
        "group_id": None,
        "correlation_id": f"c{sequence}" if sequence % 2 else None,
        "reply_to": None,
        "type": None,
        "content_type": "text/plain",
        "user": None,
        "protocol": "STOMP",
        "properties": [("number", str(sequence))],
        "body_kind": "text",
    }


def time_ms(row: dict[str, Any]) -> int:
    return int(row["timestamp"].timestamp() * 1000)


def first_sequence(queue: FakeQueue, start: Any) -> int:
    if start == "earliest":
        return 0
    if start == "latest":
        return queue.newest + 1
    if "sequence" in start:
        return int(start["sequence"])
    return min((row["sequence"] for row in queue.ready if time_ms(row) >= start["time_ms"]), default=queue.newest + 1)


class ColumnsAsProperties(Properties):
    """A row as selectors see it; by its columns, and by the property number."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.row = row

    def value(self, name: str) -> Any:
        return self.row["sequence"] if name == "number" else self.row[COLUMN_OF[name]]


def check_selector(selector: str) -> None:
    try:
        if selector:
            parse_selector(selector)
    except SelectorError as wrong:
        raise Problem(400, "INVALID", str(wrong)) from None


def passes(row: dict[str, Any], selector: str) -> bool:
    return not selector or parse_selector(selector).matches(ColumnsAsProperties(row))


def described(number: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "lease": number,
        "rows": len(rows),
        "bytes": sum(len(row["body"]) for row in rows),
        "first_sequence": rows[0]["sequence"],
        "last_sequence": rows[-1]["sequence"],
    }


def arrow_stream(rows: list[dict[str, Any]], query: dict[str, str]) -> bytes:
    headers = query.get("headers") == "true"
    asked = [name for name in query.get("columns", "").split(",") if name]
    # In the order of the full schema, as the broker does it: putting them in order is the client's job.
    names = tuple(c.name for c in COLUMNS if (c.name in asked or not asked) and (headers or c.name != "properties"))
    schema = arrow_schema(names)
    if query.get("large") == "reference":
        rows = [{"body_bytes": len(row["body"]), **row} for row in rows]
        schema = schema.append(pa.field("body_bytes", pa.int64()))
        names = (*names, "body_bytes")
    out = io.BytesIO()
    with pa.ipc.new_stream(out, schema) as writer:
        for at in range(0, len(rows), SLICE_ROWS):
            part = rows[at : at + SLICE_ROWS]
            arrays = [pa.array([row[name] for row in part], schema.field(name).type) for name in names]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return out.getvalue()
