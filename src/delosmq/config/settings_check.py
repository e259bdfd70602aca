"""Checks settings that a program made, as broker.xml's are checked when they are read."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from delosmq.config.findings import nearest
from delosmq.model.declared.acceptor import ACCEPTOR_SETTINGS
from delosmq.model.declared.address import SETTINGS
from delosmq.model.errors import ConfigurationError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.protocol_names import SERVED_PROTOCOLS
from delosmq.model.settings import (
    CORE_SETTINGS,
    JOURNAL_SETTINGS,
    LEAST_SEGMENT_BYTES,
    MOST_SEGMENT_BYTES,
    UNLIMITED,
    AcceptorSettings,
    AddressDefinition,
    AddressMatch,
    AddressSettings,
    BrokerSettings,
    DivertSettings,
    QueueSettings,
    SecurityMatch,
)
from delosmq.security.access import PERMISSIONS

WRONG_SETTING: Final = "DMQ4040"
LARGEST_PORT: Final = 65535


def _may_be_unlimited() -> Iterator[str]:
    for known in (CORE_SETTINGS, JOURNAL_SETTINGS, ACCEPTOR_SETTINGS):
        for name, setting in known.items():
            with suppress(ValueError):
                setting.parse(str(UNLIMITED))
                yield name


_MAY_BE_UNLIMITED: Final = frozenset(_may_be_unlimited())
"""Numbers for which -1 has a meaning although it is not their default, and None isn't either."""
ELEMENTS: Final[dict[str, type]] = {
    "acceptors": AcceptorSettings,
    "address_settings": AddressMatch,
    "addresses": AddressDefinition,
    "diverts": DivertSettings,
    "queues": QueueSettings,
    "security_settings": SecurityMatch,
    "protocols": str,
}
"""Of tuples. A compiled class knows of a field `tuple[X, ...]` that it is a tuple, and of `X | None` nothing: its
annotation is `type`. Fields of a wrong type such a class refuses itself, with a TypeError."""
_LEAST: Final = {"file_size_bytes": LEAST_SEGMENT_BYTES}
_MOST: Final = {"port": LARGEST_PORT, "compact_percentage": 100, "file_size_bytes": MOST_SEGMENT_BYTES}


def check_settings(settings: BrokerSettings) -> None:
    """Refuses settings of a wrong type or out of range, and names that don't exist.

    Raises:
        ConfigurationError: names the setting and says what it may be.
    """
    _check(settings, BrokerSettings, "settings", None)


def _check(value: object, wanted: Any, path: str, owner: object) -> None:
    kind = get_origin(wanted)
    if wanted is tuple and (element := ELEMENTS.get(path.rpartition(".")[2])) is not None:
        kind, wanted = tuple, tuple[element, ...]  # type: ignore[valid-type]
    if kind in (Union, UnionType):
        if value is None and type(None) in get_args(wanted):
            return
        (wanted,) = (option for option in get_args(wanted) if option is not type(None))
        kind = get_origin(wanted)
    if kind is None:
        _check_plain(value, wanted, path, owner)
    elif not isinstance(value, kind):
        raise _wrong(path, value, f"a {kind.__name__}")
    elif kind is dict:
        assert isinstance(value, dict)
        key_type, value_type = get_args(wanted)
        for key, item in value.items():
            _check(key, key_type, f"a name in {path}", None)
            _check(item, value_type, f"{path}[{key!r}]", None)
    else:
        assert isinstance(value, tuple | frozenset)
        for number, item in enumerate(value):
            _check(item, get_args(wanted)[0], f"{path}[{number}]", None)


def _check_plain(value: object, wanted: Any, path: str, owner: object) -> None:
    if wanted is object:
        return
    if wanted is type:
        if type(value) is int:
            _check_range(value, path, owner)
        return
    if wanted is float:
        if type(value) not in (int, float):
            raise _wrong(path, value, "a number")
    elif not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise _wrong(path, value, _named(wanted))
    elif wanted is int:
        assert isinstance(value, int)
        _check_range(value, path, owner)
    elif is_dataclass(wanted):
        _check_fields(value, path)


def _check_fields(value: object, path: str) -> None:
    kind: Any = type(value)
    for name, wanted in _hints(kind).items():
        _check(getattr(value, name), wanted, f"{path}.{name}", value)
    if isinstance(value, AddressMatch):
        for name, setting in value.fields.items():
            _check_address_setting(f"{path} (match {value.match!r})", name, setting)
    elif isinstance(value, SecurityMatch):
        for name in value.permissions:
            if name not in PERMISSIONS:
                raise _unknown("permission", f"{path} (match {value.match!r})", name, PERMISSIONS)
    elif isinstance(value, AcceptorSettings):
        for name in value.protocols:
            if name not in SERVED_PROTOCOLS:
                raise _unknown("protocol", f"{path} ({value.name!r})", name, SERVED_PROTOCOLS)


def _check_range(value: int, path: str, owner: object) -> None:
    name = path.rpartition(".")[2]
    least, most = _LEAST.get(name, 0), _MOST.get(name)
    if name in _MAY_BE_UNLIMITED or (name not in _MOST and _default_of(owner, name) in (UNLIMITED, None)):
        least = UNLIMITED
    if value < least or (most is not None and value > most):
        meaning = " (-1 for none)" if least == UNLIMITED else ""
        raise _wrong(path, value, f"at least {least}{meaning}" if most is None else f"from {least} to {most}")


def _default_of(owner: object, name: str) -> object:
    known = fields(owner) if is_dataclass(owner) and not isinstance(owner, type) else ()
    return next((field.default for field in known if field.name == name), 0)


def _check_address_setting(path: str, name: str, value: object) -> None:
    hints = _hints(AddressSettings)
    if name not in hints:
        raise _unknown("address-setting", path, name, tuple(hints))
    where = f"{path}.{name}"
    if hints[name] is not int:
        _check(value, hints[name], where, None)
    elif type(value) is not int:  # its range is that of broker.xml
        raise _wrong(where, value, _named(int))
    if value is None:
        return
    if name.endswith("routing_type"):
        if value not in (ANYCAST, MULTICAST):
            raise _wrong(where, value, "ANYCAST or MULTICAST of delosmq.model.message")
        return
    try:
        SETTINGS[name].parse(_as_written(value))
    except ValueError as error:
        raise _wrong(where, value, str(error)) from None


def _as_written(value: object) -> str:
    """A value as broker.xml has it."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _named(kind: type) -> str:
    if issubclass(kind, Enum):
        return " or ".join(str(member) for member in kind)
    return {int: "a whole number", str: "a text", bool: "True or False"}.get(kind, f"a {kind.__name__}")


def _wrong(path: str, value: object, rule: str) -> ConfigurationError:
    return ConfigurationError(WRONG_SETTING, f"{path} is {value!r}; it must be {rule}")


def _unknown(what: str, path: str, name: object, known: tuple[str, ...]) -> ConfigurationError:
    return ConfigurationError(
        WRONG_SETTING, f"{path}: there is no {what} {name!r}{nearest(str(name).replace('-', '_'), list(known))}"
    )
