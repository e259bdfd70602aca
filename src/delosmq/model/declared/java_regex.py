"""Regular expressions as Artemis's configuration writes them, which are Java's, made into Python's."""

import re
from typing import Final

_NAMED_GROUP: Final = re.compile(r"\(\?<(?![=!])")
_MOST_LETTERS: Final = 1_000


def compile_java_regex(text: str) -> re.Pattern[str]:
    """A pattern that finds what Java's would.

    Classes such as ``\\d`` stand for ASCII only, as in Java.

    Raises:
        ValueError: the rest of "must be", when Python can't read it, or one value could keep the broker busy for ever.
    """
    if len(text) > _MOST_LETTERS:
        raise ValueError(f"a regular expression of at most {_MOST_LETTERS} letters")
    if repeats_a_repetition(text):
        raise ValueError(
            "a regular expression in which no group that repeats is repeated, as in (a+)+, which takes for ever with "
            "some values; repeat the one or the other"
        )
    try:
        return re.compile(_named_groups_as_pythons(text), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"a regular expression that Python can read as well: {error}") from None


def _named_groups_as_pythons(text: str) -> str:
    """``(?<name>`` is ``(?P<name>`` there, and ``\\k<name>`` is ``(?P=name)``."""
    pieces: list[str] = []
    position = 0
    while position < len(text):
        if text[position] == "\\":
            named = re.match(r"\\k<(\w+)>", text[position:])
            piece = text[position : position + 2] if named is None else named.group()
            pieces.append(piece if named is None else f"(?P={named.group(1)})")
            position += len(piece)
        elif found := _NAMED_GROUP.match(text, position):
            pieces.append("(?P<")
            position = found.end()
        else:
            pieces.append(text[position])
            position += 1
    return "".join(pieces)


def repeats_a_repetition(text: str) -> bool:
    """Whether a group that has ``*``, ``+`` or ``{n,}`` or ``|`` in it is followed by one without a bound: some values
    would have it tried in more ways than there is time for."""
    # For each open group, whether something in it can be read in several ways.
    open_groups: list[bool] = [False]
    position = 0
    in_class = False
    while position < len(text):
        letter = text[position]
        if letter == "\\":
            position += 2
            continue
        if in_class:
            in_class = letter != "]" or text[position - 1] == "["
        elif letter == "[":
            in_class = True
        elif letter == "(":
            open_groups.append(False)
        elif letter == ")" and len(open_groups) > 1:
            several = open_groups.pop()
            repeated = _unbounded_at(text, position + 1)
            if several and repeated:
                return True
            open_groups[-1] = open_groups[-1] or several or repeated
        elif letter == "|" or _unbounded_at(text, position):
            open_groups[-1] = True
        position += 1
    return False


def _unbounded_at(text: str, position: int) -> bool:
    found = re.match(r"(?:[*+]|\{\d+,\})(?!\+)", text[position:])
    return found is not None
