"""The catalogue as tables for people: what each name of broker.xml does today."""

from typing import Final

from delosmq.config.broker_xml.catalog.acceptors import ACCEPTOR, ACCEPTOR_OPTIONS, ACCEPTORS
from delosmq.config.broker_xml.catalog.address_settings import ADDRESS_SETTING, ADDRESS_SETTINGS
from delosmq.config.broker_xml.catalog.addresses import (
    ADD,
    ADDRESS,
    ADDRESSES,
    DIVERT,
    DIVERTS,
    DROP,
    FILTER,
    PERMISSION,
    PROPERTY,
    QUEUE,
    QUEUES,
    RENAME,
    SECURITY_SETTING,
    SECURITY_SETTINGS,
    TRANSFORMER,
)
from delosmq.config.broker_xml.catalog.core import CORE, WILDCARD_ADDRESSES
from delosmq.config.broker_xml.catalog.database_store import DATABASE_STORE, STORE
from delosmq.config.broker_xml.catalog.discovery import (
    BROADCAST_GROUP,
    BROADCAST_GROUPS,
    DISCOVERY_GROUP,
    DISCOVERY_GROUPS,
)
from delosmq.config.broker_xml.catalog.ha_policy import BACKUP, HA_POLICY, PRIMARY, PRIMARY_ONLY, SHARED_STORE
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
from delosmq.config.broker_xml.catalog.table import Item, Policy, Table
from delosmq.config.broker_xml.diverts import TRANSFORMER_NAME

_SECTIONS: Final[list[tuple[str, Table]]] = [
    ("`<core>`", CORE),
    ("`<acceptors>`", ACCEPTORS),
    ("`<acceptor>`", ACCEPTOR),
    ("Options of an acceptor's URL", ACCEPTOR_OPTIONS),
    ("`<connection-routers>`", CONNECTION_ROUTERS),
    ("`<connection-router>`", CONNECTION_ROUTER),
    ("`<cache>`", ROUTER_CACHE),
    ("`<policy>`", ROUTER_POLICY),
    ("`<property>` of a policy", ROUTER_PROPERTY),
    ("`<pool>`", POOL),
    ("`<static-connectors>`", STATIC_CONNECTORS),
    ("`<discovery-group-ref>`", DISCOVERY_GROUP_REF),
    ("`<connectors>`", CONNECTORS),
    ("`<connector>`", CONNECTOR),
    ("Options of a connector's URL", CONNECTOR_OPTIONS),
    ("`<broadcast-groups>`", BROADCAST_GROUPS),
    ("`<broadcast-group>`", BROADCAST_GROUP),
    ("`<discovery-groups>`", DISCOVERY_GROUPS),
    ("`<discovery-group>`", DISCOVERY_GROUP),
    ("`<addresses>`", ADDRESSES),
    ("`<address>`", ADDRESS),
    ("`<anycast>` and `<multicast>`", QUEUES),
    ("`<queue>`", QUEUE),
    ("`<filter>`", FILTER),
    ("`<diverts>`", DIVERTS),
    ("`<divert>`", DIVERT),
    ("`<transformer>`", TRANSFORMER),
    ("`<add>`", ADD),
    ("`<drop>`", DROP),
    ("`<rename>`", RENAME),
    ("`<property>`", PROPERTY),
    ("`<address-settings>`", ADDRESS_SETTINGS),
    ("`<address-setting>`", ADDRESS_SETTING),
    ("`<security-settings>`", SECURITY_SETTINGS),
    ("`<security-setting>`", SECURITY_SETTING),
    ("`<permission>`", PERMISSION),
    ("`<wildcard-addresses>`", WILDCARD_ADDRESSES),
    ("`<ha-policy>`", HA_POLICY),
    ("`<primary-only>`", PRIMARY_ONLY),
    ("`<shared-store>`", SHARED_STORE),
    ("`<primary>`", PRIMARY),
    ("`<backup>`", BACKUP),
    ("`<store>`", STORE),
    ("`<database-store>`", DATABASE_STORE),
]


def tables(policy: Policy) -> str:
    """Every name with ``policy``, as Markdown: one heading and one table for each place in the file."""
    parts: list[str] = []
    for title, known in _SECTIONS:
        items = [item for item in known.values() if item.policy is policy]
        if items:
            parts.append("\n".join([f"### {title}", "", *_rows(policy, items)]))
    return "\n\n".join(parts)


def names_that_stop() -> list[str]:
    """Every name that stops a start, in the order of the tables."""
    refused = [item.name for _, known in _SECTIONS for item in known.values() if item.policy is Policy.REFUSED]
    return list(dict.fromkeys([*(name.lstrip("@") for name in refused), TRANSFORMER_NAME]))


def _rows(policy: Policy, items: list[Item]) -> list[str]:
    if policy is Policy.IN_EFFECT:
        rows = [f"| {_name(item)} | {item.about} | {_code(item.default)} | {item.unit} |" for item in items]
        return ["| name | what it sets | default | unit |", "|---|---|---|---|", *rows]
    if policy is Policy.REFUSED:
        rows = [f"| {_name(item)} | {item.about} | {_allowed(item)} |" for item in items]
        return ["| name | why | accepted values |", "|---|---|---|", *rows]
    # Many names, few reasons: one row for each reason.
    by_reason: dict[str, list[str]] = {}
    for item in items:
        by_reason.setdefault(item.about, []).append(_name(item))
    rows = [f"| {', '.join(names)} | {reason} |" for reason, names in by_reason.items()]
    return ["| names | what holds instead |", "|---|---|", *rows]


def _name(item: Item) -> str:
    return f"`{item.name}`"


def _code(text: str) -> str:
    escaped = text.replace("|", "\\|")  # which else ends a cell
    return f"`{escaped}`" if text else ""


def _allowed(item: Item) -> str:
    return ", ".join(f"`{value}`" if value else "empty" for value in item.allowed) or "none"
