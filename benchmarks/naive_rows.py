"""Rows of a lease in the plainest way: message by message, each in the hub form as a whole, then every column from a
list of values. What is served is held against it, by `tests/manage/test_rows.py` for its meaning and by
`benchmarks.lease_rows` for its time.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow

from delosmq.engine.api import Slot
from delosmq.manage.http.arrow import SLICE_ROWS, schema_of
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError
from delosmq.model.message import BODY_KIND_NAMES, BYTES_BODY, HubMessage
from delosmq.wire.openwire.conversion import OpenWireConversion
from delosmq.wire.stomp.conversion import StompConversion

US_PER_MS = 1000
CONVERSIONS = Conversions({"stomp": StompConversion(), "openwire": OpenWireConversion()})


def row(slot: Slot, queue: str, conversions: Conversions) -> dict[str, Any]:
    """All columns of one message."""
    message = slot.message
    try:
        hub = conversions.to_hub(message)
    except BrokerError:
        hub = HubMessage(message.body, BYTES_BODY)
    return {
        "body": hub.body,
        "message_id": f"ID:{message.message_id}",
        "address": message.address,
        "queue": queue,
        "sequence": slot.sequence,
        "priority": message.priority,
        "durable": message.durable,
        "timestamp": message.timestamp_ms * US_PER_MS,
        "expiration": message.expires_at_ms * US_PER_MS if message.expires_at_ms else None,
        "redelivered": slot.delivery_count > 1,
        "delivery_count": slot.delivery_count,
        "group_id": hub.group_id or None,
        "correlation_id": hub.correlation_id,
        "reply_to": hub.reply_to,
        "type": hub.type,
        "content_type": hub.content_type,
        "user": message.user or None,
        "protocol": message.protocol.partition("/")[0].upper(),
        "properties": list(hub.property_texts().items()),
        "body_kind": BODY_KIND_NAMES[hub.body_kind],
    }


def values(slots: Sequence[Slot], names: tuple[str, ...], queue: str, conversions: Conversions) -> dict[str, list[Any]]:
    """The columns ``names`` of all messages, as lists."""
    rows = [row(slot, queue, conversions) for slot in slots]
    return {name: [each[name] for each in rows] for name in names}


def table(slots: Sequence[Slot], names: tuple[str, ...], queue: str, conversions: Conversions) -> pyarrow.Table:
    """The same as a table."""
    schema = schema_of(pyarrow, names)
    found = values(slots, names, queue, conversions)
    return pyarrow.Table.from_arrays([pyarrow.array(found[field.name], field.type) for field in schema], schema=schema)


def encoded(columns: dict[str, list[Any]], names: tuple[str, ...]) -> bytes:
    """Lists of values as an Arrow stream, in batches as large as those that are served."""
    schema = schema_of(pyarrow, names)
    sink = io.BytesIO()
    rows = len(columns[names[0]])
    with pyarrow.ipc.new_stream(sink, schema) as writer:
        for at in range(0, rows, SLICE_ROWS):
            arrays = [pyarrow.array(columns[field.name][at : at + SLICE_ROWS], field.type) for field in schema]
            writer.write_batch(pyarrow.RecordBatch.from_arrays(arrays, schema=schema))
    return sink.getvalue()
