"""How long messages took, from the records of their steps, and how many came to which end."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STEPS: Final = ("accepted to dispatched", "dispatched to acknowledged", "accepted to acknowledged")
PERCENTILES: Final = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "p999_ms": 0.999}
ACCURACY: Final = 10_000
"""Of percentile_approx: a percentile's rank is right to a ten-thousandth of the number of messages."""
UNKNOWN: Final = "(unknown)"


def spans(records: "DataFrame") -> "DataFrame":
    """A row for each step of each message: queue, consumer, step, ended_ms, ms (below 0 where the clock went back).

    Of several dispatches the first ends the wait, and the last begins the work.
    """
    from pyspark.sql import functions as f

    lives = (
        records.where("queue is not null and event in ('enqueue', 'dispatch', 'acknowledge')")
        .groupBy("queue", "sequence", "message_id")
        .agg(
            f.expr("coalesce(min(accepted_ms), min(if(event = 'enqueue', time_ms, null)))").alias("accepted"),
            f.expr("min(if(event = 'dispatch', time_ms, null))").alias("first"),
            f.expr("max(if(event = 'dispatch', time_ms, null))").alias("last"),
            f.expr("max(if(event = 'acknowledge', time_ms, null))").alias("done"),
            f.expr("min_by(consumer, if(event = 'dispatch', time_ms, null))").alias("getter"),
            f.expr("max_by(consumer, if(event = 'acknowledge', time_ms, null))").alias("user"),
        )
    )
    steps = (("getter", "first", "accepted"), ("user", "done", "last"), ("user", "done", "accepted"))
    each = ", ".join(
        f"struct('{name}' as step, coalesce({who}, '{UNKNOWN}') as consumer, {end} as ended_ms, {end} - {start} as ms)"
        for name, (who, end, start) in zip(STEPS, steps, strict=True)
    )
    return lives.select("queue", f.expr(f"inline(array({each}))")).where("ms is not null")


def latency(timed: "DataFrame", *by: str) -> "DataFrame":
    """Percentiles per step and the columns `by` (queue, or queue and consumer), those with most messages first.

    Columns: `by`, step, messages, p50_ms, p90_ms, p99_ms, p999_ms, max_ms, clock_went_back. The last counts messages
    that are in none of the others.
    """
    from pyspark.sql import functions as f

    return (
        timed.groupBy(*by, "step")
        .agg(*_percentiles(PERCENTILES), f.expr("count_if(ms < 0)").alias("clock_went_back"))
        .select(*by, "step", "messages", *PERCENTILES, "max_ms", "clock_went_back")
        .orderBy(f.desc("messages"), *by, "step")
    )


def latency_over_time(timed: "DataFrame", width_ms: int) -> "DataFrame":
    """Percentiles of all messages by when the step ended. Columns: start, step, messages, p50_ms, p99_ms, max_ms."""
    from pyspark.sql import functions as f

    wanted = {name: PERCENTILES[name] for name in ("p50_ms", "p99_ms")}
    return (
        timed.where("ms >= 0")
        .groupBy(f.expr(f"timestamp_millis(ended_ms - pmod(ended_ms, {width_ms}))").alias("start"), "step")
        .agg(*_percentiles(wanted))
        .select("start", "step", "messages", *wanted, "max_ms")
        .orderBy("start", "step")
    )


def _percentiles(wanted: dict[str, float]) -> list[object]:
    from pyspark.sql import functions as f

    sound = f.expr("if(ms >= 0, ms, null)")
    return [
        f.count(sound).alias("messages"),
        *(f.percentile_approx(sound, share, ACCURACY).alias(name) for name, share in wanted.items()),
        f.max(sound).alias("max_ms"),
    ]
