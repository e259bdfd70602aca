"""Enqueuing routed messages: memory, slots, records, rings."""

from typing import Final

from delosmq.engine.addresses.divert import Divert
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.dispatch.schedule import Schedule
from delosmq.engine.log.log import Log, QueueRecords
from delosmq.engine.log.origin import OriginalPlace
from delosmq.engine.log.records import PURGED
from delosmq.engine.queues.eviction import Evictions
from delosmq.engine.queues.last_value import LastValueRule
from delosmq.engine.queues.memory_limits import MemoryLimits
from delosmq.engine.queues.queue import Queue
from delosmq.engine.queues.queue_address import QueueAddress
from delosmq.engine.queues.removal import Removals
from delosmq.engine.routing.expiry_times import ExpiryTimes
from delosmq.model.ids import MessageId
from delosmq.model.message import Message
from delosmq.model.settings import UNLIMITED

NO_QUEUE_IDS: Final[list[int]] = []


class RoutedMessage:
    """A message, the address it was sent to, and the queues that will hold it. A send enqueues it, a transaction keeps
    it until the commit.

    Attributes:
        original, divert: what it is a copy of, and made by which divert; None for others.
        original_place: of that in its transaction, when it is in there.
    """

    def __init__(self, message: Message, address: QueueAddress, queues: list[Queue]) -> None:
        self.message = message
        self.address = address
        self.queues = queues
        self.original: Message | None = None
        self.divert: Divert | None = None
        self.original_place: OriginalPlace | None = None

    def stamp_original(self, log: Log) -> None:
        """Says in a copy which message it is one of."""
        original = self.original
        if original is not None and self.divert is not None:
            if original.message_id == 0:
                # It went nowhere itself.
                original.message_id = MessageId(log.next_id())
            self.divert.stamp_id(self.message, original)

    def tell_divert(self, events: EngineEvents) -> None:
        """A copy is in its queues: its divert counts and tells it."""
        if self.original is not None and self.divert is not None:
            self.divert.tell(events, self.original, self.message)


class Enqueuer:
    """Adds routed messages to their queues; whether they are accepted was decided before."""

    def __init__(
        self,
        log: Log,
        memory: MemoryLimits,
        *,
        removals: Removals,
        evictions: Evictions,
        schedule: Schedule,
        last_value_rule: LastValueRule,
        expiry_times: ExpiryTimes,
        events: EngineEvents,
    ) -> None:
        self._log = log
        self._memory = memory
        self._removals = removals
        self._evictions = evictions
        self._schedule = schedule
        self._last_value_rule = last_value_rule
        self._expiry_times = expiry_times
        self._events = events

    def enqueue_routed(self, routed: list[RoutedMessage]) -> None:
        """Adds messages, and the copies that diverts made of them, to their queues. Originals stand before copies."""
        for item in routed:
            item.stamp_original(self._log)
            self.enqueue(item.message, item.queues, item.address)
            item.tell_divert(self._events)

    def enqueue(self, message: Message, queues: list[Queue], address: QueueAddress) -> None:
        """Adds the message to each of ``queues`` (at least one), within the decision under way.

        Args:
            address: what it was sent to.
        """
        address.routed_messages += 1
        if message.account is None:  # what a transaction sends was charged with its send
            self._memory.charge(address.account, message)
        # All of them before the first add: a ring may push the message itself out again while others still get it.
        message.references = len(queues)
        durable = message.durable
        due_at_ms = message.due_at_ms
        if due_at_ms and self._schedule.is_due(due_at_ms):
            message.due_at_ms = due_at_ms = 0
        if message.expires_at_ms:
            self._expiry_times.note(message.expires_at_ms)
        alone: QueueRecords | None = None
        queue_ids = NO_QUEUE_IDS
        if durable and len(queues) > 1:
            queue_ids = [int(queue.id) for queue in queues if queue.settings.durable]
        elif durable and queues[0].settings.durable:
            alone = queues[0].records
        self._log.append(message, alone, queue_ids)
        for queue in queues:
            slot = queue.add(message, durable and queue.settings.durable)
            if due_at_ms:
                self._schedule.add_pending(queue, slot, due_at_ms, delayed=message.delay_ms > 0)
                self._schedule.arm()
                self._events.message_scheduled(queue.name, slot)
                continue
            if queue.last_values is not None:
                self._last_value_rule.added(queue, slot)
            ring = queue.ring
            # What `Ring.pushed_out` asks first, asked here: nearly always there is nothing to do.
            if ring.size != UNLIMITED:
                pushed_out = ring.pushed_out(queue.pending)
                if pushed_out is not None:
                    self._evictions.replace(queue, pushed_out)
        if address.tells_routed:
            self._events.message_routed(message, [queue.name for queue in queues])

    def enqueue_alone(self, message: Message, queues: list[Queue], address: QueueAddress) -> None:
        """`enqueue` as a decision of its own."""
        self.enqueue(message, queues, address)
        self._log.close()

    def link(self, message: Message, queues: list[Queue], address: QueueAddress) -> None:
        """`enqueue` for a message of a large commit: it has its sequence and is stored, and later ones may be there
        already, so it goes to its place by order.
        """
        address.routed_messages += 1
        message.references = len(queues)
        if message.due_at_ms and self._schedule.is_due(message.due_at_ms):
            message.due_at_ms = 0
        if message.expires_at_ms:
            self._expiry_times.note(message.expires_at_ms)
        for queue in queues:
            recorded = message.home is not None and queue.settings.durable
            if queue.deleted:
                self._removals.remove_one(queue, Slot(message, recorded), PURGED)
                continue
            slot = queue.link(message, recorded)
            if message.due_at_ms:
                self._schedule.add_pending(queue, slot, message.due_at_ms, delayed=message.delay_ms > 0)
                self._schedule.arm()
                self._events.message_scheduled(queue.name, slot)
                continue
            # Newer ones of its key may be there already.
            if queue.last_values is not None and not self._last_value_rule.returned(queue, slot):
                continue
            pushed_out = queue.ring.pushed_out(queue.pending)
            if pushed_out is not None:
                self._evictions.replace(queue, pushed_out)
        if address.tells_routed:
            self._events.message_routed(message, [queue.name for queue in queues])
