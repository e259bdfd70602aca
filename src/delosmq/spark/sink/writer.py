"""The sink ``delosmq``: tasks stage rows at the broker, the driver publishes all of a batch as one.

Why that is exactly once. A task stages under names that are never used again, so that what a failed or repeated attempt
staged is in no list; the driver's commit publishes the listed parts as one, under the number of the batch, and the
broker answers "already" when that number was published before. What was staged and is never published nobody sees.

Source: pyspark/sql/datasource.py and pyspark/sql/streaming/python_streaming_sink_runner.py of 4.3.0.
"""

import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from delosmq.model.errors import BrokerError
from delosmq.spark import errors
from delosmq.spark.sink.options import (
    SinkOptions,
    check_sink_schema,
    check_streaming,
    parse_sink_options,
)
from delosmq.spark.source.data_source import DelosSource
from delosmq.spark.staging_client import StagingClient, WriteAttempt

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

logger = logging.getLogger("delosmq.spark")


@dataclass
class StagedBatch(WriterCommitMessage):
    """What one task staged. Pickled: from executors to the driver."""

    application: str
    batch: int
    parts: tuple[str, ...]
    attempt: str


class _Writer:
    """What both writers share. Pickled: to executors, with the options and without a connection."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        # Of this write; a stream has the name of its run instead, which all its batches share.
        self.attempt = str(uuid.uuid4())

    def _client(self, attempt: WriteAttempt) -> StagingClient:
        return StagingClient(self.options.connection, self.options.defaults, attempt)

    def _stage(self, application: str, batch: int, rows: "Iterator[pa.RecordBatch]", attempt: str = "") -> StagedBatch:
        context = TaskContext.get()
        task = "" if context is None else str(context.partitionId())
        made_by = WriteAttempt(attempt or self.attempt, task, str(uuid.uuid4()))
        client = self._client(made_by)
        try:
            return StagedBatch(application, batch, tuple(client.stage_rows(application, batch, rows)), made_by.name)
        finally:
            client.close()

    def _publish(self, messages: "list[WriterCommitMessage | None]", *, in_order: bool = False) -> None:
        """Args:
        in_order: no batch before the last one is ever published again.
        """
        batches = [message for message in messages if isinstance(message, StagedBatch)]
        parts = [part for message in batches for part in message.parts]
        if not parts:
            return
        application, batch = batches[0].application, batches[0].batch
        client = self._client(WriteAttempt(batches[0].attempt))
        try:
            if not client.publish(application, batch, parts):
                if in_order and client.last_published > batch:
                    raise errors.CheckpointBehindError(
                        "DMQ8176",
                        f"batch {batch} of the query '{application}' was not sent: batch {client.last_published} of it"
                        " is published already, so its checkpoint is a copy of another query's, or an old one. Give the"
                        " query a checkpoint of its own, or bring back the newest one",
                    )
                logger.warning(f"DMQ8171: batch {batch} of '{application}' was published before; nothing need be done")
            if self.options.forgets and application == self.options.application:
                with suppress(BrokerError):
                    client.forget(application)
        finally:
            client.close()

    def _discard(self, messages: "list[WriterCommitMessage | None]") -> None:
        client = self._client(WriteAttempt())
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
        if context is None or not query or batch is None:
            raise errors.AnswerError(
                "DMQ8168", "Spark does not tell the task its query and batch: write a stream with writeStream"
            )
        # Spark names the jobs of a query after its run: a name for each start.
        return self._stage(query, int(batch), iterator, context.getLocalProperty("spark.jobGroup.id") or "")

    def commit(self, messages: "list[WriterCommitMessage | None]", batchId: int) -> None:
        self._publish(messages, in_order=True)

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
