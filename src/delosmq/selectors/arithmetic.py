"""Arithmetic on properties.

Whole numbers are Java's long: they wrap. ``/`` always divides as double, so 7 / 2 is 3.5; by zero it gives an infinity.
Source: Artemis's ArithmeticExpression; docs/decisions/0035.
"""

import math
from typing import Final

from delosmq.model.properties import PropertyValue
from delosmq.selectors.comparison import LONG_MAX, LONG_MIN, number_of

PLUS: Final = 1
MINUS: Final = 2
TIMES: Final = 3
DIVIDED: Final = 4
MODULO: Final = 5

_TWO_TO_64: Final = 2**64


def wrapped(number: int) -> int:
    """``number`` as 64 bits in two's complement hold it."""
    if LONG_MIN <= number <= LONG_MAX:
        return number
    return (number - LONG_MIN) % _TWO_TO_64 + LONG_MIN


def calculated(left: PropertyValue, operator: int, right: PropertyValue, convert: bool) -> PropertyValue | None:
    """The outcome; None when the values have none together."""
    if isinstance(left, str) and isinstance(right, str) and operator == PLUS:
        return left + right
    first = operand(left, convert)
    second = operand(right, convert)
    if first is None or second is None:
        return None
    if isinstance(first, int) and isinstance(second, int):
        return _whole(first, operator, second)
    return _double(float(first), operator, float(second))


def negated(value: PropertyValue, convert: bool) -> PropertyValue | None:
    """``value`` with the other sign; None when it is no number."""
    number = operand(value, convert)
    if number is None:
        return None
    if isinstance(number, int):
        return wrapped(-number)
    return -number


def operand(value: PropertyValue, convert: bool) -> int | float | None:
    """``value`` as a number; None when it is none. Text is one only with ``convert``."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    if convert and isinstance(value, str):
        return number_of(value)
    return None


def _whole(left: int, operator: int, right: int) -> int | float | None:
    if operator == PLUS:
        return wrapped(left + right)
    if operator == MINUS:
        return wrapped(left - right)
    if operator == TIMES:
        return wrapped(left * right)
    if operator == DIVIDED or right == 0:
        return _double(float(left), operator, float(right))
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _double(left: float, operator: int, right: float) -> float | None:
    if operator == PLUS:
        outcome = left + right
    elif operator == MINUS:
        outcome = left - right
    elif operator == TIMES:
        outcome = left * right
    elif operator == DIVIDED:
        outcome = _quotient(left, right)
    elif right == 0.0 or math.isinf(left):
        return None
    else:
        outcome = math.fmod(left, right)
    return None if math.isnan(outcome) else outcome


def _quotient(left: float, right: float) -> float:
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)
