"""Errors in a selector: what is wrong with it, and where."""

from typing import Final

from delosmq.model.errors import MisuseError

DEEPEST: Final = 100
"""Levels within each other. Evaluation goes as deep, and Python's stack ends at a thousand calls."""

SHOWN: Final = 72
"""Characters of a line that a picture shows at most, so that it fits a terminal."""


class SelectorError(MisuseError):
    """A selector can't be read or makes no sense.

    Attributes:
        text: the selector as it was given.
        position: of the character that is wrong, counted from 0; the length of ``text`` when something is missing at
            its end.
        sentence: what is wrong, in one line. ``message`` adds the picture.
        picture: the line of ``text`` that is wrong, and below it a caret.
    """

    def __init__(self, code: str, sentence: str, text: str, position: int) -> None:
        self.text = text
        self.position = position
        self.sentence = sentence
        self.picture = picture_of(text, position)
        super().__init__(code, f"{sentence}\n{self.picture}")


def too_deep(text: str, position: int) -> SelectorError:
    """The error for more than DEEPEST levels."""
    sentence = f"more than {DEEPEST} operators or parentheses lie within each other here: make the selector flatter"
    return SelectorError("DMQ2507", sentence, text, position)


def picture_of(text: str, position: int) -> str:
    """Two lines: what stands around ``position``, and a caret below that character."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : len(text) if end < 0 else end]
    column = position - start
    before, after = "", ""
    first = max(0, min(column - SHOWN // 2, len(line) - SHOWN))
    if first > 0:
        before = "..."
    if len(line) > first + SHOWN:
        after = "..."
    shown = "".join([char if char.isprintable() else " " for char in line[first : first + SHOWN]])
    return f"  {before}{shown}{after}\n  {' ' * (len(before) + column - first)}^"
