"""Reads an activemq.xml: a <broker> alone or among Spring beans, its placeholders replaced as far as they are known."""

from collections.abc import Iterable, Mapping
from functools import partialmethod
from pathlib import Path
from typing import Final

from delosmq.config.findings import nearest
from delosmq.config.xml_document import XmlElement, read_xml
from delosmq.migration.activemq_xml.conversion_report import ConversionReport, RemarkKind
from delosmq.model.errors import ConfigurationError

_BROKER_NAMESPACES: Final = frozenset(
    {"http://activemq.apache.org/schema/core", "http://activemq.org/config/1.0", "http://activemq.org/config/5.0", ""}
)

# What surrounds a broker and has nothing to convert: part of the class -> why.
_NEEDLESS_BEANS: Final = {
    "PropertyPlaceholderConfigurer": "what ${...} stands for comes from --define, --properties and the environment",
    "SpringContextHook": "there is no Spring context to stop",
    "Log4jLogQuery": "the log goes to standard error",
}


_LEAST_LIKENESS: Final = 0.7


def is_open(text: str) -> bool:
    """Whether ``text`` holds a placeholder, or an expression of Spring, that stands for nothing here."""
    return "${" in text or "#{" in text


class Section:
    """One element: its attributes and children are taken one by one; `close` lists what was not taken."""

    def __init__(self, element: XmlElement, remarks: ConversionReport) -> None:
        self.element = element
        self.line = element.line
        self.remarks = remarks
        self._attributes = dict(element.attributes)
        self._children = list(element.children)
        self._text = element.text

    def attribute(self, name: str, default: str = "") -> str:
        """Takes an attribute, stripped; one with an open placeholder is listed and counts as missing."""
        text = self._attributes.pop(name, "").strip()
        if is_open(text):
            self.note_open(name)
            return default
        return text or default

    def written(self, name: str, default: str) -> str:
        """Takes an attribute that may be empty: the default only holds where it isn't written."""
        return self.attribute(name) if name in self._attributes else default

    def raw(self, name: str) -> str:
        """Takes an attribute as it is written."""
        return self._attributes.pop(name, "")

    def attributes(self) -> dict[str, str]:
        """Takes all attributes that are left, as they are written."""
        taken = {name: text.strip() for name, text in self._attributes.items()}
        self._attributes.clear()
        return taken

    def flag(self, name: str, default: bool) -> bool:
        """Takes an attribute that is true or false; anything else is listed."""
        text = self.attribute(name).lower()
        if text not in ("true", "false", ""):
            self.wrong(f"{name!r} of <{self.element.name}>", text, "true or false")
        return default if text not in ("true", "false") else text == "true"

    def child(self, name: str) -> "Section | None":
        """Takes the only child of that name; a second one is listed."""
        found = self.children(name)
        for more in found[1:]:
            more.unknown(f"a second <{name}> in <{self.element.name}>; the first counts")
        return found[0] if found else None

    def children(self, *names: str) -> list["Section"]:
        """Takes the children of these names; of any name without an argument."""
        taken = [child for child in self._children if not names or child.name in names]
        self._children = [child for child in self._children if names and child.name not in names]
        return [Section(child, self.remarks) for child in taken]

    def inner(self, *names: str) -> "Section | None":
        """The element inside a wrapper such as ``<systemUsage><systemUsage>``; None after listing a missing one."""
        found = self.children(*names)
        self.close()
        for more in found[1:]:
            more.unknown(f"a second element in <{self.element.name}>; the first one counts")
        return found[0] if found else None

    def ignore(self) -> None:
        """Takes all there is, as the caller has listed the element as a whole."""
        self._attributes.clear()
        self._children.clear()
        self._text = ""

    def _note(self, kind: RemarkKind, sentence: str) -> None:
        """Lists what became of something in it."""
        self.remarks.add(kind, self.line, sentence)

    not_yet = partialmethod(_note, RemarkKind.NOT_YET)
    impossible = partialmethod(_note, RemarkKind.IMPOSSIBLE)
    unknown = partialmethod(_note, RemarkKind.UNKNOWN)
    mistake = partialmethod(_note, RemarkKind.WRONG)
    different = partialmethod(_note, RemarkKind.DIFFERENT)
    needless = partialmethod(_note, RemarkKind.NEEDLESS)

    def wrong(self, what: str, text: str, rule: str) -> None:
        """Lists a value that can't be read."""
        self.mistake(f"{what} is {text[:60]!r} but must be {rule}; it is left out")

    def note_open(self, name: str) -> None:
        """Lists an attribute with an open placeholder."""
        self.mistake(
            f"{name!r} of <{self.element.name}> has a placeholder that stands for nothing here and is left out; give "
            "its value with --define or --properties"
        )

    def close(self, known: Iterable[str] = ()) -> None:
        """Lists every attribute and child that was not taken."""
        name = self.element.name
        names = list(known)
        for attribute, text in self._attributes.items():
            if text.strip().startswith("#"):
                note_reference(self.remarks, self.line, f"{attribute!r} of <{name}>", text.strip())
                continue
            hint = _nearest(attribute, names) or "; it is left out"
            self.unknown(f"unknown attribute {attribute!r} of <{name}>{hint}")
        for child in self._children:
            if is_bean(child):
                note_java(self.remarks, child, f"<{name}>")
                continue
            hint = _nearest(child.name, names) or "; it is left out with all it holds"
            self.remarks.add(RemarkKind.UNKNOWN, child.line, f"unknown element <{child.name}> in <{name}>{hint}")
        if self._text:
            self.unknown(f"text in <{name}>, which holds elements only; it is left out")
        self.ignore()


