"""``<ha-policy>``."""

from collections.abc import Mapping
from typing import Any, Final

from delosmq.config.broker_xml.catalog.ha_policy import BACKUP, HA_POLICY, PRIMARY, PRIMARY_ONLY, SHARED_STORE
from delosmq.config.broker_xml.catalog.table import Table
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import CONTRADICTION, MISSING, TWICE
from delosmq.config.xml_document import XmlElement
from delosmq.model.settings import BACKUP_SETTINGS, PRIMARY_SETTINGS, BackupPolicy, PrimaryPolicy
from delosmq.model.values import Setting

_ALONE: Final = ("primary-only", "live-only")
_PRIMARY: Final = ("primary", "master")


def read_ha_policy(
    reader: Reader, element: XmlElement, *, persistent: bool, shares: bool
) -> PrimaryPolicy | BackupPolicy | None:
    """What a broker that shares its store is, or None.

    Args:
        persistent: the broker keeps messages in a store.
        shares: the file names that store; the default one lies in the instance directory, which no other broker uses.
    """
    chosen = _the_one(reader, element, HA_POLICY, "<primary-only/> or <shared-store>")
    if chosen is None or chosen.name in _ALONE:
        if chosen is not None:
            reader.children(chosen, PRIMARY_ONLY)
        return None
    role = _the_one(reader, chosen, SHARED_STORE, "<primary/> or <backup/>")
    if role is None:
        return None
    if not persistent:
        sentence = "<shared-store> with <persistence-enabled>false: a store in memory is shared with no broker"
        reader.findings.add(CONTRADICTION, chosen.line, f"{sentence}; remove one of the two")
    elif not shares:
        sentence = "<shared-store> lacks <journal-directory> in <core>: the default lies in this instance's directory"
        reader.findings.add(MISSING, chosen.line, f"{sentence}; name one that both brokers use")
    if role.name in _PRIMARY:
        return PrimaryPolicy(**_declared(reader, role, PRIMARY, PRIMARY_SETTINGS, PrimaryPolicy()))
    return BackupPolicy(**_declared(reader, role, BACKUP, BACKUP_SETTINGS, BackupPolicy()))


def _the_one(reader: Reader, element: XmlElement, known: Table, choice: str) -> XmlElement | None:
    """The only child, or None after noting that there is none, or another one."""
    found = reader.children(element, known)
    if not element.children:
        reader.findings.add(MISSING, element.line, f"<{element.name}> is empty; write {choice} in it")
    for more in found[1:]:
        sentence = f"<{more.name}> beside <{found[0].name}> in line {found[0].line}; keep one of the two"
        reader.findings.add(TWICE, more.line, sentence)
    return found[0] if found else None


def _declared(
    reader: Reader, element: XmlElement, known: Table, settings: Mapping[str, Setting], standard: object
) -> dict[str, Any]:
    found = reader.once(reader.children(element, known))
    return {
        field: reader.value(found[setting.written], setting.parse, getattr(standard, field))
        for field, setting in settings.items()
        if setting.written in found
    }
