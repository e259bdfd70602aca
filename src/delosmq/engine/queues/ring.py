"""Ring queues: how many pending messages a queue keeps.

Only pending messages count, never those in delivery. Source: Artemis manual, "Ring Queue", and QueueImpl.
"""

from delosmq.engine.base.slots import PendingSlots, Slot
from delosmq.model.settings import UNLIMITED


class Ring:
    """The ring of one queue.

    Attributes:
        size: may change while the queue lives; -1 is no ring, 0 keeps nothing pending.
        lowest_first: pushes out the oldest message of the lowest priority instead of the head of the queue.
        counts_waiting: what its consumer has no room for (`PendingLimit`), instead of all that is pending.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.lowest_first: bool = False
        self.counts_waiting: bool = False

    def resize(self, size: int) -> None:
        """From now on that many; removes nothing (RING-4)."""
        self.size = size

    def pushed_out(self, pending: PendingSlots) -> Slot | None:
        """After an add at the tail: the one message that has to go, at the head or where ``lowest_first`` says.

        One, not as many as are over: after a shrink the queue keeps its size until consumers drain it (RING-4).
        """
        if self.size == UNLIMITED or pending.count <= self.size:
            return None
        return pending.lowest() if self.lowest_first else pending.head()

    def next_out(self, pending: PendingSlots) -> Slot | None:
        """What has to go with a message that was pushed out and is gone."""
        return None

    def surplus(self, pending: PendingSlots) -> bool:
        """Whether there is something that `next_out` gives, now or when it has looked at more."""
        return False

    def close(self, pending: PendingSlots) -> None:
        """The queue has another ring from now on: this one forgets its messages."""

    def admits_return(self, pending: PendingSlots) -> bool:
        """Whether a returning message still fits; if not it is dropped itself, never one already queued (RING-6)."""
        return self.size == UNLIMITED or pending.count < self.size
