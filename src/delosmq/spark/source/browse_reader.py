"""Batches: what lies in queues, ready or in delivery; nothing is taken."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from delosmq.spark.lease_requests import BrowseFilter
from delosmq.spark.options import SourceOptions
from delosmq.spark.positions import SEQUENCE, TIME
from delosmq.spark.source.partitions import SequenceRange, split_sequences
from delosmq.spark.source.pushdown import PushedFilters, push
from delosmq.spark.source.reader import OptionsReader

if TYPE_CHECKING:
    import pyarrow as pa


class BrowseReader(OptionsReader, DataSourceReader):
    """Reads a snapshot of queues."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._pushed = PushedFilters()

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of sequences, minPartitions for each queue. Fixes the end of the snapshot.

        Runs on: beside the driver.
        """
        return [
            part
            for broker in range(len(self.options.brokers))
            for destination in self.options.destinations
            for part in self._ranges(broker, destination.name)
        ]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The messages of a range in order of sequence. Runs on: executors."""
        # Spark puts a partition without value in place of an empty list.
        if not isinstance(partition, SequenceRange):
            return
        client = self.client_of(partition.broker)
        try:
            yield from client.browse(
                partition.queue, partition.after, partition.until, self.options.columns, wanted=partition.wanted
            )
        finally:
            client.close()

    def _ranges(self, broker: int, name: str) -> list[SequenceRange]:
        options, pushed = self.options, self._pushed
        client = self.client_of(broker)
        queue = client.queue(name)
        client.close()
        after, until = queue.oldest_sequence - 1, queue.newest_sequence
        if options.starting.kind == SEQUENCE:
            after = max(after, options.starting.value - 1)
        if options.ending.kind == SEQUENCE:
            until = min(until, options.ending.value - 1)
        wanted = BrowseFilter(
            pushed.selector(options.selector),
            max(pushed.since_ms, options.starting.value if options.starting.kind == TIME else 0),
            min(pushed.before_ms, options.ending.value if options.ending.kind == TIME else pushed.before_ms),
        )
        bounds = split_sequences(max(after, pushed.after, 0), min(until, pushed.until), options.min_partitions or 1)
        return [SequenceRange(lo, hi, name, broker, wanted) for lo, hi in bounds]


class PushdownReader(BrowseReader):
    """A `BrowseReader` that leaves filters to the broker. Spark refuses one that does while its setting is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take what the broker can filter by; gives the filters that Spark has to apply.

        Runs on: beside the driver, before `partitions`.
        """
        self._pushed, left = push(filters)
        return left
