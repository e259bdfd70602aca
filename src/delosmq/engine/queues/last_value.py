"""Last value queues: the rule for a message that comes, and for one that comes back."""

from delosmq.engine.base.slots import Slot
from delosmq.engine.queues.eviction import Evictions
from delosmq.engine.queues.queue import Queue
from delosmq.model.conversion import Conversions
from delosmq.selectors.subject import Subject


class LastValueRule:
    """Ends the older of two pending messages with the same key: an acknowledgement with the reason REPLACED.

    What is in delivery stays until it is answered. What has no key stays always.
    """

    def __init__(self, evictions: Evictions, conversions: Conversions) -> None:
        self._evictions = evictions
        self._subject: Subject = Subject(conversions)

    def added(self, queue: Queue, slot: Slot) -> None:
        """A slot has become pending at the tail: it is the newest."""
        key = self._key(queue, slot)
        values = queue.last_values
        if key is None or values is None:
            return
        older = values.current(key, queue.pending)
        values.track(key, slot)
        if older is not None and older is not slot:
            queue.pending.remove(older)
            self._evictions.replaced(queue, older)

    def returned(self, queue: Queue, slot: Slot) -> bool:
        """A slot was put back after a delivery. False: a newer one is pending, and this one is gone.

        The sequence decides which is newer: Artemis keeps whatever came back first.
        """
        key = self._key(queue, slot)
        values = queue.last_values
        if key is None or values is None:
            return True
        other = values.current(key, queue.pending)
        if other is not None and other.sequence > slot.sequence:
            queue.pending.remove(slot)
            self._evictions.replaced(queue, slot)
            return False
        values.track(key, slot)
        if other is not None and other is not slot:
            queue.pending.remove(other)
            self._evictions.replaced(queue, other)
        return True

    def due(self, queue: Queue, slot: Slot) -> None:
        """A slot has become pending because its time has come: that makes it the newest, unless it only comes back or
        another one came with it."""
        key = self._key(queue, slot)
        values = queue.last_values
        if key is None or values is None:
            return
        other = values.current(key, queue.pending)
        if slot.delivery_count or (other is not None and other.message.due_at_ms == slot.message.due_at_ms):
            self.returned(queue, slot)
        else:
            self.added(queue, slot)

    def reload(self, queue: Queue) -> None:
        """After a restart: looks at all that is pending."""
        for slot in queue.pending.in_order():
            self.returned(queue, slot)

    def _key(self, queue: Queue, slot: Slot) -> str | None:
        self._subject.look_at(slot.message)
        value = self._subject.value(queue.in_force.last_value_key)
        return None if value is None else str(value)
