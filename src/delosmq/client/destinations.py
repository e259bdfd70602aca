"""Queues and topics as programs name them: ``orders``, ``topic://prices``, ``orders?consumer.exclusive=true``."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from delosmq.client.errors import wrong_destination, wrong_option
from delosmq.client.options.arguments import demand_text
from delosmq.client.options.option_texts import filled, nearest, parameters, written
from delosmq.sessions.openwire.client.options import (
    DESTINATION_KINDS,
    PRODUCER_KINDS,
    DestinationOptions,
    ProducerOptions,
)
from delosmq.wire.openwire.structures import QUALIFIERS, QUEUE, TEMP_TOPIC, TOPIC, Destination, destination_of

_CONSUMER: Final = "consumer."
_PRODUCER: Final = "producer."
_SCHEME: Final = re.compile(r"([\w+.-]+)://")
_MOST_KEPT: Final = 256
"""Destinations of received messages."""


@dataclass(frozen=True)
class JmsDestination:
    """A queue or a topic.

    Attributes:
        name: without what it is; may be a comma list.
        is_topic, is_temporary: what it is.
        options: for consumers of it; they go before those of the connection, and the broker never sees them.
        producer_options: for producers, likewise.
    """

    name: str
    is_topic: bool = False
    is_temporary: bool = False
    options: DestinationOptions = field(default_factory=DestinationOptions, compare=False)
    producer_options: ProducerOptions = field(default_factory=ProducerOptions, compare=False)

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
        ClientOptionError: DMQ9050, DMQ9051, DMQ9055, DMQ9056.
    """
    if isinstance(destination, JmsDestination):
        demand_text("name", destination.name)
        return destination
    demand_text("destination", destination, "a str such as 'orders', or a JmsDestination")
    address, _, query = destination.strip().partition("?")
    found = destination_of(address)
    qualified = address != found.name
    if not found.name:
        raise wrong_destination(destination, "it has no name; write a name, such as 'orders'.")
    scheme = None if qualified else _SCHEME.match(found.name)
    if scheme is not None:
        raise wrong_destination(destination, _unknown_scheme(scheme[1], found.name))
    is_topic = found.code in (TOPIC, TEMP_TOPIC) if qualified else topic
    if not query:
        return JmsDestination(found.name, is_topic, found.is_temporary)
    return JmsDestination(found.name, is_topic, found.is_temporary, *_options(f"destination {address}", query))


def _unknown_scheme(scheme: str, name: str) -> str:
    near = nearest(scheme, (one.removesuffix("://") for one in QUALIFIERS.values()))
    meant = f"did you mean {near}://? Write" if near else "write"
    return f"the scheme '{scheme}' is not known; {meant} queue://{name} for a queue of that name."


def _options(where: str, query: str) -> tuple[DestinationOptions, ProducerOptions]:
    texts = parameters(where, query)
    known = [f"{_CONSUMER}{written(name)}" for name in DESTINATION_KINDS]
    known += [f"{_PRODUCER}{written(name)}" for name in PRODUCER_KINDS]
    for name in texts:
        if name not in known:
            raise wrong_option(where, name, nearest(name, known))
    of_producers = {name: text for name, text in texts.items() if name.startswith(_PRODUCER)}
    of_consumers = {name: text for name, text in texts.items() if name not in of_producers}
    consumer = filled(DestinationOptions(), of_consumers, _CONSUMER, where, DESTINATION_KINDS)
    producer = filled(ProducerOptions(), of_producers, _PRODUCER, where, PRODUCER_KINDS)
    return consumer, producer


def of_wire(destination: Destination | None) -> JmsDestination | None:
    if destination is None:
        return None
    return _received_from(destination.name, destination.is_queue, destination.is_temporary)


@lru_cache(_MOST_KEPT)
def _received_from(name: str, is_queue: bool, is_temporary: bool) -> JmsDestination:
    return JmsDestination(name, not is_queue, is_temporary)
