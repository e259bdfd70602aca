"""The columns, and that batches of another shape are found out before Spark's Java side sees them."""

import pyarrow as pa
import pytest

from delosmq.spark.errors import SchemaMismatchError
from delosmq.spark.schema import COLUMNS, arrow_schema, column_names, conform, spark_schema

ALL = column_names(include_headers=True)


def one_row(names: tuple[str, ...]) -> pa.RecordBatch:
    values = {"binary": b"x", "string": "x", "long": 1, "int": 1, "boolean": True, "timestamp": 0, "map": [("a", "b")]}
    schema = arrow_schema(names)
    kinds = {column.name: column.kind for column in COLUMNS}
    arrays = [pa.array([values[kinds[name]]], schema.field(name).type) for name in names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@pytest.mark.spark
def test_the_arrow_schema_is_what_spark_makes_of_the_spark_schema():
    from pyspark.sql.pandas.types import to_arrow_schema

    assert arrow_schema(ALL).equals(to_arrow_schema(spark_schema(ALL), timezone="UTC"), check_metadata=True)


@pytest.mark.spark
def test_the_names_and_types_are_final():
    assert spark_schema(ALL).simpleString() == (
        "struct<body:binary,message_id:string,address:string,queue:string,sequence:bigint,priority:int,durable:boolean,"
        "timestamp:timestamp,expiration:timestamp,redelivered:boolean,delivery_count:int,group_id:string,"
        "correlation_id:string,reply_to:string,type:string,content_type:string,user:string,protocol:string,"
        "properties:map<string,string>,body_kind:string>"
    )


def test_order_and_nullability_are_put_right():
    names = ("queue", "body", "properties")
    batch = one_row(("body", "properties", "queue"))
    loose = pa.schema([field.with_nullable(True) for field in batch.schema])
    fixed = conform(pa.RecordBatch.from_arrays(batch.columns, schema=loose), names)
    assert fixed.schema.equals(arrow_schema(names))
    assert fixed.to_pylist() == [{"queue": "x", "body": b"x", "properties": [("a", "b")]}]


def test_a_map_with_other_field_names_is_put_right():
    other = pa.map_(pa.string(), pa.field("item", pa.string(), nullable=False))
    batch = pa.RecordBatch.from_arrays([pa.array([[("a", "b")]], other)], names=["properties"])
    assert conform(batch, ("properties",)).schema.equals(arrow_schema(("properties",)))


@pytest.mark.parametrize(
    "column, sentence",
    [
        (pa.array([1], pa.int64()), "arrived as int64 instead of int32"),
        (pa.array([None], pa.int32()), "holds nulls"),
    ],
)
def test_wrong_values_are_refused(column: pa.Array, sentence: str):
    with pytest.raises(SchemaMismatchError, match=sentence):
        conform(pa.RecordBatch.from_arrays([column], names=["priority"]), ("priority",))


def test_a_missing_column_is_refused():
    with pytest.raises(SchemaMismatchError, match="no column 'queue'"):
        conform(one_row(("body",)), ("body", "queue"))
