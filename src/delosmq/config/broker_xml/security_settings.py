"""``<security-settings>``."""

from typing import Final

from delosmq.config.broker_xml.catalog.addresses import PERMISSION, SECURITY_SETTING, SECURITY_SETTINGS
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.broker_xml.wildcards import check_match
from delosmq.config.findings import WRONG_VALUE, nearest
from delosmq.config.xml_document import XmlElement
from delosmq.model import values
from delosmq.model.settings import SecurityMatch, WildcardSyntax
from delosmq.security.access import PERMISSIONS

# Names Artemis still reads.
_OLD_PERMISSIONS: Final = {"createTempQueue": "createNonDurableQueue", "deleteTempQueue": "deleteNonDurableQueue"}


def read_security_settings(reader: Reader, element: XmlElement, syntax: WildcardSyntax) -> list[SecurityMatch]:
    matches: list[SecurityMatch] = []
    lines: dict[str, int] = {}
    for child in reader.children(element, SECURITY_SETTINGS):
        match = reader.required(child, "match")
        reader.note_twice("security-setting", match, child.line, lines)
        check_match(reader, child, match, syntax)
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
