"""Options as they stand in URLs: ``name=value`` by the names of the Java client, read into dataclasses."""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from delosmq.client.errors import wrong_option, wrong_option_value

T = TypeVar("T")

_UNITS: Final = ("_ms", "_bytes")
_SPECIAL: Final = {
    "client_id": "clientID",
    "priority_uris": "priorityURIs",
    "update_uris_supported": "updateURIsSupported",
}


def parameters(where: str, query: str) -> dict[str, str]:
    """What stands behind the question mark.

    Raises:
        ClientOptionError: DMQ9050, a part has no value.
    """
    for part in query.split("&") if query else ():
        if "=" not in part:
            raise wrong_option_value(where, part, "", "written as name=value")
    return dict(parse_qsl(query, keep_blank_values=True))


def written(name: str) -> str:
    """A field as URLs have it."""
    if name in _SPECIAL:
        return _SPECIAL[name]
    for unit in _UNITS:
        name = name.removesuffix(unit)
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def kinds_of(options: Any) -> dict[str, type]:
    """The fields that texts can set, and what these are: types of values, as compiled classes tell little of their
    annotations."""
    values = {one.name: getattr(options, one.name) for one in fields(options)}
    return {name: type(value) for name, value in values.items() if isinstance(value, bool | int | float | str)}


def names(options: Any, prefix: str) -> list[str]:
    """The fields that texts can set, as URLs have them."""
    return [f"{prefix}{written(name)}" for name in kinds_of(options)]


def filled(options: T, texts: dict[str, str], prefix: str, where: str, kinds: dict[str, type] | None = None) -> T:
    """``options`` with what the texts say.

    Args:
        kinds: what the fields are, where their defaults don't tell.

    Raises:
        ClientOptionError: DMQ9050, there is no such option; DMQ9051, a value is none.
    """
    kinds = kinds_of(options) if kinds is None else kinds
    known = {f"{prefix}{written(name)}": name for name in kinds}
    changes: dict[str, object] = {}
    for name, text in texts.items():
        if name not in known:
            raise wrong_option(where, name, nearest(name, known))
        changes[known[name]] = parsed(where, name, text, kinds[known[name]])
    return replace(options, **changes)  # type: ignore[type-var]


def parsed(where: str, name: str, text: str, kind: type) -> object:
    """A text as a value of the type ``kind``."""
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise wrong_option_value(where, name, text, "true or false")
        return text.lower() == "true"
    if kind is int or kind is float:
        try:
            return kind(text)
        except ValueError:
            raise wrong_option_value(where, name, text, "a whole number" if kind is int else "a number") from None
    return text


def nearest(name: str, known: Iterable[str]) -> str:
    """What was probably meant; "" when nothing is near."""
    from difflib import get_close_matches  # only for those who mistype

    by_lower = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), by_lower, 1)
    return by_lower[found[0]] if found else ""
