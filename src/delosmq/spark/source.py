"""The data source ``delosmq``: streams on leases, batches on a browse.

What makes a stream exact. Spark writes a batch's end to its offset log, processes it, writes the commit log, and only
then asks `latestOffset(start)` with that end as `start`. So that call is itself the acknowledgement of `start`. A crash
between making a lease and the offset log is healed by the broker: it answers the same lease again.

Source: pyspark/sql/datasource.py and pyspark/sql/streaming/python_streaming_source_runner.py of 4.3.0.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from delosmq.model.errors import BrokerError
from delosmq.spark.errors import ForeignIncarnationError, LeaseLostError, OptionError, SchemaMismatchError
from delosmq.spark.lease_client import Group, LeaseClient, LeaseSummary
from delosmq.spark.options import SourceOptions, check_batch, check_streaming, parse_options
from delosmq.spark.schema import spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

ROWS_PER_PARTITION = 25_000
"""Without minPartitions: two tasks for a full default lease, one for what trickles in."""
NO_LIMIT = (1 << 31) - 1

Offset = dict[str, Any]


@dataclass(frozen=True)
class LeaseRange(InputPartition):
    """Rows ``lo`` (inclusive) to ``hi`` (exclusive) of one lease. Pickled: to executors."""

    group: str
    lease: int
    lo: int
    hi: int


@dataclass(frozen=True)
class SequenceRange(InputPartition):
    """Messages with ``after`` < sequence <= ``until``. Pickled: to executors."""

    after: int
    until: int


class DelosSource(DataSource):
    """``spark.readStream.format("delosmq")`` and ``spark.read.format("delosmq")``.

    Runs on: a Python process beside the driver. Pickled: to the source process and to executors.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        # The base class would keep the raw options, password included, on the instance. What is wrong with them is
        # kept until a reader is asked for, because the options may be those of a writer.
        self._parsed: SourceOptions | OptionError
        try:
            self._parsed = parse_options(options)
        except OptionError as wrong:
            self._parsed = wrong.with_traceback(None)

    @classmethod
    def name(cls) -> str:
        """What goes into ``format()``."""
        return "delosmq"

    @property
    def parsed(self) -> SourceOptions:
        """The options, checked."""
        if isinstance(self._parsed, OptionError):
            raise self._parsed
        return self._parsed

    def schema(self) -> "StructType":
        """The columns asked for; see `delosmq.spark.schema`."""
        return spark_schema(self.parsed.columns)

    def streamReader(self, schema: "StructType") -> "LeaseStreamReader":
        # Spark's runner hides what is raised here behind an UnboundLocalError; so the reader's calls raise it.
        refusal: BrokerError | None = None
        try:
            check_streaming(self.parsed)
            self._check_schema(schema)
        except (OptionError, SchemaMismatchError) as wrong:
            refusal = wrong.with_traceback(None)
        return LeaseStreamReader(self.parsed, refusal)

    def reader(self, schema: "StructType") -> "BrowseReader":
        """The reader of a batch query."""
        check_batch(self.parsed)
        self._check_schema(schema)
        return BrowseReader(self.parsed)

    def _check_schema(self, schema: "StructType") -> None:
        if schema != self.schema():
            raise SchemaMismatchError(
                "DMQ8005", "the data source delosmq has its own columns: leave schema() out and use the option columns"
            )


