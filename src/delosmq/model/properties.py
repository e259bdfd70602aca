"""The properties of a message, as they are read by name, and the types that JMS gives their values."""

import math
from abc import ABC, abstractmethod
from struct import pack, unpack
from typing import Final, TypeAlias

from mypy_extensions import mypyc_attr

PropertyValue = str | bool | int | float | bytes
"""Whole numbers are within 64 bits, as Java's long."""

# What a value is in JMS. The numbers are those that OpenWire has on the wire.
NULL_KIND: Final = 0
BOOLEAN_KIND: Final = 1
BYTE_KIND: Final = 2
CHAR_KIND: Final = 3
SHORT_KIND: Final = 4
INT_KIND: Final = 5
LONG_KIND: Final = 6
DOUBLE_KIND: Final = 7
FLOAT_KIND: Final = 8
STRING_KIND: Final = 9
BYTES_KIND: Final = 10
MAP_KIND: Final = 11
LIST_KIND: Final = 12

_RANGES: Final = ((BYTE_KIND, 1 << 7), (SHORT_KIND, 1 << 15), (INT_KIND, 1 << 31), (LONG_KIND, 1 << 63))
_LARGEST_FLOAT: Final = 3.4028234663852886e38
# Java writes numbers from 0.001 up to 10,000,000 without an exponent.
_PLAIN_FROM: Final = 1e-3
_PLAIN_BELOW: Final = 1e7
_MOST_FLOAT_DIGITS: Final = 9


@mypyc_attr(allow_interpreted_subclasses=True)
class Properties(ABC):
    """Values by name."""

    @abstractmethod
    def value(self, name: str) -> PropertyValue | None:
        """The application property or header ``name``; None when the message has none."""


TypedContent: TypeAlias = "PropertyValue | dict[str, TypedValue] | list[TypedValue] | None"


class TypedValue:
    """A value with its exact JMS type; a map and a list hold typed values again."""

    def __init__(self, kind: int, value: TypedContent) -> None:
        self.kind = kind
        self.value = value


def kind_of(value: PropertyValue) -> int:
    """The kind of a value of which nothing else is known: int or long by its size, and double."""
    if isinstance(value, str):
        return STRING_KIND
    if isinstance(value, bool):
        return BOOLEAN_KIND
    if isinstance(value, int):
        return narrowed(INT_KIND, value)
    return BYTES_KIND if isinstance(value, bytes) else DOUBLE_KIND


def narrowed(kind: int, value: int | float) -> int:
    """``kind`` when it can hold ``value``, else the nearest one that can."""
    if isinstance(value, float):
        fits = kind == FLOAT_KIND and (abs(value) <= _LARGEST_FLOAT or not math.isfinite(value))
        return FLOAT_KIND if fits else DOUBLE_KIND
    for each, bound in _RANGES:
        if kind <= each and -bound <= value < bound:
            return LONG_KIND if kind == CHAR_KIND else each
    return LONG_KIND if -(1 << 63) <= value < 1 << 63 else DOUBLE_KIND


def property_text(value: PropertyValue, kind: int) -> str:
    """A property as protocols without types show it: what Java's toString gives, and bytes in hexadecimal."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        return value.hex().upper()
    return _float_text(value, kind == FLOAT_KIND)


def _float_text(value: float, single: bool) -> str:
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1.0, value) < 0 else "0.0"
    digits, exponent = _shortest(abs(value), single)
    sign = "-" if value < 0 else ""
    if _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: float, single: bool) -> tuple[str, int]:
    """The fewest digits that name ``value``, and the power of ten of the first one."""
    scientific = f"{value:.16e}"
    if single:
        for precision in range(_MOST_FLOAT_DIGITS):
            scientific = f"{value:.{precision}e}"
            if _as_single(float(scientific)) == value:
                break
    else:
        for precision in (14, 15, 16):
            scientific = f"{value:.{precision}e}"
            if float(scientific) == value:
                break
    mantissa, _, power = scientific.partition("e")
    return mantissa.replace(".", "").rstrip("0") or "0", int(power)


def _as_single(value: float) -> float:
    if abs(value) > _LARGEST_FLOAT:
        return math.inf
    (rounded,) = unpack(">f", pack(">f", value))
    return float(rounded)
