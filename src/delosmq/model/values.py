"""Values as configuration files write them, and how a setting declares the one it has.

Each parser raises ValueError with the rest of "... must be".
"""

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum
from functools import partial
from typing import Any, Final, TypeVar

from delosmq.model.message import ANYCAST, MULTICAST, ROUTING_NAMES

Parser = Callable[[str], object]
E = TypeVar("E", bound=Enum)

UNLIMITED: Final = -1
STRIP_ROUTING: Final = 0
PASS_ROUTING: Final = 3
KIB: Final = 1024
MIB: Final = 1024 * KIB

SETTING: Final = "setting"
"""The key of a `Setting` in the metadata of a field."""
_UNITS: Final = frozenset({"ms", "s", "bytes"})
_LARGEST: Final = 2**63 - 1
MOST_CREDIT: Final = 2**31 - 1
"""The largest prefetch that clients can be told."""
BODY_LIMIT_BYTES: Final = MIB
"""What the body of a request to the HTTP interface may have."""

# Powers of 1024 whether or not the "i" is written. Source: Artemis, ByteUtil.convertTextBytes.
_BYTES: Final = re.compile(r"(\d+)\s*([kmg]?)i?b?", re.IGNORECASE | re.ASCII)
_UNIT_BYTES: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
# What names are made of, lists and `address::queue` are cut by, and Artemis escapes with.
_TAKEN: Final = frozenset(",:\\_-")
_INTEGER: Final = re.compile(r"[+-]?\d+", re.ASCII)


class AddressFullPolicy(Enum):
    """What happens to a send when its address (or the broker) is at its memory limit."""

    PAGE = "PAGE"
    BLOCK = "BLOCK"
    FAIL = "FAIL"
    DROP = "DROP"


class DispatchProfile(Enum):
    """Which broker's habits a queue has where Artemis and Classic differ (docs/differences.md)."""

    ARTEMIS = "artemis"
    CLASSIC = "classic"


class RingEviction(Enum):
    """Which message a full ring pushes out."""

    HEAD = "head"
    LOWEST_PRIORITY = "lowest-priority"


class MessageEviction(Enum):
    """Which of the messages that wait for a topic consumer goes when they are too many."""

    OLDEST = "oldest"
    LOWEST_PRIORITY = "lowest-priority"
    UNIQUE_PROPERTY = "unique-property"


class DispatchPolicy(Enum):
    """Which of the consumers of a topic is served first."""

    SIMPLE = "simple"
    PRIORITY = "priority"


def parse_boolean(text: str) -> bool:
    """true or false, in any case."""
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError("true or false")
    return lowered == "true"


def parse_text(text: str) -> str:
    """Any text but none."""
    if not text:
        raise ValueError("given; it is empty")
    return text


def parse_wildcard_letter(text: str) -> str:
    """One letter that may be a delimiter or a wildcard."""
    if len(text) != 1 or text.isalnum() or text.isspace() or not text.isprintable() or text in _TAKEN:
        raise ValueError("one character that is no letter, no digit and none of , : \\ _ -")
    return text


def parse_integer(text: str) -> int:
    """A whole number."""
    if not _INTEGER.fullmatch(text):
        raise ValueError("a whole number")
    if len(text) > 20 or abs(int(text)) > _LARGEST:
        raise ValueError("a whole number below 2^63")
    return int(text)


def _whole_number(text: str, rule: str) -> int:
    """As `parse_integer`, for a ``rule`` that says more than that."""
    try:
        return parse_integer(text)
    except ValueError:
        bound = ", below 2^63" if _INTEGER.fullmatch(text) else ""
        raise ValueError(rule + bound) from None


def at_least(least: int, *, most: int = _LARGEST) -> Callable[[str], int]:
    """A parser of whole numbers from ``least`` to ``most``."""
    return _bounded(_whole_number, f"a whole number of at least {least}", least, most)


