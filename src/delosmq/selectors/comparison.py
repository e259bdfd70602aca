"""How two values compare, and what a text stands for under ``convert_string_expressions:``.

Source: docs/decisions/0035.
"""

import re
from typing import Final

from delosmq.model.properties import PropertyValue

# How the left value stands to the right one. A comparison is the set of those for which it is true.
BEFORE: Final = 1
SAME: Final = 2
AFTER: Final = 4
UNLIKE: Final = 8
"""Of types that don't compare."""
NO_NUMBER: Final = 16
"""One of them is NaN: the outcome of every comparison is unknown."""

LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,100}")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def compared(left: PropertyValue, right: PropertyValue) -> int:
    """How ``left`` stands to ``right``; never converts."""
    if isinstance(left, str):
        if isinstance(right, str):
            if left == right:
                return SAME
            return BEFORE if left < right else AFTER
    elif isinstance(left, bool):
        if isinstance(right, bool):
            if left == right:
                return SAME
            return AFTER if left else BEFORE
    elif isinstance(left, (int, float)) and isinstance(right, (int, float)) and not isinstance(right, bool):
        # Python compares a whole number with a float by what they are, without rounding either.
        if left == right:
            return SAME
        if left < right:
            return BEFORE
        return AFTER if left > right else NO_NUMBER
    return UNLIKE


def compared_as_read(left: PropertyValue, right: PropertyValue) -> int:
    """As `compared`, but a text beside a number or a truth value is read as one."""
    if isinstance(left, str):
        if not isinstance(right, str):
            meant = read_as(left, right)
            return UNLIKE if meant is None else compared(meant, right)
    elif isinstance(right, str):
        meant = read_as(right, left)
        return UNLIKE if meant is None else compared(left, meant)
    return compared(left, right)


def verdict(left: PropertyValue | None, right: PropertyValue | None, true_when: int, convert: bool) -> bool | None:
    """Whether ``left`` stands to ``right`` in one of the ways of ``true_when``; None when that is unknown."""
    if left is None or right is None:
        return None
    relation = compared_as_read(left, right) if convert else compared(left, right)
    if relation == NO_NUMBER:
        return None
    return (relation & true_when) != 0


def read_as(text: str, beside: PropertyValue) -> PropertyValue | None:
    """``text`` as a value of the type of ``beside``; None when it is none."""
    if isinstance(beside, bool):
        return truth_of(text)
    if isinstance(beside, (int, float)):
        return number_of(text)
    return None


def truth_of(text: str) -> bool | None:
    """``true`` and ``false`` in any case; None for other text."""
    word = text.lower()
    if word == "true":
        return True
    return False if word == "false" else None


def number_of(text: str) -> int | float | None:
    """The number that ``text`` writes in decimal; None when it writes none, or one past 64 bits."""
    if _WHOLE.fullmatch(text) is not None:
        whole = int(text)
        return whole if LONG_MIN <= whole <= LONG_MAX else None
    if _DECIMAL.fullmatch(text) is not None:
        number = float(text)
        return None if number in (float("inf"), float("-inf")) else number
    return None
