"""What the bodies and queries of requests are made of: strict types, no unknown fields."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_WAIT_MS: Final = 30_000
"""The longest poll; proxies in between commonly cut after 60 s."""
LARGEST_INT: Final = (1 << 63) - 1

Count = Annotated[int, Field(ge=0, le=LARGEST_INT)]
Setting = Annotated[int, Field(le=LARGEST_INT)]
Name = Annotated[str, Field(min_length=1, max_length=1024)]
RoutingType = Literal["ANYCAST", "MULTICAST"]


class JsonBody(BaseModel):
    """A JSON object with exactly these fields.

    Attributes:
        fixed: fields that what is meant does have, and that can't be set here.
        may_be_left_out: a request without a body means the same as an empty object.
    """

    fixed: ClassVar[frozenset[str]] = frozenset()
    may_be_left_out: ClassVar[bool] = False

    model_config = ConfigDict(extra="forbid", strict=True)


class QueryFields(BaseModel):
    """A query string with these fields, as text."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class RowsWanted(QueryFields):
    """Which columns to send: all but ``properties``, unless named (comma-separated); properties only with headers."""

    headers: bool = False
    columns: str = ""
