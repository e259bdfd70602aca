"""Deleting a queue: its name is free at once, what it held goes a slice at a time."""

from delosmq.engine.addresses.address import Address, address_of
from delosmq.engine.addresses.history import ring_of
from delosmq.engine.lifecycle.purge import Purge
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts


class Deletion:
    """The end of queues and addresses. Consumers and lease groups must have left."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts

    def drop(self, queue: Queue) -> None:
        """Forgets a queue, as a decision of its own; its address too when that was only made for it."""
        parts = self._parts
        address = address_of(queue)
        self._remove_queue(queue)
        parts.bindings.drop_if_unused(address)
        parts.log.close()
        self._release_ids(address)
        parts.events.queue_deleted(queue.name)

    def drop_address(self, address: Address) -> None:
        """Forgets an address without queues, and what it kept for queues to come, as a decision of its own."""
        parts = self._parts
        self.drop_history(address)
        parts.bindings.drop_address(address.name)
        parts.bindings.record_drop_address(address)
        parts.log.close()
        parts.events.address_deleted(address.name)
        self._release_ids(address)

    def drop_history(self, address: Address) -> None:
        """An address keeps nothing for queues to come any more."""
        if address.history is not None:
            self._remove_queue(address.history)
        if address.retained is not None:
            self._remove_queue(address.retained)

    def drop_unwanted_history(self, address: Address) -> None:
        """Its settings say otherwise than when it was kept."""
        if address.history is not None and ring_of(address.settings) == 0:
            self._remove_queue(address.history)
        if address.retained is not None and not address.settings.subscription_recovery_retained:
            self._remove_queue(address.retained)

    def _remove_queue(self, queue: Queue) -> None:
        parts = self._parts
        parts.bindings.drop_queue(queue)
        parts.bindings.record_drop(queue)
        if queue.pending.count or queue.scheduled.count:
            parts.jobs.add(Purge(queue, parts.removals, parts.log))

    def _release_ids(self, address: Address) -> None:
        # Source: Artemis PostOfficeImpl.removeBinding, deleteDuplicateCache.
        parts = self._parts
        if parts.bindings.addresses.get(address.name) is None:
            work = parts.duplicates.remove_address(address.name)
            if work is not None and not work.step():
                parts.jobs.add(work)

    def last_left(self, queue: Queue) -> None:
        """The last consumer of a queue has gone."""
        if queue.temporary:
            self.drop(queue)
        elif queue.in_force.purge_on_no_consumers:
            self.purge(queue)

    def purge(self, queue: Queue) -> Purge:
        """Begins to empty a queue that lives on."""
        parts = self._parts
        work = Purge(queue, parts.removals, parts.log, parts.dispatcher)
        work.events = parts.events
        work.waits = True
        if not work.step():
            parts.jobs.add(work)
        return work
