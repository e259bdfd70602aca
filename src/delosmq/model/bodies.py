"""Map and stream bodies in the hub form: JSON text that keeps every JMS type.

A map body is an object, a stream body an array. A string, true, false and null are themselves; a number with a point
or an exponent is a double; a whole number is an int when it has 32 bits and a long when it needs more. What that can't
say is an object with one member that names the type:

    {"byte": 1}  {"short": 1}  {"long": 1}  {"float": 1.5}  {"double": "NaN"}  {"char": "x"}  {"bytes": "base64"}
    {"map": {...}}  {"list": [...]}
"""

import json
import math
from base64 import b64decode, b64encode
from typing import Any, Final

from delosmq.model.properties import (
    BOOLEAN_KIND,
    BYTE_KIND,
    BYTES_KIND,
    CHAR_KIND,
    DOUBLE_KIND,
    FLOAT_KIND,
    INT_KIND,
    LIST_KIND,
    LONG_KIND,
    MAP_KIND,
    NULL_KIND,
    SHORT_KIND,
    STRING_KIND,
    TypedValue,
    kind_of,
    narrowed,
)

_NAMES: Final = {
    BYTE_KIND: "byte",
    SHORT_KIND: "short",
    LONG_KIND: "long",
    FLOAT_KIND: "float",
    DOUBLE_KIND: "double",
    CHAR_KIND: "char",
    BYTES_KIND: "bytes",
    MAP_KIND: "map",
    LIST_KIND: "list",
}
_KINDS: Final = {name: kind for kind, name in _NAMES.items()}
_NUMBERS: Final = frozenset((BYTE_KIND, SHORT_KIND, LONG_KIND, FLOAT_KIND, DOUBLE_KIND))
_MOST_DEPTH: Final = 30
"""Less than what protocols allow in a body of their own."""


def encode_map_body(entries: dict[str, TypedValue]) -> bytes:
    """The hub form of a map."""
    return _dump({key: _to_json(value) for key, value in entries.items()})


def encode_stream_body(values: list[TypedValue]) -> bytes:
    """The hub form of a stream."""
    return _dump([_to_json(value) for value in values])


def decode_map_body(body: bytes) -> dict[str, TypedValue] | None:
    """The reverse of `encode_map_body`; None when ``body`` is not that."""
    found = _load(body)
    return {str(key): _from_json(value, 0) for key, value in found.items()} if isinstance(found, dict) else None


def decode_stream_body(body: bytes) -> list[TypedValue] | None:
    """The reverse of `encode_stream_body`; None when ``body`` is not that."""
    found = _load(body)
    return [_from_json(value, 0) for value in found] if isinstance(found, list) else None


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _load(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _to_json(typed: TypedValue) -> object:
    value = typed.value
    kind = typed.kind
    if isinstance(value, str):
        return {"char": value} if kind == CHAR_KIND else value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, bytes):
        return {"bytes": b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        return {"map": {key: _to_json(each) for key, each in value.items()}}
    if isinstance(value, list):
        return {"list": [_to_json(each) for each in value]}
    if isinstance(value, float) and not math.isfinite(value):
        return {_NAMES[FLOAT_KIND if kind == FLOAT_KIND else DOUBLE_KIND]: str(value)}
    return value if kind == kind_of(value) else {_NAMES[narrowed(kind, value)]: value}


def _from_json(value: Any, depth: int) -> TypedValue:
    if isinstance(value, str):
        return TypedValue(STRING_KIND, value)
    if value is None or depth > _MOST_DEPTH:
        return TypedValue(NULL_KIND, None)
    if isinstance(value, bool):
        return TypedValue(BOOLEAN_KIND, value)
    if isinstance(value, int):
        return _number(INT_KIND, value)
    if isinstance(value, float):
        return TypedValue(DOUBLE_KIND, value)
    if isinstance(value, list):
        return TypedValue(LIST_KIND, [_from_json(each, depth + 1) for each in value])
    if len(value) == 1:
        ((name, inner),) = value.items()
        named = _from_named(_KINDS.get(name, NULL_KIND), inner, depth + 1)
        if named is not None:
            return named
    return TypedValue(MAP_KIND, {key: _from_json(each, depth + 1) for key, each in value.items()})


def _from_named(kind: int, value: Any, depth: int) -> TypedValue | None:
    """The value of an object that names its type; None when it is an ordinary object after all."""
    if kind == MAP_KIND and isinstance(value, dict):
        return TypedValue(MAP_KIND, {key: _from_json(each, depth) for key, each in value.items()})
    if kind == LIST_KIND and isinstance(value, list):
        return TypedValue(LIST_KIND, [_from_json(each, depth) for each in value])
    if kind == CHAR_KIND and isinstance(value, str):
        return TypedValue(CHAR_KIND, value)
    if kind == BYTES_KIND and isinstance(value, str):
        try:
            return TypedValue(BYTES_KIND, b64decode(value, validate=True))
        except ValueError:
            return None
    if kind in _NUMBERS and isinstance(value, int | float) and not isinstance(value, bool):
        return _number(kind, _as_float(value) if kind in (FLOAT_KIND, DOUBLE_KIND) else value)
    if kind in (FLOAT_KIND, DOUBLE_KIND) and value in ("nan", "inf", "-inf"):
        return TypedValue(kind, float(value))
    return None


def _number(kind: int, value: int | float) -> TypedValue:
    fitting = narrowed(kind, value)
    return TypedValue(fitting, _as_float(value) if fitting in (FLOAT_KIND, DOUBLE_KIND) else value)


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
