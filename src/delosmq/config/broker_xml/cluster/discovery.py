"""``<broadcast-groups>`` and ``<discovery-groups>``.

Source: Artemis, FileConfigurationParser.parseBroadcastGroupConfiguration and parseDiscoveryGroupConfiguration.
"""

from collections.abc import Mapping
from typing import Any, Final

from delosmq.config.broker_xml.catalog.discovery import (
    BROADCAST_GROUP,
    BROADCAST_GROUPS,
    DISCOVERY_GROUP,
    DISCOVERY_GROUPS,
)
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import MISSING, WRONG_VALUE, nearest
from delosmq.config.xml_document import XmlElement
from delosmq.model.declared.discovery import (
    BROADCAST_SETTINGS,
    DISCOVERY_SETTINGS,
    BroadcastGroupSettings,
    DiscoveryGroupSettings,
)
from delosmq.model.declared.router import ConnectorSettings
from delosmq.model.values import Setting, parse_text

MOST_ANNOUNCED: Final = 8
_OTHERS: Final = ("jgroups-file", "jgroups-channel")
_ANYWHERE: Final = ("0.0.0.0", "::")


def read_broadcast_groups(
    reader: Reader, element: XmlElement, connectors: Mapping[str, ConnectorSettings]
) -> tuple[BroadcastGroupSettings, ...]:
    found: list[BroadcastGroupSettings] = []
    lines: dict[str, int] = {}
    for child in reader.children(element, BROADCAST_GROUPS):
        name = reader.required(child, "name")
        reader.note_twice("broadcast-group", name, child.line, lines)
        children = reader.children(child, BROADCAST_GROUP)
        references = [one for one in children if one.name == "connector-ref"]
        inner = reader.once([one for one in children if one.name != "connector-ref"])
        declared = _declared(reader, child, inner, BROADCAST_SETTINGS, BroadcastGroupSettings(""))
        announced = _announced(reader, child, references, connectors)
        found.append(BroadcastGroupSettings(name, connectors=announced, **declared))
    return tuple(found)


def read_discovery_groups(reader: Reader, element: XmlElement) -> tuple[DiscoveryGroupSettings, ...]:
    found: list[DiscoveryGroupSettings] = []
    lines: dict[str, int] = {}
    for child in reader.children(element, DISCOVERY_GROUPS):
        name = reader.required(child, "name")
        reader.note_twice("discovery-group", name, child.line, lines)
        inner = reader.once(reader.children(child, DISCOVERY_GROUP))
        declared = _declared(reader, child, inner, DISCOVERY_SETTINGS, DiscoveryGroupSettings(""))
        found.append(DiscoveryGroupSettings(name, **declared))
    return tuple(found)


def _declared(
    reader: Reader, group: XmlElement, inner: Mapping[str, XmlElement], known: Mapping[str, Setting], standard: object
) -> dict[str, Any]:
    for name in ("group-address", "group-port"):
        if name not in inner and not any(child.name in _OTHERS for child in group.children):
            reader.findings.add(MISSING, group.line, f"<{group.name}> lacks <{name}>; write it")
    return {
        field: reader.value(inner[setting.written], setting.parse, getattr(standard, field))
        for field, setting in known.items()
        if setting.written in inner
    }


def _announced(
    reader: Reader, group: XmlElement, references: list[XmlElement], connectors: Mapping[str, ConnectorSettings]
) -> tuple[ConnectorSettings, ...]:
    found: list[ConnectorSettings] = []
    for reference in references:
        name = reader.value(reference, parse_text, "")
        connector = connectors.get(name)
        if connector is None:
            remedy = nearest(name, list(connectors)) or "; declare it below <connectors>"
            reader.findings.add(WRONG_VALUE, reference.line, f"there is no connector {name!r} to be announced{remedy}")
        elif connector.host in _ANYWHERE:
            sentence = f"connector {name!r} has the host {connector.host}, to which nothing can connect; name this host"
            reader.findings.add(WRONG_VALUE, reference.line, sentence)
        else:
            found.append(connector)
    if not references:
        sentence = f"<{group.name}> announces nothing; write <connector-ref> in it"
        reader.findings.add(MISSING, group.line, sentence)
    if len(references) > MOST_ANNOUNCED:
        sentence = (
            f"<{group.name}> names {len(references)} connectors, and {MOST_ANNOUNCED} may be; others take the last"
        )
        reader.findings.add(WRONG_VALUE, references[MOST_ANNOUNCED].line, sentence)
    return tuple(found)
