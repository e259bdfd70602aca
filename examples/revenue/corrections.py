"""What came too late for its minute: found in the archive, which has every order, and published as a correction."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as f

from examples.revenue.stream import REVENUE, as_messages, parsed, per_minute

RESULT = "minute string, city string, orders bigint, cents bigint"


@dataclass(frozen=True)
class Account:
    """Where each archived order is.

    Attributes:
        counted: in a minute that was published.
        late: in a correction of such a minute.
        waiting: for its minute to be over.
        unreadable: nowhere, as it is no order.
    """

    orders: int
    counted: int
    late: int
    waiting: int
    unreadable: int

    @property
    def balanced(self) -> bool:
        """Whether each order is in one place."""
        return self.orders == self.counted + self.late + self.waiting + self.unreadable


def correct(spark: Any, login: Mapping[str, str], messages: Any, shops: Any) -> Account:
    """Publishes what the revenue of published minutes lacks, once, and says where each order is.

    Args:
        messages: the archive of orders and revenue, the corrections so far with them. What is computed of one that
            lacks the last correction has the number of that, and is not published.
    """
    orders = messages.where("address = 'orders'")
    results = messages.where(f.col("address") == REVENUE).select(
        f.from_json(f.col("body").cast("string"), RESULT).alias("result"),
        f.col("properties")["kind"].alias("kind"),
        f.col("properties")["correction"].cast("int").alias("correction"),
    )
    results = results.select("result.*", "kind", "correction").cache()
    last = results.where("kind = 'minute'").agg(f.max("minute")).first()[0] or ""
    missing = lacking(per_minute(parsed(orders), shops), results, last).cache()
    found = missing.agg(*(f.sum(name).alias(name) for name in ("ordered", "waiting", "orders"))).first()
    if found["orders"]:
        # The same number again sends nothing: what was killed after this may be repeated.
        number = (results.agg(f.max("correction")).first()[0] or 0) + 1
        corrections = as_messages(missing.where("orders != 0"), kind="correction", correction=str(number)).coalesce(1)
        options = {"topic": REVENUE, "transactionalId": "revenue-corrections", "batchId": number}
        corrections.write.format("delosmq").mode("append").options(**login, **options).save()
    known = {row["kind"]: row["known"] for row in results.groupBy("kind").agg(f.sum("orders").alias("known")).collect()}
    total = orders.count()
    return Account(
        orders=total,
        counted=known.get("minute", 0),
        late=known.get("correction", 0) + (found["orders"] or 0),
        waiting=found["waiting"] or 0,
        unreadable=total - (found["ordered"] or 0),
    )


def lacking(truth: Any, published: Any, last: str) -> Any:
    """What `published` lacks of `truth`, up to the minute `last`.

    The columns minute, city, orders and cents are the difference; ordered is all, and waiting what is of later minutes.
    """
    known = published.groupBy("minute", "city").agg(
        f.sum("orders").alias("known_orders"), f.sum("cents").alias("known_cents")
    )
    is_over = f.col("minute") <= last

    def difference(column: str) -> Any:
        found = f.col(column) - f.coalesce(f"known_{column}", f.lit(0))
        return f.when(is_over, found).otherwise(0).alias(column)

    return truth.join(known, ["minute", "city"], "left").select(
        "minute",
        "city",
        difference("orders"),
        difference("cents"),
        f.col("orders").alias("ordered"),
        f.when(is_over, 0).otherwise(f.col("orders")).alias("waiting"),
    )
