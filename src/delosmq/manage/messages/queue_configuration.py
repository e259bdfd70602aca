"""A queue as a JSON object describes it. Source: QueueConfiguration of Artemis, its fromJSON."""

import json
from typing import Any, Final

from delosmq.manage.control.queues import ROUTING_TYPES
from delosmq.manage.messages import errors
from delosmq.model.declared.queue import QUEUE_SETTINGS
from delosmq.model.message import ROUTING_NAMES
from delosmq.model.settings import LAST_VALUE_NAME, QueueSettings
from delosmq.model.values import parse_boolean

_OWN: Final = {"name": "name", "address": "address", "filter-string": "filter", "routing-type": "routing_type"}
_SWITCHES: Final = {"durable": "durable", "enabled": "enabled"}
_WITHOUT_EFFECT: Final = frozenset(("id", "user", "auto-create-address", "configuration-managed", "transient"))
"""Here the user is who asks, an address is made where there is none, and what a queue is made for it stays."""
_DECLARED: Final = {name.replace("_", "-"): name for name in QUEUE_SETTINGS}


def read_queue_configuration(text: str) -> dict[str, Any]:
    """The fields of `QueueSettings` that it names.

    Raises:
        MisuseError: it is no such object, or a field is unknown or wrong.
    """
    try:
        found = json.loads(text)
    except RecursionError:
        raise errors.queue_configuration_wrong("its lists or objects are nested too deeply") from None
    except ValueError as error:
        raise errors.queue_configuration_wrong(str(error)) from None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str) or not found["name"]:
        raise errors.queue_configuration_wrong("it is an object that has the field 'name'")
    fields: dict[str, Any] = {}
    for key, value in found.items():
        try:
            _read(fields, key, value)
        except ValueError as error:
            raise errors.queue_configuration_wrong(f"field '{key}' must be {error}") from None
    return fields


def _read(fields: dict[str, Any], key: str, value: object) -> None:
    if key in _WITHOUT_EFFECT or value is None:
        return
    text = value if isinstance(value, str) else json.dumps(value)
    if key == "routing-type":
        if text not in ROUTING_TYPES:
            raise ValueError("ANYCAST or MULTICAST")
        fields["routing_type"] = ROUTING_TYPES[text]
    elif key in _OWN:
        if not isinstance(value, str):
            raise ValueError("a text")
        fields[_OWN[key]] = value
    elif key in _SWITCHES:
        fields[_SWITCHES[key]] = parse_boolean(text)
    elif key == "last-value":
        if parse_boolean(text):
            fields.setdefault("last_value_key", LAST_VALUE_NAME)
    elif key in _DECLARED:
        fields[_DECLARED[key]] = QUEUE_SETTINGS[_DECLARED[key]].parse(text)
    else:
        raise errors.queue_configuration_wrong(f"there is no field '{key}'")


def describe(queue: QueueSettings) -> str:
    """A queue in a line, as the operations that make and change one return it."""
    return (
        f"Queue [name={queue.name}, address={queue.address}, routingType={ROUTING_NAMES[queue.routing_type]},"
        f" filter={queue.filter or 'null'}, durable={str(queue.durable).lower()}]"
    )
