"""What an OpenWire destination means here: an address, perhaps a queue of it, and a routing type.

A queue is an anycast address, a topic a multicast one. ``>`` stands for any words, ``*`` for one, as in ActiveMQ.
Names of queues may mean queues of virtual topics. Source: ActiveMQDestination of ActiveMQ Classic;
OpenWireProtocolManager of Artemis for the mapping.
"""

from typing import Final

from delosmq.engine.api import EngineBroker, Queue
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.names import QUEUE_MARK
from delosmq.model.reserved_names import ADVISORY_PREFIX
from delosmq.model.settings import WildcardSyntax
from delosmq.model.virtual_topics import CLASSIC, VirtualTopicRule, virtual_topic_of
from delosmq.model.wildcard import WildcardPattern, is_wildcard
from delosmq.sessions.openwire.server.errors import name_wrong
from delosmq.wire.openwire.modified_utf8 import is_well_formed
from delosmq.wire.openwire.structures import QUEUE, TEMP_QUEUE, TEMP_TOPIC, TOPIC, Destination, destination_of

TEMPORARY_TOPICS: Final = (f"{ADVISORY_PREFIX}TempQueue", f"{ADVISORY_PREFIX}TempTopic")
"""Advisory topics that tell of temporary destinations."""
_LONGEST_CHARACTERS: Final = 1_024
"""A queue's name is stored in two-byte lengths."""
_LONGEST_COMPOSITE_CHARACTERS: Final = 8_192
"""With all its parts and options: it is part of the names of advisory topics, which must fit into a field."""
_MOST_PARTS: Final = 100
_SEPARATOR: Final = "."
_ANY_WORDS: Final = ">"
_ONE_WORD: Final = "*"


class OpenWireTarget:
    """One destination, decoded.

    Attributes:
        destination: as clients know it.
        queue_name: "" unless one queue of the address is meant.
        wildcard: it stands for many addresses.
        management: what is sent there the broker carries out itself.
        send_checked, create_checked: what was found out about the user's rights to it.
    """

    def __init__(
        self, destination: Destination, address: str, queue_name: str, routing: int, *, wildcard: bool = False
    ) -> None:
        self.destination = destination
        self.address = address
        self.queue_name = queue_name
        self.routing = routing
        self.wildcard = wildcard
        self.management: bool = False
        self.send_checked: bool = False
        self.create_checked: bool = False

    @property
    def temporary(self) -> bool:
        """Private to a connection."""
        return self.destination.is_temporary

    @property
    def advisory(self) -> bool:
        """What the broker itself tells."""
        return self.routing == MULTICAST and self.address.startswith(ADVISORY_PREFIX)


def parts_of(destination: Destination) -> list[Destination]:
    """The destinations that a composite one stands for, each once; most stand for themselves alone."""
    name = destination.name
    options = name.find("?")
    if options >= 0:
        # Options are the client's; those of ours send none of them.
        name = name[:options]
    if "," not in name:
        return [destination if options < 0 else Destination(name, destination.code)]
    found: list[Destination] = []
    named: set[str] = set()
    for part in name.split(","):
        text = part.strip()
        if not text or text in named:
            continue
        named.add(text)
        found.append(destination_of(text) if "://" in text else Destination(text, destination.code))
    if not found or len(found) > _MOST_PARTS:
        raise name_wrong(name[:200], f"it names {len(found)} destinations, and 1 to {_MOST_PARTS} may be")
    return found


