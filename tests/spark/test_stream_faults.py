"""Streams in a running Spark when something is wrong, changed or killed: nothing is lost, nothing comes twice."""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.brokers import BrokerUnderTest
from tests.spark.fake_broker import FakeBroker
from tests.spark.processes import KillableBroker
from tests.spark.test_stream import Collected, options_of

# PIPE-1

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BATCH = '{"batchWatermarkMs":0,"batchTimestampMs":1795533310356,"conf":{"spark.sql.shuffle.partitions":"2"}}'
INCARNATION = "79d198d7de27431fa7125e20f855abf3"
PATIENCE_S = 120


@pytest.fixture
def killable(tmp_path: Path) -> Iterator[KillableBroker]:
    broker = KillableBroker(tmp_path / "broker")
    yield broker
    broker.stop()


def failure(spark: Any, broker: BrokerUnderTest, checkpoint: Path, **options: str) -> str:
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException) as told:
        Collected(spark, broker, checkpoint).run(**options)
    return str(told.value)


def test_a_checkpoint_of_the_first_offset_format_goes_on(spark: Any, fake: FakeBroker, tmp_path: Path):
    fake.publish("q", [b"%d" % number for number in range(5)])
    client = {"queue": "q", "run": "before", "incarnation": None}
    assert fake.open("g", client)["epoch"] == 1
    fake.groups["g"].incarnation = INCARNATION
    for after in (0, 1):
        fake.lease("g", {"after": after, "max_rows": 2, "max_bytes": 99, "wait_ms": 0, "epoch": 1, "until": None})
    # As a release with that format left it after a kill amid batch 1.
    for name, text in {
        "metadata": '{"id":"a4cb9e42-f0c0-49d9-aae0-6d4fa22c065b"}',
        "offsets/0": f'v1\n{BATCH}\n{{"lease": 1, "incarnation": "{INCARNATION}"}}',
        "offsets/1": f'v1\n{BATCH}\n{{"lease": 2, "incarnation": "{INCARNATION}"}}',
        "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    }.items():
        (tmp_path / "c" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "c" / name).write_text(text)
    collected = Collected(spark, fake, tmp_path / "c")
    collected.run()
    assert collected.batches == {1: [b"2", b"3"], 2: [b"4"]}
    written = (tmp_path / "c" / "offsets" / "2").read_text().splitlines()[-1]
    assert written == f'{{"lease": 3, "incarnation": "{INCARNATION}"}}'


def test_several_queues_are_read_once_over_restarts_and_a_queue_that_is_added(
    spark: Any, any_broker: BrokerUnderTest, tmp_path: Path
):
    wanted = {name: [b"%s%d" % (name.encode(), number) for number in range(120)] for name in ("a", "b", "c")}
    for name in ("a", "b"):
        any_broker.publish(name, wanted[name])
    collected = Collected(spark, any_broker, tmp_path / "checkpoint")
    collected.run(subscribe="a,b")
    assert [len(rows) for rows in collected.batches.values()] == [100, 100, 40]
    any_broker.publish("c", wanted["c"])
    any_broker.publish("a", [b"later"])
    query = collected.run(subscribe="c,b,a")
    assert '"places"' in query.lastProgress["sources"][0]["endOffset"]
    assert sorted(collected.bodies) == sorted([*wanted["a"], *wanted["b"], *wanted["c"], b"later"])


def test_columns_may_change_between_runs(spark: Any, fake: FakeBroker, tmp_path: Path):
    fake.publish("q", [b"1", b"2"])
    collected = Collected(spark, fake, tmp_path / "checkpoint")
    collected.run()
    fake.publish("q", [b"3"])
    query = collected.run(columns="sequence,body,priority", includeHeaders="true")
    assert [field.name for field in collected.schema.fields] == ["sequence", "body", "priority", "properties"]
    assert collected.bodies == [b"1", b"2", b"3"]
    assert query.exception() is None


def test_a_copied_checkpoint_is_refused_once_the_original_went_on(
    spark: Any, any_broker: BrokerUnderTest, tmp_path: Path
):
    any_broker.publish("q", [b"1", b"2"])
    original = Collected(spark, any_broker, tmp_path / "original")
    original.run()
    shutil.copytree(tmp_path / "original", tmp_path / "copy")
    any_broker.publish("q", [b"3"])
    original.run()
    any_broker.publish("q", [b"4"])
    assert "DMQ8057: " in failure(spark, any_broker, tmp_path / "copy")
    assert "DMQ8057: " in failure(spark, any_broker, tmp_path / "copy", **{"group.id": "of-its-own"})
    original.run()
    assert original.bodies == [b"1", b"2", b"3", b"4"]


def test_a_second_query_with_a_group_is_refused_and_the_first_goes_on(spark: Any, fake: FakeBroker, tmp_path: Path):
    fake.publish("q", [b"1"])
    first = Collected(spark, fake, tmp_path / "first")
    query = first.start()
    try:
        first.wait_for(1)
        fake.publish("q", [b"2"])
        first.wait_for(2)
        assert "DMQ8020: " in failure(spark, fake, tmp_path / "second")
        fake.publish("q", [b"3"])
        first.wait_for(3)
    finally:
        query.stop()
    assert first.bodies == [b"1", b"2", b"3"]


def test_a_user_without_permission_is_told_so(spark: Any, fake: FakeBroker, tmp_path: Path):
    from pyspark.errors import PySparkException

    fake.publish("q", [b"1"])
    fake.forbidden = True
    assert f"DMQ8012: user '{fake.user}' may not" in failure(spark, fake, tmp_path / "checkpoint")
    with pytest.raises(PySparkException, match="DMQ8012: "):
        spark.read.format("delosmq").options(**options_of(fake)).load().count()


def test_a_broker_that_is_away_at_the_start_is_named(spark: Any, fake: FakeBroker, tmp_path: Path):
    fake.stop()
    assert f"DMQ8010: no broker answered at http://{fake.servers}" in failure(
        spark, fake, tmp_path / "checkpoint", retryTimeoutMs="200"
    )
    fake.start()


def test_one_of_several_brokers_may_be_away_for_a_while(spark: Any, fake: FakeBroker, tmp_path: Path):
    other = FakeBroker()
    wanted = [b"%d" % number for number in range(150)]
    fake.publish("q", wanted[:120])
    other.publish("q", wanted[120:])
    collected = Collected(spark, fake, tmp_path / "checkpoint")
    back = threading.Timer(0.5, other.start)

    def away() -> None:
        other.stop()
        back.start()

    collected.before_batch = {0: away}
    collected.run(servers=f"{fake.servers};{other.servers}")
    other.stop()
    assert [len(rows) for rows in collected.batches.values()] == [100, 50]
    assert sorted(collected.bodies) == sorted(wanted)


@pytest.mark.slow
def test_a_broker_that_is_killed_amid_a_query_is_waited_for(spark: Any, killable: KillableBroker, tmp_path: Path):
    wanted = [b"%d" % number for number in range(250)]
    killable.publish("q", wanted)
    collected = Collected(spark, killable, tmp_path / "checkpoint")
    restarts = []

    def restart() -> None:
        killable.process.kill()
        restarts.append(threading.Timer(1.0, killable.process.start))
        restarts[-1].start()

    collected.before_batch = {1: restart}
    collected.run()
    assert len(restarts) == 1
    assert collected.bodies == wanted


def test_clocks_that_jump_lose_and_repeat_nothing(fake: FakeBroker, monkeypatch: pytest.MonkeyPatch):
    from pyspark.sql.streaming.datasource import ReadMaxRows

    from delosmq.spark.source.data_source import DelosSource

    fake.publish("q", [b"%d" % number for number in range(6)])
    jumps = iter([0, 1 << 31, -(1 << 30), 86_400, 0, 1 << 30, 0] * 100)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + next(jumps))
    source = DelosSource(options_of(fake, **{"group.id": "g", "columns": "body"}))
    reader = source.streamReader(source.schema())
    end, read = reader.initialOffset(), []
    while (onward := reader.latestOffset(end, ReadMaxRows(2))) != end:
        for part in reader.partitions(end, onward):
            read += [body for batch in reader.read(part) for body in batch.column(0).to_pylist()]
        end = onward
    reader.stop()
    assert read == [b"%d" % number for number in range(6)]


