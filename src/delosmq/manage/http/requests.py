"""The bodies and queries of requests, checked by pydantic: strict types, no unknown fields."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from delosmq.manage.control.pagination import MOST_PER_PAGE, USUAL_PER_PAGE
from delosmq.model.declared.queue import QUEUE_SETTINGS
from delosmq.model.message import DEFAULT_PRIORITY, HIGHEST_PRIORITY

MAX_WAIT_MS: Final = 30_000
"""The longest poll; proxies in between commonly cut after 60 s."""
MAX_ROWS: Final = 1_000_000
MAX_BYTES: Final = 1 << 30
MOST_TIME_TO_LIVE_MS: Final = 100 * 365 * 24 * 3_600_000
LARGEST_INT: Final = (1 << 63) - 1

Count = Annotated[int, Field(ge=0, le=LARGEST_INT)]
LeaseNumber = Annotated[int, Field(ge=0, le=LARGEST_INT)]
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


Text = Annotated[str, Field(max_length=1024)]
_KINDS: Final[dict[type, Any]] = {bool: bool, int: Setting, str: Text}


class OwnQueueFields(JsonBody):
    """Settings of a queue of which its address has no default."""

    filter: Annotated[str, Field(max_length=32_768)] | None = None
    enabled: bool = True
    paused: bool = False


if TYPE_CHECKING:
    QueueFields = OwnQueueFields
else:
    QueueFields = create_model(
        "QueueFields",
        __base__=OwnQueueFields,
        __doc__="""Settings that a queue may change while it lives.""",
        **{name: (_KINDS[one.kind] | None, None) for name, one in QUEUE_SETTINGS.items() if not one.fixed},
    )


class CreateQueue(QueueFields):
    """A queue to be created. ``address`` defaults to the name; sizes default to those of the address, -1 is none."""

    name: Name
    address: Name | None = None
    routing_type: RoutingType = "ANYCAST"
    durable: bool = True
    last_value_key: Text | None = None


class UpdateQueue(QueueFields):
    """What to change; null goes back to the default of the address, what is left out stays."""

    fixed: ClassVar[frozenset[str]] = frozenset({"name", "address", "durable", "last_value_key"})

    routing_type: RoutingType = "ANYCAST"


class CreateAddress(JsonBody):
    """An address to be created, or to be given more routing types."""

    name: Name
    routing_types: Annotated[list[RoutingType], Field(min_length=1, max_length=2)]


Regex = Annotated[str, Field(max_length=1_000)]


class ChangeRouter(JsonBody):
    """Filters to change, regular expressions; "" for none, what is left out stays."""

    key_filter: Regex | None = None
    local_target_filter: Regex | None = None


class RouterKey(JsonBody):
    """A key of connections, as key-filter makes it."""

    key: Annotated[str, Field(max_length=1_024)]


class Nothing(JsonBody):
    """Nothing: an empty object, or no body at all."""

    may_be_left_out: ClassVar[bool] = True


class ListPage(QueryFields):
    """A page by name: what comes after ``after``, at most ``limit``; ``filter``: only names that contain it."""

    after: Annotated[str, Field(max_length=1024)] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_PER_PAGE)] = USUAL_PER_PAGE
    filter: Annotated[str, Field(max_length=1024)] = ""


class TransactionPage(QueryFields):
    """A page by id: what comes after ``after``, at most ``limit``."""

    after: Count = 0
    limit: Annotated[int, Field(ge=1, le=MOST_PER_PAGE)] = USUAL_PER_PAGE
    prepared: bool = False


class HeuristicPage(QueryFields):
    """A page by xid: what comes after ``after``, at most ``limit``."""

    after: str = ""
    limit: Annotated[int, Field(ge=1, le=MOST_PER_PAGE)] = USUAL_PER_PAGE


class ExplainQueue(QueryFields):
    """Which messages to list, by sequence: what comes after ``after``, at most ``limit``."""

    after: Count = 0
    limit: Annotated[int, Field(ge=0, le=1_000)] = 10


class LookAtMessages(QueryFields):
    """Which messages, by sequence: what comes after ``after``, at most ``limit``; ``text``: letters of each body."""

    after: Count = 0
    limit: Annotated[int, Field(ge=1, le=1_000)] = 10
    text: Annotated[int, Field(ge=0, le=10_000)] = 1_000


class SendText(JsonBody):
    """A text to be sent to one queue."""

    text: str
    durable: bool = True
    priority: Annotated[int, Field(ge=0, le=HIGHEST_PRIORITY)] = DEFAULT_PRIORITY


class ExplainMessage(QueryFields):
    """``queue``: look in this one only."""

    queue: Annotated[str, Field(max_length=1024)] = ""


class Forced(QueryFields):
    """``force``: although it is in use."""

    force: bool = False


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
    """Nothing: an empty object, or no body at all."""

    may_be_left_out: ClassVar[bool] = True


class DescribeLeases(QueryFields):
    """Leases above ``from`` up to ``to``."""

    after: Annotated[LeaseNumber, Field(alias="from")] = 0
    upto: Annotated[LeaseNumber, Field(alias="to")] = LARGEST_INT


class StagePart(QueryFields):
    """Where rows go that do not say it, and how: ``address``, ``routing_type``, ``durable``, ``priority``,
    ``time_to_live_ms`` (0 for ever). ``wait_ms``: for room, while an address is full."""

    address: Annotated[str, Field(max_length=1024)] = ""
    routing_type: Literal["", "ANYCAST", "MULTICAST"] = ""
    durable: bool = True
    priority: Annotated[int, Field(ge=0, le=HIGHEST_PRIORITY)] = DEFAULT_PRIORITY
    time_to_live_ms: Annotated[int, Field(ge=0, le=MOST_TIME_TO_LIVE_MS)] = 0
    wait_ms: Annotated[int, Field(ge=0, le=MAX_WAIT_MS)] = 20_000


class NamedParts(JsonBody):
    """Parts of a batch, in the order in which their rows are to be published."""

    parts: Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=10_000)]


class ListStaged(QueryFields):
    """A page by name: what comes after ``after``, at most ``limit``."""

    after: Annotated[str, Field(max_length=1024)] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_PER_PAGE)] = USUAL_PER_PAGE


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
