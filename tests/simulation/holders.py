"""Who holds messages of a simulated broker."""

from delosmq.engine.broker import EngineBroker
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.queue import Queue


class Holders:
    """Whoever holds messages in delivery: consumers and leases, those too that left a queue.

    What a consumer held when it left is not back at once: a dead letter among it is a decision of its own, many of them
    take several turns, and some wait until the store has another file ready. Till then it still holds the rest.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Queue, Consumer]] = {}

    def of(self, broker: EngineBroker) -> list[tuple[Queue, Consumer]]:
        """All of now. To be asked at the end of each turn, or one that leaves before the next is never seen."""
        known = {key: found for key, found in self._known.items() if found[1].held_count}
        for queue in broker.queues.values():
            for consumer in queue.holders:
                known[id(consumer)] = (queue, consumer)
        for transaction in broker.transactions.open.values():
            for item in transaction.acks:
                # Of a branch that a restart brought back nobody was ever subscribed.
                known[id(item.consumer)] = (item.queue, item.consumer)
        self._known = known
        return list(known.values())
