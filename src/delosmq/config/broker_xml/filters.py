"""``<filter string="..."/>``: kept as text, read once to know that it can be read."""

from collections.abc import Callable
from typing import Final
from xml.sax.saxutils import quoteattr

from delosmq.config.broker_xml.catalog.addresses import FILTER
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import UNKNOWN_NAME
from delosmq.config.xml_document import XmlElement
from delosmq.selectors.errors import SelectorError

CheckSelector = Callable[[str], object]
"""Raises SelectorError for what is no selector."""

# Letters of a selector shown on each side of its mistake.
_MOST_SHOWN: Final = 40


def parse_as_selector(text: str) -> None:
    """The check of a running broker: what the engine will do with ``text``."""
    # Late, as selectors are rare in broker.xml.
    from delosmq.selectors.selector import parse_selector

    parse_selector(text)


def read_filter(reader: Reader, element: XmlElement | None, check: CheckSelector) -> str:
    """The selector that ``element`` holds, or "" when there is none or after noting that it is wrong."""
    if element is None:
        return ""
    reader.leaf(element, FILTER)
    if element.text:
        shown = element.text if len(element.text) <= _MOST_SHOWN else "..."
        written = f"<filter string={quoteattr(shown)}/>"
        reader.findings.add(UNKNOWN_NAME, element.line, f"<filter> has its selector as text; write {written}")
        return ""
    if "string" not in element.attributes:
        reader.required(element, "string")
        return ""
    text = element.attributes["string"].strip()
    if not text:
        return ""
    try:
        check(text)
    except SelectorError as wrong:
        # One line, without the picture: it may be one of many findings.
        before, after = text[: wrong.position][-_MOST_SHOWN:], text[wrong.position :][:_MOST_SHOWN]
        where = f"letter {wrong.position + 1}, between {before!r} and {after!r}"
        sentence = f"'string' of <filter> is no selector: {wrong.sentence} ({where}); correct it or remove <filter>"
        reader.findings.add("DMQ4011", element.line, sentence)
        return ""
    return text
