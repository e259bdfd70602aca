"""``<destinations>`` and ``<destinationInterceptors>``: addresses, and diverts for composite destinations."""

from typing import Final

from delosmq.migration.activemq_xml.conversion_report import RemarkKind
from delosmq.migration.activemq_xml.names import KINDS, QUEUE, ROUTING, TOPIC, match_of, name_of, overlap, split_names
from delosmq.migration.activemq_xml.source import Section
from delosmq.migration.activemq_xml.target import ConvertedDivert, Target
from delosmq.model.protocol_names import OPENWIRE, SERVED_PROTOCOLS
from delosmq.selectors.errors import SelectorError

_COMPOSITES: Final = {"compositeQueue": QUEUE, "compositeTopic": TOPIC}
_VIRTUAL: Final = "VirtualTopic.>"
_CONSUMERS: Final = "Consumer.*."


def read_destinations(section: Section, target: Target) -> None:
    for destination in section.children(*KINDS):
        kind = destination.element.name
        for name in read_names(destination):
            target.declare(name, kind)
        destination.close(["physicalName"])
    for temporary in section.children("tempQueue", "tempTopic"):
        temporary.impossible(f"<{temporary.element.name}> is left out: a temporary destination belongs to a connection")
        temporary.ignore()
    section.close(KINDS)


def read_names(destination: Section) -> list[str]:
    """The names in ``physicalName``; those that can't be used are listed."""
    text = destination.attribute("physicalName") or destination.attribute("name")
    if not text and not destination.element.attributes.get("physicalName"):
        destination.mistake(f'<{destination.element.name}> without physicalName="..." is left out')
    found = []
    for part in split_names(text):
        try:
            found.append(name_of(part))
        except ValueError as rule:
            destination.wrong("'physicalName'", part, str(rule))
            continue
        if "?" in part:
            sentence = f"the options of {part!r} are left out: they are for consumers; give them to clients"
            destination.impossible(sentence)
    return found


def read_interceptors(section: Section, target: Target) -> None:
    for interceptor in section.children("virtualDestinationInterceptor"):
        for wrapper in interceptor.children("virtualDestinations"):
            for virtual in wrapper.children():
                _read_virtual(virtual, target)
            wrapper.close()
        interceptor.close(["virtualDestinations"])
    for mirrored in section.children("mirroredQueue"):
        mirrored.impossible(
            "<mirroredQueue> is left out: it copies the messages of all queues to topics; write a <divert> for each "
            "queue that needs it"
        )
        mirrored.ignore()
    section.close(["virtualDestinationInterceptor", "mirroredQueue"])
    _break_circles(section, target)


def _break_circles(section: Section, target: Target) -> None:
    """Leaves out each divert that would send messages round for ever with those before it."""
    kept: list[ConvertedDivert] = []
    for divert in target.diverts:
        circle = _way_back(divert, kept)
        if circle is None:
            kept.append(divert)
            continue
        others = [f"line {other.line}" for other in circle if other is not divert]
        round_by = f", with {' and '.join(dict.fromkeys(others))}" if others else ""
        section.remarks.add(
            RemarkKind.IMPOSSIBLE,
            divert.line,
            f"the composite destination {divert.address!r} is left out with what it forwards to "
            f"{', '.join(divert.targets)}: messages would go round in a circle{round_by}",
        )
    target.diverts[:] = kept


def _way_back(start: ConvertedDivert, others: list[ConvertedDivert]) -> list[ConvertedDivert] | None:
    """The diverts that bring back to ``start`` what it sends; only itself may be filtered if it does so alone."""
    waiting, seen = [[start]], [start]
    while waiting:
        way = waiting.pop()
        for name in way[-1].targets:
            if overlap(start.address, name) and (len(way) == 1 or not start.filter):
                return way
            for other in others:
                if other not in seen and not other.filter and overlap(other.address, name):
                    seen.append(other)
                    waiting.append([*way, other])
    return None


def _read_virtual(virtual: Section, target: Target) -> None:
    name = virtual.element.name
    if name in _COMPOSITES:
        _Composite(virtual, _COMPOSITES[name], target).read()
    elif name == "virtualTopic":
        _note_virtual_topic(virtual)
    else:
        virtual.unknown(f"<{name}> is left out: it is no virtual destination of Classic")
        virtual.ignore()


