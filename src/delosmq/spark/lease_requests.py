"""What a broker may be asked for besides the lease calls of version 1, and so may be too old for."""

from dataclasses import dataclass
from urllib.parse import quote

from delosmq.spark.positions import EARLIEST, SEQUENCE, TIME, ReadPosition

LARGEST_MS = (1 << 63) - 1
OPTIONS_OF_FIELDS = {
    "start": "startingOffsets",
    "selector": "selector",
    "since_ms": "startingOffsets (by time, or pushdown)",
    "before_ms": "endingOffsets (by time, or pushdown)",
    "part": "partitionBy",
    "max_body_bytes": "maxBodyBytes",
}
"""What a broker may be too old for: fields of calls, and the options that they come from."""


@dataclass(frozen=True, slots=True)
class GroupWishes:
    """What a group is opened with.

    Attributes:
        selector: only messages that it lets through are leased; stays with the group.
        start: of a group that is made with this call; None for the earliest.
        newer: an option of the query, named here, needs a broker of version 2.
    """

    selector: str = ""
    start: ReadPosition | None = None
    newer: str = ""

    def fields(self) -> dict[str, object]:
        """Those of the call; none that an older broker doesn't know, unless it is wished for."""
        fields: dict[str, object] = {"selector": self.selector} if self.selector else {}
        if self.start is not None:
            by_value = self.start.kind in (SEQUENCE, TIME)
            fields["start"] = {self.start.kind: self.start.value} if by_value else self.start.kind
        elif self.newer:
            fields["start"] = EARLIEST  # an older broker refuses it before it makes the group
        return fields


@dataclass(frozen=True, slots=True)
class RowChoice:
    """Which rows of a lease, and how.

    Attributes:
        part, of: those of message groups that belong to this part; ``of`` 1 for all.
        max_body_bytes: longer bodies are refused, or come as references; 0 for no limit.
        references: instead of refusing.
    """

    part: int = 0
    of: int = 1
    max_body_bytes: int = 0
    references: bool = False

    def query(self) -> str:
        """For the call."""
        query = f"&part={self.part}&of={self.of}" if self.of > 1 else ""
        if self.max_body_bytes:
            large = "reference" if self.references else "refuse"
            query += f"&max_body_bytes={self.max_body_bytes}&large={large}"
        return query


@dataclass(frozen=True, slots=True)
class BrowseFilter:
    """Which messages of a range: those that pass ``selector``, accepted since (inclusive) and before (exclusive)."""

    selector: str = ""
    since_ms: int = 0
    before_ms: int = LARGEST_MS

    def query(self) -> str:
        """For the call; nothing that an older broker doesn't know, unless it filters."""
        query = f"&selector={quote(self.selector, safe='')}" if self.selector else ""
        if self.since_ms > 0:
            query += f"&since_ms={self.since_ms}"
        return query if self.before_ms == LARGEST_MS else f"{query}&before_ms={self.before_ms}"


NO_WISHES, ALL_ROWS, UNFILTERED = GroupWishes(), RowChoice(), BrowseFilter()
