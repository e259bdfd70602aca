"""Reading the headers of client frames: numbers, flags, choices, and those that are refused."""

from typing import Final

from delosmq.model.message import ANY_ROUTING, ANYCAST, DEFAULT_PRIORITY, HIGHEST_PRIORITY, MULTICAST
from delosmq.sessions.stomp.server.errors import header_missing, header_not_supported, header_wrong

# Ids are below 2**63; int() of longer digit strings is slow, and none of them is ours.
_MAX_DIGITS: Final = 19
LATEST_MS: Final = 2**63 - 1
"""Times are stored in 63 bits, as JMS writes them."""
SMALL: Final = (-128, 127)
INTEGERS: Final = (-(2**31), 2**31 - 1)
"""What a byte and an int of Java hold."""

UNSUPPORTED_IN_SEND: Final = frozenset(("AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT", "AMQ_SCHEDULED_CRON"))

_ROUTING: Final = {"ANYCAST": ANYCAST, "MULTICAST": MULTICAST}


def refuse_unsupported(headers: dict[str, str], unsupported: frozenset[str], command: str) -> None:
    """Raises PeerError when a header asks for what there is not; ignoring it would be a lie."""
    if unsupported.isdisjoint(headers):
        return
    for name in headers:
        if name in unsupported:
            raise header_not_supported(name, command)


def read_priority(headers: dict[str, str]) -> int:
    value = headers.get("priority")
    if value is None:
        return DEFAULT_PRIORITY
    priority = parse_count(value)
    if priority < 0 or priority > HIGHEST_PRIORITY:
        raise header_wrong("priority", "SEND", value, f"a number from 0 to {HIGHEST_PRIORITY}")
    return priority


def read_flag(headers: dict[str, str], name: str, command: str) -> bool:
    """A header that is ``true`` or ``false``; absent means false."""
    value = headers.get(name)
    if value is None or value == "false":
        return False
    if value == "true":
        return True
    folded = value.strip().lower()
    if folded not in ("true", "false"):
        raise header_wrong(name, command, value, "true or false")
    return folded == "true"


def read_routing(headers: dict[str, str], name: str, command: str) -> int:
    """A header that names a routing type; absent means `ANY_ROUTING`."""
    value = headers.get(name)
    if value is None:
        return ANY_ROUTING
    routing = _ROUTING.get(value.strip().upper())
    if routing is None:
        raise header_wrong(name, command, value, "ANYCAST or MULTICAST")
    return routing


def read_number(headers: dict[str, str], name: str, command: str, limits: tuple[int, int]) -> int:
    """A header that is a whole number within ``limits``, both included; absent means 0."""
    value = headers.get(name)
    if value is None:
        return 0
    count = parse_count(value.removeprefix("-"))
    number = -count if value.startswith("-") else count
    if count < 0 or not limits[0] <= number <= limits[1]:
        raise header_wrong(name, command, value, f"a whole number from {limits[0]} to {limits[1]}")
    return number


def read_time(headers: dict[str, str], name: str, command: str) -> int:
    """A header that is a time or a delay in ms; absent means 0."""
    value = headers.get(name)
    if value is None:
        return 0
    time_ms = parse_count(value)
    if time_ms < 0 or time_ms > LATEST_MS:
        raise header_wrong(name, command, value, "a number of ms, 0 or more, within 63 bits")
    return time_ms


def parse_count(text: str) -> int:
    """A non-negative decimal number; -1 for anything else."""
    return int(text) if text.isdigit() and text.isascii() and len(text) <= _MAX_DIGITS else -1


def required(headers: dict[str, str], name: str, command: str) -> str:
    """A header that must be there.

    Raises:
        PeerError: it isn't.
    """
    value = headers.get(name)
    if value is None:
        raise header_missing(name, command)
    return value
