"""Requests about parts of batches that are staged."""

from typing import Annotated, Final, Literal

from pydantic import Field

from delosmq.manage.control.pagination import MOST_PER_PAGE, USUAL_PER_PAGE
from delosmq.manage.http.requests.fields import MAX_WAIT_MS, JsonBody, QueryFields
from delosmq.model.message import DEFAULT_PRIORITY, HIGHEST_PRIORITY

MOST_TIME_TO_LIVE_MS: Final = 100 * 365 * 24 * 3_600_000


class StagePart(QueryFields):
    """Where rows go that do not say it, and how: ``address``, ``routing_type``, ``durable``, ``priority``,
    ``time_to_live_ms`` (0 for ever). ``wait_ms``: for room, while an address is full. ``attempt``: at the batch, any
    name that is never used again; ``task`` of that attempt; ``run`` of that task, named likewise."""

    address: Annotated[str, Field(max_length=1024)] = ""
    routing_type: Literal["", "ANYCAST", "MULTICAST"] = ""
    durable: bool = True
    priority: Annotated[int, Field(ge=0, le=HIGHEST_PRIORITY)] = DEFAULT_PRIORITY
    time_to_live_ms: Annotated[int, Field(ge=0, le=MOST_TIME_TO_LIVE_MS)] = 0
    wait_ms: Annotated[int, Field(ge=0, le=MAX_WAIT_MS)] = 20_000
    attempt: Annotated[str, Field(max_length=256)] = ""
    task: Annotated[str, Field(max_length=256)] = ""
    run: Annotated[str, Field(max_length=256)] = ""


class NamedParts(JsonBody):
    """Parts of a batch, in the order in which their rows are to be published."""

    parts: Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=10_000)]


class PublishedParts(NamedParts):
    """Likewise. ``attempt``: as they were staged with; one is refused when another has published since it last did."""

    attempt: Annotated[str, Field(max_length=256)] = ""


class ListStaged(QueryFields):
    """A page by name: what comes after ``after``, at most ``limit``."""

    after: Annotated[str, Field(max_length=1024)] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_PER_PAGE)] = USUAL_PER_PAGE
