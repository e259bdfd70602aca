"""Acknowledging and returning what is in delivery. Each public call is one decision; the broker closes its batch."""

from typing import Final

from delosmq.engine.consumer import Consumer
from delosmq.engine.dead_letters import DeadLetters
from delosmq.engine.dispatch import Dispatcher
from delosmq.engine.events import EngineEvents
from delosmq.engine.log import Log
from delosmq.engine.queue import Queue
from delosmq.engine.records import ACKNOWLEDGED, encode_counted
from delosmq.engine.removals import Removals
from delosmq.engine.routing import Router
from delosmq.engine.slots import Slot

NONE_UNSEEN: frozenset[int] = frozenset()
SLOTS_PER_BATCH: Final = 1_000
"""At most so many references in one batch, which must fit into half of the smallest segment (64 KiB)."""


class Acknowledgements:
    """What consumers do with what they hold."""

    def __init__(
        self,
        log: Log,
        removals: Removals,
        dead_letters: DeadLetters,
        *,
        router: Router,
        dispatcher: Dispatcher,
        events: EngineEvents,
    ) -> None:
        self._log = log
        self._removals = removals
        self._dead_letters = dead_letters
        self._router = router
        self._dispatcher = dispatcher
        self._events = events

    def acknowledge(self, queue: Queue, consumer: Consumer, sequence: int) -> bool:
        """Ends the delivery of one message. False when the consumer does not hold it; nothing has changed then."""
        slot = consumer.held(sequence)
        if slot is None:
            return False
        queue.take_back(slot, consumer)
        queue.messages_acknowledged += 1
        self._removals.remove_one(queue, slot, ACKNOWLEDGED)
        self._dispatcher.mark(queue)
        return True

    def acknowledge_through(self, queue: Queue, consumer: Consumer, sequence: int) -> bool:
        """Ends the delivery of all messages up to this one, in order of delivery; False as in `acknowledge`."""
        slots = consumer.held_through(sequence)
        if not slots:
            return False
        for slot in slots:
            queue.take_back(slot, consumer)
        queue.messages_acknowledged += len(slots)
        for at in range(0, len(slots), SLOTS_PER_BATCH):
            self._removals.remove(queue, slots[at : at + SLOTS_PER_BATCH], ACKNOWLEDGED)
            self._log.close()
        self._dispatcher.mark(queue)
        return True

    def reject(self, queue: Queue, consumer: Consumer, sequence: int) -> bool:
        """Returns one message after a failed delivery; False as in `acknowledge`."""
        slot = consumer.held(sequence)
        if slot is None:
            return False
        self.give_back(queue, consumer, [slot], NONE_UNSEEN)
        return True

    def reject_through(self, queue: Queue, consumer: Consumer, sequence: int) -> bool:
        """Returns all messages up to this one after a failed delivery; False as in `acknowledge`."""
        slots = consumer.held_through(sequence)
        if not slots:
            return False
        slots.reverse()
        self.give_back(queue, consumer, slots, NONE_UNSEEN)
        return True

    def give_back(
        self, queue: Queue, consumer: Consumer, newest_first: list[Slot], unseen: set[int] | frozenset[int]
    ) -> None:
        """Returns slots to their places, newest first, so that a ring drops the oldest of them (RING-6).

        Args:
            unseen: sequences that never left the broker: their delivery does not count.
        """
        counted: list[Slot] = []
        for slot in newest_first:
            queue.take_back(slot, consumer)
            if slot.sequence in unseen:
                slot.delivery_count -= 1
            elif self._dead_letters.exhausted(queue, slot) and not (slot.recorded and self._log.storage_low):
                # Copy and original in one batch of their own: a batch with all copies might not fit into a segment.
                self.record_counts(queue, counted)
                counted = []
                self._log.close()
                self._dead_letters.bury(queue, slot)
                self._log.close()
                continue
            elif slot.recorded:
                counted.append(slot)
            if not queue.ring.admits_return(queue.pending):
                self._router.replaced(queue, slot)
                continue
            queue.pending.put_back(slot)
            self._events.message_redelivered(queue.name, slot)
            if len(counted) >= SLOTS_PER_BATCH:
                self.record_counts(queue, counted)
                self._log.close()
                counted = []
        self.record_counts(queue, counted)
        self._dispatcher.mark(queue)

    def record_counts(self, queue: Queue, slots: list[Slot]) -> None:
        """Records the delivery counts of those slots that the store holds.

        Not while space is short: each disconnect would take from the room that acknowledgements need, and a count that
        a crash forgets is one the crash of a moment before would have forgotten too.
        """
        kept = [slot for slot in slots if slot.message.home is not None]
        if not kept or self._log.storage_low:
            return
        self._log.record(encode_counted(queue.id, kept))
        batch = self._log.batch()
        for slot in kept:
            home = slot.message.home
            if home is not None:
                batch.targets.append(home)
