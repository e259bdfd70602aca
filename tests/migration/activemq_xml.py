"""Configurations of ActiveMQ Classic, converted and loaded."""

from collections.abc import Callable
from pathlib import Path

from delosmq.config.broker_xml import load_broker_xml
from delosmq.migration.activemq_xml import ConvertedBroker, RemarkKind, convert_activemq_xml
from delosmq.model.settings import AddressSettings, BrokerSettings
from delosmq.model.wildcard import AddressSettingsTable

NAMESPACE = "http://activemq.apache.org/schema/core"
MEMORY_BYTES = 8 * 1024**3

Convert = Callable[..., "Converted"]


class Converted:
    """A conversion with the settings that its broker.xml loads as."""

    def __init__(self, conversion: ConvertedBroker, directory: Path) -> None:
        self.conversion = conversion
        path = directory / "broker.xml"
        path.write_text(conversion.broker_xml, encoding="utf-8")
        self.settings: BrokerSettings = load_broker_xml(path, properties={}, memory_bytes=MEMORY_BYTES).settings

    def resolve(self, address: str) -> AddressSettings:
        """The settings in force for an address."""
        return AddressSettingsTable(self.settings.address_settings).resolve(address)

    def said(self, kind: RemarkKind) -> list[tuple[int, str]]:
        """Lines and sentences of one kind."""
        return [(remark.line, remark.sentence) for remark in self.conversion.remarks if remark.kind is kind]

    @property
    def left_out(self) -> list[str]:
        """Sentences about what the new broker lacks."""
        return [remark.sentence for remark in self.conversion.remarks if remark.left_out]


def convert_text(text: str | bytes, directory: Path, **properties: str) -> Converted:
    """Converts a whole file."""
    path = directory / "activemq.xml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return Converted(convert_activemq_xml(path, properties=properties), directory)


def broker(body: str, attributes: str = "") -> str:
    """A broker, whose body begins in line 2. It has users, so that nothing is said about them."""
    login = "<plugins><simpleAuthenticationPlugin/></plugins>" if "<plugins>" not in body else ""
    return f'<broker xmlns="{NAMESPACE}" {attributes}>\n{body}\n{login}</broker>'


def policies(entries: str) -> str:
    """A destinationPolicy, whose entries begin in line 3 of the file."""
    return f"<destinationPolicy><policyMap><policyEntries>\n{entries}\n</policyEntries></policyMap></destinationPolicy>"
