"""What compaction must know of messages that are not due yet."""

from delosmq.engine.base.slots import Slot
from delosmq.engine.compaction.compactor import LivePlace, Restoration
from delosmq.engine.log.records import encode_scheduled
from delosmq.engine.queues.queue import Queue


class LiveScheduled(LivePlace):
    """Messages beside their queues."""

    def __init__(self, queues: dict[str, Queue], restoration: Restoration) -> None:
        self._queues = queues
        self._restoration = restoration
        self._waiting: list[Queue] | None = None
        self._queue: Queue | None = None
        self._times: list[int] = []
        self._last: Slot | None = None

    def restore_next(self, segment: int, limit: int) -> bool:
        if self._waiting is None:
            self._waiting = list(self._queues.values())
        restoration = self._restoration
        while limit > 0 and not restoration.full:
            limit -= 1
            queue = self._queue
            if queue is None:
                if not self._waiting:
                    self._waiting = None
                    return True
                queue = self._waiting.pop()
                self._times = queue.scheduled.times()
                if not self._times:
                    continue
                self._queue = queue
            slot = self._next(queue)
            if slot is None:
                self._queue = None
                continue
            home = slot.message.home
            if slot.recorded and home is not None and home.segment == segment:
                restoration.found(queue, slot, self)
        return False

    def records(self, queue: Queue, slot: Slot) -> list[bytes] | None:
        return [encode_scheduled(queue.id, [slot])] if queue.scheduled.holds(slot) else None

    def _next(self, queue: Queue) -> Slot | None:
        times = self._times
        while times:
            bucket = queue.scheduled.due_at(times[-1])
            last = self._last
            if bucket is None:
                slot = None
            elif last is None:
                slot = bucket.head
            else:
                # Where the last one went all of its time goes: what is left of it is no longer here.
                slot = last.next if last.in_list is bucket else None
            self._last = slot
            if slot is not None:
                return slot
            times.pop()
        return None
