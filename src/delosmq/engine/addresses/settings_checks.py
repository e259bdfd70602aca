"""What the settings of a queue may be, and which of them may change while it lives."""

from delosmq.engine.addresses.filter import check_filter
from delosmq.engine.queues.queue import Queue
from delosmq.model.declared.queue import QUEUE_SETTINGS, contradiction, resolve
from delosmq.model.errors import MisuseError
from delosmq.model.message import ANYCAST, MULTICAST, ROUTING_NAMES
from delosmq.model.phrases import counted
from delosmq.model.settings import UNLIMITED, AddressSettings, QueueSettings


def check_settings(settings: QueueSettings) -> None:
    """Refuses values that make no sense.

    Raises:
        MisuseError: with the queue, the setting and the values allowed.
    """
    queue = settings.name
    if settings.ring_size is not None and settings.ring_size < UNLIMITED:
        raise MisuseError(
            "DMQ2101",
            f"ring-size {settings.ring_size} of queue '{queue}' makes no sense; use -1 for none, 0 or a positive"
            " number",
        )
    for name, setting in QUEUE_SETTINGS.items():
        value = getattr(settings, name)
        if setting.kind is int and value is not None and value < setting.least:
            off = " (off)" if setting.least == UNLIMITED else ""
            raise MisuseError(
                "DMQ2626",
                f"{name.replace('_', '-')} {value} of queue '{queue}' makes no sense; use {setting.least}{off} or more",
            )
    if settings.routing_type not in (ANYCAST, MULTICAST):
        raise MisuseError(
            "DMQ2625", f"queue '{queue}' has routing type {settings.routing_type}; give it ANYCAST or MULTICAST"
        )
    check_filter(f"queue '{queue}'", settings.filter)


def check_together(settings: QueueSettings, address: AddressSettings) -> None:
    """Refuses settings that contradict each other, or the defaults of the address.

    What an operator names is refused in broker.xml and at run time alike; what goes by defaults alone is not, as it
    was not asked for just now.

    Raises:
        MisuseError: says which and what to do.
    """
    found = contradiction(resolve(settings, address))
    if found:
        raise MisuseError("DMQ2626", f"queue '{settings.name}' {found}")


def check_update(queue: Queue, wanted: QueueSettings, routing_types: set[int]) -> None:
    """Refuses changes that a queue can't make while it lives.

    Args:
        routing_types: those that its address takes.

    Source: Artemis PostOfficeImpl.updateQueue.

    Raises:
        MisuseError: says which and why.
    """
    present = queue.settings
    fixed = ""
    if wanted.address != present.address:
        fixed = "address"
    elif wanted.durable != present.durable:
        fixed = "durable"
    elif wanted.auto_created != present.auto_created:
        fixed = "auto-created"
    elif resolve(wanted, queue.address.settings).last_value_key != queue.in_force.last_value_key:
        fixed = "last-value-key"
    _check_under_consumers(queue, wanted)
    if fixed:
        raise MisuseError(
            "DMQ2627",
            f"{fixed} of queue '{present.name}' can't change while it exists, as what it holds depends on it; delete"
            " the queue and create it again",
        )
    limit = wanted.max_consumers
    if limit is not None and limit != UNLIMITED and limit < len(queue.holders):
        raise MisuseError(
            "DMQ2628",
            f"queue '{present.name}' has {counted(len(queue.holders), 'consumer')}, more than the max-consumers"
            f" {limit} wanted; close some first",
        )
    if wanted.routing_type != present.routing_type and wanted.routing_type not in routing_types:
        raise MisuseError(
            "DMQ2629",
            f"queue '{present.name}' can't become {ROUTING_NAMES.get(wanted.routing_type, '?')}: its address"
            f" '{present.address}' does not take that routing type; add it to the address first",
        )


def _check_under_consumers(queue: Queue, wanted: QueueSettings) -> None:
    """What a consumer holds it either owns or has borrowed, so that can't change under it."""
    if (
        queue.consumer_count
        and resolve(wanted, queue.address.settings).non_destructive != queue.in_force.non_destructive
    ):
        raise MisuseError(
            "DMQ2643",
            f"non-destructive of queue '{queue.name}' can't change while it has consumers ({queue.consumer_count});"
            " close them first",
        )
