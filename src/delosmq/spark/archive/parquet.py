"""Writes the batches of an archive as Parquet, each into partitions of its own, which its repetition replaces."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING

from delosmq.spark.archive.files import ArchiveFiles, local_path
from delosmq.spark.archive.locks import placing
from delosmq.spark.archive.marker import PARQUET, PARTITIONS
from delosmq.spark.schema import HEADERS_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DAY_US = 86_400_000_000


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
        self.place(key, lambda: self._overwrite(batch, key))
        if self._on_batch is not None:
            self._on_batch(number)

    def place(self, key: str, overwrite: Callable[[], None]) -> None:
        """Put the batch `key` into its place, by `overwrite`, and wait until it is on the disk."""
        with placing(local_path(self._files.root)):
            # What an earlier attempt left must go where the repetition does not replace it. Only the first batch of a
            # run is a repetition: Spark begins with the one that it had not committed, and ends with one that fails. A
            # later one is looked for nowhere, as a search goes through all days and addresses that the archive has.
            # Should a power cut have torn two files of the checkpoint, the second batch is one, too: its lease is the
            # same, so it comes to the same partitions and replaces them all.
            before = self._files.batch(key) if self._first else {}
            overwrite()
            after = self._files.batch(key) if before else self._files.written(key)
            if after != before:
                # Overwriting gives new names; a directory with the old ones is not part of the batch (any more).
                for directory in stale_directories(before, after):
                    self._files.delete(directory)
                    del after[directory]
            self._files.make_durable(after)
        self._first = False

    def _overwrite(self, batch: "DataFrame", key: str) -> None:
        with_partitions(batch, key).write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy(
            *PARTITIONS[PARQUET]
        ).parquet(self._files.root)


def batch_key(query_id: str, number: int) -> str:
    """The name of a batch: unique to the query (hence to the checkpoint), sorted by number, read as text everywhere."""
    return f"q{query_id.replace('-', '')[:12]}-{number:09d}"


def stale_directories(before: Mapping[str, frozenset[str]], after: Mapping[str, frozenset[str]]) -> list[str]:
    """Directories of a batch that its repetition did not write again."""
    return [directory for directory, names in before.items() if after.get(directory) == names]


def with_partitions(batch: "DataFrame", key: str) -> "DataFrame":
    """`batch` with the columns day (UTC, of the message's timestamp) and batch, sorted as they will lie in the files.

    Properties that are not archived are a column of nulls: all files of an archive have the same columns.

    The day is computed from the number of microseconds, which does not depend on the session's time zone: a repetition
    under another one must come to the same partitions.
    """
    from pyspark.sql import functions as f

    day = f.date_from_unix_date(f.floor(f.unix_micros("timestamp") / f.lit(DAY_US)).cast("int"))
    if HEADERS_COLUMN not in batch.columns:
        batch = batch.withColumn(HEADERS_COLUMN, f.lit(None).cast("map<string,string>"))
    return (
        batch.withColumn("day", day)
        .withColumn("batch", f.lit(key))
        .sortWithinPartitions("day", "address", "batch", "sequence")
    )
