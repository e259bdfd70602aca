"""Deleting a queue: its name is free at once, what it held goes a slice at a time."""

from delosmq.engine.core import Core
from delosmq.engine.purge import Purge
from delosmq.engine.queue import Queue


class Dropping:
    """The end of queues. Consumers and lease groups must have left."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def drop(self, queue: Queue) -> None:
        """Forgets a queue, as a decision of its own."""
        core = self._core
        core.bindings.drop_queue(queue)
        core.bindings.record_drop(queue)
        core.bindings.drop_if_unused(queue.address)
        core.log.close()
        if queue.pending.count:
            core.jobs.add(Purge(queue, core.removals, core.log))
        core.events.queue_deleted(queue.name)
