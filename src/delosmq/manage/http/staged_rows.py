"""Rows that come as an Arrow IPC stream: taken apart outside the loop, checked before anything is allocated for them.

Nothing in a stream is trusted: compressed or dictionary-encoded batches, which may be far larger than what was sent,
are refused, and offsets are checked before they are followed.
"""

import struct
from collections.abc import Iterator
from typing import Any, Final

from delosmq.manage.http.problems import ProblemError
from delosmq.sessions.staging.rows import COLUMNS, Rows
from delosmq.sessions.staging.session import ROWS_LIMIT

SLICE_ROWS: Final = 200
"""Rows made Python objects at once, about 1 ms."""

_END: Final = b"\xff\xff\xff\xff\0\0\0\0"
"""What every stream ends with."""
_RECORD_BATCH: Final = 3
_COMPRESSION: Final = 3
"""The type of the header of a record batch, and the place of its compression. Source: Message.fbs of Arrow."""


class StagedRows:
    """The rows of one request.

    Attributes:
        count: how many there are; size_bytes: of what was sent.
    """

    def __init__(self, arrow: Any, body: bytes) -> None:
        """Raises ProblemError when the body is no such stream, or its columns are not those of messages."""
        self._arrow = arrow
        self.count: int = 0
        self.size_bytes: int = len(body)
        self._batches: list[Any] = []
        try:
            self._read(body)
        except (arrow.ArrowException, OSError, ValueError, KeyError, struct.error) as error:
            detail = str(error).split("\n", 1)[0][:200]
            raise ProblemError(
                400, "DMQ6430", "INVALID", f"the request's body is no Arrow IPC stream of rows: {detail}"
            ) from None

    def _read(self, body: bytes) -> None:
        arrow = self._arrow
        if not body.endswith(_END):
            raise ValueError("it has no end")  # rows may be missing
        reader = arrow.ipc.MessageReader.open_stream(arrow.py_buffer(body))
        schema = None
        while True:
            try:
                message = reader.read_next_message()
            except StopIteration:
                return
            if schema is None:
                schema = arrow.ipc.read_schema(message)
                self._check_schema(schema)
            elif message.type != "record batch" or _is_compressed(message.metadata.to_pybytes()):
                raise ValueError("send plain record batches, neither compressed nor dictionary-encoded")
            else:
                self._add(arrow.ipc.read_record_batch(message, schema))

    def _add(self, batch: Any) -> None:
        self.count += batch.num_rows
        if self.count > ROWS_LIMIT:
            raise ProblemError(
                413, "DMQ6431", "TOO_LARGE", f"a part has {ROWS_LIMIT} rows at most; stage the rest as another part"
            )
        batch.validate(full=True)
        if batch.num_rows:
            self._batches.append(batch)

    def _check_schema(self, schema: Any) -> None:
        for name in schema.names:
            if name not in COLUMNS or schema.names.count(name) > 1:
                raise ProblemError(
                    400,
                    "DMQ6432",
                    "INVALID",
                    f"there is no column '{name[:80]}' in a message, or it is there twice; the columns are"
                    f" {', '.join(COLUMNS)}",
                )
            wanted = self._wanted(name, schema.field(name).type)
            if wanted:
                raise ProblemError(
                    400,
                    "DMQ6433",
                    "INVALID",
                    f"column '{name}' is {str(schema.field(name).type)[:80]}; it has to be {wanted}",
                )
        if "body" not in schema.names:
            raise ProblemError(400, "DMQ6434", "INVALID", "the rows have no column 'body'; name one so")

    def _wanted(self, name: str, kind: Any) -> str:
        """What a column has to be; "" when it is that."""
        types = self._arrow.types
        is_text = types.is_string(kind) or types.is_large_string(kind)
        if name in ("body", "duplicate_id"):
            return "" if is_text or types.is_binary(kind) or types.is_large_binary(kind) else "string or binary"
        if name == "properties":
            fits = types.is_map(kind) and types.is_string(kind.key_type) and types.is_string(kind.item_type)
            return "" if fits else "map<string, string>"
        if name == "priority":
            return "" if types.is_integer(kind) else "an integer"
        if name in ("expiration", "scheduled_at"):
            return "" if types.is_timestamp(kind) else "a timestamp"
        return "" if is_text else "string"

    def slices(self) -> Iterator[Rows]:
        """The rows in order. Each step takes about 1 ms."""
        first = 1
        for batch in self._batches:
            for at in range(0, batch.num_rows, SLICE_ROWS):
                part = batch.slice(at, SLICE_ROWS)
                columns = {name: self._values(part.column(name)) for name in part.schema.names}
                yield Rows(columns, first)
                first += part.num_rows

    def _values(self, column: Any) -> list[Any]:
        if self._arrow.types.is_timestamp(column.type):
            column = column.cast(self._arrow.timestamp("ms", tz=column.type.tz), safe=False).cast(self._arrow.int64())
        values: list[Any] = column.to_pylist()
        return values


def _is_compressed(metadata: bytes) -> bool:
    """Whether the buffers of a record batch are compressed; reads the flatbuffer itself, as pyarrow does not tell."""
    message = struct.unpack_from("<I", metadata)[0]
    kind = _field(metadata, message, 1)
    header = _field(metadata, message, 2)
    if not kind or not header or metadata[kind] != _RECORD_BATCH:
        raise ValueError("a message is no record batch")
    return _field(metadata, header + struct.unpack_from("<I", metadata, header)[0], _COMPRESSION) != 0


def _field(buffer: bytes, table: int, number: int) -> int:
    """Where a field of a table lies; 0 when it is left out."""
    entries = table - struct.unpack_from("<i", buffer, table)[0]
    size = struct.unpack_from("<H", buffer, entries)[0]
    place = 4 + 2 * number
    offset = struct.unpack_from("<H", buffer, entries + place)[0] if place < size else 0
    return table + int(offset) if offset else 0
