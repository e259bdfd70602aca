"""Archives a queue or topic to Parquet, each message once for every reader, whatever is killed meanwhile.

How. A batch is written to partitions of its own (day, address, batch) in overwrite mode. Spark repeats a batch that it
has not committed, with the same number; leases make its content the same; so a repetition replaces its own files. The
batch's name also carries the query's id, so that a new checkpoint can't overwrite what an older one archived.
"""

import fcntl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from delosmq.spark.archive.files import ArchiveFiles, check_place, local_path
from delosmq.spark.archive.parquet import BatchWriter
from delosmq.spark.checkpoint import heal_checkpoint
from delosmq.spark.errors import ArchiveError
from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.options import check_streaming, parse_options
from delosmq.spark.pipeline import AVAILABLE_NOW, QueryReport, Say, check_trigger, explained, follow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ArchiveReport = QueryReport


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


def check_run(run: ArchiveRun) -> None:
    """Everything about `run` that can be known without Spark: options, directory, login, the queue and who may read it.

    Leaves nothing behind, at the broker or in the directory.

    Raises:
        OptionError: an option has a value that it can't have.
        BrokerError: what else is wrong, in one sentence.
    """
    check_trigger(run.trigger)
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
    on_progress: Say | None = None,
    on_batch: Callable[[int], None] | None = None,
) -> ArchiveReport:
    """Archive until the queue's present content is done (available-now) or until `stop` is set (continuous).

    `on_progress` gets a line for each committed batch. `on_batch`, on another thread, gets the number of a batch that
    has its files in place but is not committed by Spark yet.

    Raises:
        ArchiveError: the directory is taken.
        PipelineError: the query failed; what was archived stays, the next run goes on.
    """
    check_run(run)
    return archive_checked(spark, run, stop=stop, on_progress=on_progress, on_batch=on_batch)


def archive_checked(
    spark: "SparkSession",
    run: ArchiveRun,
    *,
    stop: threading.Event | None = None,
    on_progress: Say | None = None,
    on_batch: Callable[[int], None] | None = None,
) -> ArchiveReport:
    """`archive` of a run that `check_run` has just looked at."""
    with explained(f"the archive of {run.source} to {run.to}"):
        return _archive(spark, run, stop or threading.Event(), on_progress or (lambda line: None), on_batch)


def _archive(
    spark: "SparkSession",
    run: ArchiveRun,
    stop: threading.Event,
    say: Say,
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
            return follow(query, stop, say)
        finally:
            if query.isActive:
                query.stop()


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
