"""``<connection-routers>``.

Source: Artemis, FileConfigurationParser.parseConnectionRouters.
"""

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any, Final

from delosmq.config.broker_xml.catalog.routers import (
    CONNECTION_ROUTER,
    CONNECTION_ROUTERS,
    ROUTER_CACHE,
    ROUTER_POLICY,
    ROUTER_PROPERTY,
)
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import WRONG_VALUE, nearest
from delosmq.config.xml_document import XmlElement
from delosmq.model.declared.java_regex import compile_java_regex
from delosmq.model.declared.router import (
    CACHE_SETTINGS,
    MODULO,
    POLICY_PROPERTIES,
    ROUTER_POLICIES,
    ROUTER_SETTINGS,
    ConnectionRouterSettings,
    RouterCacheSettings,
    RouterPolicySettings,
    policy_fault,
)

_POLICY_TWICE: Final = "DMQ4160"
_POLICY_ALONE: Final = "DMQ4161"


def read_routers(reader: Reader, element: XmlElement) -> list[ConnectionRouterSettings]:
    found: list[ConnectionRouterSettings] = []
    lines: dict[str, int] = {}
    for child in reader.children(element, CONNECTION_ROUTERS):
        name = reader.required(child, "name")
        reader.note_twice("connection-router", name, child.line, lines)
        found.append(_read_router(reader, child, name))
    return found


def _read_router(reader: Reader, element: XmlElement, name: str) -> ConnectionRouterSettings:
    children = reader.children(element, CONNECTION_ROUTER)
    policies = [child for child in children if child.name == "policy"]
    inner = reader.once([child for child in children if child.name != "policy"])
    policy = _read_policies(reader, policies, name)
    if policy is not None and policy.name in POLICY_PROPERTIES and MODULO not in POLICY_PROPERTIES[policy.name]:
        sentence = f"connection-router {name!r} has a <policy> and no <pool> from which it could choose; remove it"
        reader.findings.notice(_POLICY_ALONE, policies[-1].line, sentence)
    return ConnectionRouterSettings(
        name,
        **declared_in(reader, inner, ROUTER_SETTINGS, ConnectionRouterSettings("")),
        key_filter=_read_regex(reader, inner.get("key-filter")),
        local_target_filter=_read_regex(reader, inner.get("local-target-filter")),
        cache=_read_cache(reader, inner["cache"]) if "cache" in inner else None,
        policy=policy,
    )


def declared_in(
    reader: Reader, inner: dict[str, XmlElement], known: dict[str, Any], standard: object
) -> dict[str, Any]:
    """The values of the declared settings that are among ``inner``."""
    return {
        field: reader.value(inner[setting.written], setting.parse, getattr(standard, field))
        for field, setting in known.items()
        if setting.written in inner
    }


def _read_regex(reader: Reader, element: XmlElement | None) -> str:
    """ "" for a filter that is empty, or wrong."""
    if element is None or not element.text.strip():
        return ""
    return reader.value(element, _parse_regex, "")


def _parse_regex(text: str) -> str:
    compile_java_regex(text)
    return text


def _read_cache(reader: Reader, element: XmlElement) -> RouterCacheSettings:
    inner = reader.once(reader.children(element, ROUTER_CACHE))
    return RouterCacheSettings(**declared_in(reader, inner, CACHE_SETTINGS, RouterCacheSettings()))


def _read_policies(reader: Reader, elements: Sequence[XmlElement], router: str) -> RouterPolicySettings | None:
    """The last one, as Artemis has it; the example of its manual has two."""
    found = [_read_policy(reader, element) for element in elements]
    if len(found) > 1:
        sentence = f"connection-router {router!r} has {len(found)} <policy>, of which the last counts; keep one"
        reader.findings.notice(_POLICY_TWICE, elements[-1].line, sentence)
    return found[-1] if found else None


def _read_policy(reader: Reader, element: XmlElement) -> RouterPolicySettings:
    name = reader.required(element, "name")
    properties: dict[str, str] = {}
    for child in reader.children(element, ROUTER_POLICY):
        reader.leaf(child, ROUTER_PROPERTY)
        key = reader.required(child, "key")
        properties[key] = child.attributes.get("value", "").strip()
    if name and name not in POLICY_PROPERTIES:
        plugged_in = entry_points(group=ROUTER_POLICIES).names
        if name not in plugged_in:
            known = [*POLICY_PROPERTIES, *plugged_in]
            remedy = nearest(name, known) or f"; there are {', '.join(known)}"
            reader.findings.add(WRONG_VALUE, element.line, f"unknown policy {name!r}{remedy}")
    fault = policy_fault(name, properties)
    if fault:
        reader.findings.add(WRONG_VALUE, element.line, f"policy {name!r} {fault}")
    return RouterPolicySettings(name, tuple(properties.items()))
