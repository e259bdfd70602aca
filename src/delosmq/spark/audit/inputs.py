"""What an audit reads: messages of an archive, and records of `delosmq.events` in the bodies of another."""

from typing import TYPE_CHECKING, Final

from delosmq.model.ids import LAST_MS
from delosmq.model.reserved_names import EVENTS_ADDRESS
from delosmq.spark.archive import read_archive
from delosmq.spark.archive.files import local_path
from delosmq.spark.archive.marker import local_claim
from delosmq.spark.errors import ArchiveError
from delosmq.spark.schema import column_names, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LAST_NUMBER: Final = 10**18
"""Of a producer: differences of two must fit into 64 bits."""
RECORD: Final = (
    "time_ms bigint, event string, address string, queue string, sequence bigint, message_id string, accepted_ms"
    " bigint, consumer string, user string, producer string, producer_sequence bigint, delivery_count int, cause string"
)
"""Columns of the records, as docs/events.md has them."""
_DAMAGED: Final = "_damaged"


def check_archive(path: str) -> None:
    """Check that `path` is an archive; one on another machine is not looked at.

    Raises:
        ArchiveError: it is none.
    """
    place = local_path(path)
    if place is not None:
        local_claim(place)


def read_messages(spark: "SparkSession", path: str) -> "DataFrame":
    """The messages of the archive at `path`, without those that hold records."""
    return read_archive(spark, path).where(f"address <> '{EVENTS_ADDRESS}'")


def no_messages(spark: "SparkSession") -> "DataFrame":
    """What `read_messages` returns of an archive without any."""
    return spark.createDataFrame([], spark_schema(column_names(include_headers=True)))


def read_lines(spark: "SparkSession", path: str) -> "DataFrame":
    """The records in the archive at `path`, a row per line; `_damaged` is the line where it is no record.

    Raises:
        ArchiveError: it has messages, but none with records.
    """
    from pyspark.sql import functions as f

    messages = read_archive(spark, path)
    told = messages.where(f"address = '{EVENTS_ADDRESS}'")
    if told.isEmpty() and not messages.isEmpty():
        raise ArchiveError(
            "DMQ8212",
            f"the archive {path} holds no messages of {EVENTS_ADDRESS}: name the archive of a queue that is bound to"
            " that address",
        )
    lines = told.select(f.explode(f.split(f.col("body").cast("string"), "\n")).alias("line")).where("trim(line) <> ''")
    record = f.from_json("line", f"{RECORD}, {_DAMAGED} string", {"columnNameOfCorruptRecord": _DAMAGED})
    parsed = lines.select("line", record.alias("record"))
    sound = (
        f"record.{_DAMAGED} is null and record.event is not null and record.time_ms between 0 and {LAST_MS}"
        f" and coalesce(record.accepted_ms, 0) between 0 and {LAST_MS}"
    )
    names = [part.split()[0] for part in RECORD.split(",")]
    return parsed.select(
        *(f.col(f"record.{name}") for name in names),
        f.when(~f.coalesce(f.expr(sound), f.lit(False)), f.col("line")).alias(_DAMAGED),
    )


def no_lines(spark: "SparkSession") -> "DataFrame":
    """What `read_lines` returns without any."""
    return spark.createDataFrame([], f"{RECORD}, {_DAMAGED} string")


def sound_records(lines: "DataFrame") -> "DataFrame":
    """The records among `lines`."""
    return lines.where(f"{_DAMAGED} is null").drop(_DAMAGED)
