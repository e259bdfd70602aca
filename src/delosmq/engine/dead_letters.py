"""Dead letters: where a message goes that used up its delivery attempts."""

from typing import Final

from delosmq.engine.address import Address
from delosmq.engine.events import EngineEvents
from delosmq.engine.queue import Queue
from delosmq.engine.records import KILLED
from delosmq.engine.removals import Removals
from delosmq.engine.routing import Router
from delosmq.engine.slots import Slot
from delosmq.model.ids import WallMs
from delosmq.model.message import ANY_ROUTING, Message
from delosmq.model.ports import Clock
from delosmq.model.settings import UNLIMITED

ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
ORIGINAL_QUEUE: Final = "_AMQ_ORIG_QUEUE"
ORIGINAL_MESSAGE_ID: Final = "_AMQ_ORIG_MESSAGE_ID"


class DeadLetters:
    """Copies to the dead-letter address and ends the original, both in the decision under way."""

    def __init__(
        self,
        addresses: dict[str, Address],
        router: Router,
        removals: Removals,
        *,
        clock: Clock,
        events: EngineEvents,
    ) -> None:
        self._addresses = addresses
        self._router = router
        self._removals = removals
        self._clock = clock
        self._events = events

    @staticmethod
    def exhausted(queue: Queue, slot: Slot) -> bool:
        """Whether the attempts of a returning slot are used up.

        Never in the dead-letter address itself: what is there would only be copied to where it is, again and again.
        """
        settings = queue.address.settings
        limit = settings.max_delivery_attempts
        return (
            limit != UNLIMITED and slot.delivery_count >= limit and settings.dead_letter_address != queue.address.name
        )

    def bury(self, queue: Queue, slot: Slot) -> None:
        """Moves a slot that is in no list to the dead-letter address; drops it when there is no queue to take it."""
        name = queue.address.settings.dead_letter_address
        target = self._addresses.get(name) if name else None
        queues = target.route(ANY_ROUTING) if target is not None else []
        if queues:
            self._router.put(self._copy(queue, slot.message, name), queues)
        queue.messages_killed += 1
        self._removals.remove_one(queue, slot, KILLED)
        self._events.message_dead_lettered(queue.name, slot, name if queues else "")

    def _copy(self, queue: Queue, message: Message, address: str) -> Message:
        annotations = dict(message.annotations) if message.annotations is not None else {}
        # A message that dies again keeps the marks of where it came from first, as in Artemis.
        annotations.setdefault(ORIGINAL_ADDRESS, message.address)
        annotations.setdefault(ORIGINAL_QUEUE, queue.name)
        annotations.setdefault(ORIGINAL_MESSAGE_ID, str(message.message_id))
        return Message(
            address,
            message.protocol,
            message.head,
            message.body,
            body_kind=message.body_kind,
            priority=message.priority,
            durable=message.durable,
            timestamp_ms=WallMs(message.timestamp_ms or self._clock.wall_ms()),
            user=message.user,
            annotations=annotations,
        )
