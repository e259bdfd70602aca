"""Headers of a SUBSCRIBE that look as if they should do something, and do nothing here.

Clients may send headers of their own, so none is refused: who runs the broker is told, once for each connection.
"""

from typing import Final

from delosmq.sessions.stomp.server.subscription import PREFETCH, WINDOW
from delosmq.sessions.stomp.server.subscription_options import DURABLE_NAMES

KNOWN: Final = (
    "destination",
    "id",
    "ack",
    "receipt",
    "selector",
    "subscription-type",
    "destination-type",
    WINDOW,
    PREFETCH,
    *DURABLE_NAMES,
    "no-local",
    "activemq.noLocal",
    "activemq.priority",
    "activemq.exclusive",
    "browser",
)
"""What SUBSCRIBE reads."""

_KNOWN_SET: Final = frozenset(KNOWN)
_CLASSIC: Final = "activemq."
# Of Classic's headers the one that begins otherwise; it asks for bodies in another format.
_TRANSFORMATION: Final = "transformation"
_BARE: Final = [(name.removeprefix(_CLASSIC).lower(), name) for name in KNOWN]
_LOOKED_AT: Final = 50
"""Unknown headers of one frame; a client that sends more has not mistyped them."""
_SHORTEST: Final = 3


def unknown_headers(headers: dict[str, str]) -> dict[str, str]:
    """Headers that are not `KNOWN`, but begin as Classic's do or are much like a known one.

    Returns:
        Each with the header it may stand for, or "".
    """
    found: dict[str, str] = {}
    looked_at = 0
    for name in headers:
        if name in _KNOWN_SET:
            continue
        looked_at += 1
        if looked_at > _LOOKED_AT:
            break
        meant = _meant(name)
        if meant or name.startswith(_CLASSIC) or name == _TRANSFORMATION:
            found[name] = meant
    return found


def _meant(name: str) -> str:
    written = name.removeprefix(_CLASSIC).lower()
    for bare, known in _BARE:
        if written == bare or (len(bare) >= _SHORTEST and _differ_once(written, bare)):
            return known
    return ""


def _differ_once(one: str, other: str) -> bool:
    """Whether one letter more, less or other, or two in the wrong order, makes one of the other."""
    if not -1 <= len(one) - len(other) <= 1:
        return False
    same = 0
    while same < len(one) and same < len(other) and one[same] == other[same]:
        same += 1
    rest = one[same:]
    wanted = other[same:]
    if rest[1:] == wanted[1:] or rest[1:] == wanted or rest == wanted[1:]:
        return True
    return rest[:1] == wanted[1:2] and rest[1:2] == wanted[:1] and rest[2:] == wanted[2:]
