"""Which messages came already, of a connection that reconnects: the broker sends again what it has seen no
acknowledgement for, although the application has seen it.

Of each queue, and of each consumer of a topic, the last `audit_depth` messages of the last
`audit_maximum_producer_number` producers are remembered. Source: ConnectionAudit and ActiveMQMessageAuditNoSync of the
Java client.
"""

from typing import Final

from delosmq.wire.openwire.structures import MessageId

_MOST_PLACES: Final = 1000
"""Queues and consumers that are remembered."""


class ProducerWindow:
    """Which of the latest numbers of one producer were seen: a bit for each, the newest lowest."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._newest: int = 0
        self._seen: int = 0

    def add(self, number: int) -> bool:
        """Whether it was seen before; what is older than the window counts as seen."""
        ahead = number - self._newest
        if ahead > 0:
            self._seen = (self._seen << min(ahead, self._depth) | 1) & ((1 << self._depth) - 1)
            self._newest = number
            return False
        if -ahead >= self._depth:
            return True
        bit = 1 << -ahead
        seen = self._seen & bit != 0
        self._seen |= bit
        return seen

    def forget(self, number: int) -> None:
        behind = self._newest - number
        if 0 <= behind < self._depth:
            self._seen &= ~(1 << behind)


class SeenMessages:
    """
    Args:
        depth: messages remembered of each producer.
        most_producers: of each place; the one that was heard of least lately goes first.
    """

    def __init__(self, depth: int, most_producers: int) -> None:
        self._depth = max(1, depth)
        self._most_producers = max(1, most_producers)
        self._places: dict[str, dict[str, ProducerWindow]] = {}

    def add(self, place: str, message_id: MessageId) -> bool:
        """Whether the message came to ``place`` before."""
        producer = message_id.producer_id
        if producer is None or message_id.text_view is not None:
            return False
        producers = self._places.pop(place, {})
        self._places[place] = producers
        if len(self._places) > _MOST_PLACES:
            del self._places[next(iter(self._places))]
        key = producer.key()
        window = producers.pop(key, None)
        if window is None:
            window = ProducerWindow(self._depth)
        producers[key] = window
        if len(producers) > self._most_producers:
            del producers[next(iter(producers))]
        return window.add(message_id.producer_sequence_id)

    def forget(self, place: str, message_id: MessageId) -> None:
        """It went back, so it may come again."""
        producer = message_id.producer_id
        producers = self._places.get(place)
        window = None if producer is None or producers is None else producers.get(producer.key())
        if window is not None:
            window.forget(message_id.producer_sequence_id)
