"""What programs pass as arguments, looked at before anything is done with it."""

from collections.abc import Mapping
from inspect import iscoroutinefunction
from types import UnionType
from typing import Final

from delosmq.client.errors import wrong_argument

MOST_INT: Final = 2**31 - 1
"""Of Java."""
MOST_MS: Final = 2**62
"""Half of a long of Java: the time of day still fits on top of it."""


def demand_text(name: str, value: object, wanted: str = "a str") -> None:
    """
    Args:
        value: not shown, as it may be a password.

    Raises:
        ClientOptionError: DMQ9056, it is no text.
    """
    if not isinstance(value, str):
        raise wrong_argument(name, type(value), wanted)


def demand_kind(name: str, value: object, kind: type | UnionType, wanted: str) -> None:
    """
    Raises:
        ClientOptionError: DMQ9056, it is nothing of the kind.
    """
    if not isinstance(value, kind):
        raise wrong_argument(name, value, wanted)


def demand_name(name: str, value: object) -> None:
    """
    Raises:
        ClientOptionError: DMQ9056, it is no text, or an empty one.
    """
    if not isinstance(value, str) or not value:
        raise wrong_argument(name, value, "a str of at least one character")


def demand_flag(name: str, value: object) -> None:
    """
    Raises:
        ClientOptionError: DMQ9056, it is neither True nor False.
    """
    if value is not True and value is not False:
        raise wrong_argument(name, value, "True or False")


def bounds_in_words(least: int, most: int, *, whole: bool = True) -> str:
    return f"a {'whole ' if whole else ''}number from {least} to {'2**62' if most == MOST_MS else most}"


def demand_number(name: str, value: object, most: int, least: int = 0, kind: type = int) -> None:
    """
    Raises:
        ClientOptionError: DMQ9056, it is no whole number (or none at all, when ``kind`` is float), or out of bounds.
    """
    wrong = not isinstance(value, int | float if kind is float else int) or isinstance(value, bool)
    if wrong or not isinstance(value, int | float) or not least <= value <= most:
        raise wrong_argument(name, value, bounds_in_words(least, most, whole=kind is int))


def demand_timeout(value: object) -> None:
    """
    Raises:
        ClientOptionError: DMQ9056, so long nothing can wait.
    """
    if value is None:
        return
    if isinstance(value, bool) or not (isinstance(value, int | float) and 0 <= value < MOST_MS):
        raise wrong_argument("timeout_s", value, "None, which waits for ever, or a finite number, 0 or more")


def demand_function(name: str, value: object) -> None:
    """
    Raises:
        ClientOptionError: DMQ9056, it is neither None nor anything that can be called.
    """
    if value is not None and not callable(value):
        raise wrong_argument(name, value, "a function, or None for none")


def demand_plain_function(name: str, value: object) -> None:
    """
    Raises:
        ClientOptionError: DMQ9056, no thread can call it.
    """
    demand_function(name, value)
    if iscoroutinefunction(value):
        raise wrong_argument(name, value, "a plain function; for a coroutine function use delosmq.client.aio")


def demand_entries(name: str, value: object) -> None:
    """
    Args:
        value: not shown, as it may hold a secret.

    Raises:
        ClientOptionError: DMQ9056, it is no mapping.
    """
    if not isinstance(value, Mapping):
        raise wrong_argument(name, type(value), "a mapping (such as a dict) of values by name")
