"""Messages that queues hold, for compaction."""

from typing import Final

from delosmq.engine.base.slots import Cursor, Slot, SlotList
from delosmq.engine.compaction.compactor import LivePlace, Restoration
from delosmq.engine.log.records import encode_counted, encode_scheduled
from delosmq.engine.queues.queue import Queue

MOST_RESTARTS: Final = 100


class LiveMessages(LivePlace):
    """Messages that queues hold: pending, scheduled, in delivery to consumers and lease groups."""

    def __init__(self, queues: dict[str, Queue], restoration: Restoration) -> None:
        self._queues = queues
        self._restoration = restoration
        self._waiting: list[Queue] | None = None
        self._queue: Queue | None = None
        self._cursor: Cursor | None = None
        # Of the queue, beside what is pending.
        self._lists: list[SlotList] = []
        self._last: Slot | None = None
        self._restarts: int = 0

    def restore_next(self, segment: int, limit: int) -> bool:
        if self._waiting is None:
            self._waiting = list(self._queues.values())
        waiting = self._waiting
        restoration = self._restoration
        while limit > 0 and not restoration.full:
            limit -= 1
            queue = self._queue
            if queue is None:
                if not waiting:
                    self._waiting = None
                    return True
                queue = waiting.pop()
                self._queue = queue
                self._cursor = queue.pending.cursor()
            slot = self._next_pending(queue)
            if slot is None:
                slot = self._next_held()
            if slot is None:
                self._queue = None
            elif slot.recorded and not slot.borrowed:
                home = slot.message.home
                if home is not None and home.segment == segment:
                    restoration.found(queue, slot, self)
        return False

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
        if queue.traits.record_before_delivery:
            return [encode_counted(queue.id, [slot])]
        # The delivery under way is not recorded before it fails: a crash forgets it.
        if slot.delivery_count <= 1:
            return []
        slot.delivery_count -= 1
        record = encode_counted(queue.id, [slot])
        slot.delivery_count += 1
        return [record]

    def _next_pending(self, queue: Queue) -> Slot | None:
        cursor = self._cursor
        if cursor is None:
            return None
        slot = cursor.peek()
        if slot is not None:
            cursor.advance(slot)
            return slot
        queue.pending.drop(cursor)
        self._cursor = None
        self._lists = [consumer.in_delivery for consumer in queue.holders]
        for due_at_ms in queue.scheduled.times():
            bucket = queue.scheduled.due_at(due_at_ms)
            if bucket is not None:
                self._lists.append(bucket)
        self._last = None
        self._restarts = 0
        return None

    def _next_held(self) -> Slot | None:
        """Of what is scheduled and what consumers hold. When the slot looked at last is gone, its list is walked again:
        what is answered is mostly the oldest, so that what was looked at already is gone as well."""
        while self._lists:
            held = self._lists[-1]
            last = self._last
            if last is None:
                slot = held.head
            elif last.in_list is held:
                slot = last.next
            else:
                self._restarts += 1
                slot = held.head if self._restarts < MOST_RESTARTS else None
            self._last = slot
            if slot is not None:
                return slot
            self._lists.pop()
            self._restarts = 0
        return None