class OpenWireDestinations:
    """Decodes destinations for one broker."""

    def __init__(
        self,
        wildcards: WildcardSyntax,
        queues: dict[str, Queue],
        virtual_topics: tuple[VirtualTopicRule, ...] = CLASSIC,
    ) -> None:
        self._wildcards = wildcards
        self._queues = queues
        self._virtual_topics = virtual_topics

    def targets_of(self, destination: Destination) -> list[OpenWireTarget]:
        """All targets of a destination.

        Raises:
            OpenWireError: a name is empty, too long, or can't be one here.
        """
        name = destination.name
        if len(name) > _LONGEST_COMPOSITE_CHARACTERS:
            raise name_wrong(name, f"it has {len(name)} characters, and {_LONGEST_COMPOSITE_CHARACTERS} may be")
        if not is_well_formed(name):
            raise name_wrong(name, "it holds a surrogate without its partner")
        return [self.target_of(part) for part in parts_of(destination)]

    def target_of(self, destination: Destination) -> OpenWireTarget:
        """The target of a destination that is not composite."""
        name = destination.name
        if not name:
            raise name_wrong(name, "it has no name")
        if len(name) > _LONGEST_CHARACTERS:
            raise name_wrong(name[:100], f"it has {len(name)} characters, and {_LONGEST_CHARACTERS} may be")
        code = destination.code
        if code == TEMP_QUEUE:
            return OpenWireTarget(destination, name, "", ANYCAST)
        if code == TEMP_TOPIC:
            return OpenWireTarget(destination, name, "", MULTICAST)
        address, mark, queue_name = name.partition(QUEUE_MARK)
        if mark:
            if not address or not queue_name:
                raise name_wrong(name, "address and queue stand before and after '::'")
            return OpenWireTarget(destination, address, queue_name, ANYCAST if code == QUEUE else MULTICAST)
        if code == TOPIC:
            address, wildcard = self._address_of(name)
            return OpenWireTarget(destination, address, "", MULTICAST, wildcard=wildcard)
        topic = virtual_topic_of(name, self._virtual_topics)
        if topic:
            return OpenWireTarget(destination, self._address_of(topic)[0], name, MULTICAST)
        queue = self._queues.get(name)
        if queue is not None and queue.address.name != name and not queue.internal:
            # Clients know queues by their names alone, such as those of dead letters by origin.
            return OpenWireTarget(destination, queue.address.name, name, queue.settings.routing_type)
        address, wildcard = self._address_of(name)
        return OpenWireTarget(destination, address, "", ANYCAST, wildcard=wildcard)

    def check_plain(self, target: OpenWireTarget) -> None:
        """Refuses a queue that would gather what others are sent: Classic has none such, and readers of its wildcards
        would get each message twice.

        Raises:
            OpenWireError: its name is a wildcard of this broker.
        """
        syntax = self._wildcards
        if target.routing != ANYCAST or target.queue_name or target.temporary:
            return
        if syntax.enabled and is_wildcard(target.address, syntax):
            raise name_wrong(
                target.destination.name,
                f"its wildcards would make it a queue of what is sent to all queues of such names, as the words"
                f" '{syntax.any_words}' and '{syntax.single_word}' are wildcards of this broker (wildcard-addresses);"
                " name one queue",
            )

    def check_new(self, target: OpenWireTarget) -> None:
        """Refuses such a queue unless it was made on purpose."""
        if target.address not in self._queues:
            self.check_plain(target)

    def pattern_of(self, wildcard: OpenWireTarget) -> WildcardPattern:
        """What the names of the queues that it stands for have to match."""
        return WildcardPattern(wildcard.address, self._wildcards)

    def _address_of(self, name: str) -> tuple[str, bool]:
        """In the wildcards of this broker, and whether there are any."""
        if _ANY_WORDS not in name and _ONE_WORD not in name:
            return name, False
        syntax = self._wildcards
        words = name.split(_SEPARATOR)
        if _ANY_WORDS not in words and _ONE_WORD not in words:
            return name, False
        stands = {_ANY_WORDS: syntax.any_words, _ONE_WORD: syntax.single_word}
        address = syntax.delimiter.join([stands.get(word, word) for word in words])
        return address, is_wildcard(address, syntax)


def target_of_queue(queue: Queue) -> OpenWireTarget | None:
    """A queue of which clients know, but for temporary ones, which no wildcard stands for."""
    destination = None if queue.owner or queue.internal else queue_destination_of(queue)
    if destination is None:
        return None
    return OpenWireTarget(destination, queue.address.name, queue.name, queue.settings.routing_type)


def has_owner(target: OpenWireTarget, broker: EngineBroker) -> bool:
    """Whether a temporary destination is one: no permissions are asked for them, so others must not pass for such."""
    known = broker.addresses.get(target.address)
    return known is not None and known.owner != ""


def queue_destination_of(queue: Queue) -> Destination | None:
    """How clients name a queue; None for the subscription of a topic."""
    name = queue.name
    settings = queue.settings
    if settings.routing_type == ANYCAST or virtual_topic_of(name, CLASSIC):
        return Destination(name, QUEUE)
    # The broker's own, such as those of dead letters by origin.
    return Destination(name, QUEUE) if settings.auto_created and not queue.temporary else None