def _bounded(
    read: Callable[[str, str], int], rule: str, least: int, most: int, other: int | None = None
) -> Callable[[str], int]:
    """A parser of numbers from ``least`` to ``most``, and of ``other``.

    Args:
        read: a text, by the rule that it says where the text is no number.
    """

    def parse(text: str) -> int:
        number = read(text, rule)
        if number < least and number != other:
            raise ValueError(rule)
        if number > most:
            raise ValueError(f"{rule} and at most {most}")
        return number

    return parse


def unlimited_or_at_least(least: int, meaning: str = "no limit", *, most: int = _LARGEST) -> Callable[[str], int]:
    """A parser of whole numbers from ``least`` to ``most``, and of -1, which has the given ``meaning``."""
    rule = f"-1 ({meaning}) or a whole number of at least {least}"
    return _bounded(_whole_number, rule, least, most, UNLIMITED)


def parse_bytes(text: str) -> int:
    """A size in bytes: digits and one of K, M, G (also KB, KiB and so on), always powers of 1024."""
    found = _BYTES.fullmatch(text)
    if found is None or len(found.group(1)) > 19:
        raise ValueError("a size in bytes such as 10485760, 10M or 10MiB")
    size = int(found.group(1)) * _UNIT_BYTES[found.group(2).lower()]
    if size > _LARGEST:
        raise ValueError("a size in bytes below 2^63")
    return size


def parse_limit_bytes(text: str) -> int:
    """A size of at least one byte, or -1 for no limit."""
    if text == "-1":
        return UNLIMITED
    size = parse_bytes(text)
    if size == 0:
        raise ValueError("-1 (no limit) or a size of at least 1 byte")
    return size


def bytes_at_least(least: int, *, most: int = _LARGEST) -> Callable[[str], int]:
    """A parser of sizes from ``least`` to ``most`` bytes."""
    return _bounded(lambda text, rule: parse_bytes(text), f"a size of at least {least} bytes", least, most)


def percentage_of_at_least(least: int) -> Callable[[str], int]:
    """A parser of whole numbers from ``least`` to 100."""
    rule = f"a percentage from {least} to 100"

    def parse(text: str) -> int:
        number = _whole_number(text, rule)
        if not least <= number <= 100:
            raise ValueError(rule)
        return number

    return parse


def parse_attempts(text: str) -> int:
    """Delivery attempts: from 1 on; -1 and, as in Artemis, 0 for endless."""
    rule = "-1 or 0 for endless, or a whole number of at least 1"
    number = _whole_number(text, rule)
    if number < UNLIMITED:
        raise ValueError(rule)
    return number or UNLIMITED


def parse_modifier(text: str) -> float:
    """A factor of at least 1."""
    return _between(text, 1.0, 1000.0, "a factor from 1 to 1000, such as 2.0")


def parse_multiplier(text: str) -> float:
    """A factor of at least 0; below 1 it makes less of a delay each time."""
    return _between(text, 0.0, 1000.0, "a factor from 0 to 1000, such as 2.0")


def parse_multiplier_or_none(text: str) -> float:
    """A factor of at least 0; -1 for none."""
    rule = "-1 (none) or a factor from 0 to 1000, such as 0.5"
    return float(UNLIMITED) if text == str(UNLIMITED) else _between(text, 0.0, 1000.0, rule)


def parse_share(text: str) -> float:
    return _between(text, 0.0, 1.0, "a share from 0 to 1, such as 0.15")


