"""``<diverts>``."""

from typing import Any, Final, NamedTuple

from delosmq.config.broker_xml.catalog.addresses import ADD, DIVERT, DIVERTS, DROP, PROPERTY, RENAME, TRANSFORMER
from delosmq.config.broker_xml.filters import CheckSelector, read_filter
from delosmq.config.broker_xml.names import parse_address
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import CONTRADICTION, MISSING
from delosmq.config.xml_document import XmlElement
from delosmq.model import values
from delosmq.model.settings import DIVERT_SETTINGS, DivertSettings, Transformer, WildcardSyntax
from delosmq.model.wildcard import WildcardPattern

_ADD_HEADERS: Final = "org.apache.activemq.artemis.core.server.transformer.AddHeadersTransformer"
TRANSFORMER_NAME: Final = "transformer"
_OWN_FORM: Final = '<add name="" value=""/>, <drop name=""/> and <rename from="" to=""/>'


class _Placed(NamedTuple):
    """A divert with the line it stands in."""

    line: int
    divert: DivertSettings


def read_diverts(
    reader: Reader, element: XmlElement, syntax: WildcardSyntax, check_selector: CheckSelector
) -> list[DivertSettings]:
    placed: list[_Placed] = []
    lines: dict[str, int] = {}
    for child in reader.children(element, DIVERTS):
        divert = _read_divert(reader, child, check_selector)
        reader.note_twice("divert", divert.name, child.line, lines)
        placed.append(_Placed(child.line, divert))
    _check_loops(reader, placed, syntax)
    return [one.divert for one in placed]


def _read_divert(reader: Reader, element: XmlElement, check_selector: CheckSelector) -> DivertSettings:
    name = reader.required(element, "name")
    inner = reader.once(reader.children(element, DIVERT))
    for needed in ("address", "forwarding-address"):
        if needed not in inner:
            sentence = f"divert {name!r} lacks <{needed}>; write <{needed}>...</{needed}> in it"
            reader.findings.add(MISSING, element.line, sentence)
    address, forwarding = inner.get("address"), inner.get("forwarding-address")
    standard = DivertSettings("", "", ())
    declared: dict[str, Any] = {
        field: reader.value(inner[setting.written], setting.parse, getattr(standard, field))
        for field, setting in DIVERT_SETTINGS.items()
        if setting.written in inner
    }
    return DivertSettings(
        name=name,
        address="" if address is None else reader.value(address, parse_address, ""),
        forwarding_addresses=() if forwarding is None else reader.value(forwarding, _parse_addresses, ()),
        filter=read_filter(reader, inner.get("filter"), check_selector),
        transformer=_read_transformer(reader, name, inner),
        **declared,
    )


def _parse_addresses(text: str) -> tuple[str, ...]:
    if not text.replace(",", "").strip():
        raise ValueError("an address, or several with commas")
    addresses = tuple(part.strip() for part in text.split(","))
    if "" in addresses:
        raise ValueError("addresses with one comma between two; there is an empty one")
    for address in addresses:
        parse_address(address)
    if len(set(addresses)) < len(addresses):
        raise ValueError("different addresses; one is there twice")
    return addresses


def _read_transformer(reader: Reader, divert: str, inner: dict[str, XmlElement]) -> Transformer | None:
    element, class_name = inner.get("transformer"), inner.get("transformer-class-name")
    if class_name is not None:
        reader.value(class_name, values.parse_text, "")
        # Artemis, too, takes <transformer> where both are there.
        if _can_run(reader, divert, class_name) and element is None:
            sentence = (
                f"divert {divert!r} names AddHeadersTransformer without headers; use <transformer> with <property>"
            )
            reader.findings.add(MISSING, class_name.line, sentence)
    if element is None:
        return None
    parts = reader.children(element, TRANSFORMER)
    classes = [part for part in parts if part.name == "class-name"]
    if classes:
        return _read_class(reader, divert, classes, parts)
    for part in parts:
        if part.name == "property":
            sentence = f"<property> of divert {divert!r} belongs to a <class-name>; write {_OWN_FORM}"
            reader.findings.add(CONTRADICTION, part.line, sentence)
    if not element.children:
        sentence = f"<transformer> of divert {divert!r} changes nothing; write {_OWN_FORM} in it, or remove it"
        reader.findings.add(MISSING, element.line, sentence)
    return _read_changes(reader, divert, parts)


def _can_run(reader: Reader, divert: str, element: XmlElement) -> bool:
    if element.text in (_ADD_HEADERS, ""):
        return True
    sentence = (
        f"the Java class {element.text!r} of divert {divert!r} can't run here; write what it does as <transformer> "
        f"with {_OWN_FORM}, or as {_ADD_HEADERS} with <property>"
    )
    reader.findings.refuse(TRANSFORMER_NAME, element.line, sentence)
    return False


