"""Requests about groups of leases and the rows of leases."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from delosmq.manage.http.requests.fields import LARGEST_INT, MAX_WAIT_MS, Count, JsonBody, Name, QueryFields, RowsWanted

MAX_ROWS: Final = 1_000_000
MAX_BYTES: Final = 1 << 30

LeaseNumber = Annotated[int, Field(ge=0, le=LARGEST_INT)]


class GroupStart(JsonBody):
    """One of the two: with this ``sequence`` or a higher one, or with what was accepted at ``time_ms`` or later."""

    sequence: Count | None = None
    time_ms: Count | None = None


class OpenLeases(JsonBody):
    """Opens a group on a queue or a topic. ``incarnation``: of the reader's checkpoint, null when it has none.
    ``selector``: only messages that match; it stays with the group. ``start``: what a new group begins with."""

    queue: Name | None = None
    topic: Name | None = None
    run: Annotated[str, Field(min_length=1, max_length=200)]
    incarnation: Annotated[str, Field(max_length=200)] | None = None
    selector: Annotated[str, Field(max_length=32_768)] = ""
    start: Literal["earliest", "latest"] | GroupStart = "earliest"


class NextLease(JsonBody):
    """Acknowledges all leases up to ``after`` and asks for the next one."""

    after: LeaseNumber
    max_rows: Annotated[int, Field(ge=1, le=MAX_ROWS)]
    max_bytes: Annotated[int, Field(ge=1, le=MAX_BYTES)]
    wait_ms: Annotated[int, Field(ge=0, le=MAX_WAIT_MS)]
    epoch: Count
    until: Count | None = None


class TouchGroup(JsonBody):
    """The run that has the group under this epoch lives."""

    epoch: Count


class ReaderEpoch(QueryFields):
    """``epoch``: of the run that asks, which lives; without it, or with an older one, the call is none of its run."""

    epoch: Count | None = None


class AckLeases(JsonBody):
    """Acknowledges all leases up to this one."""

    lease: LeaseNumber
    epoch: Count


class ReleaseGroup(JsonBody):
    """``epoch``: only if that run still has the group. Without it, or any body at all, whoever has it."""

    may_be_left_out: ClassVar[bool] = True

    epoch: Count | None = None


class DescribeLeases(ReaderEpoch):
    """Leases above ``from`` up to ``to``."""

    after: Annotated[LeaseNumber, Field(alias="from")] = 0
    upto: Annotated[LeaseNumber, Field(alias="to")] = LARGEST_INT


class GroupLife(QueryFields):
    """``incarnation``: of the group that is meant; one of the same name that was made since is refused."""

    incarnation: Annotated[str, Field(max_length=200)] | None = None


class LeaseRows(RowsWanted, ReaderEpoch, GroupLife):
    """Rows ``lo`` (inclusive) to ``hi`` (exclusive) of a lease; of these one ``part`` of so many. Bodies longer than
    ``max_body_bytes`` are refused, or left out: their rows are references, with their length in ``body_bytes``."""

    lo: Count = 0
    hi: Count = LARGEST_INT
    part: Count = 0
    of: Annotated[int, Field(ge=1, le=10_000)] = 1
    max_body_bytes: Count | None = None
    large: Literal["refuse", "reference"] = "refuse"