# -- what the broker does for a query --------------------------------------------------------------------------------


def test_filters_of_a_batch_are_left_to_the_broker(spark: Any, fake: FakeBroker):
    fake.publish("q", [b"%d" % number for number in range(1, 41)], headers=[{"priority": "9"}, {"priority": "1"}])
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("delosmq").options(**options_of(fake, pushdown="true", includeHeaders="true")).load()
        bounds = "sequence > 10 AND timestamp < timestamp '2026-03-01 23:50:30Z'"
        wanted = frame.where(f"{bounds} AND priority > 5 AND properties['number'] <> 13")
        assert sorted(row.sequence for row in wanted.collect()) == [11, 15, 17, 19, 21, 23, 25, 27, 29]
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    assert fake.fetches[0] == "q?10-40"
    assert fake.asked["selector"] == "JMSPriority > 5"
    assert fake.asked["before_ms"] == "1772409030000"


def test_spark_is_told_that_its_pushdown_is_off(spark: Any, fake: FakeBroker):
    from pyspark.errors import PySparkException

    fake.publish("q", [b"1"])
    frame = spark.read.format("delosmq").options(**options_of(fake, pushdown="true")).load()
    with pytest.raises(PySparkException, match=r"spark\.sql\.python\.filterPushdown\.enabled"):
        frame.where("sequence > 1").count()


