"""Moving messages to dead-letter and expiry addresses: copies, stamped with where they come from."""

from typing import Final

from delosmq.engine.addresses.address import address_of
from delosmq.engine.base.slots import Slot
from delosmq.engine.log.batch_limits import FITS, NO_ROOM, WAITS
from delosmq.engine.log.origin import ORIGINAL_ADDRESS, ORIGINAL_MESSAGE_ID, ORIGINAL_QUEUE, annotations_of, copy_for
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.enqueue import RoutedMessage
from delosmq.engine.routing.parts import EngineParts, record_room_bytes
from delosmq.model.errors import BrokerError
from delosmq.model.message import ANYCAST, MULTICAST, Message
from delosmq.model.settings import AddressSettings, DispatchProfile, QueueSettings

ORIGINAL_EXPIRATION: Final = "originalExpiration"
FAILURE_CAUSE: Final = "dlqDeliveryFailureCause"
ORIGINAL_DELIVERY_MODE: Final = "originalDeliveryMode"
ORIGINAL_ROUTING_TYPE: Final = "_AMQ_ORIG_ROUTING_TYPE"
ROUTING_TYPE_MULTICAST: Final = "0"
ROUTING_TYPE_ANYCAST: Final = "1"
"""As Artemis numbers them."""

COPY_BYTES: Final = 8 * 1024
"""What the record of a copy holds beside the message, at most."""
BEFORE_BYTES: Final = 16 * 1024
"""What else may be recorded between the question whether a copy has room and the copy, at most."""
IDS_REMEMBERED: Final = 16_384
"""How far back ``dead-letter-duplicates`` false looks for the same message: about 1.5 MB. Source: ActiveMQMessageAudit
looks back 2,048 messages of each of 64 producers."""


