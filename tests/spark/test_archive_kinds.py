"""Archives of several sources, in Delta Lake, and of earlier formats; reading them back with all columns."""

# PIPE-2

import json
import os
import random
import re
import resource
from pathlib import Path
from typing import Any

import psutil
import pytest

from delosmq.spark.archive import ArchiveRun, archive, check_run, compact_archive, read_archive
from delosmq.spark.archive.delta import append, archive_schema, is_written, open_table
from delosmq.spark.archive.files import local_path
from delosmq.spark.archive.marker import DELTA, PARQUET, ArchiveClaim, local_claim
from delosmq.spark.errors import ArchiveError, OptionError, PipelineError
from tests.spark.fake_broker import FakeBroker
from tests.spark.test_archive import numbers, read_with_pyarrow, run_of
from tests.spark.test_compaction import rows


def read_delta(to: Path) -> list[bytes]:
    import deltalake

    table = deltalake.DeltaTable(str(to)).to_pyarrow_table().sort_by("sequence")
    return [bytes(body) for body in table["body"].to_pylist()]


@pytest.mark.parametrize(
    ("marker", "kind", "sources", "code"),
    [
        ('{"format": 1, "source": "queue:q"}', PARQUET, ("queue:q",), None),
        ('{"format": 1, "source": "queue:q"}', DELTA, ("queue:q",), "DMQ8243"),
        ('{"format": 1, "source": "queue:q"}', PARQUET, ("queue:q", "queue:r"), "DMQ8052"),
        (ArchiveClaim(DELTA, ("queue:q", "topic:t")).text, DELTA, ("topic:t", "queue:q"), None),
        (ArchiveClaim(DELTA, ("queue:q", "topic:t")).text, DELTA, ("topic:t",), "DMQ8052"),
        (ArchiveClaim(DELTA, ("queue:q",)).text, PARQUET, ("queue:q",), "DMQ8243"),
        (
            '{"format": 2, "kind": "parquet", "sources": ["queue:q"], "schema_version": 2}',
            PARQUET,
            ("queue:q",),
            "DMQ8051",
        ),
        (
            '{"format": 2, "kind": "iceberg", "sources": ["queue:q"], "schema_version": 1}',
            PARQUET,
            ("queue:q",),
            "DMQ8051",
        ),
        (
            '{"format": 2, "kind": "parquet", "sources": "queue:q", "schema_version": 1}',
            PARQUET,
            ("queue:q",),
            "DMQ8051",
        ),
        ('{"format": 3}', PARQUET, ("queue:q",), "DMQ8051"),
        ("[]", PARQUET, ("queue:q",), "DMQ8051"),
    ],
)
def test_a_directory_is_the_archive_of_what_its_marker_says(
    marker: str, kind: str, sources: tuple[str, ...], code: str | None
):
    claim = ArchiveClaim(kind, sources)
    if code is None:
        claim.check(marker, "a")
        return
    with pytest.raises(ArchiveError) as refusal:
        claim.check(marker, "a")
    assert refusal.value.code == code


def test_a_directory_without_marker_is_no_archive(tmp_path: Path):
    with pytest.raises(ArchiveError, match=re.escape(f"DMQ8244: {tmp_path} is no archive")):
        local_claim(tmp_path)


def test_several_sources_have_groups_and_checkpoints_of_their_own(tmp_path: Path):
    run = ArchiveRun(("a/b", "topic:t", "queue:a/b"), "to", {"servers": "h"}, group_id="g")
    assert ArchiveRun("a,b", "to", {}).options("queue:a,b")["subscribe"] == r"queue:a\,b"
    assert run.sources == ("queue:a/b", "topic:t")
    assert [run.options(source)["group.id"] for source in run.sources] == ["g/a/b", "g/t"]
    assert [run.checkpoint_of(source) for source in run.sources] == [
        "to/_checkpoint/queue%3Aa%2Fb",
        "to/_checkpoint/topic%3At",
    ]
    one = ArchiveRun("a", "to", {"servers": "h"}, group_id="g")
    assert (one.options("queue:a")["group.id"], one.checkpoint_of("queue:a")) == ("g", "to/_checkpoint")


def test_a_queue_and_a_topic_of_one_name_have_groups_of_their_own():
    both = ArchiveRun(("queue:x", "topic:x", "topic:y"), "to", {"servers": "h"})
    assert [both.options(source)["group.id"] for source in both.sources] == [
        "archive-x",
        "archive-topic:x",
        "archive-y",
    ]
    named = ArchiveRun(("topic:x", "queue:x"), "to", {"servers": "h"}, group_id="g")
    assert [named.options(source)["group.id"] for source in named.sources] == ["g/topic:x", "g/x"]
    assert ArchiveRun("topic:x", "to", {"servers": "h"}).options("topic:x")["group.id"] == "archive-x"


