"""What a ``destination`` means: prefix, address, and perhaps a queue of it.

Source: Artemis manual, "Using Routing Types with STOMP"; ``address::queue`` as in "Fully Qualified Queue Names".
"""

from typing import Final

from delosmq.model.message import MULTICAST
from delosmq.model.names import QUEUE_MARK
from delosmq.model.settings import AcceptorSettings
from delosmq.model.virtual_topics import virtual_topic_of
from delosmq.sessions.names import Prefixes
from delosmq.sessions.stomp.server.errors import header_wrong
from delosmq.sessions.stomp.server.temporary_destinations import StompTemporaryDestinations
from delosmq.wire.stomp.conversion import StompConversion

# A queue's name is stored in two-byte lengths.
_LONGEST_CHARACTERS: Final = 1_024


class StompTarget:
    """A decoded destination, with what was found out about the user's rights to it.

    Attributes:
        queue_name: "" unless ``address::queue`` was given.
        temporary: it is private to a connection and is never made by a SEND.
        virtual: it is a queue of a virtual topic; its consumers know nothing of the topic.
        management: what is sent there the broker carries out itself.
        send_checked: the permission to send was granted.
        create_checked: every permission that a send could need to create something was granted.
    """

    def __init__(
        self, address: str, queue_name: str, routing: int, *, temporary: bool = False, virtual: bool = False
    ) -> None:
        self.address = address
        self.queue_name = queue_name
        self.routing = routing
        self.temporary = temporary
        self.virtual = virtual
        self.management: bool = False
        self.send_checked: bool = False
        self.create_checked: bool = False


class StompDestinations:
    """The names that one connection may use: the prefixes of its acceptor, and what is temporary.

    Attributes:
        conversion: to and from messages of other protocols, with these prefixes.
    """

    def __init__(self, acceptor: AcceptorSettings, temporaries: StompTemporaryDestinations) -> None:
        self._prefixes: Prefixes = Prefixes(acceptor)
        self._temporaries = temporaries
        self._virtual_topics = acceptor.virtual_topics or ()
        self.conversion: StompConversion = StompConversion(acceptor.anycast_prefixes, acceptor.multicast_prefixes)

    def public_name(self, reply_to: str) -> str:
        """The name under which other connections reach what this one calls ``reply_to``."""
        return self._temporaries.public_name(reply_to)

    def own_name(self, target: StompTarget) -> str:
        """How the owner of a temporary destination calls it; "" when it is gone."""
        return self._temporaries.own_name(target.address)

    def decode(self, destination: str, routing: int, command: str) -> StompTarget:
        """The target of a ``destination``; ``routing`` counts when no prefix says otherwise.

        Raises:
            PeerError: it is empty, too long, or a temporary one that can't be used so.
        """
        temporary = self._temporaries.find(destination, command)
        if temporary is not None:
            return StompTarget(temporary[0], "", temporary[1], temporary=True)
        name, routing = self._prefixes.strip(destination, routing)
        address, mark, queue_name = name.partition(QUEUE_MARK)
        if not address or (mark and not queue_name) or len(name) > _LONGEST_CHARACTERS:
            raise header_wrong(
                "destination",
                command,
                destination,
                f"an address, or address::queue, after the prefix and at most {_LONGEST_CHARACTERS} characters long",
            )
        if self._virtual_topics and not mark and routing != MULTICAST:
            topic = virtual_topic_of(address, self._virtual_topics)
            if topic:
                return StompTarget(topic, address, MULTICAST, virtual=True)
        return StompTarget(address, queue_name, routing)
