"""Small files of an archive are put together: readers see each message once, damaged files are named and stay."""

# PIPE-2

import datetime
import fcntl
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from delosmq.cli.spark.app import spark_app
from delosmq.spark.archive import archive, compact_archive, locks, read_archive
from delosmq.spark.archive import compact_files as module
from delosmq.spark.archive.compact_files import BatchFiles, groups_to_merge, newest_batches
from delosmq.spark.archive.delta import archive_schema
from delosmq.spark.archive.locks import compacting, placing
from delosmq.spark.archive.marker import DELTA, PARQUET, ArchiveClaim
from delosmq.spark.errors import ArchiveError, OptionError
from tests.spark.fake_broker import FakeBroker
from tests.spark.test_archive import numbers, read_with_pyarrow, run_of

DAY = datetime.date(2026, 3, 1)


def rows(first: int, count: int) -> pa.Table:
    at = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
    values: dict[str, list[Any]] = {name: [None] * count for name in archive_schema().names}
    values |= {
        "sequence": list(range(first, first + count)),
        "body": [b"%d" % number for number in range(first, first + count)],
        "timestamp": [at] * count,
        "properties": [[("number", str(number))] for number in range(first, first + count)],
        "address": ["q"] * count,
        "day": [DAY] * count,
        "batch": ["b"] * count,
    }
    return pa.table(values, schema=archive_schema())


