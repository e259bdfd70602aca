"""Audits an archive of messages, and one of records of `delosmq.events`: tables as Parquet, and one page to read.

How. Spark computes every table and writes it, so that an archive of any size does; what comes to this process is the
first rows of each and their sums. The records are parsed once and kept on Spark's disks until the end.
"""

import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from delosmq.spark.audit import inputs, latency, producers, traffic
from delosmq.spark.audit.report.audited import Audited, Period
from delosmq.spark.audit.report.page import page
from delosmq.spark.audit.tables import AuditDirectory, Table, check_directory
from delosmq.spark.errors import AuditError, OptionError
from delosmq.spark.pipeline import Say, explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WHOLE = 10_000
"""Rows of a table over time, which has at most 120 intervals with 21 queues."""

CONSUMERS = 24
"""Rows of that table in the report: there are three for each consumer."""


@dataclass(frozen=True, slots=True)
class AuditRun:
    to: str
    archive: str = ""
    events: str = ""
    producer_property: str = ""
    sequence_property: str = ""

    @property
    def source(self) -> str:
        """For people: what is audited."""
        return " and ".join(path for path in (self.archive, self.events) if path)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit found: rows read and what stands out. ``tables`` have their first rows."""

    report: str
    messages: int
    records: int
    damaged: int
    lost: int
    missing: int
    doubles: int
    tables: dict[str, Table] = field(repr=False)


def check_run(run: AuditRun) -> None:
    """Everything about `run` that can be known without Spark; leaves nothing behind.

    Raises:
        OptionError: an option has a value that it can't have.
        ArchiveError: what is to be read is no archive, or the directory can't be written to.
        AuditError: the directory holds something else.
    """
    if not run.archive and not run.events:
        raise OptionError("DMQ8214", "there is nothing to audit: name an archive with --archive, --events or both")
    if bool(run.producer_property) != bool(run.sequence_property):
        raise OptionError("DMQ8216", "--producer-property and --sequence-property go together: name both, or neither")
    if run.producer_property and not run.archive:
        raise OptionError("DMQ8216", "--producer-property is one of archived messages: name their archive as --archive")
    for path in (run.archive, run.events):
        if path:
            inputs.check_archive(path)
    check_directory(run.to)


def audit(
    spark: "SparkSession", run: AuditRun, *, stop: threading.Event | None = None, on_progress: Say | None = None
) -> AuditReport:
    """Audit, and write tables and report to `run.to`, in place of those of an earlier audit.

    `stop` ends it before the next table; `on_progress` gets a line for each.

    Raises:
        AuditError: the directory holds something else, or `stop` was set.
        ArchiveError: what is to be read is no such archive.
        PipelineError: Spark failed.
    """
    check_run(run)
    return audit_checked(spark, run, stop=stop, on_progress=on_progress)


def audit_checked(
    spark: "SparkSession", run: AuditRun, *, stop: threading.Event | None = None, on_progress: Say | None = None
) -> AuditReport:
    """`audit` of a run that `check_run` has just looked at."""
    directory = AuditDirectory(run.to)
    with ExitStack() as ending:
        ending.enter_context(explained(f"the audit of {run.source}"))
        ending.enter_context(directory.claimed())
        return _Audit(spark, run, directory, stop or threading.Event(), on_progress or (lambda line: None)).run(ending)


class _Audit:
    """One run."""

    def __init__(
        self, spark: "SparkSession", run: AuditRun, directory: AuditDirectory, stop: threading.Event, say: Say
    ) -> None:
        self._spark = spark
        self._run = run
        self._directory = directory
        self._stop = stop
        self._say = say
        self._tables: dict[str, Table] = {}

    def run(self, ending: ExitStack) -> AuditReport:
        """All of it. What Spark keeps for it is dropped with `ending`."""
        spark, run = self._spark, self._run
        messages = inputs.read_messages(spark, run.archive) if run.archive else inputs.no_messages(spark)
        lines = inputs.read_lines(spark, run.events) if run.events else inputs.no_lines(spark)
        lines = _kept(lines, ending)
        records = inputs.sound_records(lines)
        archived = traffic.period_of(messages, "unix_millis(timestamp)")
        self._say(f"read {archived.rows} messages of the archive")
        told = traffic.period_of(records, "time_ms")
        damaged, lost = lines.count() - told.rows, _lost(records)
        self._say(f"read {told.rows} records" + (f", and {damaged} damaged lines" if damaged else ""))
        self._write_counts(messages, archived, records, told)
        self._write_latency(records, told, ending)
        unnumbered = self._write_producers(messages, records, archived, ending)
        audited = Audited(
            archive=run.archive,
            events=run.events,
            producer_property=run.producer_property,
            sequence_property=run.sequence_property,
            made_at=datetime.now(UTC),
            archived=archived,
            told=told,
            damaged=damaged,
            lost=lost,
            unnumbered=unnumbered,
            tables=self._tables,
        )
        self._directory.write_report(page(audited))
        return AuditReport(
            report=str(self._directory.report),
            messages=archived.rows,
            records=told.rows,
            damaged=damaged,
            lost=lost,
            missing=self._tables["gaps"].sums["missing"],
            doubles=self._tables["doubles"].total,
            tables=self._tables,
        )

    def _write_counts(self, messages: "DataFrame", archived: Period, records: "DataFrame", told: Period) -> None:
        self._write("queues", traffic.queues(messages, records))
        shown = messages.where(archived.holds("unix_millis(timestamp)"))
        self._write("archived_traffic", traffic.archived_traffic(shown, archived.width_ms), WHOLE)
        self._write("traffic", traffic.traffic(records.where(told.holds("time_ms")), told.width_ms), WHOLE)
        self._write("routers", traffic.routers(records))

    def _write_latency(self, records: "DataFrame", told: Period, ending: ExitStack) -> None:
        spans = _kept(latency.spans(records), ending)
        self._write("latency", latency.latency(spans, "queue"))
        self._write("latency_by_consumer", latency.latency(spans, "queue", "consumer"), CONSUMERS)
        shown = spans.where(told.holds("ended_ms"))
        self._write("latency_over_time", latency.latency_over_time(shown, told.width_ms), WHOLE)

    def _write_producers(self, messages: "DataFrame", records: "DataFrame", archived: Period, ending: ExitStack) -> int:
        """Returns how many archived messages have no number in the properties that were named."""
        numbers = producers.numbers_of_records(records)
        unnumbered = 0
        if self._run.producer_property:
            named = producers.numbers_of_properties(messages, self._run.producer_property, self._run.sequence_property)
            unnumbered = archived.rows - named.count()
            numbers = numbers.unionByName(named)
        counts = _kept(producers.counted(numbers), ending)
        self._write("producers", producers.producers(counts))
        self._write("gaps", producers.gaps(counts))
        self._write("doubles", producers.doubles(counts, messages))
        return unnumbered

    def _write(self, name: str, frame: "DataFrame", shown: int | None = None) -> None:
        if self._stop.is_set():
            raise AuditError(
                "DMQ8217", f"the audit was stopped before its table {name}: start it again for all of them"
            )
        table = self._directory.write(name, frame, shown) if shown else self._directory.write(name, frame)
        self._tables[name] = table
        self._say(f"table {name}: {table.total} rows")


def _kept(frame: "DataFrame", ending: ExitStack) -> "DataFrame":
    """`frame`, computed once, on the disks of Spark until `ending`."""
    from pyspark import StorageLevel

    kept = frame.persist(StorageLevel.DISK_ONLY)
    ending.callback(kept.unpersist)
    return kept


def _lost(records: "DataFrame") -> int:
    """Records that the broker says it had to drop."""
    row = (
        records.where("event = 'lost'")
        .selectExpr(r"sum(try_cast(regexp_extract(cause, '^(\\d+) records', 1) as bigint)) as lost")
        .first()
    )
    return int(row.lost or 0) if row is not None else 0
