"""``<addresses>`` with their ``<queue>``s."""

from dataclasses import replace
from typing import Any, Final

from delosmq.config.broker_xml.catalog.addresses import ADDRESS, ADDRESSES, QUEUE, QUEUES
from delosmq.config.broker_xml.combinations import check_combinations
from delosmq.config.broker_xml.filters import CheckSelector, read_filter
from delosmq.config.broker_xml.names import required_name
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import CONTRADICTION, MISSING
from delosmq.config.xml_document import XmlElement
from delosmq.model import values
from delosmq.model.declared.queue import CONTRADICTORY, QUEUE_SETTINGS, resolve
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import LAST_VALUE_NAME, AddressDefinition, AddressSettings, QueueSettings
from delosmq.model.wildcard import AddressSettingsTable

_ROUTING_TYPES: Final = {"anycast": ANYCAST, "multicast": MULTICAST}

_COMPARED: Final = frozenset(name.replace("_", "-") for name in (*CONTRADICTORY, "exclusive", "group_rebalance"))
"""Attributes that may contradict each other: the error names the queue when it has one of them itself."""


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
        for routing, wrapper in routings.items():
            for queue in reader.children(wrapper, QUEUES):
                read = _read_queue(reader, queue, name, _ROUTING_TYPES[routing], check_selector)
                reader.note_twice("queue", read.name, queue.line, queue_lines)
                queues.append(_with_last_value(reader, queue, read, settings))
                if _COMPARED & queue.attributes.keys():
                    check_combinations(reader, queue.line, f"queue {read.name!r}", resolve(read, settings))
    return addresses, queues


def _read_queue(
    reader: Reader, element: XmlElement, address: str, routing_type: int, check_selector: CheckSelector
) -> QueueSettings:
    inner = reader.once(reader.children(element, QUEUE))
    durable, user = inner.get("durable"), inner.get("user")
    declared: dict[str, Any] = {}
    for field, setting in QUEUE_SETTINGS.items():
        standard: object = setting.in_file
        declared[field] = reader.attribute(element, setting.written, setting.parse, standard)
    return QueueSettings(
        name=required_name(reader, element, "queue"),
        address=address,
        routing_type=routing_type,
        durable=True if durable is None else reader.value(durable, values.parse_boolean, True),
        filter=read_filter(reader, inner.get("filter"), check_selector),
        enabled=reader.attribute(element, "enabled", values.parse_boolean, True),
        user="" if user is None else reader.value(user, str, ""),
        **declared,
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
