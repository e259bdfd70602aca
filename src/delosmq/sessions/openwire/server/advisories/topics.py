"""The names of advisory topics. Source: AdvisorySupport of ActiveMQ Classic."""

from typing import Final

from delosmq.model.reserved_names import ADVISORY_PREFIX
from delosmq.wire.openwire.structures import QUEUE, TEMP_QUEUE, TEMP_TOPIC, TOPIC, Destination

CONNECTIONS: Final = f"{ADVISORY_PREFIX}Connection"
QUEUES: Final = f"{ADVISORY_PREFIX}Queue"
TOPICS: Final = f"{ADVISORY_PREFIX}Topic"
CONSUMERS: Final = f"{ADVISORY_PREFIX}Consumer."
PRODUCERS: Final = f"{ADVISORY_PREFIX}Producer."

_KINDS: Final = {QUEUE: "Queue", TOPIC: "Topic", TEMP_QUEUE: "TempQueue", TEMP_TOPIC: "TempTopic"}
_COMMA: Final = "&sbquo;"
"""Within one name; else it would be a composite of topics."""


def of_destinations(destination: Destination) -> str:
    """Where is told that it is made and deleted."""
    return f"{ADVISORY_PREFIX}{_KINDS[destination.code]}"


def of_consumers(destination: Destination) -> str:
    """Where its consumers are told of."""
    return f"{CONSUMERS}{_queue_or_topic(destination)}.{destination.name.replace(',', _COMMA)}"


def of_producers(destination: Destination) -> str:
    """Where its producers are told of."""
    return f"{PRODUCERS}{_queue_or_topic(destination)}.{destination.name.replace(',', _COMMA)}"


def of_both_kinds(what: str, destination: Destination) -> str:
    """For ``Expired`` and ``NoConsumer``, where temporary destinations are no kind of their own."""
    return f"{ADVISORY_PREFIX}{what}.{_queue_or_topic(destination)}.{destination.name}"


def of_all_kinds(what: str, destination: Destination) -> str:
    """For everything else about one destination."""
    return f"{ADVISORY_PREFIX}{what}.{_KINDS[destination.code]}.{destination.name}"


def is_advisory(destination: Destination) -> bool:
    """Whether it is such a topic: of these nothing is told."""
    return destination.code == TOPIC and destination.name.startswith(ADVISORY_PREFIX)


def _queue_or_topic(destination: Destination) -> str:
    return "Queue" if destination.is_queue else "Topic"
