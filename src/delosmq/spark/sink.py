"""The sink ``delosmq``: tasks stage rows at the broker, the driver publishes all of a batch as one.

Why that is exactly once. A task stages under names that are never used again, so that what a failed or repeated attempt
staged is in no list; the driver's commit publishes the listed parts as one, under the number of the batch, and the
broker answers "already" when that number was published before. What was staged and is never published nobody sees.

Source: pyspark/sql/datasource.py and pyspark/sql/streaming/python_streaming_sink_runner.py of 4.3.0.
"""

import io
import logging
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from delosmq.model.errors import BrokerError
from delosmq.spark import errors
from delosmq.spark.sink_options import (
    SinkOptions,
    check_sink_schema,
    check_streaming,
    parse_sink_options,
)
from delosmq.spark.source import DelosSource
from delosmq.spark.transport import Transport, segment

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

PART_ROWS = 20_000
PART_BYTES = 4 * 1024 * 1024
"""Of one part; the broker takes 50,000 rows and 6 MiB."""
PAUSE_S = 1.0
BUSY_ATTEMPTS = 60
WAIT_MS = 20_000
"""How long one call waits at the broker for room; then the task says so and asks again."""
ARROW_TYPE = "application/vnd.apache.arrow.stream"

logger = logging.getLogger("delosmq.spark")


@dataclass
class StagedBatch(WriterCommitMessage):
    """What one task staged. Pickled: from executors to the driver."""

    application: str
    batch: int
    parts: tuple[str, ...]


class StagingClient:
    """The staging calls of a broker. Not for several threads. Pickled: never."""

    def __init__(self, options: SinkOptions, *, transport: Transport | None = None, pause_s: float = PAUSE_S) -> None:
        self.transport = transport or Transport(options.connection)
        self._pause_s = pause_s
        fields = {
            "address": options.address,
            "routing_type": options.routing_type,
            "durable": "true" if options.durable else "false",
            "priority": options.priority,
            "time_to_live_ms": options.time_to_live_ms,
            "wait_ms": WAIT_MS,
        }
        self._query = urlencode(fields)

    def close(self) -> None:
        self.transport.close()

    def stage(self, application: str, batch: int, part: str, rows: bytes) -> None:
        """Stages a part; waits for as long as its address is full, and says so in the log.

        Raises:
            BrokerError: the broker refuses it.
        """
        path = f"{_path(application, batch)}/parts/{segment(part)}?{self._query}"
        busy = 0
        while True:
            try:
                self.transport.call("POST", path, rows, content_type=ARROW_TYPE)
                return
            except errors.NoRoomError as full:
                logger.warning(f"DMQ8170: a task of '{application}' waits: {full.message}")
            except errors.PartBusyError:
                # An earlier call of ours, whose answer was lost, is still at work.
                busy += 1
                if busy > BUSY_ATTEMPTS:
                    raise
            time.sleep(self._pause_s)

    def publish(self, application: str, batch: int, parts: list[str]) -> bool:
        """Publishes a batch; false when it was published before.

        Raises:
            PartLostError: one of the parts is gone; nothing was published.
        """
        answer = self.transport.call("POST", f"{_path(application, batch)}/publish", {"parts": parts})
        return answer.get("already") is not True

    def discard(self, application: str, batch: int, parts: list[str]) -> None:
        """Discards parts; changes nothing once the batch is published."""
        self.transport.call("POST", f"{_path(application, batch)}/discard", {"parts": parts})

    def forget(self, application: str) -> None:
        """No batch of this name comes again."""
        self.transport.call("DELETE", f"/api/v1/staging/{segment(application)}")


def _path(application: str, batch: int) -> str:
    return f"/api/v1/staging/{segment(application)}/{batch}"


