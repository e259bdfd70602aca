"""Names, alike in all protocols: the queues of durable subscriptions, and the prefixes of an acceptor.

Source: DestinationUtil.createQueueNameForSubscription of Artemis for the escapes (docs/decisions/0045).
"""

from typing import Final

from delosmq.model.errors import MisuseError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import AcceptorSettings

_SEPARATOR: Final = "."
_ESCAPE: Final = "\\"


def durable_queue_name(client_id: str, subscription: str) -> str:
    """No two subscriptions have the same: a separator within one of the two names is escaped."""
    return f"{_escaped(client_id)}{_SEPARATOR}{_escaped(subscription)}"


def _escaped(name: str) -> str:
    return name.replace(_ESCAPE, _ESCAPE + _ESCAPE).replace(_SEPARATOR, _ESCAPE + _SEPARATOR)


class Prefixes:
    """By which names say whether they are anycast or multicast, of one acceptor.

    Raises:
        MisuseError: one of them is empty.
    """

    def __init__(self, acceptor: AcceptorSettings) -> None:
        prefixes = [(prefix, ANYCAST) for prefix in acceptor.anycast_prefixes]
        prefixes += [(prefix, MULTICAST) for prefix in acceptor.multicast_prefixes]
        if any(not prefix for prefix, _ in prefixes):
            raise MisuseError("DMQ5119", f"acceptor '{acceptor.name}' has an empty prefix: remove it or write it out.")
        # The longest first, so that a prefix may begin with another one.
        self._prefixes: list[tuple[str, int]] = sorted(prefixes, key=_by_length, reverse=True)

    def strip(self, name: str, routing: int) -> tuple[str, int]:
        """A name without its prefix, and the routing type that this stands for; else the one given."""
        for prefix, kind in self._prefixes:
            if name.startswith(prefix):
                return name[len(prefix) :], kind
        return name, routing


def _by_length(entry: tuple[str, int]) -> int:
    return len(entry[0])
