"""What requests carry, checked by pydantic: strict types, no unknown fields."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_WAIT_MS: Final = 30_000
"""The longest poll; proxies in between commonly cut after 60 s."""
MAX_ROWS: Final = 1_000_000
MAX_BYTES: Final = 1 << 30
LARGEST_INT: Final = (1 << 63) - 1

Count = Annotated[int, Field(ge=0, le=LARGEST_INT)]
LeaseNumber = Annotated[int, Field(ge=0, le=LARGEST_INT)]
Setting = Annotated[int, Field(le=LARGEST_INT)]
Name = Annotated[str, Field(min_length=1, max_length=1024)]


class JsonBody(BaseModel):
    """A JSON object with exactly these fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QueryFields(BaseModel):
    """A query string with these fields, as text."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class CreateQueue(JsonBody):
    """A queue to be created. ``address`` defaults to the name; sizes default to those of the address, -1 is none."""

    name: Name
    address: Name | None = None
    routing_type: Literal["ANYCAST", "MULTICAST"] = "ANYCAST"
    durable: bool = True
    ring_size: Setting | None = None
    max_consumers: Setting | None = None


class UpdateQueue(JsonBody):
    """What to change; null goes back to the default of the address, what is left out stays."""

    ring_size: Setting | None = None
    max_consumers: Setting | None = None


class OpenLeases(JsonBody):
    """Opens a group on a queue or a topic. ``incarnation``: of the reader's checkpoint, null when it has none."""

    queue: Name | None = None
    topic: Name | None = None
    run: Annotated[str, Field(min_length=1, max_length=200)]
    incarnation: Annotated[str, Field(max_length=200)] | None = None


class NextLease(JsonBody):
    """Acknowledges all leases up to ``after`` and asks for the next one."""

    after: LeaseNumber
    max_rows: Annotated[int, Field(ge=1, le=MAX_ROWS)]
    max_bytes: Annotated[int, Field(ge=1, le=MAX_BYTES)]
    wait_ms: Annotated[int, Field(ge=0, le=MAX_WAIT_MS)]
    epoch: Count
    until: Count | None = None


class AckLeases(JsonBody):
    """Acknowledges all leases up to this one."""

    lease: LeaseNumber
    epoch: Count


class ReleaseGroup(JsonBody):
    """Nothing: an empty object."""


class DescribeLeases(QueryFields):
    """Leases above ``from`` up to ``to``."""

    after: Annotated[LeaseNumber, Field(alias="from")] = 0
    upto: Annotated[LeaseNumber, Field(alias="to")] = LARGEST_INT


class RowsWanted(QueryFields):
    """Which columns to send: all but ``properties``, unless named (comma-separated); properties only with headers."""

    headers: bool = False
    columns: str = ""


class LeaseRows(RowsWanted):
    """Rows ``lo`` (inclusive) to ``hi`` (exclusive) of a lease."""

    lo: Count = 0
    hi: Count = LARGEST_INT


class BrowseRows(RowsWanted):
    """Messages with ``after`` < sequence <= ``until``, at most ``max_rows``."""

    after: Count = 0
    until: Count = LARGEST_INT
    max_rows: Annotated[int, Field(ge=1, le=100_000)] = 10_000
