"""Ring queues: how many pending messages a queue keeps.

Only pending messages count, never those in delivery. Source: Artemis manual, "Ring Queue", and QueueImpl.
"""

from delosmq.engine.slots import PendingSlots, Slot
from delosmq.model.settings import UNLIMITED


class Ring:
    """The ring of one queue. ``size`` may change while the queue lives; -1 is no ring, 0 keeps nothing pending."""

    def __init__(self, size: int) -> None:
        self.size = size

    def pushed_out(self, pending: PendingSlots) -> Slot | None:
        """After an add at the tail: the one message at the head that has to go.

        One, not as many as are over: after a shrink the queue keeps its size until consumers drain it (RING-4).
        """
        if self.size == UNLIMITED or pending.count <= self.size:
            return None
        return pending.head()

    def admits_return(self, pending: PendingSlots) -> bool:
        """Whether a returning message still fits; if not it is dropped itself, never one already queued (RING-6)."""
        return self.size == UNLIMITED or pending.count < self.size