def test_kinds_and_places_that_do_not_exist_are_refused(fake: FakeBroker, tmp_path: Path):
    fake.make_queue("q")
    for more, code in (
        ({"kind": "orc"}, "DMQ8247"),
        ({"kind": DELTA, "to": "s3a://bucket/x"}, "DMQ8248"),
        ({"subscribe": ()}, "DMQ8240"),
    ):
        run = (
            run_of(fake, tmp_path, **more)
            if "to" not in more
            else ArchiveRun("q", more["to"], {"servers": fake.servers}, kind=DELTA)
        )
        with pytest.raises(OptionError) as refusal:
            check_run(run)
        assert refusal.value.code == code


def test_delta_lake_without_its_package_is_told(fake: FakeBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake.make_queue("q")
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    with pytest.raises(ArchiveError, match=r"DMQ8245: .*pip install 'delosmq\[delta\]'"):
        check_run(run_of(fake, tmp_path, kind=DELTA))


def schema_names() -> list[str]:
    return list(archive_schema().names)


def test_of_two_drivers_that_write_one_batch_at_once_one_does(tmp_path: Path):
    """Each has looked before the other wrote: at no table, then at one."""
    for number in (0, 1):
        looked = [open_table(tmp_path) for _ in range(2)]
        assert not any(is_written(table, "query", number) for table in looked)
        for table in looked:
            append(tmp_path, table, rows(number * 10, 10), ("query", number))
    assert read_delta(tmp_path) == numbers(20)


def test_sources_that_write_at_once_both_do(tmp_path: Path):
    for number in (0, 1):
        looked = [(name, open_table(tmp_path)) for name in ("one", "other")]
        for at, (name, table) in enumerate(looked):
            append(tmp_path, table, rows(number * 20 + at * 10, 10), (name, number))
    assert read_delta(tmp_path) == numbers(40)


def test_what_cant_be_written_is_an_error(tmp_path: Path):
    append(tmp_path, None, rows(0, 10), ("query", 0))
    with pytest.raises(Exception, match="Int64"):
        append(tmp_path, open_table(tmp_path), rows(0, 10).set_column(4, "sequence", [["text"] * 10]), ("query", 1))


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("a/b", "a/b"),
        ("/a:b/[1]?x#y%20", "/a:b/[1]?x#y%20"),
        ("file:/a?b#c%20", "/a?b#c%20"),
        ("FILE:///a/[1]", "/a/[1]"),
        ("file://localhost/a", "/a"),
        ("//[1/a", "//[1/a"),
        ("s3a://bucket/a", None),
        ("hdfs:/a", None),
    ],
)
def test_a_location_is_taken_as_hadoop_takes_it(location: str, path: str | None):
    assert local_path(location) == (None if path is None else Path(path))


@pytest.mark.parametrize("name", ["a[1]", "a^", "a|", "back\\slash", "50%25", "new\nline"])
def test_a_path_that_deltalake_fails_with_is_refused(fake: FakeBroker, tmp_path: Path, name: str):
    with pytest.raises(ArchiveError, match="DMQ8249"):
        check_run(run_of(fake, tmp_path / name, kind=DELTA))
    with pytest.raises(ArchiveError, match="DMQ8249"):
        append(tmp_path / name, None, rows(0, 1), ("query", 0))


