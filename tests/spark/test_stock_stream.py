"""The source over OpenWire in a running Spark: batches, restarts, a driver that is killed."""

# PIPE-4

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import delosmq
from tests.spark.processes import ONE_PROCESS, DriverProcess

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

WAIT_MS = "5000"
"""A query that runs until nothing comes ends after it."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[delosmq.Broker]:
    with delosmq.Broker(tmp_path / "data") as broker:
        yield broker


def options_of(broker: delosmq.Broker, **more: str) -> dict[str, str]:
    login = {"servers": broker.openwire_url, "user": broker.user, "password": broker.password, "subscribe": "q"}
    return {**login, "pollTimeoutMs": WAIT_MS, "maxOffsetsPerTrigger": "100", **more}


def send(broker: delosmq.Broker, numbers: range) -> None:
    with delosmq.connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
        for number in numbers:
            connection.send("q", str(number))


class Kept:
    """The numbers in each batch, of which each is looked at twice."""

    def __init__(self, spark: Any, checkpoint: Path) -> None:
        self.spark, self.checkpoint = spark, checkpoint
        self.batches: list[list[int]] = []

    def run(self, options: dict[str, str]) -> None:
        frame = self.spark.readStream.format("delosmq").options(**options).load()
        written = frame.writeStream.foreachBatch(self._keep).option("checkpointLocation", str(self.checkpoint))
        written.trigger(availableNow=True).start().awaitTermination()

    def _keep(self, batch: Any, _number: int) -> None:
        rows = sorted(int(row.body) for row in batch.collect())
        assert batch.count() == len(rows)
        self.batches.append(rows)


def test_a_stream_reads_all_and_goes_on_after_a_restart(spark: Any, broker: delosmq.Broker, tmp_path: Path):
    send(broker, range(250))
    kept = Kept(spark, tmp_path / "checkpoint")
    kept.run(options_of(broker))
    assert sorted(number for rows in kept.batches for number in rows) == list(range(250))
    assert max(map(len, kept.batches)) == 100
    kept.batches.clear()
    send(broker, range(250, 255))
    shown = spark.read.format("delosmq").options(**options_of(broker)).load()
    assert sorted(int(row.body) for row in shown.collect()) == [250, 251, 252, 253, 254]
    kept.run(options_of(broker))
    assert kept.batches == [[250, 251, 252, 253, 254]]


@pytest.mark.slow
def test_a_driver_that_is_killed_loses_nothing_and_doubles_what_was_not_acknowledged(
    broker: delosmq.Broker, tmp_path: Path
):
    import pyarrow.parquet as pq

    send(broker, range(300))
    to = tmp_path / "rows"
    settings = {"options": options_of(broker), "to": str(to), "checkpoint": str(tmp_path / "checkpoint")}

    def run(die_at_batch: int) -> int:
        return DriverProcess(
            "stock_child.py", tmp_path, ONE_PROCESS, {**settings, "die_at_batch": die_at_batch}
        ).finish()

    def rows() -> list[dict[str, Any]]:
        return [row for path in to.rglob("*.parquet") for row in pq.ParquetFile(path).read().to_pylist()]

    assert run(die_at_batch=1) != 0, (tmp_path / "output").read_text(errors="replace")[-3000:]
    before = Counter(row["message_id"] for row in rows())
    assert max(before.values()) == 1
    assert run(die_at_batch=-1) == 0, (tmp_path / "output").read_text(errors="replace")[-3000:]
    kept = rows()
    after = Counter(row["message_id"] for row in kept)
    assert sorted(int(body) for body in {row["body"] for row in kept}) == list(range(300))
    twice = {message_id for message_id, count in after.items() if count == 2}
    # The second batch: written, and neither committed nor acknowledged.
    assert max(after.values()) == 2
    assert 0 < len(twice) <= 100
    assert twice < set(before)
    assert twice <= {row["message_id"] for row in kept if row["redelivered"]}
