"""Puts small Parquet files together, while an archive runs and others read.

How. Files of closed batches, those that no repetition can replace any more, are copied into one. Beside the partition
(a day and an address) a directory is made that holds this file, and links to all others. Then the two directories
change places in one step of the file system: a reader that lists the partition sees the former files or the new ones,
never both. A batch that is written meanwhile holds the exchange up, by a lock. What a killed compaction leaves is
hidden, and swept by the next.

Which batches are closed: all of a query but its newest. Spark repeats the newest batch only, and not after it began the
next one.
"""

import ctypes
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from delosmq.spark.archive.compaction import Compaction
from delosmq.spark.archive.delta import archive_schema
from delosmq.spark.archive.files import sync
from delosmq.spark.archive.locks import exchanging
from delosmq.spark.archive.marker import PARQUET, PARTITIONS
from delosmq.spark.errors import ArchiveError

if TYPE_CHECKING:
    import pyarrow as pa

BUILDING: Final = ".compact-"
COMPACTED: Final = "batch=compacted-"
_AT_FDCWD: Final = -100
RENAME_EXCHANGE: Final = 2
"""Source: renameat2(2), linux/fcntl.h, linux/fs.h."""


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """The directory of a batch within its partition."""

    path: Path
    files: tuple[Path, ...]
    size_bytes: int


def compact_files(work: Compaction) -> None:
    """Compact each partition.

    Raises:
        ArchiveError: the file system can't exchange directories; nothing has changed.
    """
    for left in work.root.glob(f"{BUILDING}*"):
        shutil.rmtree(left)
    if not work.dry_run:
        _check_exchange(work.root)
    newest = newest_batches(work.root)
    for partition in sorted(work.root.glob("day=*/address=*")):
        closed = closed_batches(partition, newest)
        sound = []
        for group in groups_to_merge(closed, work.full_bytes):
            whole = [batch for batch in group if work.are_sound(batch.files)]
            if sum(len(batch.files) for batch in whole) > 1:
                sound.append(whole)
        if sound:
            before = sum(len(batch.files) for group in sound for batch in group)
            work.note(f"{partition.parent.name}/{partition.name}", before, len(sound))
            if not work.dry_run:
                work.report.rows += _replace(work.root, partition, sound)


def newest_batches(root: Path) -> dict[str, str]:
    """Query -> the directory's name of its newest batch, which a repetition may still replace."""
    newest: dict[str, str] = {}
    for path in root.glob("day=*/address=*/batch=*"):
        query = _query(path)
        newest[query] = max(newest.get(query, ""), path.name)
    return newest


def groups_to_merge(batches: Sequence[BatchFiles], full_bytes: int) -> list[list[BatchFiles]]:
    """Neighbours that make one file of about `full_bytes`; what is large already, or alone, is left as it is."""
    groups: list[list[BatchFiles]] = [[]]
    size = 0
    for batch in batches:
        if batch.size_bytes > full_bytes // 2:
            continue
        if size + batch.size_bytes > full_bytes and groups[-1]:
            groups.append([])
            size = 0
        groups[-1].append(batch)
        size += batch.size_bytes
    return [group for group in groups if sum(len(batch.files) for batch in group) > 1]


def _query(batch: Path) -> str:
    return batch.name.rpartition("-")[0]


def closed_batches(partition: Path, newest: Mapping[str, str]) -> list[BatchFiles]:
    """The closed batches of a partition. One of a query that began since `newest` was looked for is not closed."""
    found = []
    for path in sorted(partition.glob("batch=*")):
        if path.name < newest.get(_query(path), "") or path.name.startswith(COMPACTED):
            files = tuple(sorted(path.glob("[!._]*")))
            found.append(BatchFiles(path, files, sum(file.stat().st_size for file in files)))
    return found


def _replace(root: Path, partition: Path, groups: Sequence[Sequence[BatchFiles]]) -> int:
    """Put one file in place of each of `groups`; returns the number of rows."""
    building = Path(mkdtemp(prefix=BUILDING, dir=root))
    try:
        new = building / partition.name
        new.mkdir()
        rows = sum(merge(group, new / f"{COMPACTED}{uuid4().hex[:12]}") for group in groups)
        merged = {batch.path for group in groups for batch in group}
        with exchanging(root):
            for batch in partition.iterdir():
                if batch not in merged:
                    _link(batch, new / batch.name)
            for path in (*new.iterdir(), new):
                sync(path)
            exchange(new, partition)
            sync(partition.parent)
    finally:
        # By now that is what was in place before.
        shutil.rmtree(building)
    return rows


def merge(group: Sequence[BatchFiles], into: Path) -> int:
    """Copy the rows of `group` into one file below `into`; returns how many."""
    import pyarrow.parquet as pq

    into.mkdir()
    columns = [field for field in archive_schema() if field.name not in PARTITIONS[PARQUET]]
    target = into / "part-0.parquet"
    rows = 0
    with pq.ParquetWriter(
        target, _schema_of(columns), compression="snappy", write_page_checksum=True, version="2.6"
    ) as writer:
        for table in _tables(group, columns):
            writer.write_table(table)
            rows += table.num_rows
    sync(target)
    with pq.ParquetFile(target) as written:
        assert written.metadata.num_rows == rows
    return rows


def _schema_of(columns: Sequence["pa.Field"]) -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(columns)


def _tables(group: Sequence[BatchFiles], columns: Sequence["pa.Field"]) -> Iterator["pa.Table"]:
    """The rows of `group`, a row group at a time, with exactly `columns`; those that a file lacks are null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for file in (file for batch in group for file in batch.files):
        with pq.ParquetFile(file) as opened:
            for number in range(opened.num_row_groups):
                rows = opened.read_row_group(number)
                arrays = [
                    rows[column.name].cast(column.type)
                    if column.name in rows.column_names
                    else pa.nulls(rows.num_rows, column.type)
                    for column in columns
                ]
                yield pa.table(arrays, schema=_schema_of(columns))


def _link(directory: Path, target: Path) -> None:
    target.mkdir()
    for file in directory.iterdir():
        os.link(file, target / file.name)


def _check_exchange(root: Path) -> None:
    building = Path(mkdtemp(prefix=BUILDING, dir=root))
    try:
        for name in ("one", "other"):
            (building / name).mkdir()
        exchange(building / "one", building / "other")
    finally:
        shutil.rmtree(building)


def exchange(one: Path, other: Path) -> None:
    """Let two directories change places in one step.

    Raises:
        ArchiveError: the file system can't; nothing has changed.
    """
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        why = "this C library has no renameat2"
    else:
        if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0:
            return
        why = os.strerror(ctypes.get_errno())
    raise ArchiveError(
        "DMQ8241",
        f"directories at {other} can't change places in one step ({why}): compact an archive on ext4, XFS, Btrfs or "
        "tmpfs, or archive to Delta Lake",
    )
