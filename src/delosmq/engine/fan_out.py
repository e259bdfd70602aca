"""More than one listener for what the engine tells."""

from collections.abc import Sequence

from delosmq.engine.base.events import NO_EVENTS, EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.model.message import Message


def events_for(listeners: Sequence[EngineEvents]) -> EngineEvents:
    """What tells all ``listeners``: nobody, one by itself, or several by way of a `FanOut`."""
    wanted = [one for one in listeners if one is not NO_EVENTS]
    if not wanted:
        return NO_EVENTS
    return wanted[0] if len(wanted) == 1 else FanOut(wanted)


class FanOut(EngineEvents):
    """Tells each of its listeners, in their order."""

    def __init__(self, listeners: list[EngineEvents]) -> None:
        self._listeners = listeners

    def queue_created(self, queue: str, address: str) -> None:
        for listener in self._listeners:
            listener.queue_created(queue, address)

    def queue_updated(self, queue: str) -> None:
        for listener in self._listeners:
            listener.queue_updated(queue)

    def queue_deleted(self, queue: str) -> None:
        for listener in self._listeners:
            listener.queue_deleted(queue)

    def queue_paused(self, queue: str) -> None:
        for listener in self._listeners:
            listener.queue_paused(queue)

    def queue_resumed(self, queue: str) -> None:
        for listener in self._listeners:
            listener.queue_resumed(queue)

    def queue_disabled(self, queue: str) -> None:
        for listener in self._listeners:
            listener.queue_disabled(queue)

    def queue_enabled(self, queue: str) -> None:
        for listener in self._listeners:
            listener.queue_enabled(queue)

    def queue_purged(self, queue: str, removed: int) -> None:
        for listener in self._listeners:
            listener.queue_purged(queue, removed)

    def address_created(self, address: str) -> None:
        for listener in self._listeners:
            listener.address_created(address)

    def address_deleted(self, address: str) -> None:
        for listener in self._listeners:
            listener.address_deleted(address)

    def created_by_client(self, queue: str, address: str, user: str, lasting: bool) -> None:
        for listener in self._listeners:
            listener.created_by_client(queue, address, user, lasting)

    def deleted_by_client(self, queue: str, address: str, user: str, messages: int) -> None:
        for listener in self._listeners:
            listener.deleted_by_client(queue, address, user, messages)

    def deleted_unused(self, queue: str, address: str, messages: int) -> None:
        for listener in self._listeners:
            listener.deleted_unused(queue, address, messages)

    def consumer_created(self, queue: str, consumer_id: int) -> None:
        for listener in self._listeners:
            listener.consumer_created(queue, consumer_id)

    def consumer_closed(self, queue: str, consumer_id: int) -> None:
        for listener in self._listeners:
            listener.consumer_closed(queue, consumer_id)

    def exclusive_owner_changed(self, queue: str, consumer_id: int) -> None:
        for listener in self._listeners:
            listener.exclusive_owner_changed(queue, consumer_id)

    def group_assigned(self, queue: str, group: str, consumer_id: int) -> None:
        for listener in self._listeners:
            listener.group_assigned(queue, group, consumer_id)

    def message_scheduled(self, queue: str, slot: Slot) -> None:
        for listener in self._listeners:
            listener.message_scheduled(queue, slot)

    def message_due(self, queue: str, slot: Slot) -> None:
        for listener in self._listeners:
            listener.message_due(queue, slot)

    def message_diverted(self, message: Message, divert: str, copy: Message) -> None:
        for listener in self._listeners:
            listener.message_diverted(message, divert, copy)

    def message_redelivered(self, queue: str, slot: Slot) -> None:
        for listener in self._listeners:
            listener.message_redelivered(queue, slot)

    def message_replaced(self, queue: str, slot: Slot) -> None:
        for listener in self._listeners:
            listener.message_replaced(queue, slot)

    def message_dead_lettered(self, queue: str, slot: Slot, dead_letter_address: str) -> None:
        for listener in self._listeners:
            listener.message_dead_lettered(queue, slot, dead_letter_address)

    def message_expired(self, queue: str, slot: Slot, expiry_address: str) -> None:
        for listener in self._listeners:
            listener.message_expired(queue, slot, expiry_address)

    def message_dropped(self, message: Message) -> None:
        for listener in self._listeners:
            listener.message_dropped(message)

    def message_routed(self, message: Message, queues: list[str]) -> None:
        for listener in self._listeners:
            listener.message_routed(message, queues)

    def message_unrouted(self, message: Message) -> None:
        for listener in self._listeners:
            listener.message_unrouted(message)

    def message_acknowledged(self, queue: str, slot: Slot) -> None:
        for listener in self._listeners:
            listener.message_acknowledged(queue, slot)

    def address_full(self, message: Message) -> None:
        for listener in self._listeners:
            listener.address_full(message)

    def address_blocked(self, address: str) -> None:
        for listener in self._listeners:
            listener.address_blocked(address)

    def address_unblocked(self, address: str) -> None:
        for listener in self._listeners:
            listener.address_unblocked(address)

    def lease_group_opened(self, group: str, epoch: int) -> None:
        for listener in self._listeners:
            listener.lease_group_opened(group, epoch)

    def lease_group_ended(self, group: str, returned: int) -> None:
        for listener in self._listeners:
            listener.lease_group_ended(group, returned)

    def lease_made(self, group: str, lease: int, messages: int) -> None:
        for listener in self._listeners:
            listener.lease_made(group, lease, messages)

    def lease_acknowledged(self, group: str, lease: int) -> None:
        for listener in self._listeners:
            listener.lease_acknowledged(group, lease)

    def duplicate_ids_cleared(self, address: str, count: int) -> None:
        for listener in self._listeners:
            listener.duplicate_ids_cleared(address, count)

    def message_duplicate(self, message: Message) -> None:
        for listener in self._listeners:
            listener.message_duplicate(message)

    def transaction_committed(self, transaction: int, sends: int, acknowledgements: int) -> None:
        for listener in self._listeners:
            listener.transaction_committed(transaction, sends, acknowledgements)

    def transaction_rolled_back(self, transaction: int, sends: int, acknowledgements: int) -> None:
        for listener in self._listeners:
            listener.transaction_rolled_back(transaction, sends, acknowledgements)

    def transaction_prepared(self, transaction: int, xid: bytes) -> None:
        for listener in self._listeners:
            listener.transaction_prepared(transaction, xid)

    def transaction_timed_out(self, transaction: int, xid: bytes) -> None:
        for listener in self._listeners:
            listener.transaction_timed_out(transaction, xid)

    def branch_ended_by_operator(self, transaction: int, xid: bytes, committed: bool) -> None:
        for listener in self._listeners:
            listener.branch_ended_by_operator(transaction, xid, committed)
