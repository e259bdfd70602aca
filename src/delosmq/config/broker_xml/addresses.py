"""``<addresses>``, ``<address-settings>`` and ``<security-settings>``."""

from collections.abc import Callable
from typing import Final

from delosmq.config import values
from delosmq.config.broker_xml.address_catalog import (
    ADDRESS,
    ADDRESS_SETTING,
    ADDRESS_SETTINGS,
    ADDRESSES,
    PERMISSION,
    QUEUE,
    QUEUES,
    SECURITY_SETTING,
    SECURITY_SETTINGS,
)
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import MISSING, TWICE, WRONG_VALUE, nearest
from delosmq.config.xml_document import XmlElement
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import AddressDefinition, AddressMatch, QueueSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS

_ROUTING_TYPES: Final = {"anycast": ANYCAST, "multicast": MULTICAST}

# Names Artemis still reads.
_OLD_PERMISSIONS: Final = {"createTempQueue": "createNonDurableQueue", "deleteTempQueue": "deleteNonDurableQueue"}

_SETTING_PARSERS: Final[dict[str, Callable[[str], object]]] = {
    "dead-letter-address": str,
    "max-delivery-attempts": values.parse_attempts,
    "max-size-bytes": values.parse_limit_bytes,
    "max-size-messages": values.unlimited_or_at_least(1),
    "address-full-policy": values.parse_full_policy,
    "auto-create-queues": values.parse_boolean,
    "auto-create-addresses": values.parse_boolean,
    "default-address-routing-type": values.parse_routing_type,
    "default-ring-size": values.unlimited_or_at_least(0),
    "default-max-consumers": values.unlimited_or_at_least(0),
}


def read_addresses(reader: Reader, element: XmlElement) -> tuple[list[AddressDefinition], list[QueueSettings]]:
    """The addresses and queues to make at start."""
    addresses: list[AddressDefinition] = []
    queues: list[QueueSettings] = []
    address_lines: dict[str, int] = {}
    queue_lines: dict[str, int] = {}
    for child in reader.children(element, ADDRESSES):
        name = reader.required(child, "name")
        _note_twice(reader, "address", name, child.line, lines=address_lines)
        routings = reader.once(reader.children(child, ADDRESS))
        if not routings:
            sentence = f"address {name!r} takes no routing type; write <anycast/> or <multicast/> in it"
            reader.findings.add(MISSING, child.line, sentence)
        addresses.append(AddressDefinition(name, frozenset(_ROUTING_TYPES[routing] for routing in routings)))
        for routing, holder in routings.items():
            for queue in reader.children(holder, QUEUES):
                settings = _read_queue(reader, queue, name, _ROUTING_TYPES[routing])
                _note_twice(reader, "queue", settings.name, queue.line, lines=queue_lines)
                queues.append(settings)
    return addresses, queues


def read_address_settings(reader: Reader, element: XmlElement) -> list[AddressMatch]:
    """Every ``<address-setting>`` with the fields it sets."""
    matches: list[AddressMatch] = []
    lines: dict[str, int] = {}
    for child in reader.children(element, ADDRESS_SETTINGS):
        match = reader.required(child, "match")
        _note_twice(reader, "address-setting", match, child.line, lines=lines)
        fields: dict[str, object] = {}
        for name, setting in reader.once(reader.children(child, ADDRESS_SETTING)).items():
            fields[name.replace("-", "_")] = reader.value(setting, _SETTING_PARSERS[name], None)
        matches.append(AddressMatch(match, fields))
    return matches


def read_security_settings(reader: Reader, element: XmlElement) -> list[SecurityMatch]:
    """Every ``<security-setting>`` with its permissions."""
    matches: list[SecurityMatch] = []
    lines: dict[str, int] = {}
    for child in reader.children(element, SECURITY_SETTINGS):
        match = reader.required(child, "match")
        _note_twice(reader, "security-setting", match, child.line, lines=lines)
        permissions: dict[str, frozenset[str]] = {}
        for permission in reader.children(child, SECURITY_SETTING):
            reader.leaf(permission, PERMISSION)
            written = reader.required(permission, "type")
            kind = _OLD_PERMISSIONS.get(written, written)
            if written and kind not in PERMISSIONS:
                remedy = nearest(written, list(PERMISSIONS)) or f"; there are {', '.join(PERMISSIONS)}"
                reader.findings.add(WRONG_VALUE, permission.line, f"unknown permission {written!r}{remedy}")
            if "roles" not in permission.attributes:
                reader.required(permission, "roles")
            roles = frozenset(values.comma_separated(permission.attributes.get("roles", "")))
            permissions[kind] = permissions.get(kind, frozenset()) | roles
        matches.append(SecurityMatch(match, permissions))
    return matches


def _read_queue(reader: Reader, element: XmlElement, address: str, routing_type: int) -> QueueSettings:
    inner = reader.once(reader.children(element, QUEUE))
    durable = inner.get("durable")
    return QueueSettings(
        name=reader.required(element, "name"),
        address=address,
        routing_type=routing_type,
        durable=True if durable is None else reader.value(durable, values.parse_boolean, True),
        ring_size=reader.attribute(element, "ring-size", values.unlimited_or_at_least(0), None),
        max_consumers=reader.attribute(element, "max-consumers", values.unlimited_or_at_least(0), None),
    )


def _note_twice(reader: Reader, kind: str, name: str, line: int, *, lines: dict[str, int]) -> None:
    if name and name in lines:
        sentence = f"{kind} {name!r} is already in line {lines[name]}; keep one of the two or join them"
        reader.findings.add(TWICE, line, sentence)
    lines.setdefault(name, line)
