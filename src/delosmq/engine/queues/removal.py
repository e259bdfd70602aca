"""Removal of messages from queues: the one place where a reference ends, live and in replay."""

from delosmq.engine.base.slots import Slot
from delosmq.engine.log.log import Batch, Log
from delosmq.engine.log.records import encode_removed
from delosmq.engine.queues.memory_limits import MemoryLimits
from delosmq.engine.queues.queue import Queue
from delosmq.model.errors import InvariantError
from delosmq.model.message import Home


class Removals:
    """Ends references and records it. The slots must be out of every list already."""

    def __init__(self, log: Log, memory: MemoryLimits) -> None:
        self._log = log
        self._memory = memory

    def remove_one(self, queue: Queue, slot: Slot, reason: int) -> None:
        """Ends one reference."""
        if slot.recorded:
            home = _home_of(slot)
            message = slot.message
            message.recorded_references -= 1
            last = message.recorded_references == 0
            if last:
                message.home = None
            self._log.batch().add_removed(queue.records.removed(slot, reason), home, last)
        self.end_reference(queue, slot)

    def remove(self, queue: Queue, slots: list[Slot], reason: int) -> None:
        """Ends many references as one record."""
        if len(slots) == 1:
            self.remove_one(queue, slots[0], reason)
            return
        recorded = [slot for slot in slots if slot.recorded]
        if recorded:
            self._log.record(encode_removed(queue.id, reason, recorded))
            batch = self._log.batch()
            for slot in recorded:
                _note_for_store(slot, batch)
        for slot in slots:
            self.end_reference(queue, slot)

    def end_reference(self, queue: Queue, slot: Slot) -> None:
        """The change itself, which replay makes too: one reference less, and the memory with the last one."""
        message = slot.message
        queue.remove(slot)
        message.references -= 1
        if message.references == 0:
            self._memory.release(message)


def _note_for_store(slot: Slot, batch: Batch) -> None:
    """Tells the store which message a removal is about, and when it was the last one."""
    message = slot.message
    home = _home_of(slot)
    batch.targets.append(home)
    message.recorded_references -= 1
    if message.recorded_references == 0:
        batch.released.append(home)
        message.home = None


def _home_of(slot: Slot) -> Home:
    """Where the message of a recorded slot is stored."""
    home = slot.message.home
    if home is None:
        number = slot.message.message_id
        raise InvariantError("DMQ2001", f"message {number} is recorded but has no home in the store")
    return home
