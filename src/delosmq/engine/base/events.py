"""What the engine tells plugins, audit and metrics. The base class is the null object: override what you need."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from mypy_extensions import mypyc_attr

from delosmq.engine.base.slots import Slot
from delosmq.model.message import Message


@mypyc_attr(allow_interpreted_subclasses=True)
class EngineEvents:
    """Called on the engine's thread after the change; must return at once and not call the engine."""

    def queue_created(self, queue: str, address: str) -> None:
        """A queue exists now."""

    def queue_updated(self, queue: str) -> None:
        """Its settings were changed while it runs."""

    def queue_deleted(self, queue: str) -> None:
        """A queue and all it held are gone."""

    def queue_paused(self, queue: str) -> None:
        """It delivers nothing until it is resumed."""

    def queue_resumed(self, queue: str) -> None:
        """It delivers again."""

    def queue_disabled(self, queue: str) -> None:
        """No message enters it until it is enabled."""

    def queue_enabled(self, queue: str) -> None:
        """Messages enter it again."""

    def queue_purged(self, queue: str, removed: int) -> None:
        """What was pending or scheduled in it is gone."""

    def address_created(self, address: str) -> None:
        """An address exists now."""

    def address_deleted(self, address: str) -> None:
        """An address is gone."""

    def created_by_client(self, queue: str, address: str, user: str, lasting: bool) -> None:
        """A command of a user's client made a queue, or, where ``queue`` is "", an address; `queue_created` and
        `address_created` tell that too. Not ``lasting``: it ends by itself with its use."""

    def deleted_by_client(self, queue: str, address: str, user: str, messages: int) -> None:
        """A command of a user's client deleted a queue with so many messages, or, where ``queue`` is "", an address;
        `queue_deleted` and `address_deleted` tell that too."""

    def deleted_unused(self, queue: str, address: str, messages: int) -> None:
        """A queue with so many messages, or an address, went as it was not used any more (``auto-delete-queues``,
        ``auto-delete-addresses``); names as in `deleted_by_client`, and `queue_deleted` or `address_deleted` too."""

    def consumer_created(self, queue: str, consumer_id: int) -> None:
        """A consumer joined."""

    def consumer_closed(self, queue: str, consumer_id: int) -> None:
        """A consumer left; what it held is back in the queue."""

    def exclusive_owner_changed(self, queue: str, consumer_id: int) -> None:
        """A consumer owns a queue exclusively from now on; 0: none does."""

    def group_assigned(self, queue: str, group: str, consumer_id: int) -> None:
        """A message group, or the bucket it falls into, has an owner now: only this consumer gets it."""

    def message_scheduled(self, queue: str, slot: Slot) -> None:
        """A message is in a queue and not due before ``slot.due_at_ms``."""

    def message_due(self, queue: str, slot: Slot) -> None:
        """The time of a scheduled message has come: it is pending."""

    def message_diverted(self, message: Message, divert: str, copy: Message) -> None:
        """A divert has made a copy of a message, and that is in its queues."""

    def message_redelivered(self, queue: str, slot: Slot) -> None:
        """A message went back to its queue after a delivery."""

    def message_replaced(self, queue: str, slot: Slot) -> None:
        """A ring pushed a message out."""

    def message_dead_lettered(self, queue: str, slot: Slot, dead_letter_address: str) -> None:
        """A message used up its delivery attempts; the address is "" when it was dropped for want of one."""

    def message_expired(self, queue: str, slot: Slot, expiry_address: str) -> None:
        """A message grew too old; the address is "" when it was dropped for want of one."""

    def message_dropped(self, message: Message) -> None:
        """A send met a full address with policy DROP."""

    def message_routed(self, message: Message, queues: list[str]) -> None:
        """A message is in these queues. Told only where ``advisory-for-delivery`` or ``advisory-if-no-consumers`` is
        set for its address, or the broker records events."""

    def message_dispatched(self, queue: str, slot: Slot, holder: str, user: str) -> None:
        """A message is in delivery. Told only where the broker records events.

        Args:
            holder, user: who got it: `Holder.called` and `Holder.user_name`.
        """

    def message_unrouted(self, message: Message) -> None:
        """No queue takes a message; told where `message_routed` is."""

    def message_acknowledged(self, queue: str, queue_id: int, slot: Slot, holder: str, user: str) -> None:
        """A message was consumed. Told only where ``advisory-for-consumed`` is set for the queue's address, or the
        broker records events. With a transaction the queue may be gone, and another one may have its name:
        ``queue_id`` tells them apart.

        Args:
            holder, user: as in `message_dispatched`.
        """

    def connection_routed(self, redirected: bool, user: str, client_id: str, cause: str) -> None:
        """A connection router has decided on a connection, which stays or is refused unless it is ``redirected``; of
        those that set it up, as the engine knows no connections. ``cause``: router, target and reason."""

    def address_full(self, message: Message) -> None:
        """A send met a full address, whatever becomes of the message."""

    def address_blocked(self, address: str) -> None:
        """Sends to the address wait for space."""

    def address_unblocked(self, address: str) -> None:
        """Space is back."""

    def lease_group_opened(self, group: str, epoch: int) -> None:
        """A reader opened a lease group; older epochs are fenced."""

    def lease_group_expiring(self, group: str, in_ms: int) -> None:
        """A group is not called by its reader, and will end when that goes on. Told once in each such time."""

    def lease_rows_lost(self, group: str, lease: int, lost: int, of: int) -> None:
        """At the start: the store no longer has so many messages of a lease that is not acknowledged. A lease never
        changes: only damage that an operator went on without (``--accept-loss``) may do that."""

    def lease_group_expired(self, group: str) -> None:
        """A group was not called for as long as it is kept; `lease_group_ended` tells of its end, too."""

    def lease_group_ended(self, group: str, returned: int) -> None:
        """A group was released, or its retention ended: ``returned`` messages are back in the queue."""

    def lease_made(self, group: str, lease: int, messages: int) -> None:
        """A lease group was given a new lease."""

    def lease_acknowledged(self, group: str, lease: int) -> None:
        """All leases of a group up to this one are acknowledged."""

    def duplicate_ids_cleared(self, address: str, count: int) -> None:
        """An operator made an address forget which duplicate ids it has seen."""

    def duplicate_ids_full(self, most_bytes: int) -> None:
        """The duplicate ids of all addresses take so much, as much as they may: from now on the oldest of the largest
        cache goes for a new one. Told once."""

    def message_duplicate(self, message: Message) -> None:
        """A send carried a duplicate id that its address has seen; it is not routed."""

    def transaction_committed(self, transaction: int, sends: int, acknowledgements: int) -> None:
        """Everything of a transaction has happened."""

    def transaction_rolled_back(self, transaction: int, sends: int, acknowledgements: int) -> None:
        """Nothing of a transaction happens."""

    def transaction_prepared(self, transaction: int, xid: bytes) -> None:
        """A branch waits for the decision of its coordinator, over restarts if need be."""

    def transaction_timed_out(self, transaction: int, xid: bytes) -> None:
        """A branch took too long and is rolled back; `transaction_rolled_back` tells that too."""

    def branch_ended_by_operator(self, transaction: int, xid: bytes, committed: bool) -> None:
        """An operator decided for the coordinator of a prepared branch."""


