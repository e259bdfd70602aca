"""The lease collector: collects messages for a lease in slices; one record makes the lease."""

from typing import Final

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.delivery.redelivery import record_counts
from delosmq.engine.dispatch.dispatcher import Dispatcher
from delosmq.engine.dispatch.ports import ROOM_TO_COME, STAYS
from delosmq.engine.leases.lease import (
    LINKED,
    MESSAGES,
    NEXT_TICK,
    RESUMED,
    ROOM,
    ROWS_PER_SLICE,
    Lease,
    LeaseBounds,
    LeaseGroup,
)
from delosmq.engine.leases.rows import LeaseSlots
from delosmq.engine.log.batch_limits import FITS, NO_ROOM, WAITS
from delosmq.engine.log.log import Log
from delosmq.engine.log.records import LEASE, encode_json, encode_stored
from delosmq.engine.routing.parts import RECORD_ROOM_BYTES
from delosmq.model.errors import StorageError
from delosmq.model.ports import Clock

RECORD_BYTES: Final = 512
RUNS_PER_LEASE: Final = 10_000
"""Runs of consecutive sequences in one lease; bounds the one record that makes it to about 30 KB."""


class LeaseCollector:
    """Takes pending messages for the lease under way of a group."""

    def __init__(
        self,
        log: Log,
        *,
        dispatcher: Dispatcher,
        clock: Clock,
        events: EngineEvents,
        ordinary_message_bytes: int,
        limits: LeaseBounds,
    ) -> None:
        self._log = log
        self._limits = limits
        self._dispatcher = dispatcher
        self._clock = clock
        self._events = events
        self._ordinary_message_bytes = ordinary_message_bytes

    def collect(self, group: LeaseGroup, max_rows: int, max_bytes: int, until: int | None) -> bool:
        """Takes a slice of pending messages for the lease under way; True when it is complete, also when the disk is
        too full for the next message, which would have to be stored, or the group may hold no more.

        Raises:
            LimitError: the disk is too full for its first message.
        """
        group.waits_for = MESSAGES
        if group.queue.suspensions:
            group.waits_for = RESUMED  # first all of what a released group held has to be back in its place
            return False
        limits = self._limits
        # A lease is collected when all before it are acknowledged: what the group holds beside it is being settled.
        max_rows = min(max_rows, limits.max_rows, limits.leased_rows - (group.held_count - len(group.building)))
        max_bytes = min(max_bytes, limits.max_bytes, limits.leased_bytes - group.settling_bytes)
        if (max_rows <= 0 or max_bytes <= 0) and group.settling and not group.building:
            group.waits_for = NEXT_TICK
            return False
        barrier = group.queue.barrier_sequence
        now_ms = self._clock.wall_ms()
        budget = self._dispatcher.lease_budget()
        for _ in range(ROWS_PER_SLICE):
            if self._is_complete(group, max_rows, max_bytes):
                return True
            slot = self._dispatcher.next_for_lease(group.queue, group.wish, until, budget)
            if slot is None and budget.out:
                break
            if slot is None or (barrier and slot.sequence > barrier):
                if until is not None and 0 < barrier < until:
                    group.waits_for = LINKED
                    return False
                return slot is None and len(group.building) > 0
            if group.queue.expiring_count and self._expired(group, slot, now_ms):
                if group.waits_for == ROOM:
                    return False
                continue
            if not slot.recorded:
                room = self._room_for(group, slot)
                if room != FITS:
                    group.waits_for = ROOM if room == WAITS else MESSAGES
                    return room == NO_ROOM
                self._store(group, slot)
            group.queue.deliver(slot, group)
            slot.delivered_at_ms = now_ms
            if group.queue.traits.recorded:
                self._events.message_dispatched(group.queue.name, slot, group.called(), group.user_name())
            group.draft.add(slot)
        if self._is_complete(group, max_rows, max_bytes):
            return True
        group.waits_for = NEXT_TICK
        return False

    def _expired(self, group: LeaseGroup, slot: Slot, now_ms: int) -> bool:
        """Whether a message is too old; it may still be there then, until its copy has room."""
        before = self._dispatcher.before
        fate = STAYS if before is None else before.take_expired(group.queue, slot, now_ms)
        if fate == ROOM_TO_COME:
            group.waits_for = ROOM
        return fate != STAYS

    @staticmethod
    def _is_complete(group: LeaseGroup, max_rows: int, max_bytes: int) -> bool:
        draft = group.draft
        return len(draft.slots) >= max_rows or draft.size_bytes >= max_bytes or draft.runs >= RUNS_PER_LEASE

    def _room_for(self, group: LeaseGroup, slot: Slot) -> int:
        """FITS, WAITS or NO_ROOM for a message that the store does not hold yet, or for one more reference to it.

        Raises:
            LimitError: the disk is full, and it would be the first of its lease.
        """
        log = self._log
        message = slot.message
        if message.home is None and message.encoded_size_bytes > self._ordinary_message_bytes:
            room = log.ask_large(message.encoded_size_bytes + RECORD_ROOM_BYTES)
            if room == NO_ROOM and not group.building:
                raise log.refusal_of_large(message.encoded_size_bytes)
            return room
        size = RECORD_BYTES if message.home is not None else message.encoded_size_bytes + RECORD_ROOM_BYTES
        if log.takes(size):
            return FITS
        if not group.building:
            log.ask_room(size, f"another lease of group '{group.name}'")
        return NO_ROOM if log.storage_full else WAITS

    def _store(self, group: LeaseGroup, slot: Slot) -> None:
        # What is leased must survive a restart, or a replayed batch of the reader would differ. A decision of its own
        # per message, as a durable send is: the batches stay small, and one that fails changes nothing.
        message = slot.message
        home = message.home
        references = message.recorded_references
        position = message.position
        if home is None:
            self._log.store(message, encode_stored(message, [group.queue.id]), 1)
        else:
            self._log.store_reference(message, group.queue.id)
        if slot.delivery_count > 0:
            record_counts(self._log, group.queue, [slot])
        try:
            self._log.close()
        except StorageError:
            message.home = home
            message.recorded_references = references
            message.position = position
            raise
        group.queue.now_recorded(slot)

    def make(self, group: LeaseGroup) -> Lease:
        """Makes a lease of what was collected, as a whole."""
        lease = Lease(group.newest + 1, group.draft)
        value = {"op": "lease", "group": group.name, "lease": lease.number, "rows": lease.rows.packed()}
        record = encode_json(LEASE, value)
        self._log.ask_room(RECORD_BYTES + len(record), f"another lease of group '{group.name}'")
        group.draft = LeaseSlots()
        group.adopt(lease)
        self._log.record(record)
        try:
            self._log.close()
        except StorageError:
            del group.leases[lease.number]
            group.newest = lease.number - 1
            group.draft = lease.rows
            raise
        self._events.lease_made(group.name, lease.number, len(lease.slots))
        return lease
