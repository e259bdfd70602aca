"""The pending limit: how many messages wait for the one consumer of a topic subscription that is not durable.

A ring of its own kind: it counts what waits beyond the credit of the consumer. What dispatch is about to deliver is
not pushed out before that has happened, or a burst would lose messages that the consumer has room for.

Source: activemq-broker, TopicSubscription.add.
"""

from typing import Final

from delosmq.engine.base.slots import PendingSlots, Slot
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.eviction_strategy import EvictionChoice
from delosmq.engine.queues.ring import Ring

LEARNED_EARLY: Final = 4
"""Of those that wait, with each that comes while the consumer is full: they are known before they are too many."""
LEARNED_AT_ONCE: Final = 200


class PendingLimit(Ring):
    """The limit of one subscription.

    Attributes:
        consumer: the subscriber: messages count that it has no room for; None until it is there.
    """

    def __init__(self, size: int, choice: EvictionChoice) -> None:
        super().__init__(size)
        self.counts_waiting = True
        self.consumer: Consumer | None = None
        self._choice = choice
        self._chosen: list[Slot] = []

    def resize(self, size: int) -> None:
        """It stays what the subscription came with."""

    def pushed_out(self, pending: PendingSlots) -> Slot | None:
        """One message that has to go; `next_out` gives those that go with it."""
        if not self._is_over(pending):
            consumer = self.consumer
            if consumer is not None and consumer.full:
                self._choice.learn(pending, LEARNED_EARLY)
            return None
        return self.next_out(pending)

    def next_out(self, pending: PendingSlots) -> Slot | None:
        chosen = self._chosen
        while chosen:
            slot = chosen.pop()
            if pending.holds(slot):
                return slot
        if not self._is_over(pending) or not self._choice.learn(pending, LEARNED_AT_ONCE):
            return None
        chosen = self._chosen = self._choice.choose(pending)
        return chosen.pop() if chosen else None

    def surplus(self, pending: PendingSlots) -> bool:
        return len(self._chosen) > 0 or self._is_over(pending)

    def close(self, pending: PendingSlots) -> None:
        self._chosen = []
        self._choice.end(pending)

    def admits_return(self, pending: PendingSlots) -> bool:
        """Always: a message that was dispatched is not lost when it comes back."""
        return True

    def _is_over(self, pending: PendingSlots) -> bool:
        count = pending.count
        if count <= self.size:
            return False
        consumer = self.consumer
        if consumer is None:
            return False
        queue = consumer.queue
        if not consumer.full and (queue is None or not queue.paused):
            return False  # dispatch comes first
        # Room all the same: the outbox is full.
        return count > self.size + consumer.credit.room()