@pytest.mark.spark
@pytest.mark.timeout(600)
class TestOnSpark:
    @pytest.mark.parametrize(
        ("kind", "name", "other"),
        [
            (PARQUET, "a[1]", "a1"),
            (PARQUET, "{b,c}*?", "bxy"),
            (PARQUET, "back\\slash %25 ü#", "backslash"),
            (DELTA, "{b,c}*? %ü#", "bxy"),
        ],
    )
    def test_a_path_is_no_pattern(self, spark: Any, fake: FakeBroker, tmp_path: Path, kind: str, name: str, other: str):
        to = tmp_path / name
        fake.publish("q", numbers(150))
        archive(spark, run_of(fake, tmp_path / other, group_id="other", kind=kind))
        fake.publish("q", numbers(120))
        archive(spark, run_of(fake, to, kind=kind))
        assert read_archive(spark, str(to)).count() == 120
        assert read_archive(spark, f"file://{to}").where("address = 'q' and day is not null").count() == 120
        fake.publish("q", numbers(1))
        archive(spark, run_of(fake, to, kind=kind))
        compact_archive(str(to))
        assert read_archive(spark, str(to)).count() == 121
        assert read_archive(spark, str(tmp_path / other)).count() == 150

    @pytest.mark.parametrize("kind", [PARQUET, DELTA])
    def test_two_queues_are_one_archive_that_goes_on_and_is_read_whole(
        self, spark: Any, fake: FakeBroker, tmp_path: Path, kind: str
    ):
        to = tmp_path / "a"
        run = run_of(fake, to, subscribe=("q", "007"), kind=kind)
        fake.make_queue("007")
        fake.publish("q", numbers(150))
        lines: list[str] = []
        assert archive(spark, run, on_progress=lines.append).rows == 150
        assert any("waiting in queue:q" in line for line in lines)
        fake.publish("007", [b"a", b"b"])
        assert archive(spark, run).rows == 2
        assert archive(spark, run).rows == 0
        read = read_archive(spark, str(to))
        assert read.columns == schema_names()
        counted = {row["queue"]: row["count"] for row in read.groupBy("queue").count().collect()}
        assert counted == {"q": 150, "007": 2}
        assert {row["address"] for row in read.where("queue = '007'").collect()} == {"007"}
        assert read.where("date(timestamp) <> day or batch is null or properties is null").count() == 0
        assert local_claim(to) == ArchiveClaim(kind, ("queue:q", "queue:007"))

    def test_an_archive_of_format_1_goes_on_as_it_is(self, spark: Any, fake: FakeBroker, tmp_path: Path):
        to = tmp_path / "a"
        to.mkdir()
        former = json.dumps({"format": 1, "source": "queue:q", "partitions": ["day", "address", "batch"]})
        (to / "_archive.json").write_text(former)
        fake.publish("q", numbers(3))
        archive(spark, run_of(fake, to, include_headers=False))
        assert read_with_pyarrow(to) == numbers(3)
        assert (to / "_archive.json").read_text() == former
        assert read_archive(spark, str(to)).where("properties is null").count() == 3

    def test_what_was_never_written_is_read_as_nothing(self, spark: Any, fake: FakeBroker, tmp_path: Path):
        fake.make_queue("q")
        for kind in (PARQUET, DELTA):
            archive(spark, run_of(fake, tmp_path / kind, kind=kind))
            assert read_archive(spark, str(tmp_path / kind)).count() == 0
        with pytest.raises(ArchiveError, match="DMQ8244"):
            read_archive(spark, str(tmp_path / "nothing"))

    def test_a_batch_is_in_the_table_once_whatever_is_repeated(self, spark: Any, fake: FakeBroker, tmp_path: Path):
        to = tmp_path / "a"
        fake.publish("q", numbers(250))
        failed: list[int] = []

        def fail(number: int) -> None:
            failed.append(number)
            if number == 1:
                raise RuntimeError("killed")

        with pytest.raises(PipelineError, match="DMQ8053"):
            archive(spark, run_of(fake, to, kind=DELTA), on_batch=fail)
        assert read_delta(to) == numbers(200)  # batch 1 is in the table and not committed
        archive(spark, run_of(fake, to, kind=DELTA))
        assert read_delta(to) == numbers(250)

    @pytest.mark.parametrize("kind", [PARQUET, DELTA])
    def test_a_full_disk_ends_the_run_in_one_sentence_and_the_next_run_goes_on(
        self, spark: Any, fake: FakeBroker, tmp_path: Path, kind: str
    ):
        to = tmp_path / "a"
        fake.publish("q", [b"small"])
        archive(spark, run_of(fake, to, kind=kind))
        large = [random.Random(number).randbytes(1_000) for number in range(100)]
        fake.publish("q", large)
        # No larger file can be written, as on a disk without room: by Spark's Java, and by this process.
        java = [child.pid for child in psutil.Process().children() if "java" in child.name()]
        processes = (*java, os.getpid())
        former = [resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in processes]
        for pid, (_, hard) in zip(processes, former, strict=True):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (40_000, hard))
        try:
            with pytest.raises(PipelineError) as failure:
                archive(spark, run_of(fake, to, kind=kind))
        finally:
            for pid, limits in zip(processes, former, strict=True):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
        assert failure.value.code == "DMQ8053"
        assert "\n" not in str(failure.value)
        assert "too large" in str(failure.value), str(failure.value)
        assert read_archive(spark, str(to)).count() == 1
        archive(spark, run_of(fake, to, kind=kind))
        assert {bytes(row.body) for row in read_archive(spark, str(to)).collect()} == {b"small", *large}
        assert read_archive(spark, str(to)).count() == 101
