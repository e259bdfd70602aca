"""A purge: a queue is emptied a slice at a time, one that is gone or one that goes on without what it holds now."""

from typing import Final

from delosmq.engine.base.events import NO_EVENTS, EngineEvents
from delosmq.engine.base.jobs import Job
from delosmq.engine.base.slots import Cursor, Slot
from delosmq.engine.dispatch.dispatcher import Dispatcher
from delosmq.engine.log.log import Log
from delosmq.engine.log.records import KILLED, PURGED
from delosmq.engine.queues.queue import Queue
from delosmq.engine.queues.removal import Removals

MESSAGES_PER_SLICE: Final = 500
PASSED_PER_SLICE: Final = 4_000
"""Newer messages that are only passed over, below 1 ms."""


class Purge(Job):
    """Ends all references of a queue that are not in delivery. Each slice is a decision of its own.

    While it works on a living queue nothing of that is delivered, and no consumer gets what was to be purged; what is
    added meanwhile stays.

    Attributes:
        events: told when a living queue is empty.
        waits: it may wait for what others return; `Dispatcher.resume` takes it up then.
        removed: how many so far.
        done: nothing is left to do.
    """

    def __init__(self, queue: Queue, removals: Removals, log: Log, dispatcher: Dispatcher | None = None) -> None:
        """``dispatcher``: None when the queue is gone already."""
        self._queue = queue
        self._removals = removals
        self._log = log
        self._dispatcher = dispatcher
        self._newest: int = queue.newest_sequence
        # What becomes due meanwhile stands before what is older.
        self._cursor: Cursor | None = None if dispatcher is None else queue.pending.cursor()
        self._times: list[int] = [] if dispatcher is None else queue.scheduled.times()
        self._room: int = 0
        self.events: EngineEvents = NO_EVENTS
        self.waits: bool = False
        self.removed: int = 0
        self.done: bool = False
        if dispatcher is not None:
            dispatcher.suspend(queue)
            queue.purging += 1

    def step(self) -> bool:
        """See `Job.step`; True too when it only ``waits``."""
        queue = self._queue
        cursor = self._cursor
        part: list[Slot] = []
        self._room = PASSED_PER_SLICE
        while len(part) < MESSAGES_PER_SLICE:
            slot = take_any(queue) if queue.deleted or cursor is None else self._take_older(cursor)
            if slot is None:
                break
            part.append(slot)
        if part:
            self.removed += len(part)
            if self._dispatcher is not None:
                # As Artemis counts them.
                queue.counters.killed += len(part)
            self._removals.remove(queue, part, PURGED if queue.deleted else KILLED)
            self._log.close()
        # Messages that are just given back to the queue were there when the purge began.
        full = len(part) == MESSAGES_PER_SLICE or self._room == 0
        self.done = not full and (queue.deleted or queue.suspensions <= queue.purging)
        if self.done and cursor is not None:
            queue.pending.drop(cursor)
            self._cursor = None
        if self.done and self._dispatcher is not None:
            queue.purging -= 1
            self._dispatcher.resume(queue)
            self.events.queue_purged(queue.name, self.removed)
        if not self.done and not part and self._room and self.waits:
            queue.stalled.append(self)
            return True
        return self.done

    def _take_older(self, cursor: Cursor) -> Slot | None:
        pending = self._queue.pending
        slot = cursor.peek()
        while slot is not None and self._room > 0:
            cursor.advance(slot)
            if slot.sequence <= self._newest:
                pending.remove(slot)
                return slot
            self._room -= 1
            slot = cursor.peek()
        return None if slot is not None else self._take_scheduled()

    def _take_scheduled(self) -> Slot | None:
        scheduled = self._queue.scheduled
        times = self._times
        while times:
            bucket = scheduled.due_at(times[-1])
            slot = bucket.head if bucket is not None else None
            # By order, which only messages that were delivered before have below their sequence.
            while slot is not None and slot.order <= self._newest:
                if slot.sequence <= self._newest:
                    scheduled.remove(slot)
                    return slot
                slot = slot.next
            times.pop()
        return None


def take_any(queue: Queue) -> Slot | None:
    """Takes a slot out that is pending or not due yet; None when there is none."""
    slot = queue.pending.head()
    if slot is not None:
        queue.pending.remove(slot)
        return slot
    slot = queue.scheduled.any()
    if slot is not None:
        queue.scheduled.remove(slot)
    return slot
