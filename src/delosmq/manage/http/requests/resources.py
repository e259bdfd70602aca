"""Requests about addresses, queues, their messages, transactions and routers."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import Field, create_model

from delosmq.manage.control.pagination import MOST_PER_PAGE, USUAL_PER_PAGE
from delosmq.manage.http.requests.fields import (
    LARGEST_INT,
    Count,
    JsonBody,
    Name,
    QueryFields,
    RoutingType,
    RowsWanted,
    Setting,
)
from delosmq.model.declared.queue import QUEUE_SETTINGS
from delosmq.model.message import DEFAULT_PRIORITY, HIGHEST_PRIORITY

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


class RouterValue(JsonBody):
    """What a key is taken from, such as a client id; an empty one stands for a connection that has none."""

    value: Annotated[str, Field(max_length=1_024)]


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


class BrowseRows(RowsWanted):
    """Messages with ``after`` < sequence <= ``until``, at most ``max_rows``; of these what matches ``selector`` and was
    accepted at ``since_ms`` or later, and before ``before_ms``."""

    after: Count = 0
    until: Count = LARGEST_INT
    selector: Annotated[str, Field(max_length=32_768)] = ""
    since_ms: Count = 0
    before_ms: Count = LARGEST_INT
    max_rows: Annotated[int, Field(ge=1, le=100_000)] = 10_000
