"""How much went where and when, and what became of it: counts and rates per queue, decisions of routers."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from delosmq.spark.audit.report.audited import Period

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EVENTS: Final = {
    "enqueued": "enqueue",
    "dispatched": "dispatch",
    "acknowledged": "acknowledge",
    "redelivered": "redeliver",
    "evicted": "replace",
    "expired": "expire",
    "dead_lettered": "dead-letter",
}
RATES: Final = {
    "redelivery_rate": ("redelivered", "dispatched"),
    "eviction_rate": ("evicted", "enqueued"),
    "expiry_rate": ("expired", "enqueued"),
    "dead_letter_rate": ("dead_lettered", "enqueued"),
}
BUCKETS: Final = 120
"""Points of a plot over time, at most."""
QUEUES: Final = 20
"""Queues that a table over time tells apart."""
S: Final = 1_000
WIDTHS_MS: Final = tuple(
    S * seconds
    for seconds in (1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400, 604_800)
)


def width_of(first_ms: int, last_ms: int) -> int:
    """Width of the intervals of a plot, in ms: the least that gives no more than 120 of them."""
    span = last_ms - first_ms
    fitting = (width for width in WIDTHS_MS if span < width * (BUCKETS - 1))
    return next(fitting, WIDTHS_MS[-1] * (1 + span // (WIDTHS_MS[-1] * (BUCKETS - 1))))


def period_of(frame: "DataFrame", at_ms: str) -> Period:
    """How many rows, and the time that they cover: without the outermost few where these would be most of a plot."""
    row = frame.selectExpr(
        "count(1) as found",
        f"min({at_ms}) as first",
        f"max({at_ms}) as last",
        f"percentile_approx({at_ms}, array(0.005, 0.995)) as most",
    ).first()
    if row is None or not row.found:
        return Period(0, 0, 0, 0, WIDTHS_MS[0])
    period = Period(row.found, row.first, row.last, 0, 0)
    low, high = row.most
    if row.last - row.first > 20 * max(high - low, 60_000):
        period = replace(period, first_ms=low, last_ms=high)
        inside = frame.where(period.holds(at_ms)).count()
        period = replace(period, outside=row.found - inside)
    return replace(period, width_ms=width_of(period.first_ms, period.last_ms))


def traffic(records: "DataFrame", width_ms: int) -> "DataFrame":
    """Records of each kind per interval and queue; queue is null for all but the busiest. Columns: start, queue, and
    those of EVENTS.
    """
    from pyspark.sql import functions as f

    return (
        _busiest(records.where("queue is not null"))
        .groupBy(f.expr(f"timestamp_millis(time_ms - pmod(time_ms, {width_ms}))").alias("start"), "queue")
        .agg(*_counts())
        .orderBy("start", "queue")
    )


def archived_traffic(messages: "DataFrame", width_ms: int) -> "DataFrame":
    """Messages of the archive per interval of their timestamps. Columns: start, queue, messages, body_bytes."""
    from pyspark.sql import functions as f

    at = "unix_millis(timestamp)"
    return (
        _busiest(messages)
        .groupBy(f.expr(f"timestamp_millis({at} - pmod({at}, {width_ms}))").alias("start"), "queue")
        .agg(f.count("*").alias("messages"), f.sum(f.length("body")).alias("body_bytes"))
        .orderBy("start", "queue")
    )


def queues(messages: "DataFrame", records: "DataFrame") -> "DataFrame":
    """A row per queue: what the archive has of it, how many records of each kind, and rates (null of nothing)."""
    from pyspark.sql import functions as f

    archived = messages.groupBy("queue").agg(
        f.count("*").alias("archived"),
        f.sum(f.length("body")).alias("body_bytes"),
        f.expr("count_if(redelivered)").alias("archived_redelivered"),
        f.max("delivery_count").alias("most_deliveries"),
    )
    told = records.where("queue is not null").groupBy("queue").agg(*_counts())
    rates = [f.expr(f"{part} / nullif({whole}, 0)").alias(name) for name, (part, whole) in RATES.items()]
    busiest = f.expr("coalesce(archived, 0) + coalesce(enqueued, 0)")
    return archived.join(told, "queue", "full").select("*", *rates).orderBy(f.desc(busiest), "queue")


def routers(records: "DataFrame") -> "DataFrame":
    """Decisions of connection routers. Columns: router, decision, target, reason, connections, share of its router."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    parts = r"'^(.*?): (.*?), because (.*)$'"
    counted = (
        records.where("event in ('route', 'redirect')")
        .select(
            f.expr(f"coalesce(nullif(regexp_extract(cause, {parts}, 1), ''), cause, '')").alias("router"),
            f.col("event").alias("decision"),
            f.expr(f"coalesce(regexp_extract(cause, {parts}, 2), '')").alias("target"),
            f.expr(f"coalesce(regexp_extract(cause, {parts}, 3), '')").alias("reason"),
        )
        .groupBy("router", "decision", "target", "reason")
        .agg(f.count("*").alias("connections"))
    )
    whole = f.sum("connections").over(Window.partitionBy("router"))
    return counted.withColumn("share", f.col("connections") / whole).orderBy(
        "router", f.desc("connections"), "target", "decision", "reason"
    )


def _busiest(frame: "DataFrame") -> "DataFrame":
    """`frame` with queue null for all but the queues with most rows."""
    from pyspark.sql import functions as f

    most = (
        frame.groupBy("queue")
        .count()
        .orderBy(f.desc("count"), "queue")
        .limit(QUEUES)
        .select("queue", f.lit(1).alias("kept"))
    )
    joined = frame.join(f.broadcast(most), "queue", "left")
    return joined.withColumn("queue", f.expr("if(kept = 1, queue, null)")).drop("kept")


def _counts() -> list[object]:
    from pyspark.sql import functions as f

    return [f.expr(f"count_if(event = '{event}')").alias(name) for name, event in EVENTS.items()]
