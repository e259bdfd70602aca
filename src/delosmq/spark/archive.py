"""Archives a queue or topic to Parquet, each message once for every reader, whatever is killed meanwhile.

How. A batch is written to partitions of its own (day, address, batch) in overwrite mode. Spark repeats a batch that it
has not committed, with the same number; leases make its content the same; so a repetition replaces its own files. The
batch's name also carries the query's id, so that a new checkpoint can't overwrite what an older one archived.
"""

import fcntl
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from delosmq.spark.archive_files import PARTITIONS, ArchiveFiles, check_place, local_path
from delosmq.spark.checkpoint import heal_checkpoint
from delosmq.spark.errors import ArchiveError, OptionError
from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.options import check_streaming, parse_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AVAILABLE_NOW = "available-now"
CONTINUOUS = "continuous"
LOOK_EVERY_S = 0.5
STOP_WITHIN_S = 30.0
"""How long a stop waits for the batch being written; the next run repeats it otherwise."""
DAY_US = 86_400_000_000
SENTENCE = re.compile(r"(DMQ\d{4}: [^\n]+)")


@dataclass(frozen=True, slots=True)
class ArchiveRun:
    subscribe: str
    to: str
    connection: Mapping[str, str] = field(repr=False)
    group_id: str = ""
    checkpoint: str = ""
    trigger: str = AVAILABLE_NOW
    include_headers: bool = True
    max_rows: int = 50_000

    @property
    def source(self) -> str:
        """For people and for the marker file: what is archived."""
        return self.subscribe if ":" in self.subscribe else f"queue:{self.subscribe}"

    @property
    def checkpoint_location(self) -> str:
        """Where Spark keeps how far it is."""
        return self.checkpoint or f"{self.to}/_checkpoint"

    def options(self) -> dict[str, str]:
        """The data source's options."""
        return {
            **self.connection,
            "subscribe": self.source,
            "group.id": self.group_id or f"archive-{self.subscribe.partition(':')[2] or self.subscribe}",
            "includeHeaders": "true" if self.include_headers else "false",
            "maxOffsetsPerTrigger": str(self.max_rows),
        }


@dataclass(slots=True)
class ArchiveReport:
    """What a run did: batches committed and messages in them, as Spark counted them, and the newest batch's number."""

    batches: int = 0
    rows: int = 0
    backlog: int = 0
    last_batch: int = -1


def check_run(run: ArchiveRun) -> None:
    """Everything about `run` that can be known without Spark: options, directory, login, the queue and who may read it.

    Leaves nothing behind, at the broker or in the directory.

    Raises:
        OptionError: an option has a value that it can't have.
        BrokerError: what else is wrong, in one sentence.
    """
    if run.trigger not in (AVAILABLE_NOW, CONTINUOUS):
        raise OptionError("DMQ8050", f"trigger {run.trigger!r} is unknown: use {AVAILABLE_NOW} or {CONTINUOUS}")
    options = parse_options(run.options())
    check_streaming(options)
    check_place(run.to, run.source)
    check_place(run.checkpoint_location)
    client = LeaseClient(options.connection)
    try:
        client.check_destination(options.group_id, options.destination)
    finally:
        client.close()


def archive(
    spark: "SparkSession",
    run: ArchiveRun,
    *,
    stop: threading.Event | None = None,
    on_progress: Callable[[str], None] | None = None,
    on_batch: Callable[[int], None] | None = None,
) -> ArchiveReport:
    """Archive until the queue's present content is done (available-now) or until `stop` is set (continuous).

    `on_progress` gets a line for each committed batch. `on_batch`, on another thread, gets the number of a batch that
    has its files in place but is not committed by Spark yet.

    Raises:
        ArchiveError: the directory is taken, or the query failed; what was archived stays, the next run goes on.
    """
    check_run(run)
    return archive_checked(spark, run, stop=stop, on_progress=on_progress, on_batch=on_batch)


def archive_checked(
    spark: "SparkSession",
    run: ArchiveRun,
    *,
    stop: threading.Event | None = None,
    on_progress: Callable[[str], None] | None = None,
    on_batch: Callable[[int], None] | None = None,
) -> ArchiveReport:
    """`archive` of a run that `check_run` has just looked at."""
    from py4j.protocol import Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        return _archive(spark, run, stop or threading.Event(), on_progress or (lambda line: None), on_batch)
    except (Py4JNetworkError, ConnectionError) as gone:
        raise ArchiveError(
            "DMQ8055",
            f"Spark's Java process ended while {run.source} was archived to {run.to}: look for what ended it "
            "(memory?) and start again, the archive goes on where it was",
        ) from gone
    except (PySparkException, Py4JJavaError) as failure:
        raise ArchiveError(
            "DMQ8053", f"the archive of {run.source} to {run.to} stopped: {explain_failure(str(failure))}"
        ) from failure


def _archive(
    spark: "SparkSession",
    run: ArchiveRun,
    stop: threading.Event,
    say: Callable[[str], None],
    on_batch: Callable[[int], None] | None,
) -> ArchiveReport:
    files = ArchiveFiles(spark, run.to)
    files.claim(run.source)
    with _alone_in(run.to):
        swept = files.sweep()
        if swept:
            say(f"removed {swept} unfinished directories of a run that was killed")
        checkpoint = local_path(run.checkpoint_location)
        for removed in heal_checkpoint(checkpoint) if checkpoint is not None else ():
            say(removed)
        writer = BatchWriter(files, on_batch)
        query = _start(spark, run, writer)
        try:
            writer.query_id.set_result(str(query.id))
            return _follow(query, stop, say)
        finally:
            if query.isActive:
                query.stop()


