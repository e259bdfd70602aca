"""Numbers that producers gave to their messages: which are missing, and which came twice; message ids that did."""

from typing import TYPE_CHECKING, Final

from delosmq.spark.audit.inputs import LAST_NUMBER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BY_RECORDS: Final = "records"
BY_PROPERTIES: Final = "properties"
BY_MESSAGE_ID: Final = "message id"
_SOUND: Final = f"producer is not null and number between 0 and {LAST_NUMBER}"


def numbers_of_records(records: "DataFrame") -> "DataFrame":
    """Numbers by which OpenWire's producers count. Columns: source, producer, queue, number, at_ms."""
    return (
        records.where("event = 'enqueue'")
        .selectExpr(f"'{BY_RECORDS}' as source", "producer", "queue", "producer_sequence as number", "time_ms as at_ms")
        .where(_SOUND)
    )


def numbers_of_properties(messages: "DataFrame", producer: str, sequence: str) -> "DataFrame":
    """Numbers in the property `sequence` of messages whose property `producer` names who counts."""
    from pyspark.sql import functions as f

    value = f.col("properties")
    return messages.select(
        f.lit(BY_PROPERTIES).alias("source"),
        value.getItem(producer).alias("producer"),
        "queue",
        value.getItem(sequence).try_cast("bigint").alias("number"),
        f.unix_millis("timestamp").alias("at_ms"),
    ).where(_SOUND)


def counted(numbers: "DataFrame") -> "DataFrame":
    """A row per source, producer, queue and number: how many times, first_ms, last_ms.

    A message that goes to several queues is in each of them under its number: that is no double.
    """
    from pyspark.sql import functions as f

    return numbers.groupBy("source", "producer", "queue", "number").agg(
        f.count("*").alias("times"), f.min("at_ms").alias("first_ms"), f.max("at_ms").alias("last_ms")
    )


def _steps(counts: "DataFrame") -> "DataFrame":
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    each = counts.groupBy("source", "producer", "number").agg(f.max("times").alias("times"))
    before = f.lag("number").over(Window.partitionBy("source", "producer").orderBy("number"))
    return each.withColumn("missing", f.coalesce(f.col("number") - before - 1, f.lit(0)))


def producers(counts: "DataFrame") -> "DataFrame":
    """A row per producer: numbers, first and last of them, gaps, missing (numbers in gaps), doubles (messages)."""
    from pyspark.sql import functions as f

    return (
        _steps(counts)
        .groupBy("source", "producer")
        .agg(
            f.count("*").alias("numbers"),
            f.min("number").alias("first"),
            f.max("number").alias("last"),
            f.expr("count_if(missing > 0)").alias("gaps"),
            f.sum("missing").alias("missing"),
            f.sum(f.col("times") - 1).alias("doubles"),
        )
        .orderBy(f.desc(f.col("missing") + f.col("doubles")), "source", "producer")
    )


def gaps(counts: "DataFrame") -> "DataFrame":
    """A row per gap, the widest first. Columns: source, producer, first_missing, last_missing, missing."""
    from pyspark.sql import functions as f

    return (
        _steps(counts)
        .where("missing > 0")
        .selectExpr("source", "producer", "number - missing as first_missing", "number - 1 as last_missing", "missing")
        .orderBy(f.desc("missing"), "source", "producer", "first_missing")
    )


def doubles(counts: "DataFrame", messages: "DataFrame") -> "DataFrame":
    """A row for what is there more than once in one queue: a producer's number, or a message id of the archive.

    Columns: source, queue, name (producer or message id), number (null of a message id), times, first_at, last_at. Ids
    of several brokers, or of a broker that lost its store, may be equal: messages of one id differ in their timestamps.
    """
    from pyspark.sql import functions as f

    by_number = counts.where("times > 1").selectExpr(
        "source",
        "queue",
        "producer as name",
        "number",
        "times",
        "timestamp_millis(first_ms) as first_at",
        "timestamp_millis(last_ms) as last_at",
    )
    by_id = (
        messages.groupBy("queue", "message_id", "timestamp")
        .agg(f.count("*").alias("times"))
        .where("times > 1")
        .selectExpr(
            f"'{BY_MESSAGE_ID}' as source",
            "queue",
            "message_id as name",
            "cast(null as bigint) as number",
            "times",
            "timestamp as first_at",
            "timestamp as last_at",
        )
    )
    return by_number.unionByName(by_id).orderBy("source", "queue", "name", "number")
