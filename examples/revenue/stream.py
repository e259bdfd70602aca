"""Revenue per minute and city, as a stream: orders from a queue, shops from a table, each minute published once.

Runs on: the driver, which plans; the executors do the work.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import functions as f

ORDERS = "orders.stream"
REVENUE = "revenue"
SHOPS = Path(__file__).parent / "shops.csv"
ORDER = "order_id string, shop string, placed_at timestamp, cents bigint"
WAIT_FOR_LATE = "2 minutes"
"""How much later than the latest order another one may be and still count."""
MINUTE = "yyyy-MM-dd'T'HH:mm:ss'Z'"


@dataclass(frozen=True)
class Streamed:
    """What a run of the stream did. Attributes: dropped: orders that were too late for the minute they belong to."""

    batches: int
    orders: int
    minutes: int
    dropped: int


def read_orders(spark: Any, login: Mapping[str, str], *, max_orders: int) -> Any:
    """The messages of the queue, as a stream."""
    return (
        spark.readStream.format("delosmq")
        .options(**login)
        .option("subscribe", ORDERS)
        .option("group.id", "revenue")
        .option("columns", "body")
        .option("maxOffsetsPerTrigger", max_orders)
        .load()
    )


def read_shops(spark: Any) -> Any:
    """The table of shops: shop, city."""
    return spark.read.schema("shop string, city string").option("header", True).csv(str(SHOPS))


def parsed(messages: Any) -> Any:
    """The orders in the bodies of messages. What is no order has no time, and counts for no minute."""
    return messages.select(f.from_json(f.col("body").cast("string"), ORDER).alias("order")).select("order.*")


def per_minute(orders: Any, shops: Any) -> Any:
    """The columns minute, city, orders and cents. A shop that the table lacks is in the city "unknown"."""
    city = f.coalesce("city", f.lit("unknown"))
    return (
        orders.join(shops, "shop", "left")
        .groupBy(f.window("placed_at", "1 minute").alias("window"), city.alias("city"))
        .agg(f.count("*").alias("orders"), f.sum("cents").alias("cents"))
        .select(f.date_format("window.start", MINUTE).alias("minute"), "city", "orders", "cents")
    )


def as_messages(revenue: Any, **properties: str) -> Any:
    """A message for each row, with these properties; those of a city stay in order, as they are a message group."""
    return revenue.select(
        f.to_json(f.struct("minute", "city", "orders", "cents")).alias("body"),
        f.lit("application/json").alias("content_type"),
        f.create_map(*(f.lit(text) for pair in properties.items() for text in pair)).alias("properties"),
        f.col("city").alias("group_id"),
    )


def closed_minutes(messages: Any, shops: Any) -> Any:
    """The stream of messages that are published: a minute and city each, once no order for it is waited for."""
    orders = parsed(messages).withWatermark("placed_at", WAIT_FOR_LATE)
    return as_messages(per_minute(orders, shops), kind="minute")


def publish_minutes(spark: Any, login: Mapping[str, str], checkpoint: Path, *, max_orders: int) -> Streamed:
    """Works on what is in the queue now and publishes the minutes that are over; a later call goes on from there."""
    minutes = closed_minutes(read_orders(spark, login, max_orders=max_orders), read_shops(spark))
    query = (
        minutes.writeStream.format("delosmq")
        .options(**login)
        .option("topic", REVENUE)
        .option("checkpointLocation", str(checkpoint))
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = query.recentProgress
    states = [state for batch in batches for state in batch["stateOperators"]]
    return Streamed(
        batches=len(batches),
        orders=sum(batch["numInputRows"] for batch in batches),
        minutes=sum(state["numRowsRemoved"] for state in states),
        dropped=sum(state["numRowsDroppedByWatermark"] for state in states),
    )
