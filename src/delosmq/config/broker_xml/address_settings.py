"""``<address-settings>``."""

from typing import Any

from delosmq.config.broker_xml.catalog.address_settings import ADDRESS_SETTING, ADDRESS_SETTINGS
from delosmq.config.broker_xml.combinations import check_combinations
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.broker_xml.wildcards import check_match
from delosmq.config.findings import CONTRADICTION, TWICE, WITHOUT_EFFECT_HERE
from delosmq.config.xml_document import XmlElement
from delosmq.model.declared.address import FIELDS, SETTINGS
from delosmq.model.declared.queue import resolve
from delosmq.model.settings import UNLIMITED, AddressMatch, AddressSettings, QueueSettings, WildcardSyntax


def read_address_settings(reader: Reader, element: XmlElement, syntax: WildcardSyntax) -> list[AddressMatch]:
    """Every ``<address-setting>`` with the fields it sets."""
    matches: list[AddressMatch] = []
    lines: dict[str, int] = {}
    for child in reader.children(element, ADDRESS_SETTINGS):
        match = reader.required(child, "match")
        reader.note_twice("address-setting", match, child.line, lines)
        check_match(reader, child, match, syntax)
        matches.append(AddressMatch(match, _read_fields(reader, child, match)))
    return matches


def _read_fields(reader: Reader, element: XmlElement, match: str) -> dict[str, object]:
    fields: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for name, setting in reader.once(reader.children(element, ADDRESS_SETTING)).items():
        field = FIELDS[name]
        if field in lines:
            sentence = f"<{name}> sets what line {lines[field]} sets under its other name; keep one of the two"
            reader.findings.add(TWICE, setting.line, sentence)
        lines[field] = setting.line
        value = reader.value(setting, SETTINGS[field].parse, None)
        # A wrong value is a finding already, and nothing to compare with.
        if value is not None:
            fields[field] = value
    _check_expiry(reader, match, fields, lines)
    settings = resolve(QueueSettings("", ""), AddressSettings(**fields))
    check_combinations(reader, element.line, f"a queue of address-setting {match!r}", settings)
    return fields


def _check_expiry(reader: Reader, match: str, fields: dict[str, Any], lines: dict[str, int]) -> None:
    least, most = fields.get("min_expiry_delay", UNLIMITED), fields.get("max_expiry_delay", UNLIMITED)
    if UNLIMITED < most < least:
        sentence = f"max-expiry-delay is {most} but min-expiry-delay is {least}; let the maximum be the larger one"
        reader.findings.add(CONTRADICTION, lines["max_expiry_delay"], sentence)
    if fields.get("expiry_delay", UNLIMITED) != UNLIMITED and max(least, most) != UNLIMITED:
        sentence = (
            f"address-setting {match!r} has an expiry-delay, beside which min-expiry-delay and max-expiry-delay "
            "have no effect; remove it or them"
        )
        reader.findings.notice(WITHOUT_EFFECT_HERE, lines["expiry_delay"], sentence)
