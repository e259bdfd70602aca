"""``<addresses>`` with their ``<queue>``s."""

from dataclasses import replace
from typing import Any, Final

from delosmq.config.broker_xml.catalog.addresses import ADDRESS, ADDRESSES, QUEUE, QUEUES
from delosmq.config.broker_xml.combinations import Traits, check_traits
from delosmq.config.broker_xml.filters import CheckSelector, read_filter
from delosmq.config.broker_xml.names import required_name
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import CONTRADICTION, MISSING
from delosmq.config.xml_document import XmlElement
from delosmq.model import values
from delosmq.model.address_settings import AddressSettings
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import LAST_VALUE_NAME, AddressDefinition, QueueSettings
from delosmq.model.wildcard import AddressSettingsTable

_ROUTING_TYPES: Final = {"anycast": ANYCAST, "multicast": MULTICAST}

_LIMIT: Final = values.unlimited_or_at_least(0)
_DELAY_OR_NONE: Final = values.unlimited_or_at_least(0, "none")
_BUCKETS: Final = values.unlimited_or_at_least(0, "no buckets")

# Attributes whose contradictions a queue answers for, when it has one of them itself.
_TRAITS: Final = frozenset(
    {
        "non-destructive",
        "purge-on-no-consumers",
        "exclusive",
        "group-rebalance",
        "max-consumers",
        "consumers-before-dispatch",
        "delay-before-dispatch",
    }
)


def read_addresses(
    reader: Reader, element: XmlElement, defaults: AddressSettingsTable, check_selector: CheckSelector
) -> tuple[list[AddressDefinition], list[QueueSettings]]:
    """The addresses and queues to make at start.

    Args:
        defaults: what the address-settings say.
    """
    addresses: list[AddressDefinition] = []
    queues: list[QueueSettings] = []
    address_lines: dict[str, int] = {}
    queue_lines: dict[str, int] = {}
    for child in reader.children(element, ADDRESSES):
        name = required_name(reader, child, "address")
        reader.note_twice("address", name, child.line, address_lines)
        routings = reader.once(reader.children(child, ADDRESS))
        if not routings and not any(inner.name == "queue" for inner in child.children):
            sentence = f"address {name!r} takes no routing type; write <anycast/> or <multicast/> in it"
            reader.findings.add(MISSING, child.line, sentence)
        addresses.append(AddressDefinition(name, frozenset(_ROUTING_TYPES[routing] for routing in routings)))
        settings = defaults.resolve(name)
        for routing, holder in routings.items():
            for queue in reader.children(holder, QUEUES):
                read = _read_queue(reader, queue, name, _ROUTING_TYPES[routing], check_selector)
                reader.note_twice("queue", read.name, queue.line, queue_lines)
                queues.append(_with_last_value(reader, queue, read, settings))
                if _TRAITS & queue.attributes.keys():
                    check_traits(reader, queue.line, f"queue {read.name!r}", _traits(read, settings))
    return addresses, queues


def _read_queue(
    reader: Reader, element: XmlElement, address: str, routing_type: int, check_selector: CheckSelector
) -> QueueSettings:
    inner = reader.once(reader.children(element, QUEUE))
    durable, user = inner.get("durable"), inner.get("user")
    return QueueSettings(
        name=required_name(reader, element, "queue"),
        address=address,
        routing_type=routing_type,
        durable=True if durable is None else reader.value(durable, values.parse_boolean, True),
        ring_size=reader.attribute(element, "ring-size", _LIMIT, None),
        max_consumers=reader.attribute(element, "max-consumers", _LIMIT, None),
        filter=read_filter(reader, inner.get("filter"), check_selector),
        exclusive=reader.attribute(element, "exclusive", values.parse_boolean, None),
        purge_on_no_consumers=reader.attribute(element, "purge-on-no-consumers", values.parse_boolean, None),
        last_value_key=reader.attribute(element, "last-value-key", str, None) or None,
        non_destructive=reader.attribute(element, "non-destructive", values.parse_boolean, None),
        group_rebalance=reader.attribute(element, "group-rebalance", values.parse_boolean, None),
        group_rebalance_pause_dispatch=reader.attribute(
            element, "group-rebalance-pause-dispatch", values.parse_boolean, None
        ),
        group_buckets=reader.attribute(element, "group-buckets", _BUCKETS, None),
        group_first_key=reader.attribute(element, "group-first-key", str, None),
        consumers_before_dispatch=reader.attribute(element, "consumers-before-dispatch", values.at_least(0), None),
        delay_before_dispatch=reader.attribute(element, "delay-before-dispatch", _DELAY_OR_NONE, None),
        # What broker.xml names is meant to stay, whatever the address-settings say of other queues (as in Artemis).
        auto_delete=reader.attribute(element, "auto-delete", values.parse_boolean, False),
        auto_delete_delay=reader.attribute(element, "auto-delete-delay", values.at_least(0), None),
        auto_delete_message_count=reader.attribute(element, "auto-delete-message-count", _LIMIT, None),
        enabled=reader.attribute(element, "enabled", values.parse_boolean, True),
        user="" if user is None else reader.value(user, str, ""),
    )


def _with_last_value(
    reader: Reader, element: XmlElement, queue: QueueSettings, defaults: AddressSettings
) -> QueueSettings:
    """``queue`` with the key that ``last-value`` stands for."""
    switch = reader.attribute(element, "last-value", values.parse_boolean, None)
    if switch is None or (switch and queue.last_value_key):
        return queue
    if queue.last_value_key:
        sentence = (
            f"queue {queue.name!r} has a last-value-key, which makes it a last-value queue, and last-value false; "
            "remove one of the two"
        )
        reader.findings.add(CONTRADICTION, element.line, sentence)
    key = (defaults.default_last_value_key or LAST_VALUE_NAME) if switch else ""
    return replace(queue, last_value_key=key)


def _traits(queue: QueueSettings, defaults: AddressSettings) -> Traits:
    def either(own: Any, default: Any) -> Any:
        return default if own is None else own

    return Traits(
        non_destructive=either(queue.non_destructive, defaults.default_non_destructive),
        purge_on_no_consumers=either(queue.purge_on_no_consumers, defaults.default_purge_on_no_consumers),
        exclusive=either(queue.exclusive, defaults.default_exclusive_queue),
        group_rebalance=either(queue.group_rebalance, defaults.default_group_rebalance),
        max_consumers=either(queue.max_consumers, defaults.default_max_consumers),
        consumers_before_dispatch=either(queue.consumers_before_dispatch, defaults.default_consumers_before_dispatch),
        delay_before_dispatch=either(queue.delay_before_dispatch, defaults.default_delay_before_dispatch),
    )
