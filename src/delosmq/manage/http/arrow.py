"""Rows as an Arrow IPC stream, built slice by slice so that nothing holds the loop.

pyarrow is an extra of the broker and is loaded with the first rows that are fetched.
"""

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from starlette.responses import StreamingResponse

from delosmq.engine.api import Slot
from delosmq.manage.http.problems import ProblemError
from delosmq.model.conversion import Conversions
from delosmq.sessions.lease.columns import BODY_BYTES, NAMES, NO_LIMIT, PROPERTIES, Columns, PropertyColumn

ARROW_TYPE: Final = "application/vnd.apache.arrow.stream"
SLICE_ROWS: Final = 500
SLICE_BYTES: Final = 1024 * 1024
"""100,000 rows at once held the interpreter for 0.5 to 1.0 s (docs/decisions/0013)."""
ROWS_PER_TURN: Final = 125
"""Rows turned into columns before the loop serves others; less than 1 ms."""
COLUMNS_PER_TURN: Final = 5
"""Columns of a slice encoded before the loop serves others; 0.04 to 0.2 ms each."""

_NULLABLE: Final = frozenset(("expiration", "group_id", "correlation_id", "reply_to", "type", "content_type", "user"))


def choose_columns(wanted: str, headers: bool) -> tuple[str, ...]:
    """The columns to send, in the order of the schema.

    Raises:
        ProblemError: 400 for a name that is none.
    """
    asked = [name for name in wanted.split(",") if name]
    for name in asked:
        if name not in NAMES and name != BODY_BYTES:
            raise ProblemError(
                400, "DMQ6411", "INVALID", f"there is no column '{name[:80]}'; the columns are {', '.join(NAMES)}"
            )
    names = tuple(name for name in NAMES if (not asked or name in asked) and (headers or name != PROPERTIES))
    return (*names, BODY_BYTES) if BODY_BYTES in asked else names


async def load_pyarrow() -> Any:
    """The module, loaded outside the loop the first time.

    Raises:
        ProblemError: 501 when it is not installed.
    """
    try:
        return await asyncio.to_thread(_import)
    except ImportError:
        raise ProblemError(
            501,
            "DMQ6412",
            "NOT_INSTALLED",
            "rows travel as Arrow and this broker has no pyarrow; install it: pip install 'delosmq[arrow]'",
        ) from None


def _import() -> Any:
    import pyarrow

    return pyarrow


def schema_of(arrow: Any, names: tuple[str, ...]) -> Any:
    """The published schema, cut down to ``names``."""
    types = {name: arrow.string() for name in NAMES}
    types["body"] = arrow.binary()
    types["sequence"] = arrow.int64()
    types[BODY_BYTES] = arrow.int64()
    types["priority"] = arrow.int32()
    types["delivery_count"] = arrow.int32()
    types["durable"] = arrow.bool_()
    types["redelivered"] = arrow.bool_()
    types["timestamp"] = arrow.timestamp("us", tz="UTC")
    types["expiration"] = arrow.timestamp("us", tz="UTC")
    types[PROPERTIES] = arrow.map_(arrow.string(), arrow.string())
    return arrow.schema([arrow.field(name, types[name], nullable=name in _NULLABLE) for name in names])


class RowStream:
    """Sends slots as record batches. The slots are a snapshot: what happens to them meanwhile changes no row."""

    def __init__(
        self,
        slots: list[Slot],
        names: tuple[str, ...],
        queue: str,
        *,
        conversions: Conversions,
        logger: logging.Logger,
        most_body_bytes: int = NO_LIMIT,
    ) -> None:
        self._most_body_bytes = most_body_bytes
        self._slots = slots
        self._names = names
        self._queue = queue
        self._conversions = conversions
        self._logger = logger

    async def response(self) -> StreamingResponse:
        """The answer; its status is only certain once pyarrow is there."""
        return StreamingResponse(self._chunks(await load_pyarrow()), media_type=ARROW_TYPE)

    async def _chunks(self, arrow: Any) -> AsyncIterator[bytes]:
        writer = _BatchWriter(arrow, schema_of(arrow, self._names))
        at = 0
        while at < len(self._slots):
            columns = Columns(self._names, self._queue, self._conversions, self._most_body_bytes)
            at = await self._fill(columns, at)
            if columns.unreadable:
                self._logger.warning(
                    f"DMQ6413: {len(columns.unreadable)} messages of queue {self._queue} could not be read and are "
                    f"sent without properties, the first because: {columns.unreadable[0]}; look at their producer"
                )
            yield await writer.batch(columns)
        yield writer.end()

    async def _fill(self, columns: Columns, at: int) -> int:
        """Adds a slice of rows; gives which one comes next."""
        end = min(at + SLICE_ROWS, len(self._slots))
        while at < end and columns.size_bytes < SLICE_BYTES:
            at = columns.add(self._slots, at, min(at + ROWS_PER_TURN, end), SLICE_BYTES)
            await asyncio.sleep(0)
        return at


class _BatchWriter:
    """An Arrow stream; its bytes are taken away after every batch."""

    def __init__(self, arrow: Any, schema: Any) -> None:
        self._arrow = arrow
        self._schema = schema
        self._sink = io.BytesIO()
        self._writer = arrow.ipc.new_stream(self._sink, schema)

    async def batch(self, columns: Columns) -> bytes:
        """The encoded form of one slice.

        In turns of the loop, each well below 1 ms: a thread would hold the interpreter for as long, and the loop would
        wait for it each time it woke.
        """
        arrays = []
        for values, field in zip(columns.values, self._schema, strict=True):
            if field.name == PROPERTIES:
                arrays.append(self._properties(columns.properties, field.type))
            else:
                arrays.append(self._array(values, field.type))
            if len(arrays) % COLUMNS_PER_TURN == 0:
                await asyncio.sleep(0)
        self._writer.write_batch(self._arrow.RecordBatch.from_arrays(arrays, schema=self._schema))
        return self._take()

    def _array(self, values: Sequence[object], kind: Any) -> Any:
        first = values[0]
        # Most columns say the same of a whole slice. What differs mostly differs at both ends, so it is seldom counted.
        if first == values[-1] and values.count(first) == len(values):
            if first is None:
                return self._arrow.nulls(len(values), kind)
            return self._arrow.repeat(self._arrow.scalar(first, kind), len(values))
        return self._arrow.array(values, kind)

    def _properties(self, column: PropertyColumn, kind: Any) -> Any:
        arrow = self._arrow
        return arrow.MapArray.from_arrays(
            arrow.array(column.ends, arrow.int32()),
            self._array(column.names, kind.key_type) if column.names else arrow.nulls(0, kind.key_type),
            self._array(column.texts, kind.item_type) if column.texts else arrow.nulls(0, kind.item_type),
        )

    def end(self) -> bytes:
        self._writer.close()
        return self._take()

    def _take(self) -> bytes:
        taken = self._sink.getvalue()
        self._sink.seek(0)
        self._sink.truncate()
        return taken
