"""Emptying a queue that is gone, a slice at a time."""

from typing import Final

from delosmq.engine.jobs import Job
from delosmq.engine.log import Log
from delosmq.engine.queue import Queue
from delosmq.engine.records import PURGED
from delosmq.engine.removals import Removals
from delosmq.engine.slots import Slot

MESSAGES_PER_SLICE: Final = 500


class Purge(Job):
    """Ends all pending references of a deleted queue."""

    def __init__(self, queue: Queue, removals: Removals, log: Log) -> None:
        self._queue = queue
        self._removals = removals
        self._log = log

    def step(self) -> bool:
        part: list[Slot] = []
        while len(part) < MESSAGES_PER_SLICE:
            slot = self._queue.pending.head()
            if slot is None:
                break
            self._queue.pending.remove(slot)
            part.append(slot)
        if part:
            self._removals.remove(self._queue, part, PURGED)
            self._log.close()
        return self._queue.pending.count == 0
