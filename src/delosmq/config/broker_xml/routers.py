"""``<connection-routers>``.

Source: Artemis, FileConfigurationParser.parseConnectionRouters.
"""

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from delosmq.config.broker_xml.catalog.acceptors import ACCEPTOR_OPTIONS
from delosmq.config.broker_xml.catalog.routers import (
    CONNECTION_ROUTER,
    CONNECTION_ROUTERS,
    CONNECTOR,
    CONNECTOR_OPTIONS,
    CONNECTORS,
    DISCOVERY_GROUP_REF,
    POOL,
    ROUTER_CACHE,
    ROUTER_POLICY,
    ROUTER_PROPERTY,
    STATIC_CONNECTORS,
)
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import CONTRADICTION, MISSING, UNKNOWN_NAME, WRONG_VALUE, nearest
from delosmq.config.xml_document import XmlElement
from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.declared.router import (
    CACHE_SETTINGS,
    MODULO,
    POLICY_PROPERTIES,
    POOL_SETTINGS,
    ROUTER_POLICIES,
    ROUTER_SETTINGS,
    ConnectionRouterSettings,
    ConnectorSettings,
    RouterCacheSettings,
    RouterPolicySettings,
    TargetPoolSettings,
    policy_fault,
)
from delosmq.model.values import parse_boolean, parse_text

_POLICY_TWICE: Final = "DMQ4160"
_POLICY_ALONE: Final = "DMQ4161"
_QUORUM: Final = "DMQ4162"
_NO_TARGET: Final = "DMQ4163"
_MISSPELT: Final = 0.8
"""How much alike an option must be to one of a connector's; what Artemis has besides is less so."""
_KINDS: Final = ("static-connectors", "discovery-group-ref", "cluster-connection")
"""Of targets; the catalogue refuses the last."""


Connectors = Mapping[str, ConnectorSettings]
"""By their names."""


class TargetSources(NamedTuple):
    """What else broker.xml has that pools name.

    Attributes:
        login: user and password of pools that name none; "" for a password that is not known.
        discovery_groups: their names.
    """

    connectors: Connectors
    login: tuple[str, str]
    discovery_groups: list[str]


def read_connectors(reader: Reader, element: XmlElement, directory: Path) -> dict[str, ConnectorSettings]:
    """Those that can be targets; about others there are notices, as Artemis has kinds that are for other ends.

    Args:
        directory: what relative paths of trust stores are relative to.
    """
    found: dict[str, ConnectorSettings] = {}
    lines: dict[str, int] = {}
    for child in reader.children(element, CONNECTORS):
        reader.leaf(child, CONNECTOR)
        name = reader.required(child, "name")
        reader.note_twice("connector", name, child.line, lines)
        try:
            found[name] = _parse_connector(reader, child, name, directory)
        except ValueError as rule:
            sentence = f"connector {name!r} can be no target of a connection router: it is no {rule}"
            reader.findings.notice(_NO_TARGET, child.line, sentence)
    return found


def _parse_connector(reader: Reader, element: XmlElement, name: str, directory: Path) -> ConnectorSettings:
    """
    Raises:
        ValueError: what it would have to be.
    """
    rule = "tcp://host:port?option=value;option=value"
    parts = urlsplit(element.text.strip())
    if parts.scheme != "tcp" or not parts.hostname or not parts.port or "," in element.text or "@" in parts.netloc:
        raise ValueError(rule)
    options: dict[str, str] = {}
    for pair in parts.query.replace("&", ";").split(";"):
        key, _, text = pair.partition("=")
        if key.strip() in CONNECTOR_OPTIONS:
            options[key.strip()] = unquote(text.strip())
        elif similar := _meant(key.strip()):
            what = f"option {key.strip()!r} of connector {name!r}"
            reader.findings.add(UNKNOWN_NAME, element.line, f"unknown {what}{similar}")
        elif key.strip():
            reader.findings.ignore(
                key.strip(), element.line, f"option {key.strip()!r} of connector {name!r} is ignored"
            )
    trusted = options.get("trustStorePath", "")
    return ConnectorSettings(
        name,
        parts.hostname,
        parts.port,
        tls=parse_boolean(options.get("sslEnabled", "false")),
        trust_store_path=str((directory / trusted).absolute()) if trusted else "",
        verify_host=parse_boolean(options.get("verifyHost", "true")),
    )


def _meant(option: str) -> str:
    """What a misspelt option means, as the connection without it may have no TLS; "" for one that Artemis has, too."""
    return "" if option in ACCEPTOR_OPTIONS else nearest(option, list(CONNECTOR_OPTIONS), likeness=_MISSPELT)


def read_routers(reader: Reader, element: XmlElement, sources: TargetSources) -> list[ConnectionRouterSettings]:
    found: list[ConnectionRouterSettings] = []
    lines: dict[str, int] = {}
    for child in reader.children(element, CONNECTION_ROUTERS):
        name = reader.required(child, "name")
        reader.note_twice("connection-router", name, child.line, lines)
        found.append(_read_router(reader, child, name, sources))
    return found