class BatchWriter:
    """Writes one batch's files. Runs on: the driver, on Spark's callback thread."""

    def __init__(self, files: ArchiveFiles, on_batch: Callable[[int], None] | None) -> None:
        self.query_id: Future[str] = Future()
        self._files = files
        self._on_batch = on_batch
        self._first = True

    def write(self, batch: "DataFrame", number: int) -> None:
        """Write the batch, replacing what an earlier attempt at it left; nothing for an empty one."""
        key = batch_key(self.query_id.result(timeout=60), number)
        # Only the first batch of a run can be a repetition.
        before = self._files.batch(key) if self._first else {}
        with_partitions(batch, key).write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy(
            *PARTITIONS
        ).parquet(self._files.root)
        after = self._files.batch(key)
        if after != before:
            # Overwriting gives new names; a directory with the old ones is not part of the batch (any more).
            for directory in stale_directories(before, after):
                self._files.delete(directory)
                del after[directory]
        self._files.make_durable(after)
        self._first = False
        if self._on_batch is not None:
            self._on_batch(number)


def batch_key(query_id: str, number: int) -> str:
    """The name of a batch: unique to the query (hence to the checkpoint), sorted by number, read as text everywhere."""
    return f"q{query_id.replace('-', '')[:12]}-{number:09d}"


def stale_directories(before: Mapping[str, frozenset[str]], after: Mapping[str, frozenset[str]]) -> list[str]:
    """Directories of a batch that its repetition did not write again."""
    return [directory for directory, names in before.items() if after.get(directory) == names]


def with_partitions(batch: "DataFrame", key: str) -> "DataFrame":
    """`batch` with the columns day (UTC, of the message's timestamp) and batch, sorted as they will lie in the files.

    The day is computed from the number of microseconds, which does not depend on the session's time zone: a repetition
    under another one must come to the same partitions.
    """
    from pyspark.sql import functions as f

    day = f.date_from_unix_date(f.floor(f.unix_micros("timestamp") / f.lit(DAY_US)).cast("int"))
    return (
        batch.withColumn("day", day)
        .withColumn("batch", f.lit(key))
        .sortWithinPartitions("day", "address", "batch", "sequence")
    )


def explain_failure(text: str) -> str:
    """Our own sentence out of Spark's long stack of causes, or the first line that names a cause."""
    sentences = SENTENCE.findall(text)
    if sentences:
        return str(sentences[-1])
    first, _, rest = text.strip().partition("\n")
    # py4j names the Java method that it called, and the exception only in the line after that.
    cause = rest.partition("\n")[0].removeprefix(":").strip()
    return cause if cause and first.startswith("An error occurred while calling") else first


def _start(spark: "SparkSession", run: ArchiveRun, writer: BatchWriter) -> Any:
    frame = spark.readStream.format("delosmq").options(**run.options()).load()
    stream = (
        frame.writeStream.queryName(f"archive {run.source}")
        .option("checkpointLocation", run.checkpoint_location)
        .foreachBatch(writer.write)
    )
    if run.trigger == AVAILABLE_NOW:
        stream = stream.trigger(availableNow=True)
    return stream.start()


def _follow(query: Any, stop: threading.Event, say: Callable[[str], None]) -> ArchiveReport:
    report = ArchiveReport()
    while not stop.is_set() and not query.awaitTermination(LOOK_EVERY_S):
        _count_progress(query, report, say)
    if stop.is_set():
        _stop_between_batches(query)
    _count_progress(query, report, say)
    return report


def _count_progress(query: Any, report: ArchiveReport, say: Callable[[str], None]) -> None:
    for progress in query.recentProgress:
        rows, number = progress["numInputRows"], progress["batchId"]
        if not rows or number <= report.last_batch:
            continue
        report.last_batch = number
        report.batches += 1
        report.rows += rows
        report.backlog = _backlog(progress)
        say(f"batch {number}: {rows} messages, {report.rows} in this run, {report.backlog} waiting in the queue")


def _backlog(progress: Any) -> int:
    latest = progress["sources"][0]["latestOffset"]
    if isinstance(latest, str):
        latest = json.loads(latest)
    return int(latest["ready"]) if latest else 0


def _stop_between_batches(query: Any) -> None:
    """Stop when no batch is being written, so that the next run has nothing to repeat; not at any price."""
    deadline = monotonic() + STOP_WITHIN_S
    at_signal = query.lastProgress["batchId"] if query.lastProgress else -1
    while query.isActive and monotonic() < deadline:
        latest = query.lastProgress["batchId"] if query.lastProgress else -1
        if not query.status["isDataAvailable"] or latest > at_signal:
            break
        query.awaitTermination(0.1)
    query.stop()


@contextmanager
def _alone_in(to: str) -> Iterator[None]:
    """Keep a second archive on this machine out of the same directory: it would sweep away what this one writes.

    Raises:
        ArchiveError: another one is at work.
    """
    path = local_path(to)
    if path is None:
        yield
        return
    with open(path / "_archive.lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ArchiveError(
                "DMQ8054", f"another archive is running into {to}: stop it, or archive to another directory"
            ) from None
        yield
