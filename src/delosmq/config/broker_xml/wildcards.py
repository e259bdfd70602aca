"""``<wildcard-addresses>`` and what a match may look like."""

from typing import Final

from delosmq.config.broker_xml.catalog.core import WILDCARD_ADDRESSES
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import WRONG_VALUE
from delosmq.config.xml_document import XmlElement
from delosmq.model import values
from delosmq.model.names import QUEUE_MARK
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
