"""The messages that every way has: 1 KB, no two alike, which compress well in files as most text does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as parquet

from delosmq.spark.schema import HEADERS_COLUMN, arrow_schema, column_names

BODY_BYTES: Final = 1_024
HEADERS: Final = {"colour": "blue", "shop": "north"}
"""Properties of each message."""
SLICE_ROWS: Final = 500
"""As the broker sends the rows of a lease."""
SETS: Final[dict[str, tuple[str, ...]]] = {"body": ("body",), "all": column_names((), True)}
"""Which columns are read, by the name of a case."""
_FILLER: Final = b"x" * BODY_BYTES
_TIME_US: Final = 1_760_000_000_000_000


def body(number: int) -> bytes:
    """Of one message."""
    return (b"%08d" % number + _FILLER)[:BODY_BYTES]


def columns(names: tuple[str, ...], first: int, count: int) -> pa.Table:
    """Messages from number `first` on, as Spark gets them from a queue."""
    numbers = range(first, first + count)
    values: dict[str, list[Any]] = {
        "body": [body(number) for number in numbers],
        "message_id": [f"ID:{number}" for number in numbers],
        "sequence": list(numbers),
        "timestamp": [_TIME_US + number for number in numbers],
        HEADERS_COLUMN: [list(HEADERS.items())] * count,
    }
    alike: dict[str, Any] = {
        **dict.fromkeys(("address", "queue"), "bench.rows"),
        "priority": 4,
        "durable": True,
        "redelivered": False,
        "delivery_count": 1,
        "user": "admin",
        "protocol": "stomp/1.2",
        "body_kind": "bytes",
    }
    schema = arrow_schema(names)
    filled = {name: values.get(name) or [alike.get(name)] * count for name in names}
    return pa.table([pa.array(filled[field.name], field.type) for field in schema], schema=schema)


def write_parquet(directory: Path, names: tuple[str, ...], rows: int, file_rows: int) -> None:
    """As files of so many rows each."""
    directory.mkdir(parents=True)
    for first in range(0, rows, file_rows):
        table = columns(names, first, min(file_rows, rows - first))
        parquet.write_table(table, directory / f"part-{first:09d}.parquet", coerce_timestamps="us")


def write_arrow(path: Path, names: tuple[str, ...], rows: int) -> None:
    """As one file in slices, which a process can map into its memory."""
    table = columns(names, 0, rows)
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=SLICE_ROWS)


def mapped(path: str) -> Iterator[pa.RecordBatch]:
    """What `write_arrow` wrote, without a copy."""
    with pa.memory_map(path) as source, pa.ipc.open_file(source) as file:
        for index in range(file.num_record_batches):
            yield file.get_batch(index)


def count_parquet(directory: Path) -> int:
    """Rows of all files."""
    return sum(parquet.read_metadata(path).num_rows for path in directory.rglob("*.parquet"))
