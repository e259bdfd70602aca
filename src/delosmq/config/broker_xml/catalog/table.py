"""Every name that broker.xml may hold, and what DelosMQ does with it today.

Names, defaults and nesting follow Artemis's schema (artemis-configuration.xsd). The tables of docs/configuration.md are
made from these.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from delosmq.model.values import declared, default_as_written


class Policy(Enum):
    """What DelosMQ does with a known name."""

    IN_EFFECT = "in effect"
    NOT_YET = "not in effect yet"
    REFUSED = "refused"


@dataclass(frozen=True)
class Item:
    """One element, attribute or acceptor option.

    Attributes:
        name: attributes start with ``@``.
        about: in effect, what it sets; not in effect yet, what holds instead; refused, why.
        default: what holds when it is missing; "" when nothing does.
        unit: of the value.
        allowed: of a refused name: values that ask for nothing which DelosMQ lacks; they are accepted.
        children: names allowed inside one that is not in effect yet; empty means that nothing is checked there.
    """

    name: str
    policy: Policy
    about: str = ""
    default: str = ""
    unit: str = ""
    allowed: tuple[str, ...] = ()
    children: tuple[str, ...] = ()


Table = dict[str, Item]


def table(*groups: Iterable[Item]) -> Table:
    """The items of all ``groups`` by name."""
    return {item.name: item for group in groups for item in group}


def in_effect(name: str, about: str, default: str = "", unit: str = "") -> Item:
    """A name that DelosMQ obeys."""
    return Item(name, Policy.IN_EFFECT, about, default, unit)


def in_effect_of(kind: type) -> Iterator[Item]:
    """The settings that a class of settings declares, in its order."""
    for field, setting in declared(kind).items():
        name = setting.written
        default = setting.shown or default_as_written(kind, field, setting)
        yield in_effect(name, setting.about, default, setting.unit)
        if setting.older_name:
            yield in_effect(setting.older_name, f"older name of {name}", default, setting.unit)


def not_yet(name: str, about: str = "", children: str = "") -> Item:
    """A name that is listed at start and does nothing; ``children`` are separated by spaces."""
    return Item(name, Policy.NOT_YET, about, children=tuple(children.split()))


def refused(name: str, about: str, *allowed: str) -> Item:
    """A name that stops the start, unless its value is one of ``allowed``."""
    return Item(name, Policy.REFUSED, about, allowed=allowed)


def not_yet_all(names: str, about: str = "") -> list[Item]:
    """One `not_yet` for each of the space-separated ``names``."""
    return [not_yet(name, about) for name in names.split()]


def refused_all(names: str, about: str, *allowed: str) -> list[Item]:
    """One `refused` for each of the space-separated ``names``."""
    return [refused(name, about, *allowed) for name in names.split()]
