"""Options as they stand in URLs: ``name=value`` by the names of the Java client, read into dataclasses."""

import math
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from delosmq.client.errors import wrong_option, wrong_option_value
from delosmq.client.options.arguments import MOST_INT, MOST_MS, bounds_in_words
from delosmq.wire.openwire.wire_format import NEWEST_VERSION, OLDEST_VERSION

T = TypeVar("T")

_UNITS: Final = ("_ms", "_bytes")
_SPECIAL: Final = {
    "client_id": "clientID",
    "priority_uris": "priorityURIs",
    "update_uris_supported": "updateURIsSupported",
}
_UNLIMITED: Final = (-1, MOST_INT)
_PREFETCH: Final = (0, 32767)
_BOUNDS: Final[dict[str, tuple[int, int]]] = {
    "maximum_redeliveries": _UNLIMITED,
    "maximum_redelivery_delay_ms": (-1, MOST_MS),
    "max_reconnect_attempts": _UNLIMITED,
    "startup_max_reconnect_attempts": _UNLIMITED,
    "warn_after_reconnect_attempts": _UNLIMITED,
    "timeout_ms": (-1, MOST_MS),
    "maximum_pending_message_limit": _UNLIMITED,
    "queue_prefetch": _PREFETCH,
    "queue_browser_prefetch": _PREFETCH,
    "topic_prefetch": _PREFETCH,
    "durable_topic_prefetch": _PREFETCH,
    "optimize_durable_topic_prefetch": _PREFETCH,
    "priority": (-128, 127),
    "back_off_multiplier": (1, MOST_INT),
    "producer_window_size_bytes": (0, MOST_INT),
    "window_size_bytes": (0, MOST_INT),
    "version": (OLDEST_VERSION, NEWEST_VERSION),
    "max_frame_size_bytes": (1, MOST_MS),
    "backup_pool_size": (1, MOST_INT),
}
"""The least and the most of a field. All others are 0 or more: an int of Java, or a long where they have a unit.

Source: the setters of the Java client, ActiveMQPrefetchPolicy.MAX_PREFETCH_SIZE, a priority of one byte."""


def bounds_of(name: str) -> tuple[int, int]:
    """The least and the most that a field may be."""
    return _BOUNDS.get(name) or (0, MOST_MS if name.endswith(_UNITS) else MOST_INT)


def parameters(where: str, query: str) -> dict[str, str]:
    """What stands behind the question mark.

    Raises:
        ClientOptionError: DMQ9051, a part has no value, or its name stands there twice.
    """
    for part in query.split("&") if query else ():
        if "=" not in part:
            raise wrong_option_value(where, part, "", "written as name=value")
    found: dict[str, str] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name in found:
            raise wrong_option_value(where, name, text, "written once")
        found[name] = text
    return found


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
        changes[known[name]] = parsed(where, name, text, known[name], kinds[known[name]])
    return replace(options, **changes)  # type: ignore[type-var]


def parsed(where: str, name: str, text: str, field: str, kind: type) -> object:
    """A text as what a field of the type ``kind`` may be."""
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise wrong_option_value(where, name, text, "true or false")
        return text.lower() == "true"
    if kind is int or kind is float:
        least, most = bounds_of(field)
        try:
            number: float = kind(text)
        except ValueError:
            number = math.nan
        if not least <= number <= most:
            raise wrong_option_value(where, name, text, bounds_in_words(least, most, whole=kind is int))
        return number
    return text


def refuse_unknown(function: str, arguments: Iterable[str], known: Iterable[str]) -> None:
    """
    Args:
        arguments: by their names, for which the function has no parameter.
        known: for which it has one.

    Raises:
        TypeError: there are any.
    """
    for name in arguments:
        near = nearest(name, known)
        meant = f"; did you mean '{near}'?" if near else ""
        raise TypeError(f"{function} got an unexpected keyword argument '{name}'{meant}")


def nearest(name: str, known: Iterable[str]) -> str:
    """What was probably meant; "" when nothing is near."""
    from difflib import get_close_matches  # only for those who mistype

    by_lower = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), by_lower, 1)
    return by_lower[found[0]] if found else ""