def _note_virtual_topic(virtual: Section) -> None:
    topics = virtual.attribute("name", ">")
    names = (topics, virtual.attribute("prefix", _CONSUMERS), virtual.attribute("postfix"))
    if (
        names == (_VIRTUAL, _CONSUMERS, "")
        and not virtual.flag("selectorAware", False)
        and OPENWIRE in SERVED_PROTOCOLS
    ):
        virtual.needless(f"<virtualTopic> {_VIRTUAL!r} is not needed: the acceptors have such topics without it")
    else:
        virtual.not_yet(
            f"<virtualTopic> {topics!r} is left out: only {_VIRTUAL!r} with the prefix {_CONSUMERS!r} is converted; "
            "write virtualTopicConsumerWildcards into the URLs of acceptors, or subscribe to 'TOPIC::QUEUE' instead"
        )
    virtual.ignore()


class _Composite:
    """One composite destination: a divert for each kind of target and each selector."""

    def __init__(self, section: Section, kind: str, target: Target) -> None:
        self._section = section
        self._kind = kind
        self._target = target
        self._line = section.line
        # (kind, selector) -> names, in the order of the file.
        self._ends: dict[tuple[str, str], list[str]] = {}

    def read(self) -> None:
        section = self._section
        written = section.attribute("name")
        forward_only = section.flag("forwardOnly", True)
        unmatched = section.flag("sendWhenNotMatched", False)
        for tuning in ("copyMessage", "concurrentSend"):
            section.attribute(tuning)
        for wrapper in section.children("forwardTo"):
            self._read_ends(wrapper)
        section.close(["name", "forwardTo", "forwardOnly", "sendWhenNotMatched", "copyMessage", "concurrentSend"])
        try:
            address = match_of(written)
        except ValueError as rule:
            section.wrong(f"'name' of <{section.element.name}>", written, str(rule))
            return
        if not self._ends:
            sentence = f"<{section.element.name}> {written!r} is left out: it has no destination to forward to"
            self._section.mistake(sentence)
            return
        self._divert(written, address, exclusive=forward_only or unmatched)
        if forward_only and not unmatched and all(selector for _, selector in self._ends):
            self._section.different(
                f"messages to {written!r} that no selector takes stay there, where Classic drops them"
            )
        if address == written:
            keeps = not forward_only or unmatched
            self._target.declare(address, self._kind, queue=keeps)

    def _read_ends(self, wrapper: Section) -> None:
        for end in wrapper.children(*KINDS):
            for name in read_names(end):
                self._ends.setdefault((end.element.name, ""), []).append(name)
            end.close(["physicalName"])
        for end in wrapper.children("filteredDestination"):
            self._read_filtered(end)
        wrapper.close([*KINDS, "filteredDestination"])

    def _read_filtered(self, end: Section) -> None:
        selector = end.attribute("selector")
        if selector:
            # Late, as selectors are rare in configurations.
            from delosmq.selectors.selector import parse_selector

            try:
                parse_selector(selector)
            except SelectorError as wrong:
                end.wrong("'selector' of <filteredDestination>", selector, f"a selector: {wrong.sentence}")
                end.ignore()
                return
        for kind in KINDS:
            text = end.attribute(kind)
            for part in split_names(text):
                try:
                    self._ends.setdefault((kind, selector), []).append(name_of(part))
                except ValueError as rule:
                    end.wrong(f"{kind!r} of <filteredDestination>", part, str(rule))
        end.close(["selector", "filter", *KINDS])

    def _divert(self, written: str, address: str, *, exclusive: bool) -> None:
        for number, ((kind, selector), names) in enumerate(self._ends.items(), start=1):
            others = [name for name in dict.fromkeys(names) if name != address]
            if len(others) < len(set(names)):
                sentence = f"{written!r} forwards to itself, which is left out: it would go round in a circle"
                self._section.impossible(sentence)
            for name in others:
                self._target.declare(name, kind)
            if others:
                name = f"{self._kind}.{written}.{number}"
                routing = ROUTING[kind].upper()
                self._target.diverts.append(
                    ConvertedDivert(name, address, others, routing, exclusive, selector, self._line)
                )