NO_EVENTS: Final = EngineEvents()
"""For a broker without listeners."""


def events_for(listeners: Sequence[EngineEvents]) -> EngineEvents:
    """Tells all ``listeners`` in their order; an event that none of them overrides costs what it costs without any."""
    wanted = [one for one in listeners if one is not NO_EVENTS]
    if not wanted:
        return NO_EVENTS
    if len(wanted) == 1:
        return wanted[0]
    fan_out: EngineEvents = _FAN_OUT()
    for event, silent in vars(EngineEvents).items():
        told = [getattr(one, event) for one in wanted if _overrides(one, event, silent)]
        if told and not event.startswith("_"):
            setattr(fan_out, event, _emit_to(told))
    return fan_out


_FAN_OUT: Final[Any] = type("FanOut", (EngineEvents,), {})
"""Not compiled, so that its objects may have methods of their own. All brokers have one class: a class for each would
stay in memory with its listeners, as the garbage collector does not look from a compiled object to its class."""


def _overrides(listener: EngineEvents, event: str, silent: object) -> bool:
    return getattr(type(listener), event) is not silent or event in getattr(listener, "__dict__", ())


def _emit_to(told: list[Callable[..., None]]) -> Callable[..., None]:
    def emit(*event: Any) -> None:
        for tell in told:
            tell(*event)

    return emit
