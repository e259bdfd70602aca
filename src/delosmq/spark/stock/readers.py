"""Streams and batches of a broker without leases.

What makes a stream at least once. The source process receives the messages of a batch and hands them to Spark within
the partitions, so that tasks may be repeated without the broker. It acknowledges them when Spark asks for what comes
after them, which Spark does when it has written the batch to its commit log. Whatever dies before, the connection ends
with it, and the broker delivers again what was not acknowledged. A batch that a restarted query has to repeat is empty,
as the broker can't give the same list again: its messages come in a later one.

Source: pyspark/sql/datasource.py and pyspark/sql/streaming/python_streaming_source_runner.py of 4.3.0; JMS 1.1, 4.4.11.
"""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from delosmq.model.errors import BrokerError
from delosmq.spark.errors import AnswerError
from delosmq.spark.options import SourceDestination
from delosmq.spark.stock.consumers import StockConsumers, browse
from delosmq.spark.stock.options import StockOptions, name_at_broker
from delosmq.spark.stock.rows import StockRows

if TYPE_CHECKING:
    import pyarrow as pa

BROWSED_ROWS = 2_000
BROWSED_BYTES = 4 * 1024 * 1024
"""Of one Arrow batch of a browser."""
Offset = dict[str, Any]


@dataclass(frozen=True)
class ReceivedRows(InputPartition):
    """Rows of one consumer, in the order in which they came, as an Arrow IPC stream. Pickled: to executors."""

    stream: bytes = field(repr=False)


@dataclass(frozen=True)
class BrowsedQueue(InputPartition):
    """A queue that one task browses. Pickled: to executors."""

    destination: SourceDestination


@dataclass(frozen=True, slots=True)
class ReceivedBatch:
    """What was received and is not acknowledged, between two offsets."""

    start: Offset
    end: Offset
    partitions: tuple[ReceivedRows, ...]


class StockStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streams queues and topics through consumers. An offset is a batch's number and the run that has received it."""

    def __init__(self, options: StockOptions, refusal: BrokerError | None = None) -> None:
        self._options = options
        self._refusal = refusal
        self._run = uuid.uuid4().hex
        self._consumers = StockConsumers(options)
        self._batch: ReceivedBatch | None = None
        self._bounded_at_ms: int | None = None
        self._ended = False

    def __getstate__(self) -> dict[str, Any]:
        # All that a task reads is in its partition: executors get no password and no address.
        return {}

    def initialOffset(self) -> Offset:
        """Runs on: the source process."""
        self._check_refusal()
        return {"run": self._run, "batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """maxOffsetsPerTrigger; maxBytesPerTrigger counts besides."""
        return ReadMaxRows(self._options.common.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """From here on the stream ends when nothing comes, or when all that comes was sent later than now."""
        self._bounded_at_ms = int(time.time() * 1000)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Acknowledge up to `start` and receive what comes next; waits up to pollTimeoutMs for it.

        Runs on: the source process. Returns `start` itself when nothing is there.
        """
        self._check_refusal()
        _check_offset(start)
        if self._batch is not None and start != self._batch.end:
            return self._batch.end
        self.commit(start)
        if self._ended:
            return start
        rows, size_bytes = self._limits(limit)
        wait_s = self._options.common.poll_timeout_ms / 1000
        if self._consumers.receive(rows, size_bytes, wait_s) == 0:
            return start
        self._ended = self._bounded_at_ms is not None and self._consumers.oldest_ms >= self._bounded_at_ms
        self._batch = ReceivedBatch(start, {"run": self._run, "batch": start["batch"] + 1}, self._taken())
        return self._batch.end

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The rows themselves; none of a batch of an earlier run, whose messages come again. Runs on: the source
        process."""
        self._check_refusal()
        if self._batch is not None and (start, end) == (self._batch.start, self._batch.end):
            return self._batch.partitions
        _check_offset(end)
        if end["run"] != self._run:
            return []
        raise AnswerError(
            "DMQ8296",
            f"Spark asks for batch {end['batch']}, whose messages are not kept any more: start the query again",
        )

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The rows that the partition holds. Runs on: executors, which load nothing of a client or a broker."""
        import pyarrow as pa

        if isinstance(partition, ReceivedRows):
            yield from pa.ipc.open_stream(partition.stream)

    def commit(self, end: Offset) -> None:
        """Acknowledge the batch that ends there. Spark skips this for the last batch: `latestOffset` does it, too."""
        if self._batch is not None and end == self._batch.end:
            self._batch = None
            self._consumers.acknowledge()

    def stop(self) -> None:
        """Give back what is not acknowledged. Spark does not call this reliably: the end of the process does it."""
        self._consumers.close()

    def _taken(self) -> tuple[ReceivedRows, ...]:
        return tuple(_packed(batch) for each in self._consumers.consumers for batch in each.take())

    def _limits(self, limit: ReadLimit) -> tuple[int, int]:
        common = self._options.common
        if isinstance(limit, ReadMaxRows):
            return limit.max_rows, common.max_bytes
        if isinstance(limit, ReadMaxBytes):
            return common.max_rows, limit.max_bytes
        # "All" that such a broker has can't be told from what comes: the options bound a batch.
        return common.max_rows, common.max_bytes

    def _check_refusal(self) -> None:
        if self._refusal is not None:
            raise self._refusal


class StockBrowseReader(DataSourceReader):
    """Reads what lies in queues; nothing is taken. Pickled: to executors, with the login."""

    def __init__(self, options: StockOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        return [BrowsedQueue(destination) for destination in self._options.common.destinations]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """What the browser shows. Runs on: executors; a task that is repeated looks anew."""
        assert isinstance(partition, BrowsedQueue)
        rows = StockRows(self._options.columns, name_at_broker(partition.destination).partition("?")[0])
        for message in browse(self._options, partition.destination):
            rows.add(message)
            if rows.count >= BROWSED_ROWS or rows.size_bytes >= BROWSED_BYTES:
                yield rows.take()
        if rows.count:
            yield rows.take()


def _packed(batch: "pa.RecordBatch") -> ReceivedRows:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return ReceivedRows(sink.getvalue().to_pybytes())


def _check_offset(offset: Mapping[str, Any]) -> None:
    if "run" not in offset:
        raise AnswerError(
            "DMQ8297",
            "the checkpoint is of a query over leases, and servers names a port for OpenWire: name the HTTP port "
            "again, or give this query a checkpoint of its own",
        )
