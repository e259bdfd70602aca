"""A queue: pending slots, consumers in rotation, counters. Knows nothing of logs, memory limits or other queues."""

from abc import ABC, abstractmethod
from collections import deque
from typing import Final

from delosmq.engine.base.jobs import Job
from delosmq.engine.base.slots import PendingSlots, Slot, SlotTotals
from delosmq.engine.log.log import QueueRecords
from delosmq.engine.queues.counters import QueueCounters
from delosmq.engine.queues.in_delivery import Holder
from delosmq.engine.queues.last_value_index import LastValues
from delosmq.engine.queues.queue_address import QueueAddress, Usage
from delosmq.engine.queues.ring import Ring
from delosmq.engine.queues.scheduled_slots import ScheduledSlots
from delosmq.model.declared.queue import ResolvedSettings, resolve
from delosmq.model.ids import QueueId, Sequence
from delosmq.model.message import DEFAULT_PRIORITY, Message
from delosmq.model.names import INTERNAL_PREFIX
from delosmq.model.settings import UNLIMITED, AddressSettings, DispatchProfile, QueueSettings, RingEviction
from delosmq.selectors.selector import Selector, parse_selector

BEFORE_ALL: Final = -(1 << 60)
"""Orders of redeliveries that stand before all others begin here, far below those of `PendingSlots.put_first`."""

PAUSED: Final = 1
DELETED: Final = 2
SUSPENSION: Final = 4
"""Why a queue delivers nothing (`Queue.suspended`)."""


# Why no message may enter a queue, with the remedy.
DISABLED: Final = "it is disabled; enable it with `delosmq queue enable {queue}`"
WITHOUT_CONSUMERS: Final = (
    "it takes messages only while it has a consumer (purge-on-no-consumers); start a consumer, or switch that off with"
    " `delosmq queue update {queue} --set purge-on-no-consumers=no`"
)


class QueueRules(ABC):
    """What a queue asks of the rules by which its messages are dispatched, when not simply in turn."""

    @abstractmethod
    def rejoin(self, holder: Holder) -> None:
        """A consumer that was full may have room again."""

    @abstractmethod
    def settings_changed(self) -> None:
        """Other settings of the queue are in force."""

    @abstractmethod
    def has_work(self) -> bool:
        """Whether any consumer may have something to do."""


class QueueTraits:
    """What follows from the settings of a queue and of its address, for the ways of its messages.

    Attributes:
        prioritized: the priority of a message decides its place (``prioritized-messages``).
        advisory_for_consumed: an advisory tells what is acknowledged in it.
        recorded: what becomes of its messages is told, for `delosmq.events`.
        tells_acknowledged: what is acknowledged in it is told, for one of these.
        record_before_delivery: each delivery is recorded before the message leaves.
        conditional: not every message that reaches its address enters it.
        needs_rules: its messages are never simply delivered in turn.
    """

    def __init__(
        self, own: QueueSettings, in_force: ResolvedSettings, address: AddressSettings, *, recorded: bool
    ) -> None:
        self.prioritized: bool = address.prioritized_messages and not own.name.startswith(INTERNAL_PREFIX)
        self.advisory_for_consumed: bool = address.advisory_for_consumed
        self.recorded: bool = recorded and not own.name.startswith(INTERNAL_PREFIX)
        self.tells_acknowledged: bool = self.recorded or self.advisory_for_consumed
        self.record_before_delivery: bool = address.persist_delivery_count_before_delivery
        self.conditional: bool = own.filter != "" or no_entry(own, in_force, is_used=False) != ""
        self.needs_rules: bool = (
            in_force.exclusive
            or in_force.non_destructive
            or in_force.consumers_before_dispatch > 0
            or self.record_before_delivery
            or address.all_consumers_exclusive_by_default
            or address.strict_order_dispatch
            or address.time_before_dispatch_starts > 0
        )