def is_bean(element: XmlElement) -> bool:
    """Whether it is Spring's way of putting in a Java object."""
    return element.name in ("bean", "ref")


def note_java(remarks: ConversionReport, element: XmlElement, place: str) -> None:
    """Lists a Java object where an element of Classic could be.

    Args:
        place: what it is in, for people.
    """
    attributes = element.attributes
    shown = attributes.get("class") or attributes.get("bean") or attributes.get("local", "")
    remarks.add(
        RemarkKind.IMPOSSIBLE,
        element.line,
        f"<{element.name}> {shown!r} of {place} is left out: Java classes can't run here, and no bean is looked up; "
        "Classic's default holds",
    )


def note_reference(remarks: ConversionReport, line: int, what: str, text: str) -> None:
    """Lists an attribute that names a bean instead of holding a value."""
    remarks.add(
        RemarkKind.IMPOSSIBLE,
        line,
        f"{what} ({text}) is left out, so Classic's default holds: no bean is looked up; write the element into this "
        "one and convert again",
    )


def _nearest(name: str, names: list[str]) -> str:
    # Half of Classic's names end in "Policy" or "Strategy", so what is merely like one of them is something else.
    return nearest(name, names, likeness=_LEAST_LIKENESS)


def read_activemq_xml(path: Path, properties: Mapping[str, str], remarks: ConversionReport) -> Section:
    """The ``<broker>`` of the file at ``path``; what stands around it is listed.

    Args:
        properties: what ``${name}`` stands for.

    Raises:
        ConfigurationError: not readable, not well formed, with a document type, or without exactly one broker.
    """
    root, findings = read_xml(path, properties, keep_unknown=True)
    findings.raise_if_any()
    if _is_broker(root):
        return Section(root, remarks)
    if root.name == "configuration":
        raise ConfigurationError(
            "DMQ4144",
            f"{path}:{root.line}: this is a broker.xml of Artemis, which needs no conversion; see what DelosMQ says of "
            f"it with delosmq check {path}",
        )
    brokers = [child for child in root.children if _is_broker(child)] if root.name == "beans" else []
    if len(brokers) != 1:
        found = f"{len(brokers)} of them" if brokers else f"<{root.name}> without one"
        raise ConfigurationError(
            "DMQ4140",
            f"{path}:{root.line}: this is no activemq.xml with one <broker>, but {found}; give a file with one "
            "<broker>, alone or directly in <beans>",
        )
    for child in root.children:
        if child is not brokers[0]:
            note_bean(child, remarks)
    return Section(brokers[0], remarks)


def note_bean(element: XmlElement, remarks: ConversionReport) -> None:
    """Lists something of Spring's."""
    what = f"<{element.name}>"
    name = element.attributes.get("class", "")
    for part, why in _NEEDLESS_BEANS.items():
        if name.endswith(part):
            remarks.add(RemarkKind.NEEDLESS, element.line, f"the bean {part} is not needed: {why}")
            return
    if element.name == "property-placeholder":
        why = _NEEDLESS_BEANS["PropertyPlaceholderConfigurer"]
        remarks.add(RemarkKind.NEEDLESS, element.line, f"{what} is not needed: {why}")
    elif element.name == "import" and "jetty" in element.attributes.get("resource", ""):
        remarks.add(
            RemarkKind.NEEDLESS, element.line, f"{what} of the web console is not needed: HTTP is in bootstrap.xml"
        )
    else:
        shown = element.attributes.get("id") or name or element.attributes.get("resource", "")
        remarks.add(
            RemarkKind.IMPOSSIBLE,
            element.line,
            f"{what} {shown!r} is left out: Spring and Java classes can't run here; run it in an application of "
            f"its own",
        )


def _is_broker(element: XmlElement) -> bool:
    return element.name == "broker" and element.namespace in _BROKER_NAMESPACES
