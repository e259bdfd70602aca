"""Deleting a queue: its name is free at once, what it held goes a slice at a time."""

from delosmq.engine.addresses.address import Address
from delosmq.engine.addresses.history import ring_of
from delosmq.engine.lifecycle.purge import Purge
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import Core


class Dropping:
    """The end of queues and addresses. Consumers and lease groups must have left."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def drop(self, queue: Queue) -> None:
        """Forgets a queue, as a decision of its own; its address too when that was only made for it."""
        core = self._core
        address = core.bindings.address_of(queue)
        self._forget(queue)
        core.bindings.drop_if_unused(address)
        core.log.close()
        self._forget_ids(address)
        core.events.queue_deleted(queue.name)

    def drop_address(self, address: Address) -> None:
        """Forgets an address without queues, and what it kept for queues to come, as a decision of its own."""
        core = self._core
        self.drop_history(address)
        core.bindings.drop_address(address.name)
        core.bindings.record_drop_address(address)
        core.log.close()
        core.events.address_deleted(address.name)
        self._forget_ids(address)

    def drop_history(self, address: Address) -> None:
        """An address keeps nothing for queues to come any more."""
        if address.history is not None:
            self._forget(address.history)
        if address.retained is not None:
            self._forget(address.retained)

    def drop_unwanted_history(self, address: Address) -> None:
        """Its settings say otherwise than when it was kept."""
        if address.history is not None and ring_of(address.settings) == 0:
            self._forget(address.history)
        if address.retained is not None and not address.settings.subscription_recovery_retained:
            self._forget(address.retained)

    def _forget(self, queue: Queue) -> None:
        core = self._core
        core.bindings.drop_queue(queue)
        core.bindings.record_drop(queue)
        if queue.pending.count or queue.scheduled.count:
            core.jobs.add(Purge(queue, core.removals, core.log))

    def _forget_ids(self, address: Address) -> None:
        # Source: Artemis PostOfficeImpl.removeBinding, deleteDuplicateCache.
        core = self._core
        if core.bindings.addresses.get(address.name) is None:
            work = core.duplicates.forget_address(address.name)
            if work is not None and not work.step():
                core.jobs.add(work)

    def last_left(self, queue: Queue) -> None:
        """The last consumer of a queue has gone."""
        if queue.temporary:
            self.drop(queue)
        elif queue.in_force.purge_on_no_consumers:
            self.purge(queue)

    def purge(self, queue: Queue) -> Purge:
        """Begins to empty a queue that lives on."""
        core = self._core
        work = Purge(queue, core.removals, core.log, core.dispatcher)
        work.events = core.events
        work.waits = True
        if not work.step():
            core.jobs.add(work)
        return work
