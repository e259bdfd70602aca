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

    def replaced(self, queue: Queue, slot: Slot) -> None:
        """For a slot that is in no list."""
        queue.messages_replaced += 1
        self._removals.remove_one(queue, slot, REPLACED)
        self._events.message_replaced(queue.name, slot)
