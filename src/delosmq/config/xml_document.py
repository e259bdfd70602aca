"""Reads an XML configuration file without entities, document types, includes or network, keeping line numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from lxml import etree

from delosmq.config.findings import UNKNOWN_NAME, UNKNOWN_PLACEHOLDER, UNREADABLE, UNSAFE_XML, Findings
from delosmq.config.placeholders import replace_placeholders

_MOST_BYTES: Final = 10 * 1024 * 1024
_MOST_ATTRIBUTES: Final = 10_000
"""Of one element: the parser compares each with all before it."""

_SCHEMA_INSTANCE: Final = "http://www.w3.org/2001/XMLSchema-instance"
_DOCTYPE_REFUSED: Final = (
    "a document type (<!DOCTYPE ...>) and the entities it declares are never read; remove it and write the values "
    "themselves, or use ${name:default}"
)
_XINCLUDE: Final = "http://www.w3.org/2001/XInclude"


@dataclass(frozen=True)
class XmlElement:
    """One element, its placeholders replaced and its text stripped.

    Attributes:
        attributes: those without a namespace, in the order of the file.
        text: all of its own text; "" when there is none.
    """

    name: str
    namespace: str
    line: int
    attributes: dict[str, str]
    text: str
    children: tuple["XmlElement", ...]


def read_xml(
    path: Path,
    properties: Mapping[str, str],
    *,
    keep_unknown: bool = False,
    without: frozenset[str] = frozenset(),
) -> tuple[XmlElement, Findings]:
    """The root element of the file at ``path``, and what was found in it so far.

    Args:
        properties: what ``${name}`` stands for.
        keep_unknown: a placeholder that stands for nothing stays as it is, and is no mistake.
        without: names that are left out although they should stop the start.

    Raises:
        FlawedFileError: not readable, too large, not well formed, or with a document type.
    """
    findings = Findings(str(path), without)
    try:
        if path.stat().st_size > _MOST_BYTES:
            findings.stop(UNSAFE_XML, 0, f"larger than {_MOST_BYTES} bytes; split what it configures")
        content = path.read_bytes()
    except OSError as failure:
        findings.stop(UNREADABLE, 0, f"can't be read: {failure.strerror}; correct the path or its permissions")
    return _parse(content, findings, _Placeholders(properties, keep_unknown)), findings


class _Placeholders:
    """What ``${name}`` stands for in one file, and whether one that stands for nothing is a mistake."""

    def __init__(self, properties: Mapping[str, str], keep_unknown: bool) -> None:
        self._properties = properties
        self._keep_unknown = keep_unknown

    def replace(self, text: str, line: int, findings: Findings) -> str:
        """``text`` with its placeholders replaced: after parsing, so that a value can never become markup."""

        def note_unknown(name: str) -> None:
            if not self._keep_unknown:
                sentence = f"${{{name}}} stands for nothing; set the environment variable or write ${{name:default}}"
                findings.add(UNKNOWN_PLACEHOLDER, line, sentence)

        return replace_placeholders(text, self._properties, note_unknown)


def _parse(content: bytes, findings: Findings, placeholders: _Placeholders) -> XmlElement:
    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    if b"<!DOCTYPE" in content:
        findings.stop(UNSAFE_XML, content[: content.index(b"<!DOCTYPE")].count(b"\n") + 1, _DOCTYPE_REFUSED)
    _check_attributes(content, findings)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as failure:
        line = failure.lineno or 1
        reason = (failure.msg or "unreadable").rsplit(", line ", 1)[0]
        findings.stop("DMQ4002", line, f"not well-formed XML ({reason}); correct the markup in or before this line")
    # In an encoding where the search above sees nothing, such as UTF-16.
    if cast(Any, root.getroottree().docinfo).doctype:
        findings.stop(UNSAFE_XML, 1, _DOCTYPE_REFUSED)
    return _convert(root, placeholders, findings)


def _check_attributes(content: bytes, findings: Findings) -> None:
    """Before the parser sees them. Equals signs in the text of an element count too, where no file has so many."""
    if content.count(b"=") <= _MOST_ATTRIBUTES:
        return
    at = 0
    for part in content.split(b"<"):
        if part.count(b"=") > _MOST_ATTRIBUTES and not part.startswith(b"!--"):
            line = content.count(b"\n", 0, at) + 1
            findings.stop(UNSAFE_XML, line, f"an element has more than {_MOST_ATTRIBUTES} attributes; remove some")
        at += len(part) + 1


def _convert(node: etree._Element, placeholders: _Placeholders, findings: Findings) -> XmlElement:
    qualified = etree.QName(node)
    line = cast(int, node.sourceline)
    if qualified.namespace == _XINCLUDE:
        findings.add(UNSAFE_XML, line, "XInclude is not in effect; put the included text here")
    attributes: dict[str, str] = {}
    for key, value in node.attrib.items():
        attribute = etree.QName(key)
        if not attribute.namespace:
            attributes[attribute.localname] = placeholders.replace(str(value), line, findings)
        elif attribute.namespace != _SCHEMA_INSTANCE:
            findings.add(UNKNOWN_NAME, line, f"attribute {attribute.localname!r} of another namespace; remove it")
    text = (node.text or "") + "".join(child.tail or "" for child in node)
    children = tuple(_convert(child, placeholders, findings) for child in node)
    return XmlElement(
        name=qualified.localname,
        namespace=qualified.namespace or "",
        line=line,
        attributes=attributes,
        text=placeholders.replace(text, line, findings).strip(),
        children=children,
    )
