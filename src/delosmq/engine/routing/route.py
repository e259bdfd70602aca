"""Routes of a message that take more than a look: filters, wildcards, diverts, one queue by name.

The short way, for an address with queues that take everything, is `Address.constant_routes`.
"""

from typing import Final

from delosmq.engine.addresses.address import NO_QUEUES, Address, address_of
from delosmq.engine.addresses.bindings import Bindings
from delosmq.engine.addresses.divert import Divert
from delosmq.engine.addresses.filter import Conditions
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.queues.memory_limits import MemoryLimits
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.enqueue import RoutedMessage
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError, LimitError, MisuseError, NotFoundError
from delosmq.model.message import ANY_ROUTING, ANYCAST, Message
from delosmq.model.names import QUEUE_MARK
from delosmq.model.settings import AddressFullPolicy, QueueSettings

DIVERTS_IN_A_ROW: Final = 8
"""A message that went through more is in a loop: Artemis has no bound and ends such a send with a stack overflow."""
COPIES_OF_A_SEND: Final = 1_000


class Routes:
    """Finds the queues of a message and of the copies that diverts make of it. Nothing is in a queue yet afterwards;
    addresses and queues that diverts lead to were created where they were missing.

    Args:
        batch_bytes: what all durable copies of a send may come to together, as one batch holds them.
    """

    def __init__(
        self,
        bindings: Bindings,
        memory: MemoryLimits,
        *,
        events: EngineEvents,
        conversions: Conversions,
        batch_bytes: int,
    ) -> None:
        self._bindings = bindings
        self._memory = memory
        self._events = events
        self._batch_bytes = batch_bytes
        self._conditions: Conditions = Conditions(conversions)
        self._routed: list[RoutedMessage] = []
        self._strict: bool = True

    def route(self, message: Message, address: Address, routing: int, queue: Queue | None) -> list[RoutedMessage]:
        """Routes what a client sends: the message and its copies, each original before its copies. Empty when no queue
        takes any of them.

        Args:
            queue: the only one of its address that may get it; None for all.

        Raises:
            BrokerError: a divert leads nowhere, in a circle, or to a full address with the policy FAIL.
        """
        self._begin(strict=True)
        self._find(message, address, routing, queue, [])
        self._check_size()
        return self._take_routed()

    def route_moved(self, message: Message, address: Address) -> list[RoutedMessage]:
        """Routes what the broker itself moves, whatever limits addresses have; diverts that can't be followed are not,
        the last ones too when the copies are more than the journal takes at once. Empty when no queue takes it."""
        queues = address.constant_routes[ANY_ROUTING]
        if queues and address.linked_at == self._bindings.wild_changes:
            return [RoutedMessage(message, address, list(queues))]
        self._begin(strict=False)
        self._find(message, address, ANY_ROUTING, None, [])
        while len(self._routed) > 1 and self._size() > self._batch_bytes:
            self._routed.pop()  # no job to tell, and without a batch for all of them nothing would move
        return self._take_routed()

    def prepare(self, name: str, routing: int, user: str = "") -> Address:
        """The address of a send, created with its queue where they are missing and may be created.

        Args:
            user: of the client that sends, "" for none.

        Raises:
            NotFoundError: there is none, and it may not be created.
            MisuseError: it does not take this routing type.
        """
        bindings = self._bindings
        settings = bindings.settings_of(name)
        address = bindings.addresses.get(name)
        kind = bindings.resolve_routing(name, routing)
        queue = QueueSettings(name, name, ANYCAST, durable=True, auto_created=True)
        creates = kind == ANYCAST and settings.auto_create_queues and (address is None or not address.anycast)
        if address is not None:
            bindings.check_routing(address, routing, user)
        elif not settings.auto_create_addresses:
            raise NotFoundError(
                "DMQ2107",
                f"there is no address '{name}' and its address-settings don't auto-create it; create it in broker.xml",
            )
        if creates:
            if name in bindings.queues:
                raise MisuseError(
                    "DMQ2644",
                    f"queue '{name}' is on another address, so address '{name}' can't have a queue of its name; send to"
                    f" that address, which `delosmq queue stat` names, or to 'ADDRESS{QUEUE_MARK}{name}' for that queue"
                    " alone",
                )
            return address_of(bindings.create_queue(queue, user=user))
        if address is None:
            address = bindings.create_address(name, {kind}, auto_created=True, user=user)
        return address

    # -- finding queues ------------------------------------------------------------------------------------------

    def _begin(self, *, strict: bool) -> None:
        self._routed = []
        self._strict = strict

    def _take_routed(self) -> list[RoutedMessage]:
        routed = self._routed
        self._routed = []
        return routed

    def _find(self, message: Message, address: Address, routing: int, queue: Queue | None, way: list[str]) -> None:
        """Finds the queues of a message and of its copies. ``way``: the diverts it came through."""
        if address.linked_at != self._bindings.wild_changes:
            self._bindings.relink(address)
        conditions = self._conditions
        conditions.look_at(message)
        exclusive: list[Divert] = []
        others: list[Divert] = []
        for source in (address, *address.links):
            for divert in source.diverts:
                if conditions.match(divert.filter):
                    (exclusive if divert.exclusive else others).append(divert)
        queues = NO_QUEUES
        if not exclusive:
            if queue is None:
                queues = address.route(routing, conditions)
            elif conditions.admit(queue):
                queues = [queue]
        if queues:
            self._routed.append(RoutedMessage(message, address, queues))
        for divert in exclusive or others:
            self._divert(divert, message, routing, way)

    def _divert(self, divert: Divert, message: Message, routing: int, way: list[str]) -> None:
        if len(way) >= DIVERTS_IN_A_ROW:
            if self._strict:
                circle = " -> ".join((*way, divert.name))
                raise MisuseError(
                    "DMQ2620",
                    f"a message to '{message.address}' goes in a circle of diverts ({circle});"
                    f" change the forwarding-address of '{divert.name}' in broker.xml",
                )
            return
        way.append(divert.name)
        for target in divert.targets:
            self._copy_to(target, divert, message, routing, way)
        way.pop()

    def _copy_to(self, target: str, divert: Divert, message: Message, routing: int, way: list[str]) -> None:
        name, _, queue_name = target.partition(QUEUE_MARK)
        kind = divert.routing_of_copies(routing)
        try:
            address, queue = self._target(name, queue_name, kind, divert)
            if not self._has_room(message, address, divert):
                return
        except BrokerError:
            if self._strict:
                raise
            return
        copy = divert.copy(message, name)
        before = len(self._routed)
        self._find(copy, address, kind, queue, way)
        if len(self._routed) > before and self._routed[before].message is copy:
            routed = self._routed[before]
            routed.original = message
            routed.divert = divert
        if len(self._routed) == before:
            address.unrouted_messages += 1
            divert.lost_copies += 1

    def _target(self, name: str, queue_name: str, routing: int, divert: Divert) -> tuple[Address, Queue | None]:
        if queue_name:
            queue = self._bindings.queues.get(queue_name)
            if queue is None or queue.address.name != name:
                raise NotFoundError(
                    "DMQ2634",
                    f"divert '{divert.name}' forwards to '{name}{QUEUE_MARK}{queue_name}', and there is no such queue;"
                    " create it, or change the forwarding-address",
                )
            return address_of(queue), queue
        address = self._bindings.addresses.get(name)
        if address is None or (routing == ANYCAST and not address.anycast):
            address = self.prepare(name, routing)
        else:
            self._bindings.check_routing(address, routing, "")
        return address, None

    def _has_room(self, message: Message, address: Address, divert: Divert) -> bool:
        """What the full policy of a target says; BLOCK and PAGE let it in, as the sender has no part in that address.

        Source: Artemis, where credits of a producer are those of the address it sends to.
        """
        if len(self._routed) >= COPIES_OF_A_SEND:
            raise LimitError(
                "DMQ2632",
                f"the diverts of '{message.address}' make more than {COPIES_OF_A_SEND} copies of one message; give"
                f" divert '{divert.name}' fewer forwarding addresses",
            )
        if not self._strict or not self._memory.is_full(address):
            return True
        policy = address.settings.address_full_policy
        if policy is AddressFullPolicy.FAIL:
            raise LimitError(
                "DMQ2631",
                f"address '{address.name}' is full and refuses what divert '{divert.name}' forwards to it"
                " (address-full-policy FAIL); try again later",
            )
        if policy is AddressFullPolicy.DROP:
            self._events.message_dropped(message)
            return False
        return True

    def _check_size(self) -> None:
        size = self._size()
        if len(self._routed) > 1 and size > self._batch_bytes:
            raise LimitError(
                "DMQ2633",
                f"a message to '{self._routed[0].message.address}' and the copies of its diverts have {size} bytes"
                f" together, more than the journal takes at once ({self._batch_bytes}); set a larger"
                " journal-file-size or divert to fewer addresses",
            )

    def _size(self) -> int:
        return sum([item.message.encoded_size_bytes for item in self._routed if item.message.durable])
