"""What a page is made of."""

from dataclasses import dataclass
from datetime import datetime

from delosmq.spark.audit.tables import Row, Table


@dataclass(frozen=True, slots=True)
class Period:
    """What was read: rows and the time they cover, in ms since 1970, with the width of an interval of its plots.

    ``outside``: rows whose time is so far off the others that the period leaves them out.
    """

    rows: int
    first_ms: int
    last_ms: int
    outside: int
    width_ms: int

    def holds(self, at_ms: str) -> str:
        """The condition, for Spark, that the column `at_ms` lies in it."""
        return f"{at_ms} between {self.first_ms} and {self.last_ms}"


@dataclass(frozen=True, slots=True)
class Audited:
    """All that is known at the end of an audit. ``unnumbered``: archived messages without the properties asked for."""

    archive: str
    events: str
    producer_property: str
    sequence_property: str
    made_at: datetime
    archived: Period
    told: Period
    damaged: int
    lost: int
    unnumbered: int
    tables: dict[str, Table]

    def rows(self, table: str) -> list[Row]:
        """The rows of a table that are at hand."""
        return self.tables[table].rows

    def total(self, table: str, column: str) -> int:
        """The sum of a column, of all rows."""
        return int(self.tables[table].sums[column])
