"""The columns of a message as Spark and as Arrow see it.

Text bodies are UTF-8; map and stream bodies are JSON text. ``body_kind`` is one of text, bytes, map, stream, object,
empty. The names and types are final: archives and queries depend on them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from delosmq.spark.errors import OptionError, SchemaMismatchError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

HEADERS_COLUMN = "properties"


@dataclass(frozen=True, slots=True)
class Column:
    """One column; ``kind`` is one of the keys of the two type tables below."""

    name: str
    kind: str
    nullable: bool = False


COLUMNS: tuple[Column, ...] = (
    Column("body", "binary"),
    Column("message_id", "string"),
    Column("address", "string"),
    Column("queue", "string"),
    Column("sequence", "long"),
    Column("priority", "int"),
    Column("durable", "boolean"),
    Column("timestamp", "timestamp"),
    Column("expiration", "timestamp", nullable=True),
    Column("redelivered", "boolean"),
    Column("delivery_count", "int"),
    Column("group_id", "string", nullable=True),
    Column("correlation_id", "string", nullable=True),
    Column("reply_to", "string", nullable=True),
    Column("type", "string", nullable=True),
    Column("content_type", "string", nullable=True),
    Column("user", "string", nullable=True),
    Column("protocol", "string"),
    Column(HEADERS_COLUMN, "map"),
    Column("body_kind", "string"),
)
REFERENCE_COLUMN = "body_reference"
"""With largeBodies=reference, last: where a body that was left out is fetched; null where it is in the row. It has the
addresses of the broker, separated by commas, and the path there: each broker has a group of that name."""
BY_NAME = {column.name: column for column in COLUMNS}

_OF_READS = {**BY_NAME, REFERENCE_COLUMN: Column(REFERENCE_COLUMN, "string", nullable=True)}


def column_names(columns: Sequence[str] = (), include_headers: bool = False) -> tuple[str, ...]:
    """The names a read returns, in order: `columns` as asked, or all, with the properties only if wanted."""
    if columns:
        return tuple(columns)
    return tuple(column.name for column in COLUMNS if include_headers or column.name != HEADERS_COLUMN)


def spark_schema(names: Sequence[str]) -> "StructType":
    """The Spark schema of the columns `names`. Runs on: driver and source process."""
    from pyspark.sql import types as spark_types

    kinds: dict[str, DataType] = {
        "binary": spark_types.BinaryType(),
        "string": spark_types.StringType(),
        "long": spark_types.LongType(),
        "int": spark_types.IntegerType(),
        "boolean": spark_types.BooleanType(),
        "timestamp": spark_types.TimestampType(),
        "map": spark_types.MapType(spark_types.StringType(), spark_types.StringType(), True),
    }
    return spark_types.StructType(
        [spark_types.StructField(name, kinds[_OF_READS[name].kind], _OF_READS[name].nullable) for name in names]
    )


@lru_cache(maxsize=16)
def arrow_schema(names: tuple[str, ...]) -> "pa.Schema":
    """The Arrow schema that Spark demands, to the letter, for the columns `names`.

    Source: ``pyspark.sql.pandas.types.to_arrow_schema`` with time zone UTC; a test compares the two.
    """
    import pyarrow as pa

    kinds = {
        "binary": pa.binary(),
        "string": pa.string(),
        "long": pa.int64(),
        "int": pa.int32(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "map": pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string(), nullable=True)),
    }
    return pa.schema([pa.field(name, kinds[_OF_READS[name].kind], nullable=_OF_READS[name].nullable) for name in names])


def conform(batch: "pa.RecordBatch", names: tuple[str, ...]) -> "pa.RecordBatch":
    """`batch` with exactly the schema of `names`; only labels (order, nullability) are put right, never values.

    Spark checks the first batch of a partition only, and a wrong later one crashes its Java side.

    Raises:
        SchemaMismatchError: a column is missing, has another type, or holds a null where none may be.
    """
    import pyarrow as pa

    schema = arrow_schema(names)
    columns = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        if at < 0:
            raise SchemaMismatchError("DMQ8031", f"the broker's answer has no column {field.name!r}; {_UPGRADE}")
        column = batch.column(at)
        if column.type != field.type:
            if not (pa.types.is_map(column.type) and pa.types.is_map(field.type)):
                raise SchemaMismatchError(
                    "DMQ8031", f"column {field.name!r} arrived as {column.type} instead of {field.type}; {_UPGRADE}"
                )
            column = column.cast(field.type)
        if not field.nullable and column.null_count:
            raise SchemaMismatchError("DMQ8031", f"column {field.name!r} holds nulls but must not; {_UPGRADE}")
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def with_references(
    batch: "pa.RecordBatch", rows_at: str, max_body_bytes: int, incarnation: str = ""
) -> "pa.RecordBatch":
    """`batch` and the column of references: one below `rows_at` for each row whose body is longer than that.

    Args:
        incarnation: of the group, "" when it is not known.
    """
    import pyarrow as pa

    lengths = batch.column(batch.schema.get_field_index(_LENGTHS)).to_pylist()
    sequences = batch.column(batch.schema.get_field_index("sequence")).to_pylist()
    life = f"?incarnation={incarnation}" if incarnation else ""
    references = [
        f"{rows_at}/{sequence}/body{life}" if length > max_body_bytes else None
        for sequence, length in zip(sequences, lengths, strict=True)
    ]
    schema = batch.schema.append(pa.field(REFERENCE_COLUMN, pa.string()))
    return pa.RecordBatch.from_arrays([*batch.columns, pa.array(references, pa.string())], schema=schema)


def split_reference(reference: str) -> tuple[frozenset[str], str, str]:
    """The addresses of its broker, the path there, and the incarnation of the group, "" when it has none.

    Raises:
        OptionError: it is none.
    """
    parts = _REFERENCE.fullmatch(reference)
    if parts is None:
        raise OptionError("DMQ8072", f"{reference!r} is no reference: pass values of the column {REFERENCE_COLUMN}")
    return frozenset(parts[1].split(",")), parts[2], parts[3] or ""


_REFERENCE = re.compile(r"(https?://[^/,]+(?:,https?://[^/,]+)*)(/api/v1/leases/[^?]+)(?:\?incarnation=(.*))?")
_LENGTHS = "body_bytes"
"""The column in which the broker tells the lengths of bodies that may be references."""
_UPGRADE = "run the same version of DelosMQ on the broker and on Spark"
