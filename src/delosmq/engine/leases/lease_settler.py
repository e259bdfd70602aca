"""The lease settler: ends the references of acknowledged leases, and gives back the leases of a released group, in
slices."""

from collections.abc import Iterator

from delosmq.engine.base.jobs import NEXT_TICK, Jobs, PhasedJob
from delosmq.engine.base.slots import Slot
from delosmq.engine.delivery.acknowledgements import Acknowledgements
from delosmq.engine.dispatch.dispatcher import Dispatcher
from delosmq.engine.leases.lease import ROWS_PER_SLICE, Lease, LeaseGroup
from delosmq.engine.log.log import Log
from delosmq.engine.log.records import ACKNOWLEDGED, PURGED
from delosmq.engine.queues.removal import Removals


class LeaseSettler:
    """What is left to do once leases are acknowledged, or their group is released.

    Attributes:
        releasing: groups that were released, with messages that are not back in their places yet.
    """

    def __init__(
        self, log: Log, acks: Acknowledgements, removals: Removals, *, dispatcher: Dispatcher, jobs: Jobs
    ) -> None:
        self._events = dispatcher.events
        self._log = log
        self._acks = acks
        self._removals = removals
        self._dispatcher = dispatcher
        self._jobs = jobs
        self.releasing: list[LeaseGroup] = []

    def settle_later(self, group: LeaseGroup, number: int) -> None:
        """Ends the references of an acknowledged lease in slices."""
        lease = group.settling.get(number)
        if lease is not None:
            self._jobs.add(PhasedJob(self._jobs, self._end(group, lease)))

    def _end(self, group: LeaseGroup, lease: Lease) -> Iterator[int]:
        for start in range(0, len(lease.slots), ROWS_PER_SLICE):
            if start:
                yield NEXT_TICK
            if lease.number not in group.settling:
                return
            self._end_references(group, lease.slots[start : start + ROWS_PER_SLICE])
        group.settling.pop(lease.number, None)

    def _end_references(self, group: LeaseGroup, slots: list[Slot]) -> None:
        """Ends a slice of acknowledged references, as a decision of its own."""
        held = [slot for slot in slots if slot.in_list is group.in_delivery]
        if not held:
            return
        for slot in held:
            group.queue.settle(slot, group)
        group.queue.counters.acknowledged += len(held)
        self._removals.remove(group.queue, held, ACKNOWLEDGED)
        if group.queue.traits.tells_acknowledged:
            queue = group.queue
            for slot in held:
                self._events.message_acknowledged(queue.name, queue.id, slot, group.called(), group.user_name())
        self._log.close()

    def settle_all(self, group: LeaseGroup) -> None:
        """Does at once what `settle_later` had not reached yet."""
        for lease in group.settling.values():
            for at in range(0, len(lease.slots), ROWS_PER_SLICE):
                self._end_references(group, lease.slots[at : at + ROWS_PER_SLICE])
        group.settling = {}

    def give_back_all(self, group: LeaseGroup) -> int:
        """Returns what a released group held, in slices; gives how many messages."""
        newest_first: list[Slot] = []
        for lease in group.leases.values():
            newest_first.extend(lease.slots)
        newest_first.extend(group.building)
        newest_first.reverse()
        if newest_first:
            self._dispatcher.suspend(group.queue)
            self.releasing.append(group)
            work = PhasedJob(self._jobs, self._return(group, newest_first))
            if not work.step():
                self._jobs.add(work)
        return len(newest_first)

    def _return(self, group: LeaseGroup, newest_first: list[Slot]) -> Iterator[int]:
        for start in range(0, len(newest_first), ROWS_PER_SLICE):
            if start:
                yield NEXT_TICK
            self._give_back(group, newest_first[start : start + ROWS_PER_SLICE])
        self.releasing.remove(group)
        self._dispatcher.resume(group.queue)

    def _give_back(self, group: LeaseGroup, newest_first: list[Slot]) -> None:
        """Returns a slice of what a released group held; when its queue is gone, ends the references instead."""
        queue = group.queue
        if queue.deleted:
            for slot in newest_first:
                queue.settle(slot, group)
            self._removals.remove(queue, newest_first, PURGED)
        else:
            self._acks.give_back(queue, group, newest_first)
        self._log.close()
