"""Loads a broker.xml."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from delosmq.config.broker_xml.acceptors import read_acceptors
from delosmq.config.broker_xml.address_settings import read_address_settings
from delosmq.config.broker_xml.addresses import read_addresses
from delosmq.config.broker_xml.catalog.core import CORE
from delosmq.config.broker_xml.cluster.discovery import read_broadcast_groups, read_discovery_groups
from delosmq.config.broker_xml.database_store import MOST_COUNTED_FILE_BYTES, read_store
from delosmq.config.broker_xml.diverts import read_diverts
from delosmq.config.broker_xml.filters import CheckSelector, parse_as_selector
from delosmq.config.broker_xml.ha_policy import read_ha_policy
from delosmq.config.broker_xml.reader import CORE_NAMESPACE, Reader
from delosmq.config.broker_xml.routers import TargetSources, read_connectors, read_routers
from delosmq.config.broker_xml.security_settings import read_security_settings
from delosmq.config.broker_xml.warnings import warning_about_passwords, warnings_about
from delosmq.config.broker_xml.wildcards import read_wildcards
from delosmq.config.findings import MISSING, UNKNOWN_NAME, FindingKind, Findings
from delosmq.config.machine_memory import available_memory_bytes
from delosmq.config.placeholders import known_properties
from delosmq.config.xml_document import XmlElement, read_xml
from delosmq.model import values
from delosmq.model.settings import (
    CORE_SETTINGS,
    JOURNAL_SETTINGS,
    UNLIMITED,
    AcceptorSettings,
    AddressMatch,
    BackupPolicy,
    BrokerSettings,
    DatabaseStoreSettings,
    JournalSettings,
    PrimaryPolicy,
    WildcardSyntax,
)
from delosmq.model.wildcard import AddressSettingsTable

T = TypeVar("T")

_ROOT_NAMESPACE: Final = "urn:activemq"
_CLASSIC_NAMESPACES: Final = ("http://activemq.apache.org/schema/core", "http://activemq.org/config/")
_JMS_REMEDY: Final = (
    'declare its queues in <core> as <addresses><address name="..."><anycast><queue name="..."/></anycast></address>'
    "</addresses>, and its topics as addresses with <multicast/>"
)
_DEFAULT_MEMORY_PERCENT: Final = 50
_DEFAULT_DIRECTORY: Final = "data/journal"


@dataclass(frozen=True)
class LoadedConfiguration:
    """What a broker.xml says.

    Attributes:
        settings: complete; ``journal.directory`` is absolute, or "" when nothing is kept.
        findings: what is not in effect, or is in another way.
    """

    settings: BrokerSettings
    findings: Findings

    @property
    def notices(self) -> list[str]:
        """Sentences with their codes, to be logged once at start."""
        return self.findings.notices()


def load_broker_xml(
    path: Path,
    *,
    instance: Path | None = None,
    properties: Mapping[str, str] | None = None,
    memory_bytes: int | None = None,
    check_selector: CheckSelector = parse_as_selector,
    without: frozenset[str] = frozenset(),
) -> LoadedConfiguration:
    """Reads, checks and translates the broker.xml at ``path``.

    Args:
        instance: what relative directories are relative to; by default the parent of ``etc``, where the file lies, or
            its own directory when that isn't called ``etc``.
        properties: what ``${name}`` stands for; by default the environment and what is known of ``instance``.
        memory_bytes: of this machine or control group; by default it is looked up.
        check_selector: raises what is wrong with the selector of a filter.
        without: names that are left out although they should stop the start.

    Raises:
        FlawedFileError: with file, line and remedy of up to 20 mistakes, and all findings.
    """
    if instance is None:
        instance = path.parent.parent if path.parent.name == "etc" else path.parent
    if properties is None:
        properties = known_properties(instance.absolute(), os.environ)
    root, findings = read_xml(path, properties, without=without)
    reader = Reader(findings)
    core = _core_of(reader, root)
    # Without <core> nothing else can be read.
    if core is None:
        findings.raise_if_any()
        raise AssertionError("a missing <core> is a finding")
    if memory_bytes is None:
        memory_bytes = available_memory_bytes()
    settings = _Loader(reader, instance, memory_bytes, check_selector, etc=path.parent).read(core)
    # What is missing for other reasons would be warned of.
    if not any(finding.kind.stops for finding in findings.found):
        for warned in warnings_about(settings):
            findings.notice(warned.code, 0, warned.sentence)
        if (readable := warning_about_passwords(path, settings)) is not None:
            findings.notice(readable.code, 0, readable.sentence)
    findings.raise_if_any()
    return LoadedConfiguration(replace(settings, left_out=tuple(findings.names(FindingKind.LEFT_OUT))), findings)


def _core_of(reader: Reader, root: XmlElement) -> XmlElement | None:
    if root.name != "configuration" or root.namespace != _ROOT_NAMESPACE:
        if root.name == "beans" or (root.name == "broker" and root.namespace.startswith(_CLASSIC_NAMESPACES)):
            sentence = (
                f"the root is <{root.name}>: this is an activemq.xml of ActiveMQ Classic; make an instance of it with "
                f"delosmq convert {reader.findings.file}"
            )
        else:
            sentence = f'the root is <{root.name}>; write <configuration xmlns="{_ROOT_NAMESPACE}">'
        reader.findings.add(UNKNOWN_NAME, root.line, sentence)
        return None
    core: XmlElement | None = None
    for child in root.children:
        if child.name == "core" and child.namespace == CORE_NAMESPACE and core is None:
            core = child
        else:
            remedy = _JMS_REMEDY if child.name == "jms" else "remove it"
            sentence = f'<{child.name}> in <configuration>, which holds one <core xmlns="{CORE_NAMESPACE}">; {remedy}'
            reader.findings.add(UNKNOWN_NAME, child.line, sentence)
    if core is None and not root.children:
        sentence = f'<configuration> is empty; write <core xmlns="{CORE_NAMESPACE}"> in it'
        reader.findings.add(MISSING, root.line, sentence)
    return core


class _Loader:
    """Turns the children of ``<core>`` into settings."""

    def __init__(
        self, reader: Reader, instance: Path, memory_bytes: int, check_selector: CheckSelector, *, etc: Path
    ) -> None:
        self._reader = reader
        self._etc = etc
        self._instance = instance
        self._memory_bytes = memory_bytes
        self._check_selector = check_selector
        self._found: dict[str, XmlElement] = {}

    def read(self, core: XmlElement) -> BrokerSettings:
        """The settings; only to be used when no finding was noted."""
        self._found = self._reader.once(self._reader.children(core, CORE))
        self._note_open_door()
        reader, found = self._reader, self._found
        syntax = read_wildcards(reader, found.get("wildcard-addresses"), found.get("wild-card-routing-enabled"))
        declared = self._declared(CORE_SETTINGS, BrokerSettings())
        connectors = read_connectors(reader, found["connectors"], self._etc) if "connectors" in found else {}
        broadcasts, discoveries = found.get("broadcast-groups"), found.get("discovery-groups")
        groups = () if discoveries is None else read_discovery_groups(reader, discoveries)
        login = (declared["cluster_user"], declared["cluster_password"])
        sources = TargetSources(connectors, login, [group.name for group in groups])
        routers = read_routers(reader, found["connection-routers"], sources) if "connection-routers" in found else []
        acceptors: list[AcceptorSettings] = []
        if element := found.get("acceptors"):
            acceptors = read_acceptors(reader, element, self._etc, [router.name for router in routers])
        address_settings = self._address_settings(syntax)
        defaults = AddressSettingsTable(address_settings, syntax)
        addresses, queues = (
            read_addresses(reader, found["addresses"], defaults, self._check_selector)
            if "addresses" in found
            else ([], [])
        )
        diverts = read_diverts(reader, found["diverts"], syntax, self._check_selector) if "diverts" in found else []
        security_settings = (
            read_security_settings(reader, found["security-settings"], syntax) if "security-settings" in found else []
        )
        declared["global_max_size_bytes"] = self._memory_bound(declared["global_max_size_bytes"])
        journal = self._journal()
        database = read_store(reader, found["store"]) if "store" in found else None
        if database is not None:
            # What a batch may take follows from it, and a commit takes less than a GiB.
            most = min(journal.file_size_bytes, MOST_COUNTED_FILE_BYTES)
            journal = replace(journal, file_size_bytes=most)
        return BrokerSettings(
            **declared,
            journal=journal,
            database=database if journal.directory else None,
            wildcards=syntax,
            diverts=tuple(diverts),
            connection_routers=tuple(routers),
            broadcast_groups=() if broadcasts is None else read_broadcast_groups(reader, broadcasts, connectors),
            discovery_groups=groups,
            acceptors=tuple(acceptors),
            addresses=tuple(addresses),
            queues=tuple(queues),
            address_settings=address_settings,
            security_settings=tuple(security_settings),
            ha_policy=self._ha_policy(database),
        )

    def _note_open_door(self) -> None:
        if not self._value("security-enabled", values.parse_boolean, True):
            sentence = (
                "security-enabled is false, and yet a login is always required: clients that send none are refused; "
                "give them users in artemis-users.properties, and permissions in <security-settings>"
            )
            self._reader.findings.notice("DMQ4114", self._found["security-enabled"].line, sentence)

    def _address_settings(self, syntax: WildcardSyntax) -> tuple[AddressMatch, ...]:
        reader, found = self._reader, self._found
        read = read_address_settings(reader, found["address-settings"], syntax) if "address-settings" in found else []
        if "id-cache-size" in found:
            # The least specific match there is, and the first of its kind: every other one overrides it.
            size = reader.value(found["id-cache-size"], values.at_least(0), 0)
            read.insert(0, AddressMatch(syntax.any_words, {"id_cache_size": size}))
        return tuple(read)

    def _ha_policy(self, database: DatabaseStoreSettings | None) -> PrimaryPolicy | BackupPolicy | None:
        element = self._found.get("ha-policy")
        if element is None:
            return None
        shares = "journal-directory" in self._found or database is not None
        return read_ha_policy(self._reader, element, persistent=self._persistent(), shares=shares)

    def _persistent(self) -> bool:
        return self._value("persistence-enabled", values.parse_boolean, True)

    def _journal(self) -> JournalSettings:
        persistent = self._persistent()
        directory = self._value("journal-directory", values.parse_text, _DEFAULT_DIRECTORY)
        kept_in = str((self._instance / directory).absolute()) if persistent else ""
        return JournalSettings(kept_in, **self._declared(JOURNAL_SETTINGS, JournalSettings()))

    def _declared(self, known: dict[str, values.Setting], standard: object) -> dict[str, Any]:
        return {
            field: self._value(setting.written, setting.parse, getattr(standard, field))
            for field, setting in known.items()
        }

    def _memory_bound(self, size: int) -> int:
        name = "global-max-size-percent-of-jvm-max-memory"
        percent = self._value(name, values.percentage_of_at_least(1), _DEFAULT_MEMORY_PERCENT)
        return self._memory_bytes * percent // 100 if size == UNLIMITED else size

    def _value(self, name: str, parse: Callable[[str], T], default: T) -> T:
        element = self._found.get(name)
        return default if element is None else self._reader.value(element, parse, default)
