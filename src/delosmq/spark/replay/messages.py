"""The messages of an archive that a replay takes, and the rows that it sends."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from delosmq.spark.dead_letters.letters import MARKS
from delosmq.spark.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOMENT: Final = "moment"
"""A column of `chosen_messages`: when a message was sent, never before one that lay before it in its queue."""
_SENT: Final = (
    "body",
    "destination",
    "message_id",
    "properties",
    "group_id",
    "correlation_id",
    "reply_to",
    "type",
    "content_type",
    "expiration",
    "priority",
    "scheduled_at",
    "body_kind",
)


def chosen_messages(
    archive: "DataFrame", *, since_ms: int | None, before_ms: int | None, addresses: tuple[str, ...], where: str
) -> "DataFrame":
    """The messages sent since (inclusive) and before (exclusive), of these addresses ((): all), that pass `where`.

    Raises:
        OptionError: `where` is no condition of Spark SQL on the columns of an archive.
    """
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    found = archive
    # The partitions by day are those of the same times: without them all files would be read.
    if since_ms is not None:
        found = found.where((f.col("timestamp") >= _instant(since_ms)) & (f.col("day") >= f.lit(_day(since_ms))))
    if before_ms is not None:
        found = found.where((f.col("timestamp") < _instant(before_ms)) & (f.col("day") <= f.lit(_day(before_ms))))
    if addresses:
        found = found.where(f.col("address").isin(*addresses))
    if where.strip():
        try:
            found = found.where(where)
        except (AnalysisException, ParseException) as wrong:
            why = str(wrong).strip().partition("\n")[0]
            raise OptionError(
                "DMQ8251", f"where is {where!r}, which is no condition of Spark SQL on an archive's columns: {why}"
            ) from None
    queue = Window.partitionBy("address", "queue").orderBy("sequence").rowsBetween(Window.unboundedPreceding, 0)
    return found.withColumn(MOMENT, f.max("timestamp").over(queue))


def as_rows(messages: "DataFrame", to: str, timing: tuple[datetime, datetime, float] | None) -> "DataFrame":
    """The messages in the order in which they are sent, as rows of the sink.

    Args:
        to: their destination; "" for the address of each.
        timing: the first moment, when that is due, and how much faster than then; None for at once.
    """
    from pyspark.sql import functions as f

    due: Column = f.lit(None).cast("timestamp")
    if timing is not None:
        first, start, speed = timing
        passed_us = f.unix_micros(MOMENT) - f.unix_micros(f.lit(first))
        due = f.timestamp_micros((f.unix_micros(f.lit(start)) + passed_us / f.lit(speed)).cast("bigint"))
    begins = f.coalesce(due, f.current_timestamp())
    lived_us = f.unix_micros("expiration") - f.unix_micros("timestamp")
    properties = f.map_filter("properties", lambda name, _: ~name.isin(*MARKS))
    return (
        messages.orderBy(MOMENT, "address", "queue", "sequence")
        .withColumn("destination", f.lit(to) if to else f.col("address"))
        .withColumn("scheduled_at", due)
        # As long as it lived then; what had expired by now would be gone at once.
        .withColumn("expiration", f.timestamp_micros(f.unix_micros(begins) + lived_us))
        .withColumn("properties", properties)
        .select(*_SENT)
    )


def _instant(at_ms: int) -> "Column":
    from pyspark.sql import functions as f

    return f.timestamp_millis(f.lit(at_ms))


def _day(at_ms: int) -> object:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)).date()