class _Writer:
    """What both writers share. Pickled: to executors, with the options and without a connection."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options

    def _stage(self, application: str, batch: int, rows: "Iterator[pa.RecordBatch]") -> StagedBatch:
        client = StagingClient(self.options)
        parts: list[str] = []
        try:
            for encoded in encoded_parts(rows):
                part = str(uuid.uuid4())
                parts.append(part)
                client.stage(application, batch, part, encoded)
        except BaseException:
            with suppress(BrokerError):
                client.discard(application, batch, parts)
            raise
        finally:
            client.close()
        return StagedBatch(application, batch, tuple(parts))

    def _publish(self, messages: "list[WriterCommitMessage | None]") -> None:
        batches = [message for message in messages if isinstance(message, StagedBatch)]
        parts = [part for message in batches for part in message.parts]
        if not parts:
            return
        application, batch = batches[0].application, batches[0].batch
        client = StagingClient(self.options)
        try:
            if not client.publish(application, batch, parts):
                logger.warning(f"DMQ8171: batch {batch} of '{application}' was published before; nothing need be done")
            if self.options.forgets and application == self.options.application:
                with suppress(BrokerError):
                    client.forget(application)
        finally:
            client.close()

    def _discard(self, messages: "list[WriterCommitMessage | None]") -> None:
        client = StagingClient(self.options)
        try:
            for message in messages:
                if isinstance(message, StagedBatch) and message.parts:
                    # What is left ends by itself after staged-retention.
                    with suppress(BrokerError):
                        client.discard(message.application, message.batch, list(message.parts))
        finally:
            client.close()


class TableWriter(_Writer, DataSourceArrowWriter):
    """Writes a DataFrame. Runs on: executors (`write`), the driver's writer process (`commit`, `abort`)."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        return self._stage(self.options.application, self.options.batch, iterator)

    def commit(self, messages: "list[WriterCommitMessage | None]") -> None:
        self._publish(messages)

    def abort(self, messages: "list[WriterCommitMessage | None]") -> None:
        self._discard(messages)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Writes the batches of a query, whose id only tasks are told. Runs on: as `TableWriter`."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
        batch = None if context is None else context.getLocalProperty("streaming.sql.batchId")
        if not query or batch is None:
            raise errors.AnswerError(
                "DMQ8168", "Spark does not tell the task its query and batch: write a stream with writeStream"
            )
        return self._stage(query, int(batch), iterator)

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        self._publish(messages)

    def abort(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        # It may come after a commit that succeeded at the broker, which keeps what is published.
        self._discard(messages)


class DelosDataSource(DelosSource):
    """The data source with its sink: ``write.format("delosmq")`` and ``writeStream.format("delosmq")``."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        # Kept until it matters, as the options of a read are others.
        self._sink: SinkOptions | errors.OptionError
        try:
            self._sink = parse_sink_options(options)
        except errors.OptionError as wrong:
            self._sink = wrong.with_traceback(None)

    def writer(self, schema: "StructType", overwrite: bool) -> TableWriter:
        """The writer of a DataFrame."""
        if overwrite:
            raise errors.OptionError(
                "DMQ8169", "messages are never overwritten: write with .mode('append'), and purge the queue if need be"
            )
        return TableWriter(self._checked(schema))

    def streamWriter(self, schema: "StructType", overwrite: bool) -> StreamWriter:
        """The writer of a query."""
        options = self._checked(schema)
        check_streaming(options)
        if overwrite:
            raise errors.OptionError(
                "DMQ8169", "messages are never overwritten: write with .outputMode('append') or 'update'"
            )
        return StreamWriter(replace(options, forgets=False))

    def _checked(self, schema: "StructType") -> SinkOptions:
        if isinstance(self._sink, errors.OptionError):
            raise self._sink
        check_sink_schema(schema, self._sink)
        return self._sink


def encoded_parts(rows: "Iterator[pa.RecordBatch]") -> Iterator[bytes]:
    """Rows as Arrow streams, each a part; none of them empty."""
    import pyarrow as pa

    waiting: list[Any] = []
    count = size = 0
    for batch in rows:
        for piece in _pieces(batch):
            if waiting and (count + piece.num_rows > PART_ROWS or size + piece.nbytes > PART_BYTES):
                yield _encode(pa, waiting)
                waiting, count, size = [], 0, 0
            waiting.append(piece)
            count += piece.num_rows
            size += piece.nbytes
    if waiting:
        yield _encode(pa, waiting)


def _pieces(batch: "pa.RecordBatch") -> "Iterator[pa.RecordBatch]":
    """A batch in pieces that fit into a part, if their rows do."""
    if batch.num_rows <= 1 or (batch.num_rows <= PART_ROWS and batch.nbytes <= PART_BYTES):
        if batch.num_rows:
            yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def _encode(pa: Any, batches: list[Any]) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()