class RedeliveredOrders:
    """Orders of redeliveries that stand before all other messages of a queue."""

    def __init__(self) -> None:
        self._last: int = BEFORE_ALL
        self._first: int = BEFORE_ALL + 1

    def before_all(self, count: int) -> int:
        """The last of ``count`` orders before those of all redeliveries so far."""
        self._first -= count
        return self._first + count - 1

    def behind_others(self, count: int) -> int:
        """The last of ``count`` orders behind those of all redeliveries so far."""
        self._last += count
        return self._last


def no_entry(own: QueueSettings, in_force: ResolvedSettings, *, is_used: bool) -> str:
    """See `Queue.no_entry`. `QueueTraits` asks for a queue that is not in use: every reason holds of that."""
    if not own.enabled:
        return DISABLED
    return WITHOUT_CONSUMERS if in_force.purge_on_no_consumers and not is_used else ""


class Queue:
    """One queue.

    Attributes:
        temporary: deleted when its last consumer leaves (a topic subscription without a name).
        in_force: each setting: the queue's own, or the default of its address; traits: what follows from these. Both
            are replaced as a whole on a change.
        last_values: which of its messages is the newest of its key; None when it is no last-value queue.
        filter: the selector that lets messages in; None lets all in. Parsed when it is set, so that no send has to.
        filter_characters: how long it is said to be in the share of its maker.
        owner: of a temporary destination: its connection, which alone consumes from it; "" for all others.
        unshared: the one consumer it has wants no other beside it (a subscription with a name).
        internal: made by the broker for itself; clients and operators don't see it.
        declared: broker.xml names it.
        made_by: the user of the client that made it, or made the queue for which the broker did; "" for none.
        state_bytes: what it takes in a state block.
        pending_commits: open transactions that will add to it; they keep it from being deleted, as consumers do.
        scheduled: what is not due yet.
        delivering: messages held by consumers and leases.
        expiring_count: messages that have an expiry, wherever they stand.
        next_expiry_ms: no pending message expires earlier (wall clock); a hint that may be too early.
        newest_sequence: of the last message added.
        ready: on the list of queues that may have something to deliver, which all queues of a broker share.
        suspended: why nothing is delivered, 0 while it is: `PAUSED`, `DELETED`, and `SUSPENSION` for each that puts
            messages back, or empties or fills the queue: what was delivered meanwhile would be out of order.
        purging: how many of the last are purges; stalled: the ones that wait for the others.
        barrier_sequence: while a large commit is linked in, the last of its messages that is there: what has a higher
            sequence waits, or it would be out of order. 0 for none.
        consumer_count: its consumers but leases, which take by themselves.
        rotation: consumers that may have room, the next one to be asked first; empty when there are rules.
        needs_rules: messages are not simply delivered in turn: ``rules`` decide, made when it is first needed.
        lease_waits: a call waits for messages to lease, and nothing has changed since it found none.
    """

    def __init__(
        self, queue_id: QueueId, settings: QueueSettings, address: QueueAddress, ready_queues: "deque[Queue]"
    ) -> None:
        self.id = queue_id
        self.name = settings.name
        self.settings = settings
        self.address = address
        self.internal: bool = settings.name.startswith(INTERNAL_PREFIX)
        self.temporary: bool = False
        self.pending: PendingSlots = PendingSlots()
        self.scheduled: ScheduledSlots = ScheduledSlots()
        self.holders: list[Holder] = []
        self.consumer_count: int = 0
        self.rotation: deque[Holder] = deque()
        self.needs_rules: bool = False
        self.lease_waits: bool = False
        self.rules: QueueRules | None = None
        self.ready: bool = False
        self._ready_queues = ready_queues
        self.suspended: int = 0
        self.purging: int = 0
        self.stalled: list[Job] = []
        self.barrier_sequence: int = 0
        self.ring: Ring = Ring(UNLIMITED)
        self.in_force: ResolvedSettings
        self.traits: QueueTraits
        self.last_values: LastValues | None = None
        self.owner: str = ""
        self.unshared: bool = False
        self.declared: bool = False
        self.filter: Selector | None = None
        self.made_by, self.state_bytes, self.filter_characters = "", 0, 0
        self.pending_commits: int = 0
        self.usage: Usage = Usage()
        self.records: QueueRecords = QueueRecords(queue_id)
        self._redelivered: RedeliveredOrders = RedeliveredOrders()
        self.apply_settings(settings)
        self.delivering: SlotTotals = SlotTotals()
        self.expiring_count: int = 0
        self.next_expiry_ms: int = 0
        self.counters: QueueCounters = QueueCounters()
        self.newest_sequence: Sequence = Sequence(0)

    @property
    def paused(self) -> bool:
        """An operator wants nothing to be delivered."""
        return self.suspended & PAUSED != 0

    @property
    def deleted(self) -> bool:
        """It is gone; what it holds goes in slices."""
        return self.suspended & DELETED != 0

    @property
    def suspensions(self) -> int:
        """How many jobs suspend it until they are done."""
        return self.suspended // SUSPENSION

    @property
    def operators(self) -> bool:
        """Made by broker.xml or management, and no client's."""
        return self.declared or self.settings.user != ""

    @property
    def message_count(self) -> int:
        """Pending, scheduled and in delivery."""
        return self.pending.count + self.delivering.count + self.scheduled.count

    @property
    def total(self) -> SlotTotals:
        """All messages, wherever they stand."""
        total = SlotTotals()
        for place in (self.pending, self.delivering, self.scheduled):
            total.count += place.count
            total.bytes += place.bytes
            total.durable_count += place.durable_count
            total.durable_bytes += place.durable_bytes
        return total

    @property
    def ring_size(self) -> int:
        """The ring in force, -1 for none."""
        return self.ring.size

    def no_entry(self) -> str:
        """Why no message may enter it now, whatever it is, and the remedy, with ``{queue}`` for its name; "" when
        messages may.

        Source: Artemis, QueueImpl.route, which sends and retroactive addresses ask alike.
        """
        return no_entry(self.settings, self.in_force, is_used=len(self.holders) > 0)

    def apply_settings(self, settings: QueueSettings) -> None:
        """Puts new settings into force; what is unset comes from the address (RING-3)."""
        self.settings = settings
        self.filter = parse_selector(settings.filter) if settings.filter else None
        in_force = self.in_force = resolve(settings, self.address.settings)
        address = self.address
        traits = self.traits = QueueTraits(settings, in_force, address.settings, recorded=address.is_recorded)
        self.ring.resize(in_force.ring_size)
        self.ring.lowest_first = self.address.settings.ring_eviction is RingEviction.LOWEST_PRIORITY
        if in_force.last_value and self.last_values is None:
            self.last_values = LastValues()
        if settings.paused != self.paused:
            self.suspended ^= PAUSED
        rules = self.rules
        self.needs_rules = rules is not None or traits.needs_rules
        if rules is not None:
            rules.settings_changed()

    def ask_dispatch(self) -> None:
        """Has the dispatcher come by if there may be something to deliver; cheap, for every change."""
        if self.ready or self.suspended:
            return
        rules = self.rules
        if self.lease_waits or ((self.rotation and self.pending.count) if rules is None else rules.has_work()):
            self.ready = True
            self._ready_queues.append(self)

    def add(self, message: Message, recorded: bool) -> Slot:
        """Adds a newly routed message at the tail."""
        slot = self.pending.add(message, recorded, message.priority if self.traits.prioritized else DEFAULT_PRIORITY)
        self.counters.added += 1
        self.newest_sequence = message.sequence
        if message.expires_at_ms:
            self._note_expiry(message.expires_at_ms)
        if not self.ready:
            self.ask_dispatch()
        return slot

    def restore(self, slot: Slot) -> None:
        """Adds what an earlier life of the broker held; each sequence is higher than the one before."""
        if not self.traits.prioritized:
            slot.level = DEFAULT_PRIORITY
        self.pending.put_back(slot)
        self.newest_sequence = slot.sequence
        if slot.message.expires_at_ms:
            self._note_expiry(slot.message.expires_at_ms)

    def _note_expiry(self, expires_at_ms: int) -> None:
        if self.expiring_count == 0 or expires_at_ms < self.next_expiry_ms:
            self.next_expiry_ms = expires_at_ms
        self.expiring_count += 1

    def unschedule(self, slot: Slot) -> None:
        """Makes a slot pending, at its place, that may be scheduled."""
        if self.scheduled.holds(slot):
            self.scheduled.remove(slot)
            self.pending.put_back(slot)

    def now_recorded(self, slot: Slot) -> None:
        """The store holds a pending slot from now on that it did not hold before."""
        self.pending.count_out(slot)
        slot.recorded = True
        self.pending.count_in(slot)

    def remove(self, slot: Slot) -> None:
        """Ends the reference of a slot that is in no list."""
        if slot.message.expires_at_ms:
            self.expiring_count -= 1
        if self.last_values is not None:
            self.last_values.remove(slot)

    def link(self, message: Message, recorded: bool) -> Slot:
        """Adds a message of a large commit at its place: later ones may be there already."""
        newest = self.newest_sequence
        slot = self.add(message, recorded)
        before = slot.previous
        if before is not None and before.order > slot.order:
            self.pending.remove(slot)
            self.pending.put_back(slot)
        if newest > self.newest_sequence:
            self.newest_sequence = newest
        return slot

    def deliver(self, slot: Slot, holder: Holder) -> None:
        """Moves a pending slot into delivery to ``holder``."""
        self.pending.remove(slot)
        slot.delivery_count += 1
        self.delivering.count_in(slot)
        holder.deliver(slot)

    def settle(self, slot: Slot, holder: Holder) -> None:
        """Ends the delivery of a slot; the caller decides where it goes."""
        holder.settle(slot)
        self.delivering.count_out(slot)
        if holder.full and not holder.closed:
            self.rejoin(holder)

    def join(self, consumer: Holder) -> None:
        """Adds a consumer, at the end of the rotation."""
        self.consumer_count += 1
        if self.rules is None:
            self.rotation.append(consumer)
        self.holders.append(consumer)

    def leave(self, consumer: Holder) -> None:
        """Removes a consumer; what it held comes back next."""
        consumer.closed = True
        if self.ring.counts_waiting:  # it holds on to the consumer
            self.ring.close(self.pending)
            self.ring = Ring(UNLIMITED)
        self.consumer_count -= 1
        self.holders.remove(consumer)
        if self.rules is None and not consumer.full:
            self.rotation.remove(consumer)

    def drop_rules(self) -> None:
        """Its last consumer has left: the next one finds the queue as it was made."""
        self.rules = None
        self.needs_rules = self.traits.needs_rules

    def rejoin(self, consumer: Holder) -> None:
        """Lets a consumer that may have room again take part, last."""
        rules = self.rules
        if rules is not None:
            rules.rejoin(consumer)
        else:
            consumer.full = False
            self.rotation.append(consumer)

    # -- returns -------------------------------------------------------------------------------------------------

    def place_of_returns(self, holder: Holder, count: int) -> int:
        """Where ``count`` messages go that a consumer gives back: the order of the last delivered of them, each earlier
        one has the order before; 0 leaves each its own place.

        With Classic's habits redeliveries stand before all others, those of this consumer behind those of others; when
        no consumer is left and the order is strict, before them. Leases return to their places.

        Source: activemq-broker, QueueDispatchPendingList.addForRedelivery.
        """
        settings = self.address.settings
        if settings.dispatch_profile != DispatchProfile.CLASSIC or not holder.is_consumer:
            return 0
        if settings.strict_order_dispatch and self.consumer_count == 0:
            return self._redelivered.before_all(count)
        return self._redelivered.behind_others(count)
