"""Evictions: remove the messages that a ring has no room for."""

from collections.abc import Callable
from typing import Final

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import Job, Jobs
from delosmq.engine.base.slots import PendingSlots, Slot
from delosmq.engine.log.log import Log
from delosmq.engine.log.records import REPLACED
from delosmq.engine.queues.queue import Queue
from delosmq.engine.queues.removal import Removals

RECORDED_AT_ONCE: Final = 3
"""Messages that go in the decision of the one that comes: each adds a record to its batch."""
AT_ONCE: Final = 100
"""Where nothing is recorded."""
PER_SLICE: Final = 400
PER_BATCH: Final = 100


class Evictions:
    """Ends what a ring pushed out: an acknowledgement with a reason of its own, never a dead letter.

    A decision takes few of them: when one message takes the place of very many, most go in slices behind it, and the
    queue holds more than its ring allows for that long.
    """

    def __init__(self, removals: Removals, events: EngineEvents, *, log: Log, jobs: Jobs) -> None:
        self._removals = removals
        self._events = events
        self._log = log
        self._jobs = jobs
        self._cutting: set[int] = set()

    def replace(self, queue: Queue, slot: Slot) -> None:
        """Ends a pending slot that a ring has pushed out, and what goes with it."""
        ring = queue.ring
        pending = queue.pending
        left = RECORDED_AT_ONCE if queue.settings.durable else AT_ONCE
        out: Slot | None = slot
        while out is not None:
            pending.remove(out)
            self.replaced(queue, out)
            left -= 1
            if left == 0:
                self._go_on(queue)
                return
            out = ring.next_out(pending)

    def cut(self, queue: Queue) -> None:
        """Dispatch has found its consumer full: what is too much goes."""
        out = queue.ring.pushed_out(queue.pending)
        if out is not None:
            self.replace(queue, out)
        else:
            self._go_on(queue)

    def trim(self, queue: Queue) -> bool:
        """A slice of what is too much, as decisions of its own. True when nothing is left of it."""
        ring = queue.ring
        self.take_out(queue, ring.next_out)
        if not queue.deleted and ring.surplus(queue.pending):
            return False
        self._cutting.discard(queue.id)
        return True

    def take_out(self, queue: Queue, next_out: Callable[[PendingSlots], Slot | None], most: int = PER_SLICE) -> bool:
        """Ends pending messages one after the other, as decisions of their own. True when nothing is left of them.

        Args:
            next_out: the next of those that have to go, as `Ring.next_out`.
            most: how many a slice may take.
        """
        pending = queue.pending
        for number in range(most):
            out = next_out(pending)
            if out is None:
                self._log.close()
                return True
            pending.remove(out)
            self.replaced(queue, out)
            if number % PER_BATCH == 0:
                self._log.close()
        self._log.close()
        return False

    def _go_on(self, queue: Queue) -> None:
        """Leaves the rest to later ticks."""
        if queue.id not in self._cutting and queue.ring.surplus(queue.pending):
            self._cutting.add(queue.id)
            self._jobs.add(_Cut(self, queue))

    def replaced(self, queue: Queue, slot: Slot) -> None:
        """For a slot that is in no list."""
        queue.counters.replaced += 1
        self._removals.remove_one(queue, slot, REPLACED)
        self._events.message_replaced(queue.name, slot)


class _Cut(Job):
    """Removes the messages that are too many in one queue."""

    def __init__(self, evictions: Evictions, queue: Queue) -> None:
        self._evictions = evictions
        self._queue = queue

    def step(self) -> bool:
        return self._evictions.trim(self._queue)
