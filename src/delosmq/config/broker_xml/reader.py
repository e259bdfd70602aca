"""Puts the elements of a file to the catalogue: obeys, lists or refuses each by its policy."""

import re
from collections.abc import Callable
from typing import Final, TypeVar

from delosmq.config.broker_xml.catalog.table import Item, Policy, Table
from delosmq.config.findings import MISSING, TWICE, UNKNOWN_NAME, WRONG_VALUE, Findings, nearest
from delosmq.config.xml_document import XmlElement

T = TypeVar("T")

CORE_NAMESPACE: Final = "urn:activemq:core"

_IN_ROUTING: Final = 'write <anycast><queue name="..."/></anycast>, or <multicast> instead of <anycast>, in it'
_IN_ADDRESS: Final = f'it stands in its address: write <addresses><address name="..."> and {_IN_ROUTING}'
_MISPLACED: Final[dict[tuple[str, str], str]] = {
    ("address", "queue"): f"a queue is anycast or multicast: {_IN_ROUTING}",
    ("addresses", "queue"): _IN_ADDRESS,
    ("core", "queue"): _IN_ADDRESS,
    ("core", "address"): 'write <addresses><address name="...">',
}
"""(Parent, child): what to do about elements that are commonly put in the wrong place."""

# Letters of a wrong value that a message repeats.
_MOST_SHOWN: Final = 100
_OPTIONS: Final = re.compile(r"(?<!\()\?(?=.*=)", re.DOTALL)
"""Where the options of a URL begin, which may hold passwords; no regular expression has one of its groups there."""


class Reader:
    """Reads elements by the catalogue and collects what is wrong and what is not in effect yet.

    Attributes:
        findings: the start is refused if there are mistakes among them.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def note_twice(self, kind: str, name: str, line: int, lines: dict[str, int]) -> None:
        """Notes it as a mistake when ``name`` is among ``lines``, the ones seen so far; adds it when it isn't."""
        if name and name in lines:
            sentence = f"{kind} {name!r} is already in line {lines[name]}; keep one of the two or join them"
            self.findings.add(TWICE, line, sentence)
        lines.setdefault(name, line)

    def children(self, element: XmlElement, known: Table) -> list[XmlElement]:
        """The children of ``element`` that are in effect; every other one is listed or is a mistake.

        Attributes are checked as well; those in effect are left to the caller.
        """
        if element.text:
            self.findings.add(
                UNKNOWN_NAME, element.line, f"text in <{element.name}>, which holds elements only; remove it"
            )
        self._check_attributes(element, known)
        elements = {name: item for name, item in known.items() if not name.startswith("@")}
        return [child for child in element.children if self._is_in_effect(child, element.name, elements)]

    def leaf(self, element: XmlElement, known: Table | None = None) -> None:
        """Checks that ``element`` has no children, and the attributes that ``known`` lists only."""
        self._check_attributes(element, known or {})
        for child in element.children:
            self.findings.add(
                UNKNOWN_NAME, child.line, f"<{child.name}> in <{element.name}>, which holds text; remove it"
            )

    def once(self, elements: list[XmlElement]) -> dict[str, XmlElement]:
        """``elements`` by name; one that is there twice is a mistake."""
        by_name: dict[str, XmlElement] = {}
        for element in elements:
            first = by_name.setdefault(element.name, element)
            if first is not element:
                sentence = f"<{element.name}> is already in line {first.line}; keep one of the two"
                self.findings.add(TWICE, element.line, sentence)
        return by_name

    def value(self, element: XmlElement, parse: Callable[[str], T], default: T) -> T:
        """What ``element`` holds, or ``default`` after noting that it is wrong."""
        self.leaf(element)
        return self.parsed(element.line, f"<{element.name}>", element.text, parse, default=default)

    def attribute(self, element: XmlElement, name: str, parse: Callable[[str], T], default: T) -> T:
        """What the attribute ``name`` holds; ``default`` when it is missing, or wrong, which is noted."""
        text = element.attributes.get(name)
        if text is None:
            return default
        return self.parsed(element.line, f"{name!r} of <{element.name}>", text.strip(), parse, default=default)

    def required(self, element: XmlElement, name: str) -> str:
        """The attribute ``name``; "" after noting that it is missing."""
        text = element.attributes.get(name, "").strip()
        if not text:
            self.findings.add(MISSING, element.line, f'<{element.name}> lacks {name!r}; write {name}="..."')
        return text

    def parsed(self, line: int, what: str, text: str, parse: Callable[[str], T], *, default: T) -> T:
        """``text`` parsed, or ``default`` after noting that it is wrong."""
        try:
            return parse(text)
        except ValueError as rule:
            shown = _OPTIONS.split(text)[0][:_MOST_SHOWN]
            self.findings.add(WRONG_VALUE, line, f"{what} is {shown!r} but must be {rule}")
            return default

    def known_name(self, line: int, what: str, name: str, known: Table) -> Item | None:
        """The catalogue's item for ``name``, or None after noting that there is none."""
        item = known.get(name)
        if item is None:
            sentence = f"unknown {what}{nearest(name, [key.lstrip('@') for key in known])}"
            self.findings.add(UNKNOWN_NAME, line, sentence if sentence.endswith("?") else f"{sentence}; remove it")
        return item

    def in_effect(self, line: int, what: str, value: str, item: Item) -> bool:
        """Whether ``item`` is in effect; when it isn't, lists or refuses it."""
        if item.policy is Policy.NOT_YET:
            self.findings.ignore(item.name.lstrip("@"), line, f"{what} is ignored{item.about and ': '}{item.about}")
        elif item.policy is Policy.REFUSED and value.lower() not in [allowed.lower() for allowed in item.allowed]:
            sentence = f"{what} is not in effect yet: {item.about}"
            remedy = "" if ";" in item.about else f"; write {item.allowed[0]}" if any(item.allowed) else "; remove it"
            self.findings.refuse(item.name.lstrip("@"), line, sentence + remedy)
        return item.policy is Policy.IN_EFFECT

    def _is_in_effect(self, child: XmlElement, parent: str, known: Table) -> bool:
        if child.namespace != CORE_NAMESPACE:
            sentence = (
                f'<{child.name}> is not in the namespace {CORE_NAMESPACE!r}; write <core xmlns="{CORE_NAMESPACE}">'
            )
            self.findings.add(UNKNOWN_NAME, child.line, sentence)
            return False
        misplaced = _MISPLACED.get((parent, child.name))
        if misplaced is not None:
            self.findings.add(UNKNOWN_NAME, child.line, f"<{child.name}> directly in <{parent}>: {misplaced}")
            return False
        item = self.known_name(child.line, f"element <{child.name}> in <{parent}>", child.name, known)
        if item is None:
            return False
        for inner in child.children if item.children else ():
            if inner.name not in item.children:
                allowed = nearest(inner.name, list(item.children)) or "; remove it"
                self.findings.add(
                    UNKNOWN_NAME, inner.line, f"unknown element <{inner.name}> in <{child.name}>{allowed}"
                )
        return self.in_effect(child.line, f"<{child.name}>", child.text, item)

    def _check_attributes(self, element: XmlElement, known: Table) -> None:
        attributes = {name: item for name, item in known.items() if name.startswith("@")}
        for name, value in element.attributes.items():
            item = self.known_name(element.line, f"attribute {name!r} of <{element.name}>", f"@{name}", attributes)
            if item is not None:
                self.in_effect(element.line, f"{name!r} of <{element.name}>", value.strip(), item)
