"""Taking messages in: address, full policy, queues. A send is one decision."""

from delosmq.engine.addresses.address import Address, SpaceWaiter
from delosmq.engine.addresses.expiry_delay import apply_expiry
from delosmq.engine.log.log import NO_ROOM
from delosmq.engine.routing.dead_letters import DeadLetters
from delosmq.engine.routing.enqueue import RoutedMessage
from delosmq.engine.routing.parts import Core, record_room_bytes
from delosmq.engine.routing.send_result import BLOCKED, DROPPED, DUPLICATE, NO_ROUTE, ROUTED
from delosmq.model.errors import LimitError, NotFoundError
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST, Message
from delosmq.model.settings import AddressFullPolicy


class Sending:
    """The way in."""

    def __init__(self, core: Core, dead_letters: DeadLetters) -> None:
        self._log = core.log
        self._memory = core.memory
        self._bindings = core.bindings
        self._enqueuer = core.enqueuer
        self._events = core.events
        self._clock = core.clock
        self._routes = core.routes
        self._duplicates = core.duplicates
        self._dead_letters = dead_letters
        self._losses = core.losses
        self._largest_message_bytes: int = core.largest_message_bytes
        self._ordinary_bytes: int = core.ordinary_message_bytes
        self._record_room_bytes: int = record_room_bytes(core.settings.journal)
        self._blocked: list[Address] = []
        # Those who wait with a large message come first: each round the others could use up what was made ready for it.
        self._first: list[SpaceWaiter] = []

    def send(self, message: Message, queue_name: str = "", routing: int = ANY_ROUTING) -> int:
        """Routes a message to the queues of its address, or to exactly the queue named.

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
        if self._memory.is_full(address) or (self._log.storage_low and message.durable):
            refused = self._refuse(address, message)
            if refused:
                return refused
        if address.changes_expiry:
            apply_expiry(address.settings, message, self._clock.wall_ms())
        if address.plain and not queue_name and address.linked_at == self._bindings.wild_changes:
            queues = address.route(routing)
            if queues:
                self._enqueuer.enqueue(message, queues, address)
                if message.duplicate_id:
                    self._remember(message)
                self._log.close()
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
        if size > self._largest_message_bytes:
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

    def admit(self, message: Message, queue_name: str, routing: int) -> int:
        """The first half of a send in a transaction: checks all that `send` checks and creates what is missing.

        Returns:
            ROUTED when the message may be routed (by `route`, at the commit), else DROPPED or BLOCKED.
        """
        if message.encoded_size_bytes > self._largest_message_bytes:
            raise self._too_large(message)
        address = self._address_for(message, queue_name, routing)
        if self._memory.is_full(address) or (self._log.storage_low and message.durable):
            refused = self._refuse(address, message)
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
            self._bindings.check_routing(address, routing)
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
        if address.announced:
            self._events.message_unrouted(message)
        routed = self._dead_letters.route_unrouted(address.settings, message)
        if routed:
            return routed
        if routing != MULTICAST or queue is not None:
            for one in address.anycast if queue is None else [queue]:
                if not one.settings.enabled:
                    self._losses.refuse(one.name)
        return []

    def _too_large(self, message: Message) -> LimitError:
        return LimitError(
            "DMQ2203",
            f"a message of {message.encoded_size_bytes} bytes to '{message.address}' is larger than the journal"
            f" takes ({self._largest_message_bytes}); set a larger journal-file-size or send less at once",
        )

    def _prepare_send(self, message: Message, queue_name: str, routing: int) -> Address:
        """Creates what a send needs and may create; finds the address."""
        name = message.address
        if queue_name:
            address = self._bindings.addresses.get(name)
            queue = self._bindings.queues.get(queue_name)
            if address is not None:
                self._bindings.check_routing(address, routing)
            if queue is None or queue.address is not address or queue.internal:
                raise NotFoundError("DMQ2108", f"address '{name}' has no queue '{queue_name}'; create it first")
            return queue.address
        # A decision of its own, whatever becomes of the message.
        try:
            return self._routes.prepare(name, routing, message.user)
        finally:
            self._log.close()

    def _refuse(self, address: Address, message: Message) -> int:
        """What the full policy says; 0 lets the message in after all."""
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
        return BLOCKED

    def wait_for_space(self, address: str, waiter: SpaceWaiter, *, size_bytes: int = 0) -> None:
        """Registers for one `SpaceWaiter.on_space` after a send was BLOCKED.

        Args:
            size_bytes: of the message, encoded: a large one goes before others.
        """
        target = self._bindings.addresses[address]
        if not target.blocked:
            target.blocked = True
            self._blocked.append(target)
            self._events.address_blocked(address)
        if size_bytes > self._ordinary_bytes:
            self._put_first(target, waiter)
        else:
            target.waiters.append(waiter)

    def _put_first(self, target: Address, waiter: SpaceWaiter) -> None:
        """Puts a waiter before all others but those who are first already."""
        first = self._first
        waiters = target.waiters
        at = 0
        while at < len(waiters) and waiters[at] in first:
            at += 1
        waiters.insert(at, waiter)
        if at == 0 and target in self._blocked:  # else its waiters are about to be woken
            self._blocked.remove(target)
            place = 0
            while place < len(self._blocked) and self._is_first(self._blocked[place]):
                place += 1
            self._blocked.insert(place, target)
        first.append(waiter)

    def _is_first(self, address: Address) -> bool:
        return len(address.waiters) > 0 and address.waiters[0] in self._first

    def _take_waiters(self, address: Address) -> list[SpaceWaiter]:
        waiters = address.waiters
        address.waiters = []
        if self._first:
            self._first = [waiter for waiter in self._first if waiter not in waiters]
        return waiters

    def cancel_wait(self, address: str, waiter: SpaceWaiter) -> None:
        """Takes a registration back; harmless when it is gone."""
        target = self._bindings.addresses.get(address)
        if target is not None and waiter in target.waiters:
            target.waiters.remove(waiter)
            if not target.waiters and target in self._blocked:  # else its turn in `wake` is to come
                self._blocked.remove(target)
                target.blocked = False
                self._events.address_unblocked(address)
        if waiter in self._first:
            self._first.remove(waiter)

    def waited_too_long(self, address: str) -> LimitError:
        """Why a send that waited for ``block-timeout`` fails."""
        timeout_ms = self._bindings.settings_of(address).block_timeout
        return LimitError(
            "DMQ2652",
            f"'{address}' had no room for the message for {timeout_ms} ms (block-timeout); try again later, or let"
            " it wait longer",
        )

    def wake_those_at(self, name: str) -> None:
        """Tells those who wait for room of an address to ask again, whether it has any or not. Called from a tick."""
        address = self._bindings.addresses.get(name)
        if address is None or not address.waiters:
            return
        waiters = self._take_waiters(address)
        place = self._blocked.index(address)
        del self._blocked[place]
        address.blocked = False
        self._events.address_unblocked(name)
        for waiter in waiters:
            waiter.on_space()
        # Who waits again keeps the turn among other addresses.
        if address.blocked and self._blocked.index(address) > place:
            self._blocked.remove(address)
            self._blocked.insert(place, address)

    def wake(self) -> None:
        """Called each tick: tells those whose address has room again."""
        if not self._memory.released:
            return
        self._memory.released = False
        if not self._blocked:
            return
        blocked = self._blocked
        self._blocked = []
        for address in blocked:
            if address.waiters and self._memory.is_full(address):
                self._blocked.append(address)
                continue
            waiters = self._take_waiters(address)
            address.blocked = False
            self._events.address_unblocked(address.name)
            for waiter in waiters:
                waiter.on_space()
