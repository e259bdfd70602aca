"""What Spark makes of the archive: sales per hour and customer, and the audit against the clients' receipts.

python -m examples.orders.report OUT REDELIVERED      what `make run` starts when the archive is complete
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from examples.orders.traffic import Receipts

TOP_CUSTOMERS = 5
KINDS = ("published", "acknowledged", "dead")


@dataclass(frozen=True)
class Audit:
    """Orders by what became of them; lost, doubled and strange must be 0.

    Attributes:
        lost: confirmed but not archived, or neither acknowledged nor dead-lettered.
        doubled: archived or acknowledged twice, or acknowledged and dead-lettered.
        strange: archived, acknowledged or dead-lettered although nobody published them, or without a readable id. An
            order whose confirmation was not seen is none: the traffic ends only when all are confirmed.
    """

    published: int
    acknowledged: int
    redelivered: int
    dead_lettered: int
    archived: int
    lost: int
    doubled: int
    strange: int

    @property
    def passed(self) -> bool:
        """Whether each order that was published, and nothing else, is there exactly once."""
        return self.lost == 0 and self.doubled == 0 and self.strange == 0


@dataclass(frozen=True)
class Report:
    """The figures of one run, and where the tables are."""

    audit: Audit
    hours: int
    busiest_hour: str
    top_customers: list[tuple[str, int, float]]


def load_report(path: Path) -> Report:
    """What `main` wrote."""
    value = json.loads(path.read_text(encoding="utf-8"))
    top = [(str(name), int(count), float(amount)) for name, count, amount in value["top_customers"]]
    return Report(Audit(**value["audit"]), value["hours"], value["busiest_hour"], top)


def write_receipts(directory: Path, receipts: Receipts) -> None:
    """Stores the receipts as JSON lines, one file a kind."""
    directory.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        _write_ids(directory / f"{kind}.jsonl", getattr(receipts, kind))


def _write_ids(path: Path, ids: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as out:
        for order_id in ids:
            out.write(json.dumps({"order_id": order_id}) + "\n")


def report(spark: Any, archive: Path, receipts: Path, out: Path, *, redelivered: int) -> Report:
    """Runs the Spark job; writes ``per_hour``, ``per_customer`` and ``report.json`` below ``out``.

    Runs on: the driver, with executors for the tables.
    """
    from pyspark.sql import functions as f

    rows = spark.read.parquet(str(archive))
    order = "order_id string, customer string, placed_at timestamp, amount double"
    orders = rows.select(f.from_json(f.col("body").cast("string"), order).alias("order")).select("order.*").cache()
    hourly = orders.groupBy(f.date_trunc("hour", "placed_at").alias("hour")).agg(
        f.count("*").alias("orders"), f.round(f.sum("amount"), 2).alias("amount")
    )
    hourly.orderBy("hour").coalesce(1).write.mode("overwrite").option("header", True).csv(str(out / "per_hour"))
    customers = orders.groupBy("customer").agg(
        f.count("*").alias("orders"), f.round(f.sum("amount"), 2).alias("amount")
    )
    customers.orderBy(f.desc("amount")).coalesce(1).write.mode("overwrite").option("header", True).csv(
        str(out / "per_customer")
    )
    busiest = hourly.orderBy(f.desc("orders"), "hour").first()
    top = customers.orderBy(f.desc("amount")).limit(TOP_CUSTOMERS).collect()
    audit = _audit(spark, orders.select("order_id"), receipts, redelivered)
    made = Report(
        audit,
        hourly.count(),
        f"{busiest['hour']:%Y-%m-%d %H:00}" if busiest is not None else "",
        [(row["customer"], row["orders"], row["amount"]) for row in top],
    )
    (out / "report.json").write_text(json.dumps(asdict(made), indent=2) + "\n", encoding="utf-8")
    return made


def _audit(spark: Any, archived: Any, receipts: Path, redelivered: int) -> Audit:
    from pyspark.sql import functions as f

    seen = archived.select("order_id", f.lit("archived").alias("kind"))
    for kind in KINDS:
        known = spark.read.schema("order_id string").json(str(receipts / f"{kind}.jsonl"))
        seen = seen.union(known.select("order_id", f.lit(kind).alias("kind")))
    counts = seen.groupBy("order_id").pivot("kind", ["archived", *KINDS]).count().na.fill(0)
    lost = (f.col("published") > 0) & ((f.col("archived") == 0) | ((f.col("acknowledged") == 0) & (f.col("dead") == 0)))
    doubled = (
        (f.col("archived") > 1)
        | (f.col("acknowledged") > 1)
        | (f.col("dead") > 1)
        | ((f.col("acknowledged") > 0) & (f.col("dead") > 0))
    )
    strange = (f.col("published") == 0) | f.col("order_id").isNull()
    figures = counts.agg(
        *(f.sum((f.col(kind) > 0).cast("long")).alias(kind) for kind in ("archived", *KINDS)),
        f.sum(lost.cast("long")).alias("lost"),
        f.sum(doubled.cast("long")).alias("doubled"),
        f.sum(strange.cast("long")).alias("strange"),
    ).first()
    return Audit(
        published=figures["published"],
        acknowledged=figures["acknowledged"],
        redelivered=redelivered,
        dead_lettered=figures["dead"],
        archived=figures["archived"],
        lost=figures["lost"],
        doubled=figures["doubled"],
        strange=figures["strange"],
    )


def main() -> None:
    """A Spark session of its own, so that the job's output stays readable."""
    from delosmq.spark.session import start_session

    out = Path(sys.argv[1])
    spark = start_session("orders-report")
    report(spark, out / "archive", out / "receipts", out / "report", redelivered=int(sys.argv[2]))
    spark.stop()


if __name__ == "__main__":
    main()
