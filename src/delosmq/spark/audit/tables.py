"""The directory of an audit: a folder of Parquet for each table, and the report.

```
DIR/_audit.json        says that this is an audit, which the next run may overwrite
DIR/queues/            and so on, a folder for each table
DIR/report.html
```
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final

from delosmq.spark.archive.files import check_place, local_path
from delosmq.spark.archive.marker import MARKER as ARCHIVE_MARKER
from delosmq.spark.errors import AuditError, OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MARKER: Final = "_audit.json"
FORMAT: Final = 1
REPORT: Final = "report.html"
SHOWN_ROWS: Final = 50
"""Of a table in the report; one over time is shown whole, as it has few rows."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that was written. Rows are a part of it; times are in ms since 1970."""

    name: str
    rows: list[Row]
    total: int
    sums: Row
    """Of the columns that hold whole numbers."""


class AuditDirectory:
    """The directory `location`. Runs on: the driver; executors write into it as well."""

    def __init__(self, location: str) -> None:
        self._place = place_of(location).absolute()

    @property
    def report(self) -> Path:
        """Where the report is."""
        return self._place / REPORT

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """The directory, with its mark in place and no other audit in it.

        Raises:
            AuditError: it holds something else, or another audit is writing to it.
        """
        check_directory(str(self._place))
        self._place.mkdir(parents=True, exist_ok=True)
        with open(self._place / "_audit.lock", "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AuditError("DMQ8215", f"another audit is writing to {self._place}: wait for its end") from None
            (self._place / MARKER).write_text(json.dumps({"format": FORMAT}) + "\n", "utf-8")
            yield

    def write(self, name: str, frame: "DataFrame", shown: int = SHOWN_ROWS) -> Table:
        """Write a table in place of the one of an earlier run, and read back its sums and first rows."""
        folder = self._place / name
        # Before Spark does it: it would take a folder that a killed run left for one of partitions.
        rmtree(folder, ignore_errors=True)
        frame.coalesce(1).write.mode("overwrite").parquet(f"file://{folder}")
        return self.read(name, shown)

    def read(self, name: str, shown: int = SHOWN_ROWS) -> Table:
        """A table as it was written."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        # Not through Spark, which takes some letters of a path for a pattern.
        table = ds.dataset(self._place / name, format="parquet")
        whole = [field.name for field in table.schema if pa.types.is_integer(field.type)]
        sums = {column: pc.sum(table.to_table([column])[column]).as_py() or 0 for column in whole}
        times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
        rows = table.head(shown).to_pylist()
        for row in rows:
            row.update({column: round(row[column].timestamp() * 1_000) for column in times if row[column] is not None})
        return Table(name, rows, table.count_rows(), sums)

    def write_report(self, page: str) -> None:
        """Put the report in place of an earlier one, at once."""
        building = self._place / f".{REPORT}.new"
        building.write_text(page, "utf-8", errors="replace")
        building.replace(self.report)


def place_of(location: str) -> Path:
    """The path of `location`.

    Raises:
        OptionError: it is on another machine.
    """
    place = local_path(location)
    if place is None:
        raise OptionError(
            "DMQ8213",
            f"an audit is written to a directory, not to {location}: name one that Spark's executors see, too",
        )
    return place


def check_directory(location: str) -> None:
    """Check that an audit may be written to `location`; leaves nothing behind.

    Raises:
        OptionError: it is not on this machine.
        AuditError: it holds something else.
        ArchiveError: it can't be written to.
    """
    check_place(location)
    place = place_of(location).absolute()
    for path in (place, *place.parents):
        if (path / ARCHIVE_MARKER).exists():
            raise AuditError(
                "DMQ8211", f"{location} is in the archive {path}: name a directory outside, readers would meet it"
            )
    if not (place / MARKER).exists() and place.exists() and any(place.iterdir()):
        raise AuditError(
            "DMQ8211",
            f"{location} holds something that is no audit (it has no {MARKER}): name another directory or an empty one",
        )