def _read_router(reader: Reader, element: XmlElement, name: str, sources: TargetSources) -> ConnectionRouterSettings:
    children = reader.children(element, CONNECTION_ROUTER)
    policies = [child for child in children if child.name == "policy"]
    inner = reader.once([child for child in children if child.name != "policy"])
    policy = _read_policies(reader, policies, name)
    pool = _read_pool(reader, inner["pool"], name, sources) if "pool" in inner else None
    _check_together(reader, policies[-1].line if policies else element.line, name, policy, pool)
    return ConnectionRouterSettings(
        name,
        **declared_in(reader, inner, ROUTER_SETTINGS, ConnectionRouterSettings("")),
        key_filter=_read_regex(reader, inner.get("key-filter")),
        local_target_filter=_read_regex(reader, inner.get("local-target-filter")),
        cache=_read_cache(reader, inner["cache"]) if "cache" in inner else None,
        policy=policy,
        pool=pool,
    )


def _check_together(
    reader: Reader, line: int, name: str, policy: RouterPolicySettings | None, pool: TargetPoolSettings | None
) -> None:
    """Notices about a policy and a pool that do nothing together, or without each other."""
    only_transforms = policy is not None and MODULO in POLICY_PROPERTIES.get(policy.name, {})
    brought = policy is not None and policy.name not in POLICY_PROPERTIES
    if pool is None and policy is not None and not only_transforms and not brought:
        sentence = f"connection-router {name!r} has a <policy> and no <pool> from which it could choose; remove it"
        reader.findings.notice(_POLICY_ALONE, line, sentence)
    elif pool is not None and policy is None:
        sentence = f"connection-router {name!r} has a <pool> and no <policy> that chooses from it; add one"
        reader.findings.notice(_POLICY_ALONE, line, sentence)
    elif pool is not None and only_transforms:
        sentence = (
            f"connection-router {name!r} has a <pool> and a policy that chooses no target, so what does not belong "
            "here is refused; remove the pool, or choose by CONSISTENT_HASH"
        )
        reader.findings.notice(_POLICY_ALONE, line, sentence)


def _read_pool(reader: Reader, element: XmlElement, router: str, sources: TargetSources) -> TargetPoolSettings:
    children = reader.children(element, POOL)
    inner = reader.once(children)
    declared = declared_in(reader, inner, POOL_SETTINGS, TargetPoolSettings())
    declared.setdefault("username", sources.login[0])
    declared.setdefault("password", sources.login[1])
    kinds = [child.name for child in element.children if child.name in _KINDS]
    if len(kinds) != 1:
        sentence = f"the <pool> of connection-router {router!r} has several kinds of targets; keep one"
        if not kinds:
            sentence = (
                f"the <pool> of connection-router {router!r} names no targets; write <static-connectors> or "
                "<discovery-group-ref> in it"
            )
        reader.findings.add(CONTRADICTION if kinds else MISSING, element.line, sentence)
    targets = _read_static(reader, inner["static-connectors"], sources.connectors) if kinds == [_KINDS[0]] else ()
    group = _read_group(reader, inner[_KINDS[1]], sources.discovery_groups) if kinds == [_KINDS[1]] else ""
    if (targets or group) and (not declared["password"] or declared["password"].startswith("ENC(")):
        sentence = (
            f"the <pool> of connection-router {router!r} has no password in plain text with which targets could be "
            "asked; write <username> and <password> in it, such as ${ROUTER_PASSWORD} of the environment"
        )
        reader.findings.add(MISSING, element.line, sentence)
    pool = TargetPoolSettings(connectors=targets, discovery_group=group, **declared)
    possible = len(targets) + pool.local_target_enabled
    if targets and pool.quorum_size > possible:
        sentence = f"quorum-size {pool.quorum_size} of connection-router {router!r} is above its {possible} targets, so"
        reader.findings.notice(_QUORUM, element.line, f"{sentence} no connection gets one; lower it, or name more")
    return pool


def _read_group(reader: Reader, element: XmlElement, names: list[str]) -> str:
    reader.leaf(element, DISCOVERY_GROUP_REF)
    name = reader.required(element, "discovery-group-name")
    if name and name not in names:
        remedy = nearest(name, names) or "; declare it below <discovery-groups>"
        reader.findings.add(WRONG_VALUE, element.line, f"there is no discovery group {name!r}{remedy}")
    return name


def _read_static(reader: Reader, element: XmlElement, connectors: Connectors) -> tuple[ConnectorSettings, ...]:
    found: list[ConnectorSettings] = []
    unreachable = False
    for child in reader.children(element, STATIC_CONNECTORS):
        name = reader.value(child, parse_text, "")
        one = connectors.get(name)
        if one is None:
            sentence = f"there is no connector {name!r} that can be a target, so it is none"
            reader.findings.notice(
                _NO_TARGET, child.line, sentence + (nearest(name, list(connectors)) or "; declare it")
            )
        elif one.host in ("0.0.0.0", "::"):
            sentence = (
                f"connector {name!r} has the host {one.host}, to which nothing can connect; name the broker's host"
            )
            reader.findings.add(WRONG_VALUE, child.line, sentence)
            unreachable = True
        else:
            found.append(one)
    if not found and not unreachable:
        sentence = "no connector of <static-connectors> can be a target; declare one below <connectors>"
        reader.findings.add(MISSING, element.line, sentence)
    return tuple(found)


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
    JavaRegex(text)
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