def _read_class(reader: Reader, divert: str, classes: list[XmlElement], parts: list[XmlElement]) -> Transformer | None:
    reader.once(classes)
    reader.value(classes[0], values.parse_text, "")
    if not _can_run(reader, divert, classes[0]):
        return None
    headers: dict[str, str] = {}
    lines: dict[str, int] = {}
    for part in parts:
        if part.name == "property":
            reader.leaf(part, PROPERTY)
            key = reader.required(part, "key")
            reader.note_twice(f"<property> of divert {divert!r}", key, part.line, lines)
            headers[key] = _value(reader, part)
        elif part.name != "class-name":
            sentence = f"<{part.name}> beside <class-name> in divert {divert!r}; write {_OWN_FORM} or <property> only"
            reader.findings.add(CONTRADICTION, part.line, sentence)
    return Transformer(add=headers) if headers else None


def _read_changes(reader: Reader, divert: str, parts: list[XmlElement]) -> Transformer:
    add: dict[str, str] = {}
    drop: list[str] = []
    rename: dict[str, str] = {}
    # What goes away, and what is set: each property once.
    taken: dict[str, int] = {}
    given: dict[str, int] = {}
    for part in parts:
        what = f"property of <{part.name}> in divert {divert!r}"
        if part.name == "drop":
            reader.leaf(part, DROP)
            drop.append(reader.required(part, "name"))
            reader.note_twice(what, drop[-1], part.line, taken)
        elif part.name == "rename":
            reader.leaf(part, RENAME)
            old, new = reader.required(part, "from"), reader.required(part, "to")
            reader.note_twice(what, old, part.line, taken)
            reader.note_twice(what, new, part.line, given)
            rename[old] = new
        elif part.name == "add":
            reader.leaf(part, ADD)
            name = reader.required(part, "name")
            reader.note_twice(what, name, part.line, given)
            add[name] = _value(reader, part)
    return Transformer(add, tuple(drop), rename)


def _value(reader: Reader, element: XmlElement) -> str:
    # Empty is a value; absent is none.
    if "value" not in element.attributes:
        reader.required(element, "value")
    return element.attributes.get("value", "")


def _check_loops(reader: Reader, placed: list[_Placed], syntax: WildcardSyntax) -> None:
    """Notes what would send a message round for ever: to its own address, or, unfiltered, back through others."""
    following = _following(placed, syntax)
    circular = _in_circles(following, placed)
    for i, one in enumerate(placed):
        if i in following[i]:
            sentence = f"divert {one.divert.name!r} sends to its own address {one.divert.address!r}, again and again"
            reader.findings.add(CONTRADICTION, one.line, f"{sentence}; name another <forwarding-address>")
        elif i in circular and (back := _way_back(i, following, placed)) is not None:
            names = " and ".join(repr(placed[j].divert.name) for j in sorted({i, back}))
            sentence = (
                f"the diverts {names} send round in a circle what they take; break it by a <filter> or remove one"
            )
            reader.findings.add(CONTRADICTION, one.line, sentence)


def _following(placed: list[_Placed], syntax: WildcardSyntax) -> list[list[int]]:
    """Of each divert those that take what it forwards, in the order of the file."""
    literal: dict[str, list[int]] = {}
    wild: list[tuple[int, WildcardPattern]] = []
    for i, one in enumerate(placed):
        pattern = WildcardPattern(one.divert.address, syntax)
        if pattern.is_literal:
            literal.setdefault(one.divert.address, []).append(i)
        else:
            wild.append((i, pattern))
    following: list[list[int]] = []
    for one in placed:
        targets = one.divert.forwarding_addresses
        found = {j for target in targets for j in literal.get(target, ())}
        found.update(j for j, pattern in wild if any(pattern.matches(target) for target in targets))
        following.append(sorted(found))
    return following


def _in_circles(following: list[list[int]], placed: list[_Placed]) -> set[int]:
    """The diverts that may be in a circle of unfiltered ones: what is left when those that no such one follows, or that
    follow none, are taken away again and again."""
    onward = [[] if one.divert.filter else after for one, after in zip(placed, following, strict=True)]
    backward: list[list[int]] = [[] for _ in placed]
    for i, after in enumerate(onward):
        for j in after:
            backward[j].append(i)
    left = set(range(len(placed)))
    for ways, others in ((onward, backward), (backward, onward)):
        open_ways = [len(each) for each in ways]
        ends = [i for i, count in enumerate(open_ways) if count == 0]
        while ends:
            i = ends.pop()
            left.discard(i)
            for j in others[i]:
                open_ways[j] -= 1
                if open_ways[j] == 0:
                    ends.append(j)
    return left


def _way_back(start: int, following: list[list[int]], placed: list[_Placed]) -> int | None:
    """The last divert of a circle of unfiltered ones through ``start``; only for the first of them in the file."""
    waiting, seen = [start], {start}
    while waiting:
        at = waiting.pop()
        if placed[at].divert.filter:
            continue
        for successor in following[at]:
            if successor == start and at != start:
                return at
            if successor > start and successor not in seen:
                seen.add(successor)
                waiting.append(successor)
    return None