def test_message_groups_stay_within_partitions(spark: Any, any_broker: BrokerUnderTest, tmp_path: Path):
    names = ["a", "b", "c", "d", "e"]
    any_broker.publish(
        "q", [b"%d" % number for number in range(100)], headers=[{"JMSXGroupID": name} for name in names]
    )
    seen: dict[str, set[int]] = {}

    def keep(batch: Any, number: int) -> None:
        from pyspark.sql.functions import spark_partition_id

        for row in batch.withColumn("partition", spark_partition_id()).collect():
            seen.setdefault(row.group_id, set()).add(row.partition)

    given = {"group.id": "g", "columns": "group_id", "partitionBy": "group", "minPartitions": "3"}
    frame = spark.readStream.format("delosmq").options(**options_of(any_broker, **given)).load()
    query = (
        frame.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(seen) == names
    assert all(len(partitions) == 1 for partitions in seen.values())


@pytest.mark.parametrize(
    "mode", [{"realTime": "5 minutes"}, {"continuous": "1 second"}], ids=["real-time", "continuous"]
)
def test_spark_refuses_modes_that_are_not_exact(spark: Any, fake: FakeBroker, tmp_path: Path, mode: dict[str, str]):
    fake.publish("q", [b"1"])
    frame = spark.readStream.format("delosmq").options(**options_of(fake, **{"group.id": "g"})).load()
    writer = frame.writeStream.format("console").outputMode("update").trigger(**mode)
    with pytest.raises(Exception, match=r"not support") as told:
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert type(told.value).__module__.startswith("pyspark.errors")
    assert all(group.newest == 0 for group in fake.groups.values())


def test_asynchronous_progress_is_refused_where_it_can_be_seen(spark: Any, fake: FakeBroker, tmp_path: Path):
    from pyspark.errors import PySparkException

    fake.publish("q", [b"1"])
    given = {"asyncProgressTrackingEnabled": "true"}
    with pytest.raises(PySparkException, match=r"DMQ8001: .*acknowledged before Spark has noted it"):
        spark.readStream.format("delosmq").options(**options_of(fake, **{"group.id": "g"}, **given)).load()
    frame = spark.readStream.format("delosmq").options(**options_of(fake, **{"group.id": "g"})).load()
    writer = frame.writeStream.foreachBatch(lambda batch, number: None).options(**given)
    with pytest.raises(PySparkException, match="does not support async progress tracking"):
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    assert fake.groups == {}
