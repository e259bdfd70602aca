"""Names of addresses and queues in broker.xml: what a running broker refuses is refused here, with its line."""

from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import WRONG_VALUE
from delosmq.config.xml_document import XmlElement
from delosmq.model import values
from delosmq.model.errors import MisuseError
from delosmq.model.names import QUEUE_MARK, check_name


def parse_address(text: str) -> str:
    """The name of an address, in the text of an element."""
    if QUEUE_MARK in text:
        name = text.partition(QUEUE_MARK)[0] or "..."
        raise ValueError(f"an address without '{QUEUE_MARK}' and the queue after it, such as '{name}'")
    try:
        check_name("address", values.parse_text(text))
    except MisuseError as wrong:
        raise ValueError(f"the name of an address: {wrong.message}") from None
    return text


def required_name(reader: Reader, element: XmlElement, kind: str) -> str:
    """The attribute ``name`` of an address or queue (``kind``); "" after noting that it is missing."""
    name = reader.required(element, "name")
    if name:
        try:
            check_name(kind, name)
        except MisuseError as wrong:
            reader.findings.add(WRONG_VALUE, element.line, wrong.message)
    return name
