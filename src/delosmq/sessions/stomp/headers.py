"""Reading the headers of client frames: numbers, flags, choices, and those that are not supported yet."""

from typing import Final

from delosmq.model.message import ANY_ROUTING, ANYCAST, DEFAULT_PRIORITY, HIGHEST_PRIORITY, MULTICAST
from delosmq.sessions.stomp.refusals import header_missing, header_not_supported, header_wrong

# Ids are below 2**63; int() of longer digit strings is slow, and none of them is ours.
_MAX_DIGITS: Final = 19

UNSUPPORTED_IN_SEND: Final = frozenset(
    (
        "transaction",
        "expires",
        "AMQ_SCHEDULED_DELAY",
        "AMQ_SCHEDULED_TIME",
        "AMQ_SCHEDULED_PERIOD",
        "AMQ_SCHEDULED_REPEAT",
        "AMQ_SCHEDULED_CRON",
        "_AMQ_SCHED_DELIVERY",
        "JMSXGroupID",
        "_AMQ_GROUP_ID",
        "_AMQ_DUPL_ID",
    )
)
UNSUPPORTED_IN_SUBSCRIBE: Final = frozenset(
    (
        "selector",
        "durable-subscription-name",
        "durable-subscriber-name",
        "activemq.subscriptionName",
        "activemq.subcriptionName",
        "no-local",
        "activemq.noLocal",
        "activemq.priority",
        "activemq.exclusive",
        "browser",
    )
)
UNSUPPORTED_IN_UNSUBSCRIBE: Final = frozenset(
    ("durable-subscription-name", "durable-subscriber-name", "activemq.subscriptionName", "activemq.subcriptionName")
)
UNSUPPORTED_IN_ACK: Final = frozenset(("transaction",))

_ROUTING: Final = {"ANYCAST": ANYCAST, "MULTICAST": MULTICAST}


def refuse_unsupported(headers: dict[str, str], unsupported: frozenset[str], command: str) -> None:
    """Raises PeerError when a header asks for what does not exist yet; ignoring it would be a lie."""
    if unsupported.isdisjoint(headers):
        return
    for name in headers:
        if name in unsupported:
            raise header_not_supported(name, command)


def read_priority(headers: dict[str, str]) -> int:
    """``priority`` of a SEND."""
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
