"""Letting go of messages: the one place where a reference ends, live and in replay."""

from delosmq.engine.log import NO_BODY, Batch, Log
from delosmq.engine.memory import MemoryLimits
from delosmq.engine.queue import Queue
from delosmq.engine.records import encode_removed, encode_removed_one
from delosmq.engine.slots import Slot
from delosmq.model.errors import InvariantError


class Removals:
    """Ends references and records it. The slots must be out of every list already."""

    def __init__(self, log: Log, memory: MemoryLimits) -> None:
        self._log = log
        self._memory = memory

    def remove_one(self, queue: Queue, slot: Slot, reason: int) -> None:
        """Ends one reference."""
        if slot.recorded:
            batch = self._log.batch()
            batch.metas.append(encode_removed_one(queue.id, reason, slot))
            batch.bodies.append(NO_BODY)
            _note_for_store(slot, batch)
        self.forget(queue, slot)

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
            self.forget(queue, slot)

    def forget(self, queue: Queue, slot: Slot) -> None:
        """The change itself, which replay makes too: one reference less, and the memory with the last one."""
        message = slot.message
        queue.forget(slot)
        message.references -= 1
        if message.references == 0:
            self._memory.release(message)


def _note_for_store(slot: Slot, batch: Batch) -> None:
    """Tells the store which message a removal is about, and when it was the last one."""
    message = slot.message
    home = message.home
    if home is None:
        raise InvariantError("DMQ2001", f"message {message.message_id} is recorded but has no home in the store")
    batch.targets.append(home)
    message.recorded_references -= 1
    if message.recorded_references == 0:
        batch.released.append(home)
        message.home = None
