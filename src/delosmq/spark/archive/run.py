"""Archives queues and topics to Parquet or Delta Lake, each message once for any reader, whatever is killed.

How. Each source has a query of its own. Spark repeats a batch that it has not committed, with the same number; leases
make its content the same. As Parquet a batch is written to partitions of its own (day, address, batch) in overwrite
mode, so that a repetition replaces its own files; in Delta Lake it is a version of the table that is written once. The
batch's name also carries the query's id, so that a new checkpoint can't overwrite what an older one archived.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from delosmq.model.errors import BrokerError
from delosmq.spark.archive.delta import DeltaWriter, check_deltalake, table_place
from delosmq.spark.archive.files import ArchiveFiles, check_place, local_path
from delosmq.spark.archive.locks import alone
from delosmq.spark.archive.marker import DELTA, KINDS, PARQUET, ArchiveClaim
from delosmq.spark.archive.parquet import BatchWriter
from delosmq.spark.checkpoint import heal_checkpoint
from delosmq.spark.errors import OptionError
from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.options import SourceOptions, check_streaming, parse_options
from delosmq.spark.pipeline import AVAILABLE_NOW, QueryReport, Say, check_trigger, explained, follow_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ArchiveReport = QueryReport


@dataclass(frozen=True, slots=True)
class ArchiveRun:
    """What to archive and where.

    Attributes:
        subscribe: one source or several: a queue, or as in "queue:orders" and "topic:prices".
        connection: options of the data source: which broker, and who asks.
        group_id: of the leases; default archive-NAME. With several sources its name and that of each. In both a
            topic beside a queue of its name is topic:NAME.
        checkpoint: default below `to`. With several sources each has a directory in it.
        kind: "parquet", or "delta" for Delta Lake.
    """

    subscribe: str | Sequence[str]
    to: str
    connection: Mapping[str, str] = field(repr=False)
    group_id: str = ""
    checkpoint: str = ""
    trigger: str = AVAILABLE_NOW
    include_headers: bool = True
    max_rows: int = 50_000
    kind: str = PARQUET

    @property
    def sources(self) -> tuple[str, ...]:
        """What is archived, each once, as in "queue:orders"."""
        given = [self.subscribe] if isinstance(self.subscribe, str) else self.subscribe
        return tuple(dict.fromkeys(name if ":" in name else f"queue:{name}" for name in given))

    @property
    def source(self) -> str:
        """All sources, for people."""
        return self.claim.named

    @property
    def claim(self) -> ArchiveClaim:
        """What the directory is to be the archive of."""
        return ArchiveClaim(self.kind, self.sources)

    def checkpoint_of(self, source: str) -> str:
        """Where Spark keeps how far it is."""
        place = self.checkpoint or f"{self.to}/_checkpoint"
        return place if len(self.sources) == 1 else f"{place}/{quote(source, safe='')}"

    def options(self, source: str) -> dict[str, str]:
        """The data source's options."""
        name = source.partition(":")[2]
        if source != f"queue:{name}" and f"queue:{name}" in self.sources:
            name = source
        group = f"{self.group_id}/{name}" if self.group_id and len(self.sources) > 1 else self.group_id
        return {
            **self.connection,
            "subscribe": source.replace(",", "\\,"),
            "group.id": group or f"archive-{name}",
            "includeHeaders": "true" if self.include_headers else "false",
            "maxOffsetsPerTrigger": str(self.max_rows),
        }


def check_run(run: ArchiveRun) -> None:
    """Everything about `run` that can be known without Spark: options, directory, login, queues and who may read them.

    Leaves nothing behind, at the broker or in the directory.

    Raises:
        OptionError: an option has a value that it can't have.
        BrokerError: what else is wrong, in one sentence.
    """
    check_trigger(run.trigger)
    if run.kind not in KINDS:
        raise OptionError("DMQ8247", f"format {run.kind!r} is unknown: use {' or '.join(KINDS)}")
    if not run.sources:
        raise OptionError("DMQ8240", "no queue or topic is named: name what to archive")
    parsed = [parse_options(run.options(source)) for source in run.sources]
    for options in parsed:
        check_streaming(options)
    if run.kind == DELTA:
        check_deltalake()
        place = local_path(run.to)
        if place is None:
            raise OptionError(
                "DMQ8248",
                f"a Delta Lake archive at {run.to} is not supported: archive to a directory, which may be mounted, or "
                f"with --format {PARQUET}",
            )
        table_place(place)
    check_place(run.to, run.claim)
    for source in run.sources:
        check_place(run.checkpoint_of(source))
    for options in parsed:
        _check_source(options)


def waiting(run: ArchiveRun) -> dict[str, int]:
    """How many messages each queue of `run` holds; nothing of topics, and of queues that the user may not view."""
    found: dict[str, int] = {}
    for source in run.sources:
        for broker in parse_options(run.options(source)).brokers:
            client = LeaseClient(broker)
            kind, _, name = source.partition(":")
            with suppress(BrokerError):
                if kind == "queue":
                    found[source] = found.get(source, 0) + client.queue(name).message_count
            client.close()
    return found


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
    files.claim(run.claim)
    with ExitStack() as held:
        held.enter_context(alone(local_path(run.to)))
        swept = files.sweep()
        if swept:
            say(f"removed {swept} unfinished directories of a run that was killed")
        for source in run.sources:
            checkpoint = local_path(run.checkpoint_of(source))
            for removed in heal_checkpoint(checkpoint) if checkpoint is not None else ():
                say(removed)
        queries = {}
        for source in run.sources:
            writer = _writer(run, files, on_batch)
            queries[source] = query = _start(spark, run, source, writer)
            held.callback(query.stop)
            writer.query_id.set_result(str(query.id))
        return follow_all(queries, stop, say)


def _writer(run: ArchiveRun, files: ArchiveFiles, on_batch: Callable[[int], None] | None) -> BatchWriter | DeltaWriter:
    root = local_path(run.to)
    return DeltaWriter(root, on_batch) if run.kind == DELTA and root is not None else BatchWriter(files, on_batch)


def _start(spark: "SparkSession", run: ArchiveRun, source: str, writer: BatchWriter | DeltaWriter) -> Any:
    frame = spark.readStream.format("delosmq").options(**run.options(source)).load()
    stream = (
        frame.writeStream.queryName(f"archive {source}")
        .option("checkpointLocation", run.checkpoint_of(source))
        .foreachBatch(writer.write)
    )
    if run.trigger == AVAILABLE_NOW:
        stream = stream.trigger(availableNow=True)
    return stream.start()


def _check_source(options: SourceOptions) -> None:
    for broker in options.brokers:
        client = LeaseClient(broker)
        try:
            client.check_destination(options.group_id, options.destination)
        finally:
            client.close()