def _between(text: str, least: float, most: float, rule: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(rule) from None
    # False for NaN as well.
    if not least <= number <= most:
        raise ValueError(rule)
    return number


def parse_routing_type(text: str) -> int:
    """ANYCAST or MULTICAST."""
    return _named(text, {"ANYCAST": ANYCAST, "MULTICAST": MULTICAST})


def parse_divert_routing_type(text: str) -> int:
    """ANYCAST, MULTICAST, STRIP or PASS."""
    known = {"ANYCAST": ANYCAST, "MULTICAST": MULTICAST, "STRIP": STRIP_ROUTING, "PASS": PASS_ROUTING}
    return _named(text, known)


def _named(text: str, known: dict[str, int]) -> int:
    if text.upper() not in known:
        raise ValueError(_alternatives(list(known)))
    return known[text.upper()]


def one_of(kind: type[E]) -> Callable[[str], E]:
    """A parser of the values of an enumeration, in any case."""
    by_text = {str(member.value).lower(): member for member in kind}

    def parse(text: str) -> E:
        if text.lower() not in by_text:
            raise ValueError(_alternatives([str(member.value) for member in kind]))
        return by_text[text.lower()]

    return parse


def _alternatives(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def comma_separated(text: str) -> tuple[str, ...]:
    """The parts between commas, stripped, without empty ones."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


@dataclass(frozen=True)
class Setting:
    """What is declared of a setting beside its name, its type and the default that the engine reads.

    Attributes:
        parse: reads its value as broker.xml has it.
        about: what it sets, for the manual.
        unit: of the value.
        shown: the manual's word for a default that depends on other settings.
        older_name: broker.xml may call it this, too.
        written: what broker.xml calls it; "" for the name of the field with ``-`` for ``_``.
        live: a change counts while the broker lives; that of another one waits for a restart. What an address holds
            depends on these.
        explained: of an address: it decides what becomes of messages in a queue, so ``explain`` shows it.
        kind: of a queue: of its values, bool, int or str.
        defaults: of a queue: the settings of the address that count where the queue has none; the first is the one
            that the manual names.
        least: of a number of a queue.
        in_file: of a queue: its value where broker.xml names a queue and says nothing of it; None leaves it to the
            address.
        fixed: of a queue: it can't change while the queue exists.
    """

    parse: Parser
    about: str
    unit: str = ""
    shown: str = ""
    older_name: str = ""
    written: str = ""
    live: bool = False
    explained: bool = False
    kind: type = str
    defaults: tuple[str, ...] = ()
    least: int = 0
    in_file: bool | None = None
    fixed: bool = False


def _parser_of(default: object) -> Parser:
    if isinstance(default, bool):
        return parse_boolean
    if isinstance(default, Enum):
        return one_of(type(default))
    raise AssertionError(f"a setting with the default {default!r} needs a parser")


def at_restart(
    default: object,
    about: str,
    parse: Parser | None = None,
    *,
    unit: str = "",
    shown: str = "",
    older_name: str = "",
    written: str = "",
    live: bool = False,
    explained: bool = False,
    repr: bool = True,
) -> Any:
    """A field of a dataclass that declares a setting of which a change waits for a restart, unless it is ``live``.

    Args:
        parse: by default, what reads values such as the default: a switch or a member of an enumeration.
    """
    parser = parse or _parser_of(default)
    setting = Setting(parser, about, unit, shown, older_name, written, live=live, explained=explained)
    return field(default=default, repr=repr, metadata={SETTING: setting})


at_reload: Final = partial(at_restart, live=True)
"""The same of a setting of which a change counts while the broker lives."""


def declared(kind: Any) -> dict[str, Setting]:
    """What the fields of a dataclass declare, by their names, each with what broker.xml calls it. A unit at the end of
    a name is that of the setting, and broker.xml leaves it out."""
    found: dict[str, Setting] = {}
    for one in fields(kind):
        if SETTING in one.metadata:
            setting: Setting = one.metadata[SETTING]
            name, _, unit = one.name.rpartition("_")
            if setting.unit or unit not in _UNITS:
                name, unit = one.name, setting.unit
            found[one.name] = replace(setting, unit=unit, written=setting.written or name.replace("_", "-"))
    return found


def default_as_written(kind: Any, name: str, setting: Setting) -> str:
    """The default of a field of a dataclass as broker.xml would have it; "" when it has none."""
    value = next(one.default for one in fields(kind) if one.name == name)
    if value is MISSING or value == ():
        return ""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    if name.endswith("_routing_type"):
        return ROUTING_NAMES[value]
    if setting.unit == "bytes" and value >= KIB and value % KIB == 0:
        return f"{value // MIB}M" if value % MIB == 0 else f"{value // KIB}K"
    return str(value)
