"""Moving messages to dead-letter and expiry addresses: copies, stamped with where they come from."""

from typing import Final

from delosmq.engine.core import Core
from delosmq.engine.queue import Queue
from delosmq.engine.slots import Slot
from delosmq.engine.stamps import ORIGINAL_ADDRESS, ORIGINAL_MESSAGE_ID, ORIGINAL_QUEUE
from delosmq.model.errors import BrokerError
from delosmq.model.ids import WallMs
from delosmq.model.message import ANYCAST, Message
from delosmq.model.settings import QueueSettings

ORIGINAL_EXPIRATION: Final = "originalExpiration"
FAILURE_CAUSE: Final = "dlqDeliveryFailureCause"
ORIGINAL_ROUTING_TYPE: Final = "_AMQ_ORIG_ROUTING_TYPE"
ROUTING_TYPE_MULTICAST: Final = "0"
ROUTING_TYPE_ANYCAST: Final = "1"
"""As Artemis numbers them."""

FITS: Final = 0
WAITS: Final = 1
NO_ROOM: Final = 2
"""What `Copies.room_for` answers: there is room, there is when the store has another file ready, the disk is full."""
COPY_BYTES: Final = 8 * 1024
"""What the record of a copy holds beside the message, at most."""


class Copies:
    """Makes copies, finds the queues for them, and makes queues where the settings say so."""

    def __init__(self, core: Core) -> None:
        self._log = core.log
        self._largest_bytes: int = core.largest_message_bytes
        self._bindings = core.bindings
        self._clock = core.clock
        self._routes = core.routes

    def room_for(self, slot: Slot, target: str, *, kept_safe: bool = False) -> int:
        """Whether the store has room for a copy at another address: FITS, WAITS or NO_ROOM. To be asked before anything
        has changed.

        Args:
            target: the address; "" when the message only ends, which takes no room.
            kept_safe: the copy is durable whatever the message is.
        """
        if not self._log.storage_low or not target or not (kept_safe or slot.recorded or slot.message.durable):
            return FITS
        if self._log.storage_full:
            return NO_ROOM
        address = self._bindings.addresses.get(target)
        one_copy = address is None or address.plain
        size = COPY_BYTES + (slot.message.encoded_size_bytes if one_copy else self._largest_bytes)
        return WAITS if self._log.waits(size) else FITS

    def deliver(self, message: Message) -> bool:
        """Puts a message into the queues of its address that take it, whatever limits the address has. False when
        there is none."""
        address = self._bindings.addresses.get(message.address)
        if address is None:
            return False
        return self._routes.deliver(message, address)

    def make_resources(self, target: str, origin: str, *, prefix: str, suffix: str) -> None:
        """Sees to it that an address has the queue for what comes from one origin."""
        name = f"{prefix}{origin}{suffix}"
        if origin == target or name in self._bindings.queues:
            return
        quoted = origin.replace("'", "''")
        settings = QueueSettings(
            name,
            target,
            self._bindings.settings_of(target).default_queue_routing_type,
            durable=True,
            auto_created=True,
            filter=f"{ORIGINAL_ADDRESS} = '{quoted}'",
        )
        try:
            self._bindings.create_queue(settings)
        except BrokerError:
            # As many queues as the broker can keep, or a name that is none: the message goes where it can without it.
            return

    def of(self, queue: Queue, message: Message, address: str) -> Message:
        """A copy for another address, without expiry; not delivered yet."""
        annotations = dict(message.annotations) if message.annotations is not None else {}
        annotations[ORIGINAL_ADDRESS] = message.address
        annotations[ORIGINAL_QUEUE] = queue.name
        annotations[ORIGINAL_MESSAGE_ID] = str(message.message_id)
        annotations[ORIGINAL_ROUTING_TYPE] = (
            ROUTING_TYPE_ANYCAST if queue.settings.routing_type == ANYCAST else ROUTING_TYPE_MULTICAST
        )
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
            group_id=message.group_id,
            group_sequence=message.group_sequence,
        )


def as_classic(copy: Message, original: Message, cause: str) -> Message:
    """What Classic's broker makes of a dead letter: it is kept safe, and says why it is there."""
    copy.durable = True
    annotations = copy.annotations
    assert annotations is not None  # a copy is stamped
    annotations[ORIGINAL_EXPIRATION] = str(original.expires_at_ms)
    annotations[FAILURE_CAUSE] = cause
    return copy
