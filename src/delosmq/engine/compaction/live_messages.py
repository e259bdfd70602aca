"""Messages that queues hold, for compaction."""

from collections.abc import Generator
from typing import Final

from delosmq.engine.base.slots import Slot, SlotList
from delosmq.engine.compaction.compactor import LivePlace, Restoration
from delosmq.engine.log.records import encode_counted, encode_scheduled
from delosmq.engine.queues.queue import Queue

MOST_RESTARTS: Final = 100


class LiveMessages(LivePlace):
    """Messages that queues hold: pending, scheduled, in delivery to consumers and lease groups."""

    def __init__(self, queues: dict[str, Queue], restoration: Restoration) -> None:
        self._queues = queues
        self._restoration = restoration

    def restore(self, segment: int) -> Generator[None, None, None]:
        waiting = list(self._queues.values())
        while waiting:
            queue = waiting.pop()
            cursor = queue.pending.cursor()
            try:
                slot = cursor.peek()
                while slot is not None:
                    cursor.advance(slot)
                    self._look_at(queue, slot, segment)
                    yield
                    slot = cursor.peek()
            finally:
                queue.pending.drop(cursor)
            lists = _lists_of(queue)
            while lists:
                held = lists.pop()
                restarts = 0
                slot = held.head
                while slot is not None:
                    self._look_at(queue, slot, segment)
                    yield
                    if slot.in_list is held:
                        slot = slot.next
                    else:
                        # What is answered is mostly the oldest, so that what was looked at already is gone as well.
                        restarts += 1
                        slot = held.head if restarts < MOST_RESTARTS else None
            yield

    def _look_at(self, queue: Queue, slot: Slot, segment: int) -> None:
        home = slot.message.home
        if slot.recorded and not slot.borrowed and home is not None and home.segment == segment:
            self._restoration.found(queue, slot, self)

    def records(self, queue: Queue, slot: Slot) -> list[bytes] | None:
        if slot.in_list is None or (slot.transaction and not self._restoration.is_open(slot.transaction)):
            return None
        if queue.pending.holds(slot):
            return [encode_counted(queue.id, [slot])] if slot.delivery_count else []
        if queue.scheduled.holds(slot):
            return [encode_scheduled(queue.id, [slot])]
        return self.held_records(queue, slot)

    def held_records(self, queue: Queue, slot: Slot) -> list[bytes]:
        """`records` for a slot that is in delivery."""
        if queue.traits.record_before_delivery and not _is_leased(queue, slot):
            return [encode_counted(queue.id, [slot])]
        # The delivery under way is not recorded before it fails: a crash forgets it. The record of a lease counts it.
        if slot.delivery_count <= 1:
            return []
        slot.delivery_count -= 1
        record = encode_counted(queue.id, [slot])
        slot.delivery_count += 1
        return [record]


def _is_leased(queue: Queue, slot: Slot) -> bool:
    return any(holder.in_delivery is slot.in_list and not holder.is_consumer for holder in queue.holders)


def _lists_of(queue: Queue) -> list[SlotList]:
    """What consumers hold, and what is scheduled."""
    lists = [consumer.in_delivery for consumer in queue.holders]
    for due_at_ms in queue.scheduled.times():
        bucket = queue.scheduled.due_at(due_at_ms)
        if bucket is not None:
            lists.append(bucket)
    return lists
