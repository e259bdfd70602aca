"""Selectors: parse once, ask once per message."""

from typing import Final

from delosmq.model.properties import Properties
from delosmq.selectors.builder import Builder
from delosmq.selectors.errors import SelectorError
from delosmq.selectors.lexer import words_of
from delosmq.selectors.nodes import Condition
from delosmq.selectors.parser import tree_of

__all__ = ["Selector", "SelectorError", "parse_selector"]

LONGEST: Final = 8_192
"""Characters. Every message is held against every selector, so a selector is a sentence, not a program."""

KEPT: Final = 1_000
"""Parsed selectors kept for the next one who brings the same text."""
KEPT_CHARACTERS: Final = 131_072
"""What these have together, at most: parsed, a character takes 10 to 30 bytes."""

WHITESPACE: Final = " \t\r\n\f"

CONVERT: Final = "convert_string_expressions:"
HYPHENATED: Final = "hyphenated_props:"
NO_CONVERT: Final = "no_convert_string_expressions:"
NO_HYPHENATED: Final = "no_hyphenated_props:"


class Selector:
    """A condition on the properties of a message. Two of the same text are equal.

    Attributes:
        text: without the whitespace around it.
    """

    def __init__(self, text: str, condition: Condition) -> None:
        self.text = text
        self._condition = condition

    def matches(self, properties: Properties) -> bool:
        """Whether the condition is true: not false, and not unknown either."""
        return self._condition.evaluate(properties) is True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


def parse_selector(text: str) -> Selector:
    """The selector that ``text`` writes. The first call of a process takes longer: it loads the parser.

    Raises:
        SelectorError: ``text`` is none; the error points at the character.
    """
    if len(text) > LONGEST:
        sentence = f"the selector has {len(text):,} characters, at most {LONGEST:,} are allowed"
        raise SelectorError("DMQ2501", sentence, text, LONGEST)
    meant = text.strip(WHITESPACE)
    try:
        return _cache.of(meant)
    except SelectorError as error:
        wrong = error
    if meant == text:
        raise wrong
    lead = len(text) - len(text.lstrip(WHITESPACE))
    raise SelectorError(wrong.code, wrong.sentence, text, min(wrong.position + lead, len(text)))


class _SelectorCache:
    """The parsed selectors that were asked for last; their total size is bounded."""

    def __init__(self) -> None:
        # A dict because it keeps an order: the selector asked for longest ago comes first.
        self._selectors: dict[str, Selector] = {}
        self._characters: int = 0

    def of(self, text: str) -> Selector:
        """The selector, parsed now if it is not kept.

        Raises:
            SelectorError: ``text`` is none.
        """
        selectors = self._selectors
        known = selectors.pop(text, None)
        if known is None:
            known = _parsed(text)
            self._characters += len(text)
        selectors[text] = known
        while len(selectors) > KEPT or self._characters > KEPT_CHARACTERS:
            oldest = next(iter(selectors))
            del selectors[oldest]
            self._characters -= len(oldest)
        return known


def _parsed(text: str) -> Selector:
    convert, hyphenated, start = _prefixes(text)
    words = words_of(text, start, hyphenated)
    if not words:
        raise SelectorError(
            "DMQ2500", "the selector states no condition: leave it out to get all messages", text, start
        )
    return Selector(text, Builder(text, convert).condition(tree_of(text, words), 1))


def _prefixes(text: str) -> tuple[bool, bool, int]:
    """Whether text is converted, whether names may hold hyphens, and where the expression starts."""
    convert, hyphenated, start = False, False, 0
    while True:
        if text.startswith(CONVERT, start):
            convert = True
            start += len(CONVERT)
        elif text.startswith(HYPHENATED, start):
            hyphenated = True
            start += len(HYPHENATED)
        elif text.startswith(NO_CONVERT, start):
            convert = False
            start += len(NO_CONVERT)
        elif text.startswith(NO_HYPHENATED, start):
            hyphenated = False
            start += len(NO_HYPHENATED)
        else:
            return convert, hyphenated, start
        while text[start : start + 1] != "" and text[start] in WHITESPACE:
            start += 1


_cache: Final = _SelectorCache()
