"""``<wildcard-addresses>`` and what a match may look like."""

from typing import Any

from delosmq.config.broker_xml.catalog.core import WILDCARD_ADDRESSES
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import WRONG_VALUE
from delosmq.config.xml_document import XmlElement
from delosmq.model.names import QUEUE_MARK
from delosmq.model.settings import WILDCARD_SETTINGS, WildcardSyntax
from delosmq.model.values import parse_boolean


def read_wildcards(reader: Reader, element: XmlElement | None, old_switch: XmlElement | None) -> WildcardSyntax:
    """The syntax of wildcards.

    Args:
        element: ``<wildcard-addresses>``.
        old_switch: ``<wild-card-routing-enabled>``, which counts where ``element`` says nothing.
    """
    values: dict[str, Any] = {}
    if old_switch is not None:
        values["enabled"] = reader.value(old_switch, parse_boolean, True)
    found = {} if element is None else reader.once(reader.children(element, WILDCARD_ADDRESSES))
    standard = WildcardSyntax()
    for field, setting in WILDCARD_SETTINGS.items():
        for name in (setting.older_name, setting.written):
            if name in found:
                values[field] = reader.value(found[name], setting.parse, getattr(standard, field))
    syntax = WildcardSyntax(**values)
    letters = {"delimiter": syntax.delimiter, "any-words": syntax.any_words, "single-word": syntax.single_word}
    if element is not None and len(set(letters.values())) < len(letters):
        said = ", ".join(f"{name} {letter}" for name, letter in letters.items())
        sentence = f"the letters of <wildcard-addresses> must differ, but are {said}; give each one of its own"
        reader.findings.add(WRONG_VALUE, element.line, sentence)
        return standard
    return syntax


def check_match(reader: Reader, element: XmlElement, match: str, syntax: WildcardSyntax) -> None:
    """Notes a match that would stand for something else than in Artemis, or that Artemis refuses."""
    letters = f"{syntax.any_words}{syntax.single_word}"
    if any(f"\\{letter}" in match for letter in letters):
        sentence = (
            f"{match!r} of <{element.name}> has a \\ before a wildcard, which does not make it a plain letter here; "
            "choose other letters in <wildcard-addresses>"
        )
        reader.findings.add(WRONG_VALUE, element.line, sentence)
        return
    for word in match.replace(QUEUE_MARK, syntax.delimiter).removesuffix(syntax.any_words).split(syntax.delimiter):
        if len(word) > 1 and syntax.any_words in word:
            sentence = (
                f"{match!r} of <{element.name}> has a {syntax.any_words} within the word {word!r}; it stands for whole "
                f"words between {syntax.delimiter!r} only, so give it a word of its own or put it at the end"
            )
            reader.findings.add(WRONG_VALUE, element.line, sentence)
            return
