"""A queue: pending slots, consumers in rotation, counters. Knows nothing of logs, memory limits or other queues."""

from typing import TYPE_CHECKING

from delosmq.engine.consumer import Consumer
from delosmq.engine.ring import Ring
from delosmq.engine.slots import PendingSlots, Slot
from delosmq.model.ids import QueueId, Sequence
from delosmq.model.settings import UNLIMITED, QueueSettings

if TYPE_CHECKING:
    from delosmq.engine.address import Address


class Queue:
    """One queue.

    Attributes:
        temporary: deleted when its last consumer leaves (a topic subscription without a name).
        delivering_count: messages held by consumers and leases.
        messages_acknowledged, messages_replaced, messages_killed: since start, by how they left; killed went to the
            dead-letter address or were dropped for want of one.
        newest_sequence: of the last message added.
        ready: on the dispatcher's list.
        returning: released lease groups whose messages are on their way back; nothing is handed out meanwhile, as it
            would be out of order.
        rotation: consumers that may have room, the next one to be asked at ``turn``.
    """

    def __init__(self, queue_id: QueueId, settings: QueueSettings, address: "Address") -> None:
        self.id = queue_id
        self.name = settings.name
        self.settings = settings
        self.address = address
        self.temporary: bool = False
        self.deleted: bool = False
        self.pending: PendingSlots = PendingSlots()
        self.consumers: list[Consumer] = []
        self.rotation: list[Consumer] = []
        self.turn: int = 0
        self.ready: bool = False
        self.returning: int = 0
        self.ring: Ring = Ring(UNLIMITED)
        self.max_consumers: int = UNLIMITED
        self.apply_settings(settings)
        self.delivering_count: int = 0
        self.scheduled_count: int = 0
        self.messages_added: int = 0
        self.messages_acknowledged: int = 0
        self.messages_replaced: int = 0
        self.messages_killed: int = 0
        self.messages_expired: int = 0
        self.newest_sequence: Sequence = Sequence(0)

    @property
    def pending_count(self) -> int:
        """Messages waiting for a consumer."""
        return self.pending.count

    @property
    def message_count(self) -> int:
        """Pending, scheduled and in delivery."""
        return self.pending.count + self.delivering_count + self.scheduled_count

    @property
    def ring_size(self) -> int:
        """The ring in force, -1 for none."""
        return self.ring.size

    def apply_settings(self, settings: QueueSettings) -> None:
        """Puts new settings into force; what is unset comes from the address (RING-3)."""
        self.settings = settings
        defaults = self.address.settings
        self.ring.size = defaults.default_ring_size if settings.ring_size is None else settings.ring_size
        self.max_consumers = (
            defaults.default_max_consumers if settings.max_consumers is None else settings.max_consumers
        )

    def add(self, slot: Slot) -> None:
        """Adds a newly routed message at the tail."""
        self.pending.add_tail(slot)
        self.messages_added += 1
        self.newest_sequence = slot.sequence

    def hand_out(self, slot: Slot, consumer: Consumer) -> None:
        """Moves a pending slot into delivery to ``consumer``."""
        self.pending.remove(slot)
        slot.delivery_count += 1
        self.delivering_count += 1
        consumer.hold(slot)

    def take_back(self, slot: Slot, consumer: Consumer) -> None:
        """Ends the delivery of a slot; the caller decides where it goes."""
        consumer.let_go(slot)
        self.delivering_count -= 1
        if consumer.parked and not consumer.closed:
            self.unpark(consumer)

    def join(self, consumer: Consumer) -> None:
        """Adds a consumer at the end of the rotation."""
        self.consumers.append(consumer)
        self.rotation.append(consumer)

    def leave(self, consumer: Consumer) -> None:
        """Removes a consumer; what it held must be back already."""
        consumer.closed = True
        self.consumers.remove(consumer)
        if not consumer.parked:
            self.rotation.remove(consumer)

    def park(self, index: int) -> None:
        """Takes the full consumer at ``index`` out of the rotation until its credit returns."""
        self.rotation.pop(index).parked = True

    def unpark(self, consumer: Consumer) -> None:
        """Puts a consumer that may have room again back into the rotation, last."""
        consumer.parked = False
        self.rotation.append(consumer)