class _Reader:
    """What both readers share: options that travel, a client that does not."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self._client: LeaseClient | None = None

    @property
    def client(self) -> LeaseClient:
        """Made at the first use in each process."""
        if self._client is None:
            self._client = LeaseClient(self.options.connection)
        return self._client

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        _Reader.__init__(self, state["options"])


class LeaseStreamReader(_Reader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streams a queue or topic through the leases of a group.

    An offset is ``{"lease": k, "incarnation": id}``: everything up to lease k of that life of the group.
    """

    def __init__(self, options: SourceOptions, refusal: BrokerError | None = None) -> None:
        super().__init__(options)
        self._refusal = refusal
        self._group: Group | None = None
        self._bounded = False
        self._until: int | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        LeaseStreamReader.__init__(self, state["options"])

    def initialOffset(self) -> Offset:
        """Make the group. Called for a query without committed batches, so also to repeat its very first one.

        Runs on: the source process.
        """
        self._group = self._open(None)
        return {"lease": 0, "incarnation": self._group.incarnation}

    def getDefaultReadLimit(self) -> ReadLimit:
        """maxOffsetsPerTrigger; maxBytesPerTrigger counts besides."""
        return ReadMaxRows(self.options.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """From here on the stream ends at what the queue holds when the group is opened.

        Runs on: the source process, before any other call, so that there may be no group to ask yet.
        """
        self._bounded = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Acknowledge up to `start` and lease what comes next; waits up to pollTimeoutMs for it.

        Runs on: the source process. Returns `start` itself when nothing is there.
        """
        try:
            return self._next(start, limit)
        except LeaseLostError:
            if self.options.fail_on_data_loss:
                raise
            self._group = None
            return self._next(start, limit)

    def _next(self, start: Offset, limit: ReadLimit) -> Offset:
        group, after = self._group_at(start)
        if self._bounded and self._until is None:
            self._until = self.client.stat(group.name).newest_sequence
        max_rows, max_bytes = self._limits(limit)
        lease = self.client.lease(
            group,
            after,
            max_rows=max_rows,
            max_bytes=max_bytes,
            wait_ms=0 if self._bounded else self.options.poll_timeout_ms,
            until=self._until,
        )
        if lease.number == after and group.incarnation == start["incarnation"]:
            return start
        return {"lease": lease.number, "incarnation": group.incarnation}

    def reportLatestOffset(self) -> Offset | None:
        """Backlog for the query's progress: ``sources[].latestOffset``. Runs on: the source process."""
        if self._group is None:
            return None
        try:
            stat = self.client.stat(self._group.name)
        except LeaseLostError:
            if self.options.fail_on_data_loss:
                raise
            return None
        return {
            "lease": stat.lease,
            "incarnation": stat.incarnation,
            "newest_sequence": stat.newest_sequence,
            "ready": stat.ready,
            "leased": stat.leased,
            "oldest_age_ms": stat.oldest_age_ms,
        }

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Ranges of rows, at least minPartitions of them; also for repeated batches. Runs on: the source process."""
        self._check_refusal()
        after = start["lease"] if start["incarnation"] == end["incarnation"] else 0
        if after == end["lease"]:
            return []
        try:
            self._check_life(end["incarnation"])
            leases = self.client.describe(
                self.options.group_id, after, end["lease"], complete=self.options.fail_on_data_loss
            )
        except LeaseLostError:
            if self.options.fail_on_data_loss:
                raise
            return []
        return split_leases(self.options.group_id, leases, self.options.min_partitions)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The rows of a range. Runs on: executors, up to four times per partition; changes nothing at the broker."""
        assert isinstance(partition, LeaseRange)
        try:
            yield from self.client.rows(
                partition.group, partition.lease, partition.lo, partition.hi, self.options.columns
            )
        except LeaseLostError:
            if self.options.fail_on_data_loss:
                raise
        finally:
            self.client.close()

    def commit(self, end: Offset) -> None:
        """Acknowledge up to `end`. Spark skips this for the last batch, and a crash may: never depended on."""
        group = self._group
        if group is None or group.incarnation != end["incarnation"]:
            return
        try:
            self.client.ack(group, end["lease"])
        except LeaseLostError:
            if self.options.fail_on_data_loss:
                raise

    def stop(self) -> None:
        """Drop the connection. Spark does not call this reliably; nothing hangs on it."""
        if self._client is not None:
            self._client.close()

    def _check_refusal(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def _open(self, incarnation: str | None) -> Group:
        self._check_refusal()
        options = self.options
        return self.client.open_group(options.group_id, options.destination, incarnation, sleep=time.sleep)

    def _group_at(self, start: Offset) -> tuple[Group, int]:
        """The opened group, and the number of the lease that `start` names in its present life."""
        if self._group is None:
            self._group = self._reopen(start["incarnation"])
        group = self._group
        if group.incarnation != start["incarnation"]:
            return group, 0
        # Of an older checkpoint than the group's, what was acknowledged since is lost.
        lost = group.acked > start["lease"] and not self.options.fail_on_data_loss
        return group, group.acked if lost else start["lease"]

    def _check_life(self, incarnation: str) -> None:
        """A group of the same name may be another one by now, with other messages under the same lease numbers."""
        if self.client.stat(self.options.group_id).incarnation != incarnation:
            raise LeaseLostError(
                "DMQ8056",
                f"group {self.options.group_id!r} was ended and made anew since the last run of this query: start with "
                "a new checkpoint, or set failOnDataLoss to false",
            )

    def _reopen(self, incarnation: str) -> Group:
        try:
            return self._open(incarnation)
        except (LeaseLostError, ForeignIncarnationError):
            if self.options.fail_on_data_loss:
                raise
            # The broker still refuses a group that another query has acknowledged anything in.
            return self._open(None)

    def _limits(self, limit: ReadLimit) -> tuple[int, int]:
        if isinstance(limit, ReadMaxRows):
            return limit.max_rows, self.options.max_bytes
        if isinstance(limit, ReadMaxBytes):
            return self.options.max_rows, limit.max_bytes
        if isinstance(limit, ReadAllAvailable):
            return NO_LIMIT, NO_LIMIT
        return self.options.max_rows, self.options.max_bytes


class BrowseReader(_Reader, DataSourceReader):
    """Reads what lies in a queue, ready or in delivery, and takes nothing."""

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of sequences, minPartitions of them. Fixes the end of the snapshot. Runs on: beside the driver."""
        options = self.options
        queue = self.client.queue(options.destination.name)
        self.client.close()
        after = queue.oldest_sequence - 1 if isinstance(options.starting, str) else options.starting - 1
        until = queue.newest_sequence if isinstance(options.ending, str) else options.ending - 1
        after = max(after, queue.oldest_sequence - 1, 0)
        return split_sequences(after, min(until, queue.newest_sequence), options.min_partitions or 1)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The messages of a range in order of sequence. Runs on: executors."""
        # Spark puts a partition without value in place of an empty list.
        if not isinstance(partition, SequenceRange):
            return
        try:
            yield from self.client.browse(
                self.options.destination.name, partition.after, partition.until, self.options.columns
            )
        finally:
            self.client.close()


def split_leases(group: str, leases: Sequence[LeaseSummary], min_partitions: int) -> list[LeaseRange]:
    """Ranges of nearly equal size that together cover all rows of `leases` once, in order."""
    total = sum(lease.rows for lease in leases)
    wanted = min_partitions or -(-total // ROWS_PER_PARTITION)
    ranges = []
    for lease in leases:
        parts = min(lease.rows, max(1, -(-wanted * lease.rows // max(1, total))))
        for part in range(parts):
            lo, hi = lease.rows * part // parts, lease.rows * (part + 1) // parts
            ranges.append(LeaseRange(group, lease.number, lo, hi))
    return ranges


def split_sequences(after: int, until: int, wanted: int) -> list[SequenceRange]:
    """`wanted` ranges, or as many as there are sequences, that cover `after` < sequence <= `until` once, in order."""
    width = until - after
    if width <= 0:
        return []
    parts = min(wanted, width)
    bounds = [after + width * part // parts for part in range(parts + 1)]
    return [SequenceRange(lo, hi) for lo, hi in pairwise(bounds)]