class MovedCopies:
    """Makes copies, finds the queues for them, and makes queues where the settings say so."""

    def __init__(self, parts: EngineParts) -> None:
        self._log = parts.log
        self._ordinary_bytes: int = parts.ordinary_message_bytes
        self._record_room_bytes: int = record_room_bytes(parts.settings.journal)
        self._bindings = parts.bindings
        self._clock = parts.clock
        self._routes = parts.routes
        self._enqueuer = parts.enqueuer
        # Of messages, the oldest first: a dict because it keeps an order.
        self._kept_ids: dict[int, None] = {}

    def is_first(self, settings: AddressSettings, message: Message) -> bool:
        """Whether a message may become a dead letter, or move to the expiry address: where ``dead-letter-duplicates``
        is false it does once, however many subscriptions it fails or expires in.

        Args:
            settings: of the address it was in.
        """
        return _keeps_all(settings) or message.message_id not in self._kept_ids

    def remember(self, settings: AddressSettings, message: Message) -> None:
        """A copy was kept, wherever: see `is_first`. Classic, too, has one audit for what failed and what expired."""
        if _keeps_all(settings):
            return
        ids = self._kept_ids
        ids[message.message_id] = None
        if len(ids) > IDS_REMEMBERED:
            del ids[next(iter(ids))]

    def room_for(self, slot: Slot, target: str, *, kept_safe: bool = False) -> int:
        """Whether the store has room for a copy at another address: FITS, WAITS or NO_ROOM. To be asked before anything
        has changed.

        Args:
            target: the address; "" when the message only ends, which takes no room.
            kept_safe: the copy is durable whatever the message is.
        """
        if not target or not (kept_safe or slot.recorded or slot.message.durable):
            return FITS
        if self._log.storage_full:
            return NO_ROOM
        if slot.message.encoded_size_bytes > self._ordinary_bytes:
            return self._log.ask_large(slot.message.encoded_size_bytes + self._record_room_bytes + BEFORE_BYTES)
        if not self._log.storage_low:
            return FITS
        address = self._bindings.addresses.get(target)
        one_copy = address is None or address.plain
        size = COPY_BYTES + (slot.message.encoded_size_bytes if one_copy else self._ordinary_bytes)
        return WAITS if self._log.waits(size) else FITS

    def deliver(self, message: Message, taker: Queue | None = None, *, always: bool = False) -> bool:
        """Routes and enqueues a message, as `route`. False when no queue takes it."""
        routed = self.route(message, taker, always=always)
        self._enqueuer.enqueue_routed(routed)
        return len(routed) > 0

    def route(self, message: Message, taker: Queue | None = None, *, always: bool = False) -> list[RoutedMessage]:
        """Finds the queues of its address that take a message, whatever limits the address has. An address without
        queues is given one of its name where its settings make queues automatically. Empty when no queue takes the
        message.

        Args:
            taker: the queue that takes it instead, on an address of its own name.
            always: the queue is made whatever the settings of the address say, as Classic does it.
        """
        if taker is not None:
            message.address = taker.address.name
            return [RoutedMessage(message, taker.address, [taker])]
        address = self._bindings.addresses.get(message.address)
        if address is not None:
            routed = self._routes.route_moved(message, address)
            if routed:
                return routed
        if not self._makes_home(message.address, always=always):
            return []
        name = message.address
        kind = ANYCAST if address is None or ANYCAST in address.routing_types else MULTICAST
        try:
            home = self._bindings.create_queue(QueueSettings(name, name, kind, durable=True, auto_created=True))
        except BrokerError:
            return []  # as many queues as the broker can keep, or no room on the disk
        return self._routes.route_moved(message, address_of(home))

    def may_deliver(self, origin: AddressSettings, name: str) -> bool:
        """Whether an address has queues, or would be given one.

        Args:
            origin: settings of the address that messages come from.
        """
        address = self._bindings.addresses.get(name)
        if address is not None and (address.queues() or address.links or address.diverts):
            return True
        return self._makes_home(name, always=origin.dispatch_profile is DispatchProfile.CLASSIC)

    def _makes_home(self, name: str, *, always: bool) -> bool:
        """Whether an address would be given a queue of its name: it has none, and the name is free."""
        address = self._bindings.addresses.get(name)
        if name in self._bindings.queues or (address is not None and (address.queues() or address.owner)):
            return False
        settings = self._bindings.settings_of(name)
        return always or (settings.auto_create_queues and (address is not None or settings.auto_create_addresses))

    def make_resources(self, target: str, origin: str, sender: str, *, prefix: str, suffix: str) -> Queue | None:
        """Sees to it that an address has the queue for what comes from one origin. It counts to the maker of that
        address; when it is gone, to the sender of the message, and not to readers of such messages by a wildcard.

        A queue of that name on an address of that name, made for the first that looked for it, takes what comes
        instead: it is given back, for `deliver`. One on any other address gets nothing, as those who read that address
        need not be allowed to read what comes from the origin.
        """
        name = f"{prefix}{origin}{suffix}"
        if origin == target:
            return None
        known = self._bindings.queues.get(name)
        if known is not None:
            of_its_own = known.address.name == name and name not in (target, origin)
            return known if of_its_own and _keeps(known) else None
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
            source = self._bindings.addresses.get(origin)
            maker = sender if source is None else source.made_by
            self._bindings.create_queue(settings, user=maker, by_broker=True)
        except BrokerError:
            # As many queues as the broker can keep, or as its maker may, or a name that is none: the message goes
            # where it can without it.
            return None
        return None

    def of(self, queue: Queue, message: Message, address: str) -> Message:
        """A copy for another address, without the expiry it had; not delivered yet."""
        annotations = annotations_of(message)
        annotations[ORIGINAL_ADDRESS] = message.address
        annotations[ORIGINAL_QUEUE] = queue.name
        annotations[ORIGINAL_MESSAGE_ID] = str(message.message_id)
        annotations[ORIGINAL_ROUTING_TYPE] = (
            ROUTING_TYPE_ANYCAST if queue.settings.routing_type == ANYCAST else ROUTING_TYPE_MULTICAST
        )
        copy = copy_for(message, address, message.head, annotations)
        life_ms = queue.address.settings.dead_letter_expiry_delay
        copy.expires_at_ms = 0 if life_ms <= 0 else self._clock.wall_ms() + life_ms
        if not copy.timestamp_ms:
            copy.timestamp_ms = self._clock.wall_ms()
        copy.connection_id = ""
        return copy


def _keeps(queue: Queue) -> bool:
    """Whether what is put into a queue outlasts who uses it."""
    settings = queue.settings
    return settings.durable and not (queue.no_entry() or queue.temporary or queue.internal)


def _keeps_all(settings: AddressSettings) -> bool:
    duplicates = settings.dead_letter_duplicates
    return settings.dispatch_profile is not DispatchProfile.CLASSIC if duplicates is None else duplicates


def as_classic(copy: Message, original: Message, cause: str) -> Message:
    """What Classic's broker makes of a dead letter: it is kept safe, and says why it is there."""
    annotations = copy.annotations
    assert annotations is not None  # a copy is stamped
    if not copy.durable:
        copy.durable = True
        annotations[ORIGINAL_DELIVERY_MODE] = "NON_PERSISTENT"
    if copy.expires_at_ms == 0:
        # What it says of an earlier move stays.
        annotations.setdefault(ORIGINAL_EXPIRATION, str(original.expires_at_ms))
    annotations[FAILURE_CAUSE] = cause
    return copy
