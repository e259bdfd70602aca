"""Writes the batches of an archive to a Delta Lake table, by the package `deltalake` and without Spark's Delta jars.

Each batch is one version of the table, with an application transaction: the query's id, and the batch's number. A
repetition of a batch finds its number in the table and writes nothing. Two drivers that write the same batch at once
conflict, and one of them then finds what the other has written.

Source: "Transaction Identifiers" of the Delta transaction log protocol; deltalake 1.6.
"""

import json
import os
import re
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from delosmq.spark.archive.files import sync
from delosmq.spark.archive.marker import DELTA, PARQUET, PARTITIONS
from delosmq.spark.archive.parquet import batch_key, with_partitions
from delosmq.spark.errors import ArchiveError
from delosmq.spark.schema import arrow_schema, column_names

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

LOG: Final = "_delta_log"
ATTEMPTS: Final = 5
"""To add a version while other sources of the archive do."""
_NEVER_IN_PATHS: Final = re.compile(r"[\x00-\x1f\[\\\]^|]|%[0-9A-Fa-f]{2}")
"""Measured with deltalake 1.6.6: a panic, or another directory."""


class DeltaWriter:
    """Writes one batch as one version. Runs on: the driver, on Spark's callback thread; all rows pass through it.

    Attributes:
        query_id: set once the query runs.
    """

    def __init__(self, root: Path, on_batch: Callable[[int], None] | None) -> None:
        self.query_id: Future[str] = Future()
        self._root = root
        self._on_batch = on_batch

    def write(self, batch: "DataFrame", number: int) -> None:
        """Write the batch, unless an earlier attempt at it did; nothing for an empty one."""
        query = self.query_id.result(timeout=60)
        application = f"delosmq-archive-{query}"
        table = open_table(self._root)
        if is_written(table, application, number):
            # Maybe by an attempt that was killed before what it wrote was on the disk.
            os.sync()
        else:
            rows = with_partitions(batch, batch_key(query, number)).toArrow()
            if rows.num_rows:
                rows = rows.select(archive_schema().names).cast(archive_schema())
                append(self._root, table, rows, (application, number))
        if self._on_batch is not None:
            self._on_batch(number)


def append(root: Path, table: Any, rows: "pa.Table", transaction: tuple[str, int]) -> None:
    """Add `rows` to the table in `root` as one version, unless one with `transaction` came since `table` was read.

    Args:
        table: as it was when it had no such transaction; None when there was none yet.
        transaction: the application's name, and the number of what it writes.
    """
    import deltalake
    from deltalake.exceptions import DeltaError

    before = -1 if table is None else table.version()
    for attempts_left in reversed(range(ATTEMPTS)):
        try:
            deltalake.write_deltalake(
                # Not the path: that would be the newest version, and a transaction since `table` would be no conflict.
                table_place(root) if table is None else table,
                rows,
                mode="error" if table is None else "append",
                partition_by=list(PARTITIONS[DELTA]),
                commit_properties=deltalake.CommitProperties(app_transactions=[deltalake.Transaction(*transaction)]),
            )
            break
        except (DeltaError, FileExistsError):
            table = open_table(root)
            if is_written(table, *transaction):
                break
            if not attempts_left:
                raise
    sync_log(root, before)


def is_written(table: Any, application: str, number: int) -> bool:
    """Whether `table`, as it was read, has what the application wrote as `number`."""
    newest = None if table is None else table.transaction_version(application)
    return newest is not None and newest >= number


def archive_schema() -> "pa.Schema":
    """The columns of an archive, all nullable: those of messages, day and batch."""
    import pyarrow as pa

    columns = arrow_schema(column_names(include_headers=True))
    return pa.schema([*(field.with_nullable(True) for field in columns), ("day", pa.date32()), ("batch", pa.string())])


def open_table(root: Path) -> Any:
    """The table as it is now; None when nothing was written yet.

    Raises:
        ArchiveError: the package deltalake is not there, or can't use the directory.
    """
    check_deltalake()
    import deltalake

    place = table_place(root)
    return deltalake.DeltaTable(place) if deltalake.DeltaTable.is_deltatable(place) else None


def table_place(root: Path) -> str:
    """The directory of a table, as deltalake takes it.

    Raises:
        ArchiveError: it takes its path for another one, or not at all.
    """
    place = str(root.resolve())
    found = _NEVER_IN_PATHS.search(place)
    if found is not None:
        raise ArchiveError(
            "DMQ8249",
            f"a Delta Lake archive can't be in {place!r}: the package deltalake fails with {found[0]!r} in a path. Name"
            f" another directory, or archive with --format {PARQUET}",
        )
    return place


def file_names(table: Any) -> list[str]:
    """The files of a table, as paths below its directory."""
    import pyarrow as pa

    return [unquote(action["path"]) for action in pa.table(table.get_add_actions()).to_pylist()]


def check_deltalake() -> None:
    """Check that the package deltalake is there.

    Raises:
        ArchiveError: it is not.
    """
    try:
        import deltalake  # noqa: F401
    except ImportError:
        raise ArchiveError("DMQ8245", "Delta Lake needs the package deltalake: pip install 'delosmq[delta]'") from None


def sync_log(root: Path, after: int) -> None:
    """Wait until the versions above `after`, or the newest one at least, and the files that they add are on the disk.

    The broker forgets what is acknowledged, and deltalake itself never syncs a local file.
    """
    logs = sorted(path for path in (root / LOG).glob("*.json") if path.stem.isdigit())
    directories = {root, root / LOG}
    for log in [log for log in logs if int(log.stem) > after] or logs[-1:]:
        for line in log.read_text("utf-8").splitlines():
            added = json.loads(line).get("add")
            if added and (path := root / unquote(added["path"])).exists():
                sync(path)
                directories.add(path.parent)
        sync(log)
    for directory in sorted(directories, reverse=True):
        sync(directory)
