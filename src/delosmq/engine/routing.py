"""Putting a message into queues: memory, slots, records, rings. Used by sends and by dead letters."""

from delosmq.engine.dispatch import Dispatcher
from delosmq.engine.events import EngineEvents
from delosmq.engine.identifiers import Identifiers
from delosmq.engine.log import Log
from delosmq.engine.memory import MemoryLimits
from delosmq.engine.queue import Queue
from delosmq.engine.records import REPLACED, encode_referenced, encode_stored
from delosmq.engine.removals import Removals
from delosmq.engine.slots import Slot
from delosmq.model.errors import InvariantError
from delosmq.model.ids import MessageId
from delosmq.model.message import Home, Message
from delosmq.model.settings import UNLIMITED


class Router:
    """Routes accepted messages; whether they are accepted was decided before."""

    def __init__(
        self,
        log: Log,
        ids: Identifiers,
        memory: MemoryLimits,
        *,
        removals: Removals,
        dispatcher: Dispatcher,
        events: EngineEvents,
    ) -> None:
        self._log = log
        self._ids = ids
        self._memory = memory
        self._removals = removals
        self._dispatcher = dispatcher
        self._events = events

    def put(self, message: Message, queues: list[Queue]) -> None:
        """Adds the message to each of ``queues`` (at least one, all of one address), within the decision under way."""
        sequence = self._ids.next()
        message.message_id = MessageId(sequence)
        message.sequence = sequence
        address = queues[0].address
        address.routed_messages += 1
        self._memory.charge(address.account, message)
        # All of them before the first add: a ring may push the message itself out again while others still get it.
        message.references = len(queues)
        durable = message.durable
        if durable:
            self._record(message, queues)
        for queue in queues:
            pending = queue.pending
            queue.add(Slot(message, durable and queue.settings.durable))
            ring = queue.ring
            # What `Ring.pushed_out` and `Dispatcher.mark` ask first, asked here: nearly always there is nothing to do.
            if ring.size != UNLIMITED:
                pushed_out = ring.pushed_out(pending)
                if pushed_out is not None:
                    self.replace(queue, pushed_out)
            if not queue.ready:
                self._dispatcher.mark(queue)

    def replace(self, queue: Queue, slot: Slot) -> None:
        """A ring pushes a pending message out: an acknowledgement with a reason of its own, never a dead letter."""
        queue.pending.remove(slot)
        self.replaced(queue, slot)

    def replaced(self, queue: Queue, slot: Slot) -> None:
        """The same for a slot that is in no list (a returning message that no longer fits)."""
        queue.messages_replaced += 1
        self._removals.remove_one(queue, slot, REPLACED)
        self._events.message_replaced(queue.name, slot)

    def _record(self, message: Message, queues: list[Queue]) -> None:
        durable = [int(queue.id) for queue in queues if queue.settings.durable]
        if durable:
            self.store(message, durable)

    def store_reference(self, message: Message, queue_id: int) -> None:
        """Records that one more queue keeps a message which is stored already."""
        home = message.home
        if home is None:
            raise InvariantError("DMQ2002", f"message {message.message_id} is referenced but not stored")
        message.recorded_references += 1
        self._log.record(encode_referenced(queue_id, message.sequence))
        self._log.batch().targets.append(home)

    def store(self, message: Message, queue_ids: list[int]) -> None:
        """Records the message for these queues; its home is known once the batch is closed."""
        batch = self._log.batch()
        home = Home()
        message.home = home
        message.recorded_references = len(queue_ids)
        message.position = batch.position
        batch.stored.append((len(batch.metas), home))
        batch.metas.append(encode_stored(message, queue_ids))
        batch.bodies.append(message.head + message.body)
