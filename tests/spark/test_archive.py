"""The archive: each message once, replaced when repeated, readable by Spark and by plain pyarrow."""

# PIPE-2

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from delosmq.model.errors import BrokerError
from delosmq.spark.archive import ArchiveRun, archive, check_run
from delosmq.spark.archive.files import ArchiveFiles, written_here
from delosmq.spark.archive.parquet import BatchWriter, batch_key, stale_directories
from delosmq.spark.errors import ArchiveError, ForeignIncarnationError, LeaseLostError, PipelineError, QueueMissingError
from delosmq.spark.options import SourceDestination
from delosmq.spark.pipeline import explain_failure
from tests.spark.brokers import BrokerUnderTest, RealBroker
from tests.spark.fake_broker import FakeBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_of(broker: BrokerUnderTest, to: Path, **more: Any) -> ArchiveRun:
    connection = {"servers": broker.servers, "user": broker.user, "password": broker.password}
    return ArchiveRun(**{"subscribe": "q", "to": str(to), "connection": connection, "max_rows": 100, **more})


def read_with_pyarrow(to: Path) -> list[bytes]:
    import pyarrow.dataset as ds

    table = ds.dataset(to, partitioning="hive").to_table(["sequence", "body"]).sort_by("sequence")
    return [bytes(body) for body in table["body"].to_pylist()]


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_a_batchs_name_is_unique_to_its_query_and_sorts_by_number():
    key = batch_key("3f2a1b9c-aaaa-4bbb-8ccc-123456789abc", 7)
    assert key == "q3f2a1b9caaaa-000000007"
    assert key < batch_key("3f2a1b9c-aaaa-4bbb-8ccc-123456789abc", 10)


def test_a_directory_not_written_again_is_stale():
    before = {"a": frozenset({"1"}), "b": frozenset({"1"})}
    after: Mapping[str, frozenset[str]] = {"a": frozenset({"2"}), "b": frozenset({"1"}), "c": frozenset({"2"})}
    assert stale_directories(before, after) == ["b"]


class CountedFiles:
    """Files of an archive, and how often all of them were searched. A batch writes `writes`."""

    def __init__(self, root: str, writes: dict[str, frozenset[str]]) -> None:
        self.root = root
        self.there: dict[str, frozenset[str]] = {}
        self.writes = writes
        self.searched = 0
        self.durable: list[dict[str, frozenset[str]]] = []

    def batch(self, key: str) -> dict[str, frozenset[str]]:
        self.searched += 1
        return {name: files for name, files in self.there.items() if key in name}

    def written(self, key: str) -> dict[str, frozenset[str]]:
        return {name: files for name, files in self.there.items() if key in name}

    def delete(self, directory: str) -> None:
        del self.there[directory]

    def make_durable(self, batch: dict[str, frozenset[str]]) -> None:
        self.durable.append(batch)

    def overwrite(self) -> None:
        self.there.update(self.writes)


def test_only_the_first_batch_of_a_run_is_looked_for_in_all_of_the_archive(tmp_path: Path):
    files: Any = CountedFiles(str(tmp_path), {"day=1/batch=k1": frozenset({"new"})})
    files.there["day=0/batch=k1"] = frozenset({"old"})
    writer = BatchWriter(files, None)
    writer.query_id.set_result("q")
    writer.place("k1", files.overwrite)
    # What an earlier attempt left is found, and gone.
    assert files.there == {"day=1/batch=k1": frozenset({"new"})}
    assert files.searched == 2
    writer = BatchWriter(files, None)
    for number in range(2, 5):
        files.writes = {f"day=1/batch=k{number}": frozenset({"new"})}
        writer.place(f"k{number}", files.overwrite)
    assert files.searched == 3
    assert [[*batch] for batch in files.durable] == [[f"day=1/batch=k{number}"] for number in range(1, 5)]


def test_what_a_batch_wrote_here_is_found_without_hadoop(tmp_path: Path):
    for day, address, key in (("1", "a b", "k1"), ("1", "c", "k2"), ("2", "a%2Fb", "k1")):
        directory = tmp_path / f"day={day}" / f"address={address}" / f"batch={key}"
        directory.mkdir(parents=True)
        (directory / "part-0.parquet").touch()
    (tmp_path / "_checkpoint").mkdir()
    (tmp_path / "day=file").touch()
    found = written_here(tmp_path, "k1")
    assert found == {
        str(tmp_path / "day=1" / "address=a b" / "batch=k1"): frozenset({"part-0.parquet"}),
        str(tmp_path / "day=2" / "address=a%2Fb" / "batch=k1"): frozenset({"part-0.parquet"}),
    }


