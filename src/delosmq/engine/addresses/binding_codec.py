"""Addresses and queues as BINDING records and state blocks hold them.

What has its default is left out, and what is missing has its default: journals of older releases stay readable.
"""

import json
from typing import Any, Final

from delosmq.engine.addresses.address import Address
from delosmq.engine.queues.queue import Queue
from delosmq.model.declared.queue import QUEUE_SETTINGS
from delosmq.model.settings import QueueSettings

ENTRY_BYTES: Final = 64
"""Room for the largest numbers an entry may get, and what stands around it."""

GROUP_BYTES: Final = 256
WISH_BYTES: Final = 96
"""Likewise for a lease group."""
BRANCH_BYTES: Final = 96
"""Likewise for a branch."""
STAGED_BYTES: Final = 224
"""Likewise for a staged part."""
PUBLISHED_BYTES: Final = 96
"""Likewise for the last published batch of an application."""
LONGEST_RUN_BYTES: Final = 12 * 200 + 2
"""What the run of a lease group takes as JSON: requests allow 200 characters. Each group counts as if its run had them,
as another run may take it over at any time."""

Json = dict[str, object]


def queue_as_json(queue: Queue) -> Json:
    """A queue; `queue_from_json` reads it back."""
    value = settings_as_json(queue.settings)
    value["id"] = int(queue.id)
    if queue.made_by:
        value["made_by"] = queue.made_by
    return value


def settings_as_json(settings: QueueSettings) -> Json:
    """What is stored of the settings of a queue."""
    value: Json = {
        "name": settings.name,
        "address": settings.address,
        "routing_type": settings.routing_type,
        "ring_size": settings.ring_size,
        "max_consumers": settings.max_consumers,
        "auto_created": settings.auto_created,
    }
    if settings.filter:
        value["filter"] = settings.filter
    for name in QUEUE_SETTINGS:
        own = getattr(settings, name)
        if own is not None:
            # "" is not the same as unset: it makes no last-value queue where the address would.
            value[name] = "=" + own if isinstance(own, str) else own
    if settings.user:
        value["user"] = settings.user
    if not settings.enabled:
        value["enabled"] = False
    if settings.paused:
        value["paused"] = True
    return value


def queue_from_json(value: Json) -> QueueSettings:
    own: dict[str, Any] = {}
    for name, setting in QUEUE_SETTINGS.items():
        found = value.get(name)
        if found is not None:
            own[name] = found is True if setting.kind is bool else _stored(setting.kind, str(found))
    return QueueSettings(
        name=str(value["name"]),
        address=str(value["address"]),
        routing_type=int(str(value["routing_type"])),
        durable=True,
        auto_created=bool(value["auto_created"]),
        filter=str(value.get("filter", "")),
        enabled=value.get("enabled") is not False,
        paused=value.get("paused") is True,
        user=str(value.get("user", "")),
        **own,
    )


def _stored(kind: type, text: str) -> object:
    return int(text) if kind is int else text[1:]


def address_as_json(address: Address) -> Json:
    value: Json = {
        "name": address.name,
        "routing_types": sorted(address.routing_types),
        "auto_created": address.auto_created,
    }
    if address.made_by:
        value["made_by"] = address.made_by
    return value


def maker_from_json(value: Json) -> str:
    """The user of the client that made an address or queue; "" for none, and in journals that don't say it."""
    return str(value.get("made_by", ""))


def queue_state_bytes(settings: QueueSettings, made_by: str) -> int:
    """What a durable queue takes in a state block."""
    return ENTRY_BYTES + len(json.dumps(settings_as_json(settings))) + _maker_bytes(made_by)


def address_state_bytes(name: str, made_by: str) -> int:
    """What an address takes in a state block."""
    return 2 * ENTRY_BYTES + len(json.dumps(name)) + _maker_bytes(made_by)


def group_state_bytes(name: str, run: str, made_by: str, selector: str = "") -> int:
    """What a lease group takes in a state block, without its leases."""
    size = GROUP_BYTES + len(json.dumps(name)) + max(LONGEST_RUN_BYTES, len(json.dumps(run))) + _maker_bytes(made_by)
    # Twice: as its reader wrote it, and in what the group takes.
    return size + (2 * len(json.dumps(selector)) + WISH_BYTES if selector else 0)


def branch_state_bytes(xid: bytes, made_by: str) -> int:
    """What a branch takes in a state block: prepared, or, with its xid written twice, ended by an operator."""
    return BRANCH_BYTES + 4 * len(xid) + _maker_bytes(made_by)


def part_state_bytes(application: str, texts: list[str], made_by: str) -> int:
    """What a staged part takes in a state block; ``texts``: all others that name it."""
    return STAGED_BYTES + len(json.dumps(application)) + len(json.dumps(texts)) + _maker_bytes(made_by)


def published_state_bytes(application: str, made_by: str) -> int:
    """What the last published batch of an application takes in a state block."""
    return PUBLISHED_BYTES + len(json.dumps(application)) + _maker_bytes(made_by)


def _maker_bytes(made_by: str) -> int:
    return len(json.dumps({"made_by": made_by})) if made_by else 0
