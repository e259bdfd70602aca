"""Auto-delete: queues and addresses that were made by use go when they are used no more.

Every ``address-queue-scan-period`` all are looked at, in slices; what two scans in a row find unused goes. Source:
Artemis PostOfficeImpl.reapAddresses and QueueManagerImpl. What Artemis deletes at its start goes here two scans later,
so that clients which come back find their queues. Artemis never deletes an address that had no queue since its start;
here it goes too, once nothing was sent to it between two scans. Likewise a queue that was never used.
"""

from collections.abc import Iterator
from typing import Final

from delosmq.engine.addresses.address import Address
from delosmq.engine.base.jobs import NEXT_TICK, PhasedJob
from delosmq.engine.base.timers import NS_PER_MS, Timer
from delosmq.engine.lifecycle.deletion import Deletion
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts
from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import UNLIMITED

LOOKED_AT_PER_SLICE: Final = 500


class AutoDelete(Timer):
    """Looks for what is not used any more."""

    def __init__(self, parts: EngineParts, deletion: Deletion) -> None:
        self._parts = parts
        self._deletion = deletion
        self._period_ns: int = parts.settings.address_queue_scan_period_ms * NS_PER_MS

    def drop_replayed(self) -> None:
        """Forgets the addresses that nothing needs: replay makes one for each queue there ever was, and what was made
        automatically ends with a restart."""
        bindings = self._parts.bindings
        for address in list(bindings.addresses.values()):
            kept = address.history is not None or address.retained is not None or address.account.used_messages
            if address.auto_created and not kept and bindings.is_unbound(address):
                bindings.drop_address(address.name)
            elif address.auto_created:
                bindings.credit_address(address)

    def begin(self) -> None:
        """Counts the time from now on for what the store held, and makes the first appointment."""
        now = self._parts.clock.monotonic_ns()
        for queue in self._parts.bindings.queues.values():
            queue.usage.unused_since = now
        for address in self._parts.bindings.addresses.values():
            address.usage.unused_since = now
        self.again()

    def again(self) -> None:
        """Makes the next appointment; a period of 0 or less switches the scan off."""
        if self._period_ns > 0:
            self._parts.timers.at(self._parts.clock.monotonic_ns() + self._period_ns, self)

    def on_timer(self, now: MonotonicNs) -> None:
        self._parts.jobs.add(PhasedJob(self._parts.jobs, self._scan()))

    def _scan(self) -> Iterator[int]:
        """One look at everything."""
        queues = list(self._parts.bindings.queues.values())
        addresses = list(self._parts.bindings.addresses.values())
        for number, queue in enumerate(queues, 1):
            self._look_at_queue(queue)
            if number % LOOKED_AT_PER_SLICE == 0:
                yield NEXT_TICK
        for number, address in enumerate(addresses, len(queues) + 1):
            self._look_at_address(address)
            if number % LOOKED_AT_PER_SLICE == 0:
                yield NEXT_TICK
        self.again()

    def _look_at_queue(self, queue: Queue) -> None:
        """Deletes a queue that is unused for the second time."""
        if queue.deleted:
            return
        if not self._is_queue_unused(queue):
            queue.usage.swept = False
        elif queue.usage.swept:
            messages = queue.message_count
            self._deletion.drop(queue)
            self._parts.events.deleted_unused(queue.name, queue.address.name, messages)
        else:
            queue.usage.swept = True

    def _is_queue_unused(self, queue: Queue) -> bool:
        if not queue.in_force.auto_delete or queue.internal or queue.temporary or queue.owner or queue.holders:
            return False
        # A lease group is one of the consumers, and what it returns still counts as in delivery.
        if queue.pending_commits or queue.delivering.count:
            return False
        limit = queue.in_force.auto_delete_message_count
        if limit != UNLIMITED and queue.message_count > limit:
            return False
        since = queue.usage.since(skip_usage_check=queue.address.settings.auto_delete_queues_skip_usage_check)
        return self._parts.clock.monotonic_ns() - since >= queue.in_force.auto_delete_delay * NS_PER_MS

    def _look_at_address(self, address: Address) -> None:
        """Deletes an address that is unused for the second time."""
        if self._parts.bindings.addresses.get(address.name) is not address:
            return
        if not self._is_address_unused(address):
            address.usage.swept = False
        elif address.usage.swept:
            self._deletion.drop_address(address)
            self._parts.events.deleted_unused("", address.name, 0)
        else:
            address.usage.swept = True

    def _is_address_unused(self, address: Address) -> bool:
        settings = address.settings
        if not address.auto_created or not settings.auto_delete_addresses:
            return False
        sent = address.routed_messages + address.unrouted_messages
        if sent != address.messages_at_scan:
            address.messages_at_scan = sent
            return False
        # Those in queues of wildcard addresses count against its limits still.
        if address.account.used_messages or not self._parts.bindings.is_unbound(address):
            return False
        since = address.usage.since(skip_usage_check=settings.auto_delete_addresses_skip_usage_check)
        return self._parts.clock.monotonic_ns() - since >= settings.auto_delete_addresses_delay * NS_PER_MS
