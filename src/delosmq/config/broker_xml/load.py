"""Loads a broker.xml."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from delosmq.config import values
from delosmq.config.broker_xml.acceptors import read_acceptors
from delosmq.config.broker_xml.addresses import read_address_settings, read_addresses, read_security_settings
from delosmq.config.broker_xml.core_catalog import CORE, WILDCARD_ADDRESSES
from delosmq.config.broker_xml.reader import CORE_NAMESPACE, Reader
from delosmq.config.findings import MISSING, NAMES_WITHOUT_EFFECT, UNKNOWN_NAME
from delosmq.config.memory import available_memory_bytes
from delosmq.config.xml_document import XmlElement, read_xml
from delosmq.model.settings import (
    UNLIMITED,
    AcceptorSettings,
    AddressFullPolicy,
    BrokerSettings,
    JournalSettings,
    QueueSettings,
)
from delosmq.model.wildcard import AddressSettingsTable

_ROOT_NAMESPACE: Final = "urn:activemq"
_DEFAULT_MEMORY_PERCENT: Final = 50
_DEFAULT_DIRECTORY: Final = "data/journal"

# Below this, the records of one ordinary batch would not fit into a segment.
_LEAST_SEGMENT_BYTES: Final = 64 * 1024


@dataclass(frozen=True)
class LoadedConfiguration:
    """What a broker.xml says.

    Attributes:
        settings: complete; ``journal.directory`` is absolute, or "" when nothing is kept.
        notices: sentences with their codes, to be logged once at start: what is not in effect, or is in another way.
    """

    settings: BrokerSettings
    notices: list[str] = field(default_factory=list)


def load_broker_xml(
    path: Path,
    *,
    instance: Path | None = None,
    properties: Mapping[str, str] | None = None,
    memory_bytes: int | None = None,
) -> LoadedConfiguration:
    """Reads, checks and translates the broker.xml at ``path``.

    Args:
        instance: what relative directories are relative to; by default the parent of ``etc``, where the file lies, or
            its own directory when that isn't called ``etc``.
        properties: what ``${name}`` stands for; by default the environment.
        memory_bytes: of this machine or control group; by default it is looked up.

    Raises:
        ConfigurationError: with file, line and remedy of up to 20 mistakes.
    """
    if instance is None:
        instance = path.parent.parent if path.parent.name == "etc" else path.parent
    root, findings = read_xml(path, os.environ if properties is None else properties)
    reader = Reader(findings)
    core = _core_of(reader, root)
    # Without <core> nothing else can be read.
    if core is None:
        findings.raise_if_any()
        raise AssertionError("a missing <core> is a finding")
    loader = _Loader(reader, instance, available_memory_bytes() if memory_bytes is None else memory_bytes)
    settings = loader.read(core)
    findings.raise_if_any()
    return LoadedConfiguration(settings, [*_not_yet_notices(path, reader), *loader.notices, *_warnings(settings)])


def _core_of(reader: Reader, root: XmlElement) -> XmlElement | None:
    if root.name != "configuration" or root.namespace != _ROOT_NAMESPACE:
        sentence = f'the root is <{root.name}>; write <configuration xmlns="{_ROOT_NAMESPACE}">'
        reader.findings.add(UNKNOWN_NAME, root.line, sentence)
        return None
    core: XmlElement | None = None
    for child in root.children:
        if child.name == "core" and child.namespace == CORE_NAMESPACE and core is None:
            core = child
        else:
            sentence = f'<{child.name}> in <configuration>, which holds one <core xmlns="{CORE_NAMESPACE}">; remove it'
            reader.findings.add(UNKNOWN_NAME, child.line, sentence)
    if core is None and not root.children:
        sentence = f'<configuration> is empty; write <core xmlns="{CORE_NAMESPACE}"> in it'
        reader.findings.add(MISSING, root.line, sentence)
    return core


class _Loader:
    """Turns the children of ``<core>`` into settings."""

    def __init__(self, reader: Reader, instance: Path, memory_bytes: int) -> None:
        self._reader = reader
        self._instance = instance
        self._memory_bytes = memory_bytes
        self._found: dict[str, XmlElement] = {}
        self.notices: list[str] = []

    def read(self, core: XmlElement) -> BrokerSettings:
        """The settings; only to be used when no finding was noted."""
        self._found = self._reader.once(self._reader.children(core, CORE))
        reader, found, standard = self._reader, self._found, BrokerSettings()
        if wildcards := found.get("wildcard-addresses"):
            reader.children(wildcards, WILDCARD_ADDRESSES)
        acceptors: list[AcceptorSettings] = []
        if element := found.get("acceptors"):
            acceptors, notices = read_acceptors(reader, element)
            self.notices += notices
        addresses, queues = read_addresses(reader, found["addresses"]) if "addresses" in found else ([], [])
        address_settings = (
            read_address_settings(reader, found["address-settings"]) if "address-settings" in found else []
        )
        security_settings = (
            read_security_settings(reader, found["security-settings"]) if "security-settings" in found else []
        )
        name = found.get("name")
        return BrokerSettings(
            name=standard.name if name is None else reader.value(name, values.parse_text, ""),
            journal=self._journal(),
            global_max_size_bytes=self._global_max_size_bytes(),
            connection_ttl_override_ms=self._number(
                "connection-ttl-override", standard.connection_ttl_override_ms, least=1, unlimited=True
            ),
            connection_ttl_check_interval_ms=self._number(
                "connection-ttl-check-interval", standard.connection_ttl_check_interval_ms, least=1
            ),
            acceptors=tuple(acceptors),
            addresses=tuple(addresses),
            queues=tuple(queues),
            address_settings=tuple(address_settings),
            security_settings=tuple(security_settings),
        )

    def _journal(self) -> JournalSettings:
        reader, found, standard = self._reader, self._found, JournalSettings()
        persistent, directory, size = True, _DEFAULT_DIRECTORY, standard.file_size_bytes
        if element := found.get("persistence-enabled"):
            persistent = reader.value(element, values.parse_boolean, True)
        if element := found.get("journal-directory"):
            directory = reader.value(element, values.parse_text, directory)
        if element := found.get("journal-file-size"):
            size = reader.value(element, values.bytes_at_least(_LEAST_SEGMENT_BYTES), size)
        return JournalSettings(str((self._instance / directory).absolute()) if persistent else "", size)

    def _global_max_size_bytes(self) -> int:
        reader, found = self._reader, self._found
        size, percent = UNLIMITED, _DEFAULT_MEMORY_PERCENT
        if element := found.get("global-max-size"):
            size = reader.value(element, values.parse_limit_bytes, UNLIMITED)
        if element := found.get("global-max-size-percent-of-jvm-max-memory"):
            percent = reader.value(element, values.parse_percentage, percent)
        return self._memory_bytes * percent // 100 if size == UNLIMITED else size

    def _number(self, name: str, default: int, *, least: int, unlimited: bool = False) -> int:
        element = self._found.get(name)
        if element is None:
            return default
        parse = values.unlimited_or_at_least(least) if unlimited else values.at_least(least)
        return self._reader.value(element, parse, default)


def _not_yet_notices(path: Path, reader: Reader) -> list[str]:
    if not reader.not_yet:
        return []
    return [f"{NAMES_WITHOUT_EFFECT}: {path}: known but not in effect yet, hence ignored: {', '.join(reader.not_yet)}"]


def _warnings(settings: BrokerSettings) -> list[str]:
    notices: list[str] = []
    if not settings.acceptors:
        notices.append("DMQ4108: no acceptor is open, so no client can connect; add one with protocols=STOMP")
    if not settings.security_settings:
        notices.append('DMQ4105: there are no security-settings, so nobody may do anything; add one with match="#"')
    table = AddressSettingsTable(settings.address_settings)
    if _pages_somewhere(settings):
        notices.append(
            "DMQ4104: address-full-policy PAGE acts as BLOCK, as paging is not in effect yet: "
            "producers wait when memory is full"
        )
    rings = [queue.name for queue in settings.queues if _is_ring(queue, table) and _pages(queue.address, table)]
    if rings:
        notices.append(
            f"DMQ4106: ring queues on addresses with address-full-policy PAGE: {', '.join(rings)}; a ring doesn't "
            f"bound what is paged, so write BLOCK, FAIL or DROP for them"
        )
    return notices


def _pages_somewhere(settings: BrokerSettings) -> bool:
    # Addresses that no match says anything about page by default.
    catch_all = [match for match in settings.address_settings if match.match == "#"]
    policies = [match.fields.get("address_full_policy") for match in settings.address_settings]
    return AddressFullPolicy.PAGE in policies or not any("address_full_policy" in match.fields for match in catch_all)


def _is_ring(queue: QueueSettings, table: AddressSettingsTable) -> bool:
    size = table.resolve(queue.address).default_ring_size if queue.ring_size is None else queue.ring_size
    return size != UNLIMITED


def _pages(address: str, table: AddressSettingsTable) -> bool:
    return table.resolve(address).address_full_policy is AddressFullPolicy.PAGE
