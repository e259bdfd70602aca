"""What a ``destination`` means: prefix, address, and perhaps a queue of it.

Source: Artemis manual, "Using Routing Types with STOMP"; ``address::queue`` as in "Fully Qualified Queue Names".
"""

from typing import Final

from delosmq.model.errors import MisuseError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.stomp.refusals import header_wrong, temporary_not_supported

QUEUE_MARK: Final = "::"
TEMPORARY_PREFIXES: Final = ("/temp-queue/", "/temp-topic/")
# A queue's name is stored in two-byte lengths.
_LONGEST_CHARACTERS: Final = 1_024


class Target:
    """A decoded destination, with what was found out about the user's rights to it.

    Attributes:
        queue_name: "" unless ``address::queue`` was given.
        send_checked: the permission to send was granted.
        create_checked: every permission that a send could need to create something was granted.
    """

    def __init__(self, address: str, queue_name: str, routing: int) -> None:
        self.address = address
        self.queue_name = queue_name
        self.routing = routing
        self.send_checked: bool = False
        self.create_checked: bool = False


class Destinations:
    """The prefixes of one acceptor."""

    def __init__(self, acceptor: AcceptorSettings) -> None:
        prefixes = [(prefix, ANYCAST) for prefix in acceptor.anycast_prefixes]
        prefixes += [(prefix, MULTICAST) for prefix in acceptor.multicast_prefixes]
        if any(not prefix for prefix, _ in prefixes):
            raise MisuseError("DMQ5119", f"acceptor '{acceptor.name}' has an empty prefix: remove it or write it out.")
        # The longest first, so that a prefix may begin with another one.
        self._prefixes: list[tuple[str, int]] = sorted(prefixes, key=_by_length, reverse=True)

    def decode(self, destination: str, routing: int, command: str) -> Target:
        """The target of a ``destination``; ``routing`` counts when no prefix says otherwise.

        Raises:
            PeerError: it is temporary, empty or too long.
        """
        refuse_temporary("destination", destination)
        name = destination
        for prefix, kind in self._prefixes:
            if destination.startswith(prefix):
                name = destination[len(prefix) :]
                routing = kind
                break
        address, mark, queue_name = name.partition(QUEUE_MARK)
        if not address or (mark and not queue_name) or len(name) > _LONGEST_CHARACTERS:
            raise header_wrong(
                "destination",
                command,
                destination,
                f"an address, or address::queue, after the prefix and at most {_LONGEST_CHARACTERS} characters long",
            )
        return Target(address, queue_name, routing)


def refuse_temporary(header: str, value: str) -> None:
    """Raises PeerError for names that will be private to a connection."""
    for prefix in TEMPORARY_PREFIXES:
        if value.startswith(prefix):
            raise temporary_not_supported(header, prefix)


def _by_length(entry: tuple[str, int]) -> int:
    return len(entry[0])
