"""Lists in numbered pages, as JSON text. Source: ActiveMQAbstractView, QueueView and AddressView of Artemis.

Names are looked through in slices, as the right to see each is asked for.
"""

import json
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final

from delosmq.manage.control.addresses import AddressInfo
from delosmq.manage.control.pagination import MOST_PER_PAGE
from delosmq.manage.control.queue_info import QueueInfo
from delosmq.manage.messages import errors

NAMES_PER_SLICE: Final = 200
MOST_IN_A_PAGE: Final = 1_000
_PER_SLICE: Final = 50
QUEUE_COLUMNS: Final = {
    "id": "id",
    "name": "name",
    "address": "address",
    "filter": "filter",
    "routingType": "routing_type",
    "durable": "durable",
    "temporary": "temporary",
    "autoCreated": "auto_created",
    "user": "user",
    "enabled": "enabled",
    "paused": "paused",
    "messageCount": "message_count",
    "consumerCount": "consumer_count",
    "deliveringCount": "delivering_count",
    "scheduledCount": "scheduled_count",
    "messagesAdded": "messages_added",
    "messagesAcked": "messages_acknowledged",
    "messagesExpired": "messages_expired",
    "messagesKilled": "messages_killed",
    "maxConsumers": "max_consumers",
    "exclusive": "exclusive",
    "purgeOnNoConsumers": "purge_on_no_consumers",
    "lastValue": "last_value",
    "lastValueKey": "last_value_key",
    "ringSize": "ring_size",
    "autoDelete": "auto_delete",
}
ADDRESS_COLUMNS: Final = {
    "name": "name",
    "routingTypes": "routing_types",
    "queueCount": "queues",
    "addressSize": "used_bytes",
    "autoCreated": "auto_created",
}
"""Field of a row -> field of what is shown."""


def chosen_names(names: Iterable[str], takes: Callable[[str], bool]) -> Generator[int, None, list[str]]:
    """Those that are to be shown, in order."""
    found: list[str] = []
    for i, name in enumerate(sorted(names), 1):
        if i % NAMES_PER_SLICE == 0:
            yield 0
        if takes(name):
            found.append(name)
    return found


def few_names(names: Iterable[str], takes: Callable[[str], bool]) -> Generator[int, None, list[str]]:
    """The same, for one answer.

    Raises:
        LimitError: they are too many for that.
    """
    found = yield from chosen_names(names, takes)
    if len(found) > MOST_PER_PAGE:
        raise errors.too_many_names(len(found), MOST_PER_PAGE)
    return found


def listed_page(
    names: list[str],
    peek: Callable[[str], QueueInfo | AddressInfo | None],
    columns: dict[str, str],
    *,
    page: int,
    page_size: int,
) -> Generator[int, None, str]:
    """A page of rows, the first is 1, and how many rows there are in all.

    Args:
        peek: gives what is shown; None when it is gone.

    Raises:
        MisuseError: there is no such page.
    """
    if page < 1 or not 1 <= page_size <= MOST_IN_A_PAGE:
        raise errors.page_wrong(MOST_IN_A_PAGE)
    start = (page - 1) * page_size
    rows: list[dict[str, str]] = []
    for i, name in enumerate(names[start : start + page_size], 1):
        if i % _PER_SLICE == 0:
            yield 0
        info = peek(name)
        if info is not None:
            rows.append({column: _text(column, getattr(info, field)) for column, field in columns.items()})
    return json.dumps({"data": rows, "count": len(names)}, ensure_ascii=False, separators=(",", ":"))


def _text(column: str, value: Any) -> str:
    """All fields of a row are texts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return str(len(value)) if column.endswith("Count") else json.dumps(value, separators=(",", ":"))
    return str(value)


def read_options(text: str) -> Callable[[str], bool]:
    """What a name must be to be listed.

    Raises:
        MisuseError: the options ask for what there is not.
    """
    try:
        options = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        raise errors.options_wrong("they are no JSON object") from None
    if not isinstance(options, dict):
        raise errors.options_wrong("they are no JSON object")
    wanted = {key: value for key, value in options.items() if value not in ("", None)}
    field = wanted.pop("field", "name")
    operation = wanted.pop("operation", "CONTAINS")
    value = wanted.pop("value", "")
    for key in ("sortField", "sortColumn"):
        if wanted.get(key) == "name":
            del wanted[key]
    if wanted.get("sortOrder") == "asc":
        del wanted["sortOrder"]
    if wanted:
        raise errors.options_wrong(f"'{next(iter(wanted))}' is not supported; rows are sorted by name")
    if field != "name" or not isinstance(value, str):
        raise errors.options_wrong("rows can be chosen by their field 'name' and a text alone")
    if operation == "CONTAINS":
        return lambda name: value in name
    if operation == "EQUALS":
        return lambda name: name == value
    raise errors.options_wrong("the operation is CONTAINS or EQUALS")
