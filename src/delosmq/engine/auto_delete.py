"""Deleting queues and addresses that were made by use and are used no more.

Every ``address-queue-scan-period`` all are looked at, in slices; what two scans in a row find unused goes. Source:
Artemis PostOfficeImpl.reapAddresses and QueueManagerImpl. What Artemis deletes at its start goes here two scans later,
so that clients which come back find their queues.
"""

from typing import Final

from delosmq.engine.address import Address
from delosmq.engine.core import Core
from delosmq.engine.dropping import Dropping
from delosmq.engine.jobs import Job
from delosmq.engine.queue import Queue
from delosmq.engine.timers import NS_PER_MS, Timer
from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import UNLIMITED

LOOKED_AT_PER_SLICE: Final = 500


class AutoDelete(Timer):
    """Looks for what is not used any more."""

    def __init__(self, core: Core, dropping: Dropping) -> None:
        self._core = core
        self._dropping = dropping
        self._period_ns: int = core.settings.address_queue_scan_period_ms * NS_PER_MS

    def begin(self) -> None:
        """Counts the time from now on for what the store held, and makes the first appointment."""
        now = self._core.clock.monotonic_ns()
        for queue in self._core.bindings.queues.values():
            queue.unused_since = now
        for address in self._core.bindings.addresses.values():
            address.unused_since = now
        self.again()

    def again(self) -> None:
        """Makes the next appointment; a period of 0 or less switches the scan off."""
        if self._period_ns > 0:
            self._core.timers.at(self._core.clock.monotonic_ns() + self._period_ns, self)

    def on_timer(self, now: MonotonicNs) -> None:
        bindings = self._core.bindings
        self._core.jobs.add(_Scan(self, list(bindings.queues.values()), list(bindings.addresses.values())))

    def look_at_queue(self, queue: Queue) -> None:
        """Deletes a queue that is unused for the second time."""
        if queue.deleted:
            return
        if not self._is_queue_unused(queue):
            queue.swept = False
        elif queue.swept:
            self._dropping.drop(queue)
        else:
            queue.swept = True

    def _is_queue_unused(self, queue: Queue) -> bool:
        if not queue.auto_delete or queue.internal or queue.temporary or queue.owner or queue.consumers:
            return False
        # A lease group is one of the consumers, and what it returns still counts as in delivery.
        if queue.claims or queue.delivering_count:
            return False
        limit = queue.auto_delete_message_count
        if limit != UNLIMITED and queue.message_count > limit:
            return False
        skips = queue.address.settings.auto_delete_queues_skip_usage_check
        ended = queue.messages_acknowledged + queue.messages_killed + queue.messages_expired
        if queue.unused_since == 0 and ended == 0 and not skips:
            return False
        since = queue.created_at if skips else queue.unused_since
        return self._core.clock.monotonic_ns() - since >= queue.auto_delete_delay * NS_PER_MS

    def look_at_address(self, address: Address) -> None:
        """Deletes an address that is unused for the second time."""
        if self._core.bindings.addresses.get(address.name) is not address:
            return
        if not self._is_address_unused(address):
            address.swept = False
        elif address.swept:
            self._dropping.drop_address(address)
        else:
            address.swept = True

    def _is_address_unused(self, address: Address) -> bool:
        settings = address.settings
        if not address.auto_created or not settings.auto_delete_addresses:
            return False
        # Those in queues of wildcard addresses count against its limits still.
        if address.account.used_messages or not self._core.bindings.is_unbound(address):
            return False
        skips = settings.auto_delete_addresses_skip_usage_check
        if address.unused_since == 0 and not skips:
            return False
        since = address.created_at if skips else address.unused_since
        return self._core.clock.monotonic_ns() - since >= settings.auto_delete_addresses_delay * NS_PER_MS


class _Scan(Job):
    """One look at everything."""

    def __init__(self, auto_delete: AutoDelete, queues: list[Queue], addresses: list[Address]) -> None:
        self._auto_delete = auto_delete
        self._queues = queues
        self._addresses = addresses
        self._at: int = 0

    def step(self) -> bool:
        queues = len(self._queues)
        stop = min(self._at + LOOKED_AT_PER_SLICE, queues + len(self._addresses))
        for at in range(self._at, stop):
            if at < queues:
                self._auto_delete.look_at_queue(self._queues[at])
            else:
                self._auto_delete.look_at_address(self._addresses[at - queues])
        self._at = stop
        if stop < queues + len(self._addresses):
            return False
        self._auto_delete.again()
        return True
