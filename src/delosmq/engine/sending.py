"""Taking messages in: address, full policy, queues. A send is one decision."""

from typing import Final

from delosmq.engine.address import Address, SpaceWaiter
from delosmq.engine.core import Core
from delosmq.engine.outcome import BLOCKED, DROPPED, NO_ROUTE, ROUTED
from delosmq.model.errors import LimitError, NotFoundError
from delosmq.model.message import ANY_ROUTING, ANYCAST, Message
from delosmq.model.settings import AddressFullPolicy, QueueSettings

RECORD_ROOM_BYTES: Final = 8 * 1024
"""Kept free in the largest batch (half a segment) for what a record holds beside the encoded message."""
MAX_MESSAGE_BYTES: Final = 1 << 31


class Sending:
    """The way in."""

    def __init__(self, core: Core) -> None:
        self._log = core.log
        self._memory = core.memory
        self._bindings = core.bindings
        self._router = core.router
        self._events = core.events
        journal = core.settings.journal
        # Non-durable ones too: a lease stores what it holds.
        self._largest_message_bytes: int = (
            journal.file_size_bytes // 2 - RECORD_ROOM_BYTES if journal.directory else MAX_MESSAGE_BYTES
        )
        self._blocked: list[Address] = []

    def send(self, message: Message, queue_name: str = "", routing: int = ANY_ROUTING) -> int:
        """Routes a message to the queues of its address, or to exactly the queue named.

        Returns:
            ROUTED, NO_ROUTE, DROPPED or BLOCKED (see `delosmq.engine.outcome`). A confirmation must wait for
            ``log.position``.

        Raises:
            LimitError: the address is full and its policy is FAIL, or the message is larger than the journal takes.
            NotFoundError: there is no such address or queue, and it may not be created.
            MisuseError: the address does not take this routing type.
        """
        if message.encoded_size_bytes > self._largest_message_bytes:
            raise LimitError(
                "DMQ2203",
                f"a message of {message.encoded_size_bytes} bytes to '{message.address}' is larger than the journal"
                f" takes ({self._largest_message_bytes}); set a larger journal-file-size or send less at once",
            )
        address = self._bindings.addresses.get(message.address)
        if address is None or queue_name or (routing == ANYCAST and not address.anycast):
            address = self._prepare_send(message.address, queue_name, routing)
        elif routing != ANY_ROUTING and routing not in address.routing_types:
            self._bindings.check_routing(address, routing)
        if self._memory.is_full(address) or (self._log.storage_low and message.durable):
            refused = self._refuse(address, message)
            if refused:
                return refused
        queues = [self._bindings.queue_named(queue_name)] if queue_name else address.route(routing)
        if not queues:
            address.unrouted_messages += 1
            self._log.close()
            return NO_ROUTE
        self._router.put(message, queues)
        self._log.close()
        return ROUTED

    def _prepare_send(self, name: str, queue_name: str, routing: int) -> Address:
        """Creates what a send needs and may create; finds the address."""
        settings = self._bindings.settings_of(name)
        address = self._bindings.addresses.get(name)
        kind = self._bindings.resolve_routing(name, routing)
        if address is not None:
            self._bindings.check_routing(address, routing)
        elif not settings.auto_create_addresses:
            raise NotFoundError(
                "DMQ2107",
                f"there is no address '{name}' and its address-settings don't auto-create it; create it in broker.xml",
            )
        if queue_name:
            queue = self._bindings.queues.get(queue_name)
            if queue is None or queue.address.name != name:
                raise NotFoundError("DMQ2108", f"address '{name}' has no queue '{queue_name}'; create it first")
        if address is None:
            address = self._bindings.create_address(name, {kind}, auto_created=True)
        if (
            kind == ANYCAST
            and not queue_name
            and not address.anycast
            and settings.auto_create_queues
            and name not in self._bindings.queues
        ):
            self._bindings.create_queue(QueueSettings(name, name, ANYCAST, durable=True, auto_created=True))
        # A decision of its own, whatever becomes of the message.
        self._log.close()
        return address

    def _refuse(self, address: Address, message: Message) -> int:
        """What the full policy says; 0 lets the message in after all."""
        policy = address.settings.address_full_policy
        if policy is AddressFullPolicy.FAIL:
            what = "the store has no room for durable messages" if self._log.storage_low else "the address is full"
            raise LimitError(
                "DMQ2201", f"{what}: '{address.name}' refuses the message (address-full-policy FAIL); try again later"
            )
        # A full disk must not make durable messages vanish: DROP is about memory.
        if policy is AddressFullPolicy.DROP and self._memory.is_full(address):
            self._events.message_dropped(message)
            return DROPPED
        return BLOCKED

    def wait_for_space(self, address: str, waiter: SpaceWaiter) -> None:
        """Registers for one `SpaceWaiter.on_space` after a send was BLOCKED."""
        target = self._bindings.addresses[address]
        if not target.waiters:
            self._blocked.append(target)
            self._events.address_blocked(address)
        target.waiters.append(waiter)

    def cancel_wait(self, address: str, waiter: SpaceWaiter) -> None:
        """Takes a registration back; harmless when it is gone."""
        target = self._bindings.addresses.get(address)
        if target is not None and waiter in target.waiters:
            target.waiters.remove(waiter)

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
            if self._memory.is_full(address):
                self._blocked.append(address)
                continue
            waiters = address.waiters
            address.waiters = []
            self._events.address_unblocked(address.name)
            for waiter in waiters:
                waiter.on_space()
