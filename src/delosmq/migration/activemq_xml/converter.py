"""From an activemq.xml to the broker.xml, users and roles that do the same, and a list of what does not."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from delosmq.config.broker_xml.catalog.acceptors import ACCEPTOR_OPTIONS
from delosmq.config.broker_xml.catalog.core import CORE
from delosmq.migration.activemq_xml.broker_xml_text import render_broker_xml
from delosmq.migration.activemq_xml.catalog.broker import BROKER, ELEMENTS
from delosmq.migration.activemq_xml.catalog.rows import RowReader, is_in_effect
from delosmq.migration.activemq_xml.connectors import read_connectors
from delosmq.migration.activemq_xml.conversion_report import ConversionReport, Remark
from delosmq.migration.activemq_xml.dead_letters import SHARED
from delosmq.migration.activemq_xml.destinations import read_destinations, read_interceptors
from delosmq.migration.activemq_xml.names import QUEUE
from delosmq.migration.activemq_xml.plugins import discards_all, read_plugins
from delosmq.migration.activemq_xml.policies import Policies
from delosmq.migration.activemq_xml.resources import read_persistence, read_usage
from delosmq.migration.activemq_xml.security import ConvertedAccounts, is_usable
from delosmq.migration.activemq_xml.source import Section, note_bean, read_activemq_xml
from delosmq.migration.activemq_xml.target import Target
from delosmq.model import values

_ADMINISTRATORS = ("admin", "delosmq-admin", "delosmq-administrator")
_ROLES = ("amq", "delosmq-amq", "delosmq-administrators")
_NETWORK_KINDS = ("networkConnector", "multicastNetworkConnector", "ldapNetworkConnector")


@dataclass(frozen=True)
class ConvertedBroker:
    """What became of an activemq.xml.

    Attributes:
        file: it, as messages call it.
        broker_xml: the text of the new broker.xml, what could not be converted at its top.
        users: user -> password in plain text, without the administrator.
        roles: role -> users, the administrator among them.
        administrator: the user that the new instance has in any case; its password is still to be made.
        remarks: what is left out first, then what is different or not needed, each in the order of the file.
    """

    file: str
    broker_xml: str
    users: dict[str, str]
    roles: dict[str, list[str]]
    administrator: str
    remarks: tuple[Remark, ...]

    @property
    def is_complete(self) -> bool:
        return not any(remark.left_out for remark in self.remarks)

    def lines(self) -> list[str]:
        """The remarks for people, one line each."""
        remarks = ConversionReport(self.file)
        return [remarks.text(remark) for remark in self.remarks]


def convert_activemq_xml(path: Path, *, properties: Mapping[str, str] | None = None) -> ConvertedBroker:
    """Converts the activemq.xml at ``path``; writes nothing.

    Args:
        properties: what ``${name}`` stands for; by default the environment.

    Raises:
        ConfigurationError: it can't be read, or is no activemq.xml.
    """
    remarks = ConversionReport(str(path))
    broker = read_activemq_xml(path, os.environ if properties is None else properties, remarks)
    target = Target()
    # Names that users and groups of the file don't have.
    text = _names_in_use(broker)
    administrator = next(name for name in _ADMINISTRATORS if name not in text or name == _ADMINISTRATORS[-1])
    role = next(name for name in _ROLES if name not in text or name == _ROLES[-1])
    _Converter(broker, target, ConvertedAccounts(target, administrator, role)).convert(administrator)
    ordered = remarks.in_order()
    lines = [remarks.text(remark) for remark in ordered]
    roles = {name: list(dict.fromkeys(users)) for name, users in target.roles.items()}
    xml = render_broker_xml(target, path.name, lines)
    return ConvertedBroker(str(path), xml, target.users, roles, administrator, ordered)


def _names_in_use(broker: Section) -> set[str]:
    names: set[str] = set()
    waiting = [broker.element]
    while waiting:
        element = waiting.pop()
        if element.name in ("authenticationUser", "authorizationEntry"):
            for name, text in element.attributes.items():
                if name != "password":
                    names.update(values.comma_separated(text))
        waiting += element.children
    return names


class _Converter:
    """Reads the parts of ``<broker>`` one after the other."""

    def __init__(self, broker: Section, target: Target, accounts: ConvertedAccounts) -> None:
        self._broker = broker
        self._target = target
        self._accounts = accounts
        self._remarks = broker.remarks

    def convert(self, administrator: str) -> None:
        """Fills the target.

        Args:
            administrator: the user that clients may log in as where Classic asked for no login.
        """
        broker, target = self._broker, self._target
        target.declare(SHARED, QUEUE)
        target.discards_dead_letters = discards_all(broker)
        policies = Policies(broker, target, self._read_attributes())
        for section in broker.children("persistenceAdapter"):
            read_persistence(section, target)
        for section in broker.children("systemUsage"):
            read_usage(section, target)
        for section in broker.children("destinations"):
            read_destinations(section, target)
        for section in broker.children("destinationInterceptors"):
            read_interceptors(section, target)
        for section in broker.children("destinationPolicy"):
            policies.read(section)
        for section in broker.children("plugins"):
            read_plugins(section, target, self._accounts)
        for section in broker.children("transportConnectors"):
            read_connectors(section, target)
        self._read_networks()
        self._read_rest()
        policies.finish()
        if not self._accounts.has_authentication:
            broker.different(
                "there was no login, and here one is always required: let clients log in, at first as "
                f"{administrator!r}, or add users with `delosmq mask`"
            )
        self._accounts.finish(broker)

    def _read_attributes(self) -> int:
        """Reads the attributes of ``<broker>``; gives how often inactive destinations are looked for, in ms."""
        broker, core = self._broker, self._target.core
        purge_ms = 0
        text = broker.attribute("schedulePeriodForDestinationPurge")
        if text:
            try:
                purge_ms = values.at_least(0)(text)
            except ValueError as rule:
                broker.wrong("'schedulePeriodForDestinationPurge' of <broker>", text, str(rule))
        if purge_ms:
            core["address-queue-scan-period"] = str(purge_ms)
        self._target.has_advisories = broker.flag("advisorySupport", True)
        if not self._target.has_advisories and not is_in_effect("supportAdvisory", ACCEPTOR_OPTIONS):
            sentence = "'advisorySupport' of <broker> is left out: no option of an acceptor switches advisories off yet"
            broker.not_yet(sentence)
        if broker.flag("schedulerSupport", False):
            sentence = (
                "a message can be scheduled for one time; those with a period, a count or a cron line are refused"
            )
            broker.different(sentence)
        reader = RowReader(BROKER, CORE, "element of <core>", self._remarks)
        core |= reader.read_all(broker.attributes(), broker.line, "broker", "<broker>")
        core.setdefault("name", "localhost")
        if not is_usable(core["name"]):
            broker.wrong("'brokerName' of <broker>", core["name"], "a name of letters and digits")
            core["name"] = "localhost"
        return purge_ms

    def _read_networks(self) -> None:
        for section in self._broker.children("networkConnectors"):
            for connector in section.children(*_NETWORK_KINDS):
                name = connector.element.attributes.get("name", "")
                shown = f"<{connector.element.name}> {name!r}" if name else f"<{connector.element.name}>"
                connector.impossible(
                    f"{shown} is left out: it hands messages to other brokers, and there are no networks of brokers "
                    "yet; let consumers connect to each broker"
                )
                connector.ignore()
            section.close(_NETWORK_KINDS)
        for section in self._broker.children("jmsBridgeConnectors", "jmsConnectors"):
            sentence = (
                f"<{section.element.name}> is left out: it hands messages to other brokers; let an application do so"
            )
            section.impossible(sentence)
            section.ignore()

    def _read_rest(self) -> None:
        for section in self._broker.children("sslContext"):
            sentence = (
                "<sslContext> is left out: its stores have to be turned into PEM files, as said at the ssl connectors"
            )
            if any(acceptor.reason and "sslEnabled" in acceptor.url for acceptor in self._target.acceptors):
                section.impossible(sentence)
            else:
                section.needless("<sslContext> is not needed: no connector speaks TLS")
            section.ignore()
        for section in self._broker.children():
            name = section.element.name
            row = ELEMENTS.get(name)
            if row is not None and row.needless:
                section.needless(f"<{name}> is not needed: {row.needless}")
            elif row is not None:
                remedy = f"; {row.instead}" if row.instead else ""
                section.impossible(f"<{name}> is left out: it {row.about}{remedy}")
            elif name in ("bean", "property"):
                note_bean(section.element, self._remarks)
            else:
                section.unknown(f"unknown element <{name}> in <broker>; it is left out")
            section.ignore()
        self._broker.close()
