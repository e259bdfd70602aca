"""Reads an archive back into Spark, whatever its kind."""

from typing import TYPE_CHECKING

from delosmq.spark.archive.delta import file_names, open_table
from delosmq.spark.archive.files import ArchiveFiles, literal, local_path
from delosmq.spark.archive.marker import DELTA, MARKER, no_archive, read_claim
from delosmq.spark.schema import column_names, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def read_archive(spark: "SparkSession", path: str) -> "DataFrame":
    """All messages of the archive at `path`, once each: all columns of messages, `day` (date) and `batch` (string).

    Properties that were not archived are null.

    Raises:
        ArchiveError: there is no archive at `path`, or one of a newer format.
    """
    files = ArchiveFiles(spark, path)
    if not files.exists(MARKER):
        raise no_archive(path)
    claim = read_claim(files.marker(), path)
    reader = spark.read.schema(_schema()).option("basePath", path)
    root = local_path(path)
    if claim.kind == DELTA and root is not None:
        table = open_table(root)
        places = [] if table is None else [f"{path}/{name}" for name in file_names(table)]
    else:
        # An archive without messages has no directory that Spark could read.
        places = [path] if files.has_days() else []
    read = reader.parquet(*map(literal, places)) if places else spark.createDataFrame([], _schema())
    # Spark puts the columns that directories are named after last.
    return read.select(_schema().names)


def _schema() -> "StructType":
    from pyspark.sql import types

    columns = spark_schema(column_names(include_headers=True)).fields
    return types.StructType(
        [
            *(types.StructField(column.name, column.dataType, True) for column in columns),
            types.StructField("day", types.DateType()),
            types.StructField("batch", types.StringType()),
        ]
    )
