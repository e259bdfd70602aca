"""A send: address, policy of a full address, queues. It is one decision."""

from delosmq.engine.addresses.address import Address
from delosmq.engine.addresses.expiry_delay import apply_expiry
from delosmq.engine.log.batch_limits import NO_ROOM
from delosmq.engine.routing.dead_letters import DeadLetters
from delosmq.engine.routing.enqueue import RoutedMessage
from delosmq.engine.routing.parts import EngineParts, record_room_bytes
from delosmq.engine.routing.send_result import BLOCKED, DROPPED, DUPLICATE, NO_ROUTE, ROUTED
from delosmq.model.errors import LimitError, NotFoundError
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST, Message
from delosmq.model.settings import AddressFullPolicy


class EngineProducers:
    """The way in.

    Attributes:
        largest_message_bytes: that the store takes.
    """

    def __init__(self, parts: EngineParts, dead_letters: DeadLetters) -> None:
        self._log = parts.log
        self._memory = parts.memory
        self._bindings = parts.bindings
        self._enqueuer = parts.enqueuer
        self._events = parts.events
        self._clock = parts.clock
        self._routes = parts.routes
        self._duplicates = parts.duplicates
        self._dead_letters = dead_letters
        self._dropped = parts.dropped
        self.largest_message_bytes: int = parts.largest_message_bytes
        self._ordinary_bytes: int = parts.ordinary_message_bytes
        self._record_room_bytes: int = record_room_bytes(parts.settings.journal)

    def send(self, message: Message, queue_name: str = "", routing: int = ANY_ROUTING, *, granted: bool = False) -> int:
        """Routes a message to the queues of its address, or to exactly the queue named.

        Args:
            granted: its sender asked for room and was told that there is some: a full address that blocks takes it.

        Returns:
            ROUTED, NO_ROUTE, DROPPED, BLOCKED or DUPLICATE (see `send_result`). A confirmation must wait for
            ``log.position``.

        Raises:
            LimitError: the address is full and its policy is FAIL, or the message is larger than the journal takes, or
                than what is left of the disk.
            NotFoundError: there is no such address or queue, and it may not be created.
            MisuseError: the address does not take this routing type.
        """
        if message.encoded_size_bytes > self._ordinary_bytes:
            self._ask_place(message, queue_name, routing)
        if message.duplicate_id and self._duplicates.seen(message):
            return DUPLICATE
        address = self._address_for(message, queue_name, routing)
        # What `MemoryLimits.is_full` gives, asked here: on the way of every message.
        if self._memory.full or address.account.full or (self._log.storage_low and message.durable):
            refused = self._refuse(address, message, granted)
            if refused:
                return refused
        if address.changes_expiry:
            apply_expiry(address.settings, message, self._clock.wall_ms())
        queues = address.constant_routes[routing]
        if queues and not queue_name and not message.duplicate_id and address.linked_at == self._bindings.wild_changes:
            self._enqueuer.enqueue_alone(message, queues, address)
            return ROUTED
        try:
            routed = self._route(message, address, queue_name, routing)
            self._enqueuer.enqueue_routed(routed)
            if message.duplicate_id:
                self._remember(message)
            return ROUTED if routed else NO_ROUTE
        finally:
            self._log.close()

    def _ask_place(self, message: Message, queue_name: str, routing: int) -> None:
        """For a message that takes most of a journal file. If the store must make ready for it, space is low now.

        Raises:
            LimitError: it is larger than the journal takes, or the disk has no room for it.
        """
        size = message.encoded_size_bytes
        if size > self.largest_message_bytes:
            raise self._too_large(message)
        if not message.durable or (message.duplicate_id and self._duplicates.seen(message)):
            return
        address = self._address_for(message, queue_name, routing)
        if self._log.storage_low or self._memory.is_full(address):
            return  # the full policy comes first
        if self._log.ask_large(size + self._record_room_bytes) == NO_ROOM:
            raise self._log.refusal_of_large(size)

    def _remember(self, message: Message) -> None:
        self._duplicates.remember(message.address, message.duplicate_id, durable=message.durable)

    def admit(self, message: Message, queue_name: str, routing: int, *, granted: bool = False) -> int:
        """The first half of a send in a transaction: checks all that `send` checks and creates what is missing.

        Args:
            granted: as in `send`.

        Returns:
            ROUTED when the message may be routed (by `route`, at the commit), else DROPPED or BLOCKED.
        """
        if message.encoded_size_bytes > self.largest_message_bytes:
            raise self._too_large(message)
        address = self._address_for(message, queue_name, routing)
        if self._memory.is_full(address) or (self._log.storage_low and message.durable):
            refused = self._refuse(address, message, granted)
            if refused:
                return refused
        if address.changes_expiry:
            apply_expiry(address.settings, message, self._clock.wall_ms())
        return ROUTED

    def _address_for(self, message: Message, queue_name: str, routing: int) -> Address:
        """The address of a message, with what it needs there created."""
        address = self._bindings.addresses.get(message.address)
        if address is None or queue_name or (routing == ANYCAST and not address.anycast):
            return self._prepare_send(message, queue_name, routing)
        if routing != ANY_ROUTING and routing not in address.routing_types:
            return self._prepare_send(message, queue_name, routing)
        return address

    def route(self, message: Message, queue_name: str, routing: int) -> list[RoutedMessage]:
        """The second half: the message and its copies with their queues, which the commit enqueues. An address or queue
        that is gone since the first half is created again. The caller closes the log."""
        address = self._bindings.addresses.get(message.address)
        if address is None or (routing == ANYCAST and not address.anycast and not queue_name):
            address = self._prepare_send(message, queue_name, routing)
        return self._route(message, address, queue_name, routing)

    def _route(self, message: Message, address: Address, queue_name: str, routing: int) -> list[RoutedMessage]:
        """The long way, when not every queue of the address takes every message."""
        queue = self._bindings.queue_named(queue_name) if queue_name else None
        routed = self._routes.route(message, address, routing, queue)
        if routed:
            return routed
        address.unrouted_messages += 1
        if address.tells_routed:
            self._events.message_unrouted(message)
        routed = self._dead_letters.route_unrouted(address.settings, message)
        if routed:
            return routed
        if routing != MULTICAST or queue is not None:
            for one in address.anycast if queue is None else [queue]:
                if not one.settings.enabled:
                    self._dropped.tell_refused(one.name)
        return []

    def _too_large(self, message: Message) -> LimitError:
        return LimitError(
            "DMQ2203",
            f"a message of {message.encoded_size_bytes} bytes to '{message.address}' is larger than the journal"
            f" takes ({self.largest_message_bytes}); set a larger journal-file-size or send less at once",
        )

    def _prepare_send(self, message: Message, queue_name: str, routing: int) -> Address:
        """Creates what a send needs and may create; finds the address. A decision of its own, whatever becomes of the
        message."""
        name = message.address
        try:
            if not queue_name:
                return self._routes.prepare(name, routing, message.user)
            address = self._bindings.addresses.get(name)
            queue = self._bindings.queues.get(queue_name)
            if address is None or queue is None or queue.address is not address or queue.internal:
                raise NotFoundError("DMQ2108", f"address '{name}' has no queue '{queue_name}'; create it first")
            self._bindings.check_routing(address, routing, message.user)
            return address
        finally:
            self._log.close()

    def _refuse(self, address: Address, message: Message, granted: bool) -> int:
        """The result by the address-full policy; 0 lets the message in after all."""
        if self._memory.is_full(address):
            self._events.address_full(message)
        policy = address.settings.address_full_policy
        if policy is AddressFullPolicy.FAIL:
            full = self._memory.is_full(address)
            if not full and not self._log.storage_full:
                return BLOCKED  # till the next file is ready
            what = "the address is full" if full else "the store has no room for durable messages"
            raise LimitError(
                "DMQ2201", f"{what}: '{address.name}' refuses the message (address-full-policy FAIL); try again later"
            )
        # A full disk must not make durable messages vanish: DROP is about memory.
        if policy is AddressFullPolicy.DROP and self._memory.is_full(address):
            self._events.message_dropped(message)
            return DROPPED
        return 0 if granted and not (self._log.storage_low and message.durable) else BLOCKED
