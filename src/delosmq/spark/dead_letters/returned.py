"""A dead letter as the message that it was, as a row for staging."""

from typing import TYPE_CHECKING, Any, Final

from delosmq.spark.dead_letters.letters import MARKS

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Final = (
    "body",
    "message_id",
    "priority",
    "durable",
    "expiration",
    "group_id",
    "correlation_id",
    "reply_to",
    "type",
    "content_type",
    "properties",
    "body_kind",
)
REDRIVEN: Final = "redriven_count"
"""The property that says how often a message was sent back."""
ORIGINAL_ID: Final = "original_message_id"
"""The property in which the broker keeps the row's message_id."""
_MARKED_ID: Final = "_AMQ_ORIG_MESSAGE_ID"


def as_returned(letter: dict[str, Any], target: str) -> dict[str, Any]:
    """The row: without the marks of a dead letter, with the id that its message first had."""
    properties = dict(letter["properties"])
    marked = properties.get(_MARKED_ID)
    first_id = properties.pop(ORIGINAL_ID, None) or (f"ID:{marked}" if marked else letter["message_id"])
    times = properties.get(REDRIVEN) or ""
    kept = {name: value for name, value in properties.items() if name not in MARKS}
    kept[REDRIVEN] = str(int(times) + 1 if times.isascii() and times.isdigit() and len(times) < 10 else 1)
    row = {name: letter[name] for name in COLUMNS if name != "durable"}
    return {**row, "destination": target, "message_id": first_id, "properties": list(kept.items())}


def returned_schema() -> "pa.Schema":
    """Of such rows."""
    import pyarrow as pa

    from delosmq.spark.schema import arrow_schema

    return arrow_schema(tuple(name for name in COLUMNS if name != "durable")).append(
        pa.field("destination", pa.string())
    )