def test_our_own_sentence_is_found_in_sparks():
    text = "[X] failed: Traceback\n  File\ndelosmq.spark.errors.LeaseLostError: DMQ8023: gone\n SQLSTATE: 38000"
    assert explain_failure(text) == "DMQ8023: gone"
    assert explain_failure("first\nsecond") == "first"
    assert (
        explain_failure("[STREAM_FAILED] Query [id = x]\norg.x.QueryException: so\n\tat org.x\n")
        == "org.x.QueryException: so"
    )
    of_proxy = (
        "[STREAM_FAILED] Reason: An exception was raised by the Python Proxy. Return Message: Traceback\n"
        "  File x\n_internal.DeltaError: No space\n SQLSTATE: 39000\n\tat org.x\n"
        "Caused by: py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: Traceback\n"
    )
    assert explain_failure(of_proxy) == "_internal.DeltaError: No space"
    of_java = (
        ": org.x.SparkException: Aborted\n\tat org.x\nCaused by: org.x.FSError: No space\n\tSuppressed: a.BError: c"
    )
    assert explain_failure(of_java) == "org.x.FSError: No space"
    of_py4j = "An error occurred while calling o40.create.\n: java.io.IOException: Mkdirs failed\n\tat org.x\n"
    assert explain_failure(of_py4j) == "java.io.IOException: Mkdirs failed"


def test_the_password_is_not_shown(tmp_path: Path):
    assert "s3cret" not in repr(ArchiveRun("q", str(tmp_path), {"password": "s3cret"}))


def test_a_run_is_checked_without_spark(fake: FakeBroker, tmp_path: Path):
    fake.make_queue("q")
    check_run(run_of(fake, tmp_path / "a"))
    (tmp_path / "file").touch()
    for wrong, code in (
        (run_of(fake, tmp_path / "a", trigger="hourly"), "DMQ8050"),
        (run_of(fake, tmp_path / "file"), "DMQ8060"),
        (run_of(fake, tmp_path / "file" / "below"), "DMQ8060"),
        (run_of(fake, Path("/proc/x")), "DMQ8062"),
        (run_of(fake, tmp_path / "a", checkpoint="/proc/x"), "DMQ8062"),
        (run_of(fake, tmp_path / ("a" * 300)), "DMQ8062"),
        (run_of(fake, tmp_path / "a", subscribe="nope"), "DMQ8024"),
        (run_of(fake, tmp_path / "a", subscribe="topic:"), "DMQ8002"),
        (run_of(fake, tmp_path / "a", connection={"servers": "http://u:p@h"}), "DMQ8003"),
        (
            run_of(fake, tmp_path / "a", connection={"servers": fake.servers, "user": "spark", "password": "x"}),
            "DMQ8011",
        ),
    ):
        with pytest.raises(BrokerError) as refusal:
            check_run(wrong)
        assert refusal.value.code == code
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert not fake.groups


def test_the_archive_of_another_queue_is_refused_without_spark(fake: FakeBroker, tmp_path: Path):
    fake.make_queue("q")
    marker = tmp_path / "_archive.json"
    for text, code in (
        ('{"format": 1, "source": "queue:other"}', "DMQ8052"),
        ('{"format": 3, "source": "queue:q"}', "DMQ8051"),
        ("{", "DMQ8051"),
    ):
        marker.write_text(text)
        with pytest.raises(ArchiveError, match=code):
            check_run(run_of(fake, tmp_path))
    marker.write_text('{"format": 1, "source": "queue:q"}')
    check_run(run_of(fake, tmp_path))


def test_a_refused_run_claims_no_directory_and_starts_no_spark(fake: FakeBroker, tmp_path: Path):
    with pytest.raises(BrokerError, match="DMQ8024"):
        archive(cast("SparkSession", None), run_of(fake, tmp_path / "a", subscribe="nope"))
    assert not (tmp_path / "a").exists()


