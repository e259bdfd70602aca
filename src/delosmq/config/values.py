"""Values as configuration files write them. Each parser raises ValueError with the rest of "... must be"."""

import re
from collections.abc import Callable
from typing import Final

from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import UNLIMITED, AddressFullPolicy

Parser = Callable[[str], object]

_LARGEST: Final = 2**63 - 1

# Powers of 1024 whether or not the "i" is written. Source: Artemis, ByteUtil.convertTextBytes.
_BYTES: Final = re.compile(r"(\d+)\s*([kmg]?)i?b?", re.IGNORECASE | re.ASCII)
_UNIT_BYTES: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_INTEGER: Final = re.compile(r"[+-]?\d+", re.ASCII)


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


def parse_integer(text: str) -> int:
    """A whole number."""
    if not _INTEGER.fullmatch(text) or len(text) > 20 or abs(int(text)) > _LARGEST:
        raise ValueError("a whole number")
    return int(text)


def at_least(least: int) -> Callable[[str], int]:
    """A parser of whole numbers from ``least`` on."""

    def parse(text: str) -> int:
        number = parse_integer(text)
        if number < least:
            raise ValueError(f"a whole number of at least {least}")
        return number

    return parse


def unlimited_or_at_least(least: int) -> Callable[[str], int]:
    """A parser of whole numbers from ``least`` on, and of -1 for no limit."""

    def parse(text: str) -> int:
        number = parse_integer(text)
        if number != UNLIMITED and number < least:
            raise ValueError(f"-1 (no limit) or a whole number of at least {least}")
        return number

    return parse


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


def bytes_at_least(least: int) -> Callable[[str], int]:
    """A parser of sizes from ``least`` bytes on."""

    def parse(text: str) -> int:
        size = parse_bytes(text)
        if size < least:
            raise ValueError(f"a size of at least {least} bytes")
        return size

    return parse


def parse_percentage(text: str) -> int:
    """A whole number from 1 to 100."""
    number = parse_integer(text)
    if not 1 <= number <= 100:
        raise ValueError("a percentage from 1 to 100")
    return number


def parse_attempts(text: str) -> int:
    """Delivery attempts: from 1 on; -1 and, as in Artemis, 0 for endless."""
    number = parse_integer(text)
    if number < UNLIMITED:
        raise ValueError("-1 (endless) or a whole number of at least 1")
    return number or UNLIMITED


def parse_modifier(text: str) -> float:
    """A factor of at least 1."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1.0 <= number <= 1000.0:
        raise ValueError("a factor from 1 to 1000, such as 2.0")
    return number


def parse_routing_type(text: str) -> int:
    """ANYCAST or MULTICAST."""
    routing_types = {"ANYCAST": ANYCAST, "MULTICAST": MULTICAST}
    if text.upper() not in routing_types:
        raise ValueError("ANYCAST or MULTICAST")
    return routing_types[text.upper()]


def parse_full_policy(text: str) -> AddressFullPolicy:
    """PAGE, BLOCK, FAIL or DROP."""
    try:
        return AddressFullPolicy(text.upper())
    except ValueError:
        raise ValueError("PAGE, BLOCK, FAIL or DROP") from None


def comma_separated(text: str) -> tuple[str, ...]:
    """The parts between commas, stripped, without empty ones."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
