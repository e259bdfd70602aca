"""How many messages wait for the one consumer of a topic subscription that is not durable.

A ring of its own kind: it counts what waits beyond the credit of the consumer. What dispatch is about to hand out is
not pushed out before that has happened, or a burst would lose messages that the consumer has room for.

Source: activemq-broker, TopicSubscription.add.
"""

from delosmq.engine.consumer import Consumer
from delosmq.engine.eviction_choice import EvictionChoice
from delosmq.engine.ring import Ring
from delosmq.engine.slots import PendingSlots, Slot


class PendingLimit(Ring):
    """The limit of one subscription.

    Attributes:
        consumer: whose room counts; None until it is there.
    """

    def __init__(self, size: int, choice: EvictionChoice) -> None:
        super().__init__(size)
        self.consumer: Consumer | None = None
        self._choice = choice
        self._chosen: list[Slot] = []

    def resize(self, size: int) -> None:
        """It stays what the subscription came with."""

    def pushed_out(self, pending: PendingSlots) -> Slot | None:
        """One message that has to go; `next_out` gives those that go with it."""
        if not self._is_over(pending):
            return None
        self._chosen = self._choice.choose(pending)
        return self._chosen.pop() if self._chosen else None

    def next_out(self, pending: PendingSlots) -> Slot | None:
        if self._chosen:
            return self._chosen.pop()
        return self.pushed_out(pending)

    def admits_return(self, pending: PendingSlots) -> bool:
        """What was dispatched is not lost by coming back."""
        return True

    def _is_over(self, pending: PendingSlots) -> bool:
        count = pending.count
        if count <= self.size:
            return False
        consumer = self.consumer
        if consumer is None:
            return False
        queue = consumer.queue
        if not consumer.parked and (queue is None or not queue.paused):
            return False  # dispatch comes first
        # Room all the same: the outbox is full.
        return count > self.size + consumer.credit.room()