class Archive:
    """A directory as an archive leaves it: batches of ten messages each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.count = 0
        root.mkdir()
        (root / "_archive.json").write_text(ArchiveClaim(PARQUET, ("queue:q",)).text)

    @property
    def partition(self) -> Path:
        return self.root / "day=2026-03-01" / "address=q"

    def batch(self, query: str = "qa", headers: bool = True) -> Path:
        directory = self.partition / f"batch={query}-{self.count // 10:09d}"
        directory.mkdir(parents=True)
        written = rows(self.count, 10).drop_columns(["day", "address", "batch"])
        file = directory / "part-00000.snappy.parquet"
        pq.write_table(written if headers else written.drop_columns(["properties"]), file, write_page_checksum=True)
        self.count += 10
        return file

    def check(self) -> None:
        """Each message once, by file and for a reader of the whole."""
        assert read_with_pyarrow(self.root) == numbers(self.count)
        files = self.root.glob("day=*/**/*.parquet")
        assert sum(pq.ParquetFile(file).metadata.num_rows for file in files) == self.count


@pytest.fixture
def made(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "a")


def batches_of(*sizes: int) -> list[BatchFiles]:
    return [BatchFiles(Path(f"batch=q-{at}"), (Path("f"),), size) for at, size in enumerate(sizes)]


def test_neighbours_are_put_together_up_to_the_size():
    def sizes(*given: int) -> list[list[int]]:
        return [[batch.size_bytes for batch in group] for group in groups_to_merge(batches_of(*given), 100)]

    assert sizes(40, 40, 40, 30, 51, 30) == [[40, 40], [40, 30, 30]]
    assert sizes(40) == []
    assert sizes(51, 51) == []
    assert sizes() == []


def test_closed_batches_become_one_file_and_the_newest_stays(made: Archive):
    made.batch(headers=False)
    for _ in range(3):
        made.batch()
    newest = made.batch()
    other = made.batch("qb")
    report = compact_archive(str(made.root))
    assert (report.files_before, report.files_after, report.rows, report.damaged) == (4, 1, 40, [])
    assert newest.exists()
    assert other.exists()
    assert len(list(made.root.glob("day=*/**/*.parquet"))) == 3
    assert not list(made.root.glob(".compact-*"))
    made.check()
    (merged,) = made.partition.glob("batch=compacted-*/*.parquet")
    table = pq.ParquetFile(merged).read()
    assert table.schema.names == [name for name in archive_schema().names if name not in ("day", "address", "batch")]
    assert table["properties"].to_pylist() == [None] * 10 + [[("number", str(number))] for number in range(10, 40)]
    # Again: what was put together is put together with what came since.
    made.batch("qb")
    made.batch("qb")
    assert compact_archive(str(made.root)).files_before == 3
    made.check()
    assert compact_archive(str(made.root)).files_before == 0


def test_readers_see_each_message_once_before_and_after_the_exchange(made: Archive, monkeypatch: pytest.MonkeyPatch):
    for _ in range(3):
        made.batch()
    exchanged: list[Path] = []

    def watch(one: Path, other: Path) -> None:
        if other == made.partition:
            made.check()
        exchange(one, other)
        if other == made.partition:
            exchanged.append(other)
            made.check()

    exchange = module.exchange
    monkeypatch.setattr(module, "exchange", watch)
    compact_archive(str(made.root))
    assert exchanged == [made.partition]


def test_a_batch_that_is_written_meanwhile_holds_the_exchange_up_and_is_kept(
    made: Archive, monkeypatch: pytest.MonkeyPatch
):
    for _ in range(3):
        made.batch()
    writing, waiting, written = threading.Event(), threading.Event(), threading.Event()

    def write() -> None:
        with placing(made.root):
            writing.set()
            assert waiting.wait(60)
            made.batch()
            made.batch("qc")
            written.set()

    @contextmanager
    def exchanging(root: Path) -> Iterator[None]:
        waiting.set()
        with locks.exchanging(root):
            yield

    def exchange_after_it(one: Path, other: Path) -> None:
        assert other != made.partition or written.is_set()
        exchange(one, other)

    exchange = module.exchange
    monkeypatch.setattr(module, "exchanging", exchanging)
    monkeypatch.setattr(module, "exchange", exchange_after_it)
    writer = threading.Thread(target=write)
    writer.start()
    assert writing.wait(60)
    assert compact_archive(str(made.root)).files_before == 2
    writer.join()
    assert made.count == 50
    made.check()


def test_batches_may_be_placed_side_by_side_and_not_while_files_are_exchanged(tmp_path: Path):
    def is_free(how: int) -> bool:
        with open(tmp_path / "_files.lock") as lock:
            try:
                fcntl.flock(lock, how | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    with placing(tmp_path), placing(tmp_path):
        assert is_free(fcntl.LOCK_SH)
        assert not is_free(fcntl.LOCK_EX)
    with locks.exchanging(tmp_path):
        assert not is_free(fcntl.LOCK_SH)
    assert is_free(fcntl.LOCK_EX)


def test_batches_of_a_query_that_began_since_are_not_closed(made: Archive):
    made.batch()
    newest = newest_batches(made.root)
    made.batch("qb")
    made.batch("qb")
    assert module.closed_batches(made.partition, newest) == []


def test_a_damaged_file_is_named_and_left_alone(made: Archive):
    damaged, cut_off = made.batch(), made.batch()
    for _ in range(3):
        made.batch()
    content = bytearray(damaged.read_bytes())
    content[content.index(b"9")] ^= 1  # in a page: only its checksum tells
    damaged.write_bytes(content)
    cut_off.write_bytes(cut_off.read_bytes()[:100])
    called = CliRunner().invoke(spark_app, ("compact", str(made.root)))
    assert called.exit_code == 1
    assert f"{damaged} is damaged and left alone: " in called.output
    assert f"{cut_off} is damaged and left alone: " in called.output
    assert damaged.read_bytes() == content
    assert cut_off.exists()
    assert len(list(made.partition.glob("batch=compacted-*/*.parquet"))) == 1
    shutil.rmtree(damaged.parent)
    shutil.rmtree(cut_off.parent)
    assert read_with_pyarrow(made.root) == numbers(50)[20:]
    assert CliRunner().invoke(spark_app, ("compact", str(made.root))).exit_code == 0


@pytest.mark.parametrize("moment", ["before the exchange", "after the exchange"])
def test_a_killed_compaction_leaves_what_the_next_one_sweeps(
    made: Archive, monkeypatch: pytest.MonkeyPatch, moment: str
):
    for _ in range(3):
        made.batch()
    exchange = module.exchange

    def die(one: Path, other: Path) -> None:
        if moment == "after the exchange" or other != made.partition:
            exchange(one, other)
        if other == made.partition:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "exchange", die)
        patched.setattr(module.shutil, "rmtree", lambda path: None)
        with pytest.raises(KeyboardInterrupt):
            compact_archive(str(made.root))
    assert list(made.root.glob(".compact-*"))
    made.check()
    compact_archive(str(made.root))
    assert not list(made.root.glob(".compact-*"))
    assert len(list(made.partition.glob("batch=*/*.parquet"))) == 2
    made.check()


def test_a_dry_run_changes_nothing(made: Archive):
    for _ in range(3):
        made.batch()
    before = sorted(made.root.rglob("*"))
    called = CliRunner().invoke(spark_app, ("compact", str(made.root), "--dry-run"))
    assert "day=2026-03-01/address=q: 2 files would become 1" in called.output
    assert called.exit_code == 0
    assert [path for path in sorted(made.root.rglob("*")) if path.name != "_compact.lock"] == before


def test_what_cant_be_compacted_is_refused(made: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(OptionError, match="DMQ8242"):
        compact_archive("s3a://bucket/a")
    with pytest.raises(ArchiveError, match="DMQ8244"):
        compact_archive(str(tmp_path))
    with compacting(made.root), pytest.raises(ArchiveError, match="DMQ8246"):
        compact_archive(str(made.root))
    for _ in range(3):
        made.batch()
    monkeypatch.setattr(module, "RENAME_EXCHANGE", 1 << 30)
    called = CliRunner().invoke(spark_app, ("compact", str(made.root)))
    assert called.exit_code == 1
    assert called.output.startswith("DMQ8241: ")
    assert not list(made.root.glob(".compact-*"))
    made.check()


class TestDelta:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        import deltalake

        root = tmp_path / "d"
        root.mkdir()
        (root / "_archive.json").write_text(ArchiveClaim(DELTA, ("queue:q",)).text)
        for first in range(0, 40, 10):
            transaction = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("app", first)])
            deltalake.write_deltalake(
                str(root), rows(first, 10), mode="append", partition_by=["day"], commit_properties=transaction
            )
        return root

    def read(self, root: Path) -> list[bytes]:
        import deltalake

        return [
            bytes(body)
            for body in deltalake.DeltaTable(str(root)).to_pyarrow_table().sort_by("sequence")["body"].to_pylist()
        ]

    def test_its_files_become_one_in_a_version_and_application_transactions_stay(self, table: Path):
        import deltalake

        assert compact_archive(str(table), dry_run=True).files_before == 4
        former = deltalake.DeltaTable(str(table))
        report = compact_archive(str(table))
        assert (report.files_before, report.files_after) == (4, 1)
        assert self.read(table) == numbers(40)
        now = deltalake.DeltaTable(str(table))
        assert len(now.file_uris()) == 1
        assert now.transaction_version("app") == 30
        # Who has read the list of files before still finds them.
        assert former.to_pyarrow_table().num_rows == 40
        assert compact_archive(str(table)).files_before == 0

    def test_a_damaged_file_is_named_and_its_day_left_alone(self, table: Path):
        damaged = min(table.glob("day=*/*.parquet"))
        damaged.write_bytes(damaged.read_bytes()[:50])
        called = CliRunner().invoke(spark_app, ("compact", str(table)))
        assert called.exit_code == 1
        assert f"{damaged} is damaged and left alone: " in called.output
        assert len(list(table.glob("day=*/*.parquet"))) == 4


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_an_archive_is_compacted_while_it_runs_and_spark_reads_both_kinds_of_files(
    spark: Any, fake: FakeBroker, tmp_path: Path
):
    to = tmp_path / "a"
    fake.publish("q", numbers(500))
    before: list[int] = []

    def compact(line: str) -> None:
        before.append(compact_archive(str(to)).files_before)

    archive(spark, run_of(fake, to), on_progress=compact)
    assert sum(before) > 2
    assert read_with_pyarrow(to) == numbers(500)
    assert read_archive(spark, str(to)).selectExpr("cast(body as string) as body").distinct().count() == 500
    plain = spark.read.parquet(str(to))
    assert plain.count() == 500
    assert plain.where("properties is null or timestamp is null or body_kind is null").count() == 0
    fake.publish("q", [b"500"])
    archive(spark, run_of(fake, to))
    assert read_with_pyarrow(to) == numbers(501)
