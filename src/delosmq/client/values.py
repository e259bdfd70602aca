"""The types of JMS that Python has no types for: marks on ints, floats and strings, which are those all the same.

What is sent without a mark is an int or a long by its size, a double, a string, a boolean or bytes. What is received
has the mark of its type, so that it is sent on as it came.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from delosmq.client.errors import wrong_value
from delosmq.model.properties import (
    BYTE_KIND,
    BYTES_KIND,
    CHAR_KIND,
    FLOAT_KIND,
    INT_KIND,
    LIST_KIND,
    LONG_KIND,
    MAP_KIND,
    NULL_KIND,
    SHORT_KIND,
    TypedValue,
    kind_of,
    narrowed,
)


class Byte(int):
    """A whole number of 8 bits."""


class Short(int):
    """A whole number of 16 bits."""


class Int(int):
    """A whole number of 32 bits."""


class Long(int):
    """A whole number of 64 bits, also where fewer would do."""


class Float(float):
    """A number with the precision of 32 bits."""


class Char(str):
    """One character of 16 bits."""


PropertyContent: TypeAlias = str | bool | int | float | None
"""What a property may be."""
Content: TypeAlias = "str | bytes | bool | int | float | Mapping[str, Content] | Sequence[Content] | None"
"""What a map or a stream may hold."""

_WHOLE: Final[dict[type, tuple[int, int]]] = {
    Byte: (BYTE_KIND, 8),
    Short: (SHORT_KIND, 16),
    Int: (INT_KIND, 32),
    Long: (LONG_KIND, 64),
}
_MARKS: Final[dict[int, type]] = {BYTE_KIND: Byte, SHORT_KIND: Short, FLOAT_KIND: Float, CHAR_KIND: Char}
_LONG_BITS: Final = 64


def typed(name: str, value: object, *, nested: bool = True) -> TypedValue:
    """A value as it travels.

    Args:
        name: of the property, or what the value is part of; for the error.
        nested: bytes, maps and lists are taken as well.

    Raises:
        MessageFormatError: DMQ9060, JMS has no type for it, or it is too large for its type.
    """
    if value is None:
        return TypedValue(NULL_KIND, None)
    if isinstance(value, bool):
        return TypedValue(kind_of(value), value)
    if isinstance(value, int):
        return _whole(name, value)
    if type(value) is Float and narrowed(FLOAT_KIND, float(value)) != FLOAT_KIND:
        raise wrong_value(name, f"{float(value)} is more than a Float of 32 bits holds")
    if isinstance(value, float):
        return TypedValue(FLOAT_KIND if type(value) is Float else kind_of(float(value)), float(value))
    if isinstance(value, str):
        if type(value) is Char:
            if len(value) != 1 or ord(value) > 0xFFFF:
                raise wrong_value(name, "a Char is one character of 16 bits")
            return TypedValue(CHAR_KIND, str(value))
        return TypedValue(kind_of(""), str(value))
    if nested and isinstance(value, bytes | bytearray | memoryview):
        return TypedValue(BYTES_KIND, bytes(value))
    if nested and isinstance(value, Mapping):
        return TypedValue(MAP_KIND, {str(key): typed(f"{name}.{key}", each) for key, each in value.items()})
    if nested and isinstance(value, Sequence):
        return TypedValue(LIST_KIND, [typed(f"{name}[{index}]", each) for index, each in enumerate(value)])
    raise wrong_value(name, f"JMS has no type for a {type(value).__name__}")


def _whole(name: str, value: int) -> TypedValue:
    kind, bits = _WHOLE.get(type(value), (0, _LONG_BITS))
    bound = 1 << (bits - 1)
    if not -bound <= value < bound:
        raise wrong_value(name, f"{value} has more than {bits} bits")
    number = int(value)
    return TypedValue(kind or kind_of(number), number)


def untyped(value: TypedValue) -> Content:
    """A value that came, with its mark."""
    content = value.value
    if isinstance(content, dict):
        return {key: untyped(each) for key, each in content.items()}
    if isinstance(content, list):
        return [untyped(each) for each in content]
    if value.kind == LONG_KIND and isinstance(content, int) and kind_of(content) != LONG_KIND:
        return Long(content)
    mark = _MARKS.get(value.kind)
    marked: Content = content if mark is None else mark(content)
    return marked
