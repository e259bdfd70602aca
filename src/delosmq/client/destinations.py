"""Queues and topics as programs name them: ``orders``, ``topic://prices``, ``orders?consumer.exclusive=true``."""

from dataclasses import dataclass, field
from typing import TypeAlias

from delosmq.client.errors import wrong_destination
from delosmq.client.option_texts import filled, parameters
from delosmq.sessions.openwire.client.options import DESTINATION_KINDS, DestinationOptions
from delosmq.wire.openwire.structures import QUALIFIERS, QUEUE, TEMP_TOPIC, TOPIC, Destination, destination_of

_PREFIX = "consumer."


@dataclass(frozen=True)
class JmsDestination:
    """A queue or a topic.

    Attributes:
        name: without what it is; may be a comma list.
        is_topic, is_temporary: what it is.
        options: for consumers of it; they go before those of the connection, and the broker never sees them.
    """

    name: str
    is_topic: bool = False
    is_temporary: bool = False
    options: DestinationOptions = field(default_factory=DestinationOptions, compare=False)

    def __str__(self) -> str:
        return f"{QUALIFIERS[self.wire().code]}{self.name}"

    def wire(self) -> Destination:
        """As the protocol has it."""
        return Destination(self.name, QUEUE + self.is_topic + 2 * self.is_temporary)


Named: TypeAlias = JmsDestination | str
"""A destination, or its name: a queue's unless ``topic://`` stands in front."""


def named(destination: Named, *, topic: bool = False) -> JmsDestination:
    """The destination of a name.

    Args:
        topic: what a name without ``queue://`` or ``topic://`` means.

    Raises:
        ClientOptionError: DMQ9050, DMQ9051, DMQ9055.
    """
    if isinstance(destination, JmsDestination):
        return destination
    written, _, query = destination.strip().partition("?")
    found = destination_of(written)
    qualified = written != found.name
    if not found.name:
        raise wrong_destination(destination, "it has no name; write a name, such as 'orders'.")
    where = f"destination {written}"
    options = filled(DestinationOptions(), parameters(where, query), _PREFIX, where, DESTINATION_KINDS)
    is_topic = found.code in (TOPIC, TEMP_TOPIC) if qualified else topic
    return JmsDestination(found.name, is_topic, found.is_temporary, options)


def of_wire(destination: Destination | None) -> JmsDestination | None:
    if destination is None:
        return None
    return JmsDestination(destination.name, not destination.is_queue, destination.is_temporary)
