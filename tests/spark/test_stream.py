"""The data source in a running Spark: streams, restarts, batches, refusals."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.brokers import BrokerUnderTest
from tests.spark.fake_broker import FakeBroker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def options_of(broker: BrokerUnderTest, **more: str) -> dict[str, str]:
    return {"servers": broker.servers, "user": broker.user, "password": broker.password, "subscribe": "q", **more}


class Collected:
    """Runs a query until the queue is done and keeps the bodies of each batch; `fail_at` breaks that batch."""

    def __init__(self, spark: Any, broker: BrokerUnderTest, checkpoint: Path) -> None:
        self.spark, self.broker, self.checkpoint = spark, broker, checkpoint
        self.batches: dict[int, list[bytes]] = {}
        self.fail_at: int | None = None
        self.before_batch: dict[int, Callable[[], None]] = {}
        self.schema: Any = None
        self._kept = threading.Condition()

    def run(self, **options: str) -> Any:
        query = self._started({"availableNow": True}, options)
        query.awaitTermination()
        return query

    def start(self, **options: str) -> Any:
        """Run until it is stopped."""
        return self._started({"processingTime": "0 seconds"}, options)

    def wait_for(self, rows: int) -> None:
        """Until so many rows were kept in all."""
        with self._kept:
            assert self._kept.wait_for(lambda: len(self.bodies) >= rows, timeout=120)

    def _started(self, trigger: dict[str, Any], options: dict[str, str]) -> Any:
        given = {"group.id": "g", "maxOffsetsPerTrigger": "100", "columns": "body,sequence", **options}
        frame = self.spark.readStream.format("delosmq").options(**options_of(self.broker, **given)).load()
        return (
            frame.writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(**trigger)
            .start()
        )

    def _keep(self, batch: Any, number: int) -> None:
        self.before_batch.pop(number, lambda: None)()
        self.schema = batch.schema
        rows = sorted((row.sequence, bytes(row.body)) for row in batch.collect())
        if number == self.fail_at:
            self.fail_at = None
            raise RuntimeError("broken on purpose")
        with self._kept:
            self.batches[number] = [body for _, body in rows]
            self._kept.notify_all()

    @property
    def bodies(self) -> list[bytes]:
        return [body for number in sorted(self.batches) for body in self.batches[number]]


# PIPE-1
def test_a_stream_reads_each_message_once_over_restarts(spark: Any, any_broker: BrokerUnderTest, tmp_path: Path):
    wanted = [b"%d" % number for number in range(250)]
    any_broker.publish("q", wanted)
    collected = Collected(spark, any_broker, tmp_path / "checkpoint")
    query = collected.run(minPartitions="3")
    assert [len(rows) for rows in collected.batches.values()] == [100, 100, 50]
    assert json.loads(query.lastProgress["sources"][0]["latestOffset"])["ready"] == 0
    any_broker.publish("q", [b"later"])
    collected.run()
    assert collected.bodies == [*wanted, b"later"]


# PIPE-1
@pytest.mark.parametrize("fail_at", [0, 1])
def test_a_failed_batch_is_repeated_with_the_same_rows(spark: Any, fake: FakeBroker, tmp_path: Path, fail_at: int):
    from pyspark.errors import StreamingQueryException

    fake.busy_s = 0.5
    fake.publish("q", [b"%d" % number for number in range(150)])
    collected = Collected(spark, fake, tmp_path / "checkpoint")
    collected.fail_at = fail_at
    with pytest.raises(StreamingQueryException, match="broken on purpose"):
        collected.run()
    fake.publish("q", [b"later"])
    # A larger limit must not change what the repeated batch holds.
    collected.run(maxOffsetsPerTrigger="1000")
    assert collected.bodies == [*(b"%d" % number for number in range(150)), b"later"]
    assert len(collected.batches[0]) == 100


def test_a_deleted_checkpoint_fails_with_a_sentence(spark: Any, fake: FakeBroker, tmp_path: Path):
    from pyspark.errors import StreamingQueryException

    fake.publish("q", [b"a"])
    Collected(spark, fake, tmp_path / "first").run()
    fake.publish("q", [b"b"])
    with pytest.raises(StreamingQueryException, match="DMQ8020: "):
        Collected(spark, fake, tmp_path / "second").run()


# PIPE-1
def test_a_batch_read_shows_all_columns_and_takes_nothing(spark: Any, any_broker: BrokerUnderTest):
    any_broker.publish("q", [b"%d" % number for number in range(50)])
    frame = (
        spark.read.format("delosmq").options(**options_of(any_broker, includeHeaders="true", minPartitions="3")).load()
    )
    assert frame.count() == 50
    row = frame.orderBy("sequence").first()
    assert (bytes(row.body), row.queue, row.properties["number"]) == (b"0", "q", "1")
    assert frame.count() == 50


def test_a_password_is_in_no_plan_and_no_progress(
    spark: Any, fake: FakeBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    fake.publish("q", [b"a"])
    spark.read.format("delosmq").options(**options_of(fake)).load().explain(True)
    spark.readStream.format("delosmq").options(**options_of(fake, **{"group.id": "x"})).load().explain(True)
    query = Collected(spark, fake, tmp_path / "checkpoint").run()
    shown = capsys.readouterr().out + str(query.lastProgress)
    assert "delosmq" in shown
    assert fake.password not in shown
    written = [
        path.read_text() for path in (tmp_path / "checkpoint").rglob("*") if path.is_file() and path.suffix == ""
    ]
    assert written
    assert not any(fake.password in text for text in written)


@pytest.mark.parametrize(
    "wrong, sentence", [({"servrs": "x"}, "DMQ8001: .*did you mean servers"), ({"password": "x"}, "DMQ8011: ")]
)
def test_a_mistake_is_told_as_a_sentence(spark: Any, fake: FakeBroker, wrong: dict[str, str], sentence: str):
    from pyspark.errors import PySparkException

    fake.make_queue("q")
    with pytest.raises(PySparkException, match=sentence):
        spark.read.format("delosmq").options(**options_of(fake, **wrong)).load().count()
