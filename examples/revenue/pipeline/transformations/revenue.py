"""The flow of the revenue example: a table of shops, and revenue that goes back to the broker.

Which broker, and who asks, comes from the environment: DELOSMQ_SERVERS, DELOSMQ_USER, DELOSMQ_PASSWORD.
"""

import os
from typing import Any

from pyspark import pipelines as dp
from pyspark.sql import SparkSession

from examples.revenue.stream import REVENUE, closed_minutes, read_orders, read_shops

LOGIN = {name: os.environ[f"DELOSMQ_{name.upper()}"] for name in ("servers", "user", "password")}

dp.create_sink("revenue_topic", "delosmq", {**LOGIN, "topic": REVENUE})


@dp.materialized_view
def shops() -> Any:
    """The table of shops, read anew by each run."""
    return read_shops(SparkSession.active())


@dp.append_flow(target="revenue_topic")
def minutes() -> Any:
    """Each minute and city, once no order for it is waited for."""
    spark = SparkSession.active()
    return closed_minutes(read_orders(spark, LOGIN, max_orders=10_000), spark.read.table("shops"))
