"""Streams: batches that are leases.

What makes a stream exact. Spark writes a batch's end to its offset log, processes it, writes the commit log, and only
then asks `latestOffset(start)` with that end as `start`. So that call is itself the acknowledgement of `start`. A crash
between making a lease and the offset log is healed by the broker: it answers the same lease again.

Source: pyspark/sql/datasource.py and pyspark/sql/streaming/python_streaming_source_runner.py of 4.3.0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from delosmq.model.errors import BrokerError
from delosmq.spark.errors import LeaseLostError
from delosmq.spark.lease_client import GroupSummary, LeaseClient
from delosmq.spark.lease_requests import RowChoice
from delosmq.spark.options import SourceOptions
from delosmq.spark.source.heartbeat import Heartbeat
from delosmq.spark.source.partitions import LeaseOfGroup, LeaseRange, split_leases
from delosmq.spark.source.place_reader import PlaceReader
from delosmq.spark.source.places import Mark, Marks, Offset, Place, decode_offset, encode_offset, group_of, places_of
from delosmq.spark.source.reader import OptionsReader

if TYPE_CHECKING:
    import pyarrow as pa

NO_LIMIT = (1 << 31) - 1
POLL_SLICE_MS = 100
"""How long an idle query with several places waits at each in turn."""


class LeaseStreamReader(OptionsReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streams queues and topics through leases, a group for each of them. See `places` for its offsets."""

    def __init__(self, options: SourceOptions, refusal: BrokerError | None = None) -> None:
        super().__init__(options)
        self._refusal = refusal
        self._places = places_of(options)
        self._readers: dict[Place, PlaceReader] = {}
        self._bounded = False
        self.heartbeat = Heartbeat(self._heartbeat_client)

    def __setstate__(self, state: dict[str, Any]) -> None:
        LeaseStreamReader.__init__(self, state["options"])

    def initialOffset(self) -> Offset:
        """Make the groups. Called for a query without committed batches, so also to repeat its very first one.

        Runs on: the source process.
        """
        self._check_refusal()
        return self._encode({place: self._reader(place, {}).begin() for place in self._places})

    def getDefaultReadLimit(self) -> ReadLimit:
        """maxOffsetsPerTrigger; maxBytesPerTrigger counts besides."""
        return ReadMaxRows(self.options.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        """From here on the stream ends at what the queues hold when their groups are opened.

        Runs on: the source process, before any other call, so that there may be no group to ask yet.
        """
        self._bounded = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Acknowledge up to `start` and lease what comes next; waits up to pollTimeoutMs for it.

        Runs on: the source process. Returns `start` itself when nothing is there.
        """
        self._check_refusal()
        rows, size = self._limits(limit)
        begun = self._marks(start)
        if len(self._places) == 1:
            (place,) = self._places
            wait_ms = self.options.poll_timeout_ms
            reached = {place: self._next(place, begun, rows, size, wait_ms)}
        else:
            reached = self._next_of_each(begun, rows, size)
        return start if reached == begun else self._encode(reached)

    def reportLatestOffset(self) -> Offset | None:
        """Backlog for the query's progress: ``sources[].latestOffset``. Runs on: the source process."""
        stats = {place: reader.stat() for place, reader in self._readers.items()}
        told = {place: _progress(stat) for place, stat in stats.items() if stat is not None}
        if not told:
            return None
        if len(self._places) == 1:
            return next(iter(told.values()))
        return {
            "ready": sum(each["ready"] for each in told.values()),
            "leased": sum(each["leased"] for each in told.values()),
            "oldest_age_ms": max(each["oldest_age_ms"] for each in told.values()),
            "places": {place.key: each for place, each in told.items()},
        }

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Ranges of rows, at least minPartitions of them; also for repeated batches. Runs on: the source process."""
        self._check_refusal()
        begun, reached = self._marks(start), self._marks(end)
        leases = [
            LeaseOfGroup(place.broker, mark.group, lease, mark.incarnation)
            for place, mark in reached.items()
            for lease in self._reader(place, reached).leases(begun.get(place), mark)
        ]
        return split_leases(leases, self.options.min_partitions, by_group=self.options.by_group)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The rows of a range. Runs on: executors, up to four times per partition; changes nothing at the broker."""
        assert isinstance(partition, LeaseRange)
        client = self.client_of(partition.broker)
        try:
            yield from client.rows(
                partition.group,
                partition.lease,
                partition.lo,
                partition.hi,
                self.options.columns,
                wanted=RowChoice(partition.part, partition.of, self.options.max_body_bytes, self.options.references),
                incarnation=partition.incarnation,
            )
        except LeaseLostError:
            if self.options.fail_on_data_loss:
                raise
        finally:
            client.close()

    def commit(self, end: Offset) -> None:
        """Acknowledge up to `end`. Spark skips this for the last batch, and a crash may: never depended on."""
        for place, mark in self._marks(end).items():
            if place in self._readers:
                self._readers[place].commit(mark)

    def stop(self) -> None:
        """Drop the connections. Spark does not call this reliably; nothing hangs on it."""
        self.heartbeat.stop()
        self.close()

    def _heartbeat_client(self, broker: int) -> LeaseClient:
        # It tries again with its next beat, and must not hold the process up.
        return LeaseClient(replace(self.options.brokers[broker], retry_timeout_s=0))

    def _check_refusal(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def _encode(self, marks: Marks) -> Offset:
        return encode_offset(marks, self.options.group_id)

    def _marks(self, offset: Offset) -> Marks:
        options = self.options
        return decode_offset(offset, self._places, options.group_id, may_lose=not options.fail_on_data_loss)

    def _reader(self, place: Place, marks: Marks) -> PlaceReader:
        if place not in self._readers:
            self._readers[place] = PlaceReader(
                self.options,
                place,
                group_of(place, marks, self.options.group_id),
                client=self.client_of(place.broker),
                heartbeat=self.heartbeat,
            )
        return self._readers[place]

    def _next(self, place: Place, begun: Marks, rows: int, size: int, wait_ms: int) -> Mark:
        reader = self._reader(place, begun)
        return reader.next(begun.get(place), rows, size, wait_ms=wait_ms, bounded=self._bounded)

    def _next_of_each(self, begun: Marks, rows: int, size: int) -> Marks:
        """The next lease of each place, which together keep the limits; waits until one of them has any."""
        ready = [self._reader(place, begun).ready(begun.get(place)) for place in self._places]
        shares = share_out(ready, rows)
        sizes = [max(1, size * share // max(1, sum(shares))) for share in shares]
        reached = {
            place: self._next(place, begun, max(1, share), part, 0)
            for place, share, part in zip(self._places, shares, sizes, strict=True)
        }
        if self._bounded:
            return reached
        slice_ms = max(1, min(POLL_SLICE_MS, self.options.poll_timeout_ms // len(self._places)))
        for _ in range(self.options.poll_timeout_ms // (slice_ms * len(self._places))):
            for place in self._places:
                if reached != begun:
                    return reached
                reached[place] = self._next(place, begun, rows, size, slice_ms)
        return reached

    def _limits(self, limit: ReadLimit) -> tuple[int, int]:
        if isinstance(limit, ReadMaxRows):
            return limit.max_rows, self.options.max_bytes
        if isinstance(limit, ReadMaxBytes):
            return self.options.max_rows, limit.max_bytes
        if isinstance(limit, ReadAllAvailable):
            return NO_LIMIT, NO_LIMIT
        return self.options.max_rows, self.options.max_bytes


def share_out(ready: Sequence[int], total: int) -> list[int]:
    """How many of `total` each gets: equal parts, but no more than it has; what one leaves goes to the others."""
    shares = [0] * len(ready)
    order = sorted(range(len(ready)), key=lambda at: ready[at])
    for done, at in enumerate(order):
        shares[at] = min(ready[at], total // (len(order) - done))
        total -= shares[at]
    return shares


def _progress(stat: GroupSummary) -> Offset:
    told = {
        "lease": stat.lease,
        "incarnation": stat.incarnation,
        "newest_sequence": stat.newest_sequence,
        "ready": stat.ready,
        "leased": stat.leased,
        "oldest_age_ms": stat.oldest_age_ms,
    }
    return told if stat.expires_in_ms is None else {**told, "expires_in_ms": stat.expires_in_ms}