def test_looking_at_a_queue_takes_nothing_from_its_reader(any_broker: BrokerUnderTest, client_of: Any):
    any_broker.make_queue("q")
    client = client_of(any_broker)
    client.check_destination("g", SourceDestination("queue", "q"))
    with pytest.raises(LeaseLostError):
        client.stat("g")
    group = client.open_group("g", SourceDestination("queue", "q"), None, sleep=lambda s: None)
    client_of(any_broker).check_destination("g", SourceDestination("queue", "q"))
    client.lease(group, 0, max_rows=1, max_bytes=1, wait_ms=0)  # not fenced
    any_broker.make_queue("r")
    for other in (SourceDestination("queue", "r"), SourceDestination("topic", "q")):
        with pytest.raises(ForeignIncarnationError, match=r"group 'g' reads queue 'q', and not .*: name another"):
            client.check_destination("g", other)
    with pytest.raises(QueueMissingError, match="nope"):
        client.check_destination("g2", SourceDestination("queue", "nope"))


@pytest.mark.spark
@pytest.mark.timeout(300)
class TestOnSpark:
    # PIPE-1
    def test_each_message_is_archived_once_for_every_reader(
        self, spark: Any, any_broker: BrokerUnderTest, tmp_path: Path
    ):
        any_broker.publish("q", numbers(250))
        lines: list[str] = []
        report = archive(spark, run_of(any_broker, tmp_path / "a"), on_progress=lines.append)
        assert (report.batches, report.rows) == (3, 250)
        assert "batch 2: 50 messages, 250 in this run" in lines[-1]
        any_broker.publish("q", [b"later"])
        archive(spark, run_of(any_broker, tmp_path / "a"))
        assert read_with_pyarrow(tmp_path / "a") == [*numbers(250), b"later"]
        assert spark.read.parquet(str(tmp_path / "a")).count() == 251

    def test_a_queue_that_goes_while_spark_runs_is_one_sentence(self, spark: Any, tmp_path: Path):
        import httpx

        broker = RealBroker()
        try:
            broker.publish("q", numbers(250))

            def delete(number: int) -> None:
                httpx.delete(
                    f"{broker.servers}/api/v1/queues/q?force=true", auth=(broker.user, broker.password)
                ).raise_for_status()

            with pytest.raises(PipelineError) as failure:
                archive(spark, run_of(broker, tmp_path / "a"), on_batch=delete)
        finally:
            broker.stop()
        said = str(failure.value)
        assert said.startswith(f"DMQ8053: the archive of queue:q to {tmp_path / 'a'} stopped: DMQ80")
        assert "\n" not in said
        assert read_with_pyarrow(tmp_path / "a") == numbers(100)

    def test_days_are_utc_whatever_the_sessions_zone(self, spark: Any, fake: FakeBroker, tmp_path: Path):
        fake.publish("q", numbers(700))
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        archive(spark, run_of(fake, tmp_path / "a", max_rows=1_000))
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        days = {path.name for path in (tmp_path / "a").glob("day=*")}
        assert days == {"day=2026-03-01", "day=2026-03-02"}
        assert all(row.day == row.timestamp.date() for row in spark.read.parquet(str(tmp_path / "a")).collect())

    def test_nothing_to_archive_writes_nothing(self, spark: Any, fake: FakeBroker, tmp_path: Path):
        fake.make_queue("q")
        assert archive(spark, run_of(fake, tmp_path / "a")).rows == 0
        assert not list((tmp_path / "a").glob("day=*"))

    def test_a_repeated_batch_replaces_all_its_files(self, spark: Any, tmp_path: Path):
        from pyspark.sql import functions as f

        (tmp_path / "a").mkdir()
        files = ArchiveFiles(spark, str(tmp_path / "a"))
        frame = spark.range(10).selectExpr(
            "id as sequence", "'x' as address", "timestamp_seconds(id * 86400) as timestamp"
        )
        for first in (frame, frame.where("id < 5").withColumn("address", f.lit("y"))):
            writer = BatchWriter(files, None)
            writer.query_id.set_result("3f2a1b9c-aaaa-4bbb-8ccc-123456789abc")
            writer.write(first, 3)
            writer.write(frame, 4)
        read = spark.read.parquet(str(tmp_path / "a"))
        # Batch 3 as the second attempt wrote it, although that went to other partitions; batch 4 once.
        assert read.where("batch like '%3'").selectExpr("count(1) as n", "max(address) as a").first() == (5, "y")
        assert read.count() == 15

    def test_a_new_checkpoint_overwrites_nothing(self, spark: Any, fake: FakeBroker, tmp_path: Path):
        fake.publish("q", numbers(10))
        archive(spark, run_of(fake, tmp_path / "a"))
        fake.publish("q", [b"10"])
        archive(spark, run_of(fake, tmp_path / "a", group_id="other", checkpoint=str(tmp_path / "elsewhere")))
        assert read_with_pyarrow(tmp_path / "a") == numbers(11)

    def test_leftovers_are_swept(self, spark: Any, fake: FakeBroker, tmp_path: Path):
        fake.publish("q", numbers(1))
        left = tmp_path / "a" / ".spark-staging-dead" / "day=2026-03-01"
        left.mkdir(parents=True)
        (left / "part-0.parquet").write_bytes(b"torn")
        archive(spark, run_of(fake, tmp_path / "a"))
        assert not left.parent.exists()
        assert read_with_pyarrow(tmp_path / "a") == numbers(1)

    def test_an_archive_of_something_else_is_refused(self, spark: Any, fake: FakeBroker, tmp_path: Path):
        fake.publish("q", numbers(1))
        archive(spark, run_of(fake, tmp_path / "a"))
        with pytest.raises(ArchiveError, match=r"DMQ8052: .*is the archive of queue:q, not of queue:other"):
            archive(spark, run_of(fake, tmp_path / "a", subscribe="other"))
        (tmp_path / "a" / "._archive.json.crc").unlink()
        (tmp_path / "a" / "_archive.json").write_text('{"format": 99}')
        with pytest.raises(ArchiveError, match="DMQ8051: "):
            archive(spark, run_of(fake, tmp_path / "a"))

    def test_a_continuous_archive_stops_when_told_and_keeps_others_out(
        self, spark: Any, fake: FakeBroker, tmp_path: Path
    ):
        fake.publish("q", numbers(10))
        stop = threading.Event()
        refused: list[ArchiveError] = []

        def on_progress(line: str) -> None:
            with pytest.raises(ArchiveError) as refusal:
                archive(spark, run_of(fake, tmp_path / "a"))
            refused.append(refusal.value)
            stop.set()

        report = archive(spark, run_of(fake, tmp_path / "a", trigger="continuous"), stop=stop, on_progress=on_progress)
        assert report.rows == 10
        assert [failure.code for failure in refused] == ["DMQ8054"]
        assert read_with_pyarrow(tmp_path / "a") == numbers(10)

    @pytest.mark.parametrize("cut", ["offsets/0", "metadata and offsets/0", "offsets/1", "commits/0"])
    def test_a_checkpoint_that_a_kill_cut_off_is_mended(self, spark: Any, fake: FakeBroker, tmp_path: Path, cut: str):
        fake.publish("q", numbers(10))
        checkpoint = tmp_path / "a" / "_checkpoint"
        if cut == "offsets/1":
            archive(spark, run_of(fake, tmp_path / "a"))
            fake.publish("q", [b"10"])
        kept = read_with_pyarrow(tmp_path / "a") if cut == "offsets/1" else []
        stopped = threading.Event()

        def fail(number: int) -> None:
            stopped.set()
            raise RuntimeError("killed")

        with pytest.raises(PipelineError, match="DMQ8053"):
            archive(spark, run_of(fake, tmp_path / "a"), on_batch=fail)
        assert stopped.is_set()
        if cut == "commits/0":
            (checkpoint / "commits" / "0").write_bytes(b"")
        else:
            for name in cut.split(" and "):
                (checkpoint / name).write_bytes(b"" if name == "metadata" else b"v1")
        if "metadata" in cut:
            (checkpoint / "offsets" / "0").unlink()
        for path in checkpoint.rglob(".*.crc"):
            path.unlink()
        lines: list[str] = []
        archive(spark, run_of(fake, tmp_path / "a"), on_progress=lines.append)
        assert any("which a kill cut off" in line for line in lines)
        read = read_with_pyarrow(tmp_path / "a")
        if "metadata" in cut:  # no kill leaves it cut off once a batch was written, which is there under the former id
            read = list(set(read))
        assert sorted(read) == sorted(numbers(11 if kept else 10))

    def test_a_failure_is_our_sentence(self, spark: Any, fake: FakeBroker, tmp_path: Path):
        with pytest.raises(QueueMissingError, match="DMQ8024: queue 'q' does not exist"):
            archive(spark, run_of(fake, tmp_path / "a"))
        with pytest.raises(BrokerError, match="DMQ8050: "):
            archive(spark, run_of(fake, tmp_path / "a", trigger="hourly"))
