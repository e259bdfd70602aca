"""``<wildcard-addresses>`` and what a match may look like."""

from typing import Final

from delosmq.config import values
from delosmq.config.broker_xml.core_catalog import WILDCARD_ADDRESSES
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import WRONG_VALUE
from delosmq.config.xml_document import XmlElement
from delosmq.model.settings import WildcardSyntax

# What names are made of, lists and `address::queue` are cut by, and Artemis escapes with.
_TAKEN: Final = frozenset(",:\\_-")


def parse_wildcard_letter(text: str) -> str:
    """One letter that may be a delimiter or a wildcard."""
    if len(text) != 1 or text.isalnum() or text.isspace() or not text.isprintable() or text in _TAKEN:
        raise ValueError("one character that is no letter, no digit and none of , : \\ _ -")
    return text


def read_wildcards(reader: Reader, element: XmlElement | None, old_switch: XmlElement | None) -> WildcardSyntax:
    """The syntax of wildcards.

    Args:
        element: ``<wildcard-addresses>``.
        old_switch: ``<wild-card-routing-enabled>``, which counts where ``element`` says nothing.
    """
    standard = WildcardSyntax()
    enabled = standard.enabled
    if old_switch is not None:
        enabled = reader.value(old_switch, values.parse_boolean, enabled)
    if element is None:
        return WildcardSyntax(enabled=enabled)
    found = reader.once(reader.children(element, WILDCARD_ADDRESSES))
    for name in ("enabled", "routing-enabled"):
        if name in found:
            enabled = reader.value(found[name], values.parse_boolean, enabled)

    letters = {"delimiter": standard.delimiter, "any-words": standard.any_words, "single-word": standard.single_word}
    for name, default in letters.items():
        if name in found:
            letters[name] = reader.value(found[name], parse_wildcard_letter, default)
    if len(set(letters.values())) < len(letters):
        said = ", ".join(f"{name} {letter}" for name, letter in letters.items())
        sentence = f"the letters of <wildcard-addresses> must differ, but are {said}; give each one of its own"
        reader.findings.add(WRONG_VALUE, element.line, sentence)
        return standard
    return WildcardSyntax(enabled, letters["delimiter"], letters["any-words"], letters["single-word"])


def check_match(reader: Reader, element: XmlElement, match: str, syntax: WildcardSyntax) -> None:
    """Notes a wildcard within a word, which would stand for nothing here and for part of a word in Artemis."""
    for word in match.split(syntax.delimiter):
        if len(word) > 1 and (syntax.any_words in word or syntax.single_word in word):
            sentence = (
                f"{match!r} of <{element.name}> has a wildcard within the word {word!r}; {syntax.single_word} and "
                f"{syntax.any_words} stand for whole words between {syntax.delimiter!r} only, so give them a word of "
                "their own"
            )
            reader.findings.add(WRONG_VALUE, element.line, sentence)
            return
