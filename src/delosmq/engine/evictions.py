"""What a ring has no room for."""

from delosmq.engine.events import EngineEvents
from delosmq.engine.queue import Queue
from delosmq.engine.records import REPLACED
from delosmq.engine.removals import Removals
from delosmq.engine.slots import Slot


class Evictions:
    """Ends what a ring pushed out: an acknowledgement with a reason of its own, never a dead letter."""

    def __init__(self, removals: Removals, events: EngineEvents) -> None:
        self._removals = removals
        self._events = events

    def replace(self, queue: Queue, slot: Slot) -> None:
        """For a pending slot, and what its ring lets go with it."""
        pending = queue.pending
        out: Slot | None = slot
        while out is not None:
            pending.remove(out)
            self.replaced(queue, out)
            out = queue.ring.next_out(pending)

    def cut(self, queue: Queue) -> None:
        """Dispatch has found its consumer full: what is too much goes."""
        out = queue.ring.pushed_out(queue.pending)
        if out is not None:
            self.replace(queue, out)

    def replaced(self, queue: Queue, slot: Slot) -> None:
        """For a slot that is in no list."""
        queue.messages_replaced += 1
        self._removals.remove_one(queue, slot, REPLACED)
        self._events.message_replaced(queue.name, slot)
