"""Emptying a queue, a slice at a time: one that is gone, or one that shall go on without what it holds now."""

from typing import Final

from delosmq.engine.dispatch import Dispatcher
from delosmq.engine.jobs import Job
from delosmq.engine.log import Log
from delosmq.engine.queue import Queue
from delosmq.engine.records import KILLED, PURGED
from delosmq.engine.removals import Removals
from delosmq.engine.slots import Slot

MESSAGES_PER_SLICE: Final = 500


class Purge(Job):
    """Ends all references of a queue that nobody has in delivery. Each slice is a decision of its own.

    While it works on a living queue nothing of that is handed out, so that nobody gets what was to be purged; what is
    added meanwhile stays.

    Attributes:
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
        self.removed: int = 0
        self.done: bool = False
        if dispatcher is not None:
            queue.returning += 1
            queue.purging += 1

    def step(self) -> bool:
        queue = self._queue
        part: list[Slot] = []
        while len(part) < MESSAGES_PER_SLICE:
            slot = take_any(queue) if queue.deleted else self._take_older()
            if slot is None:
                break
            part.append(slot)
        if part:
            self.removed += len(part)
            if self._dispatcher is not None:
                # As Artemis counts them.
                queue.messages_killed += len(part)
            self._removals.remove(queue, part, PURGED if queue.deleted else KILLED)
            self._log.close()
        # What others are just returning to the queue was there when the purge began.
        self.done = len(part) < MESSAGES_PER_SLICE and (queue.deleted or queue.returning <= queue.purging)
        if self.done and self._dispatcher is not None:
            queue.returning -= 1
            queue.purging -= 1
            self._dispatcher.mark(queue)
        return self.done

    def _take_older(self) -> Slot | None:
        queue = self._queue
        slot = queue.pending.head_upto(self._newest)
        if slot is not None:
            queue.pending.remove(slot)
            return slot
        slot = queue.scheduled.any()
        if slot is None or slot.sequence > self._newest:
            return None
        queue.scheduled.remove(slot)
        return slot


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
