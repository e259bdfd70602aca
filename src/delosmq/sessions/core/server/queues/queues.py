"""The addresses and queues that a session makes and deletes.

A temporary queue lasts as long as its connection; so does its address, when it comes with it.
Source: ServerSessionImpl.createQueue, createSharedQueue, deleteQueue and checkAutoCreate of Artemis.
"""

from dataclasses import replace
from typing import Any, Final

from delosmq.engine.api import Queue, SubscriptionOptions
from delosmq.model.declared.queue import QUEUE_SETTINGS
from delosmq.model.errors import BrokerError
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST, ROUTING_NAMES
from delosmq.model.settings import LAST_VALUE_NAME, AddressSettings, QueueSettings
from delosmq.security.access import CREATE_ADDRESS, DELETE_DURABLE_QUEUE, DELETE_NON_DURABLE_QUEUE
from delosmq.sessions.core.server import errors
from delosmq.sessions.core.server.destinations import CoreDestinations
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.permissions import Permissions
from delosmq.wire.core.packet import QueueAttributes
from delosmq.wire.core.queue_packets import (
    CreateAddressPacket,
    CreateQueuePacket,
    CreateQueueV2,
    CreateSharedQueue,
    CreateSharedQueueV2,
)

_SAID_BY_ADDRESS: Final = tuple(name for name in QUEUE_SETTINGS if not name.startswith(("auto_delete", "last_value")))
_OLD_QUEUE_PREFIXES: Final = ("jms.queue.", "jms.tempqueue.")
"""Addresses of queues as clients before 2.0 name them. Source: PacketImpl."""


class ConnectionQueues:
    """What ends with a connection.

    Queues are known by name and the engine's id: another connection may have deleted one and made its own of that name.

    Attributes:
        temporary: queues that its sessions made for as long as it lasts.
        shared: queues that go with their last consumer, and with it if there was none.
        addresses: that came with temporary queues.
    """

    def __init__(self, machine: SessionMachine) -> None:
        self._broker = machine.services.broker
        self._known = machine.services.temporaries
        self._owner = machine.peer.connection_id
        self._limit: int = machine.acceptor.max_subscriptions
        self._look_at: int = self._limit
        self.temporary: dict[str, int] = {}
        self.shared: dict[str, int] = {}
        self.addresses: dict[str, None] = {}

    def owns(self, queue: Queue) -> bool:
        """Whether a queue is a temporary one of the connection."""
        return self.temporary.get(queue.name) == queue.id

    def check_limit(self) -> None:
        """Whether there may be another temporary queue.

        Raises:
            CoreError: there are too many.
        """
        if len(self.temporary) >= self._limit:
            raise errors.too_many("temporary queues of the connection", self._limit)

    def note_shared(self, queue: Queue) -> None:
        """One that goes with its last consumer is there, and has none yet."""
        if len(self.shared) >= self._look_at:
            self.shared = {one.name: one.id for one in self._left(self.shared) if not one.holders}
            self._look_at = max(self._limit, 2 * len(self.shared))
        self.shared[queue.name] = queue.id

    def _left(self, ids: dict[str, int]) -> list[Queue]:
        """Of queues by their names, those that are still there."""
        queues = self._broker.queues
        return [queues[name] for name, queue_id in ids.items() if name in queues and queues[name].id == queue_id]

    def make_address(self, name: str, routing: int, user: str) -> None:
        """An address that ends with its connection; an anycast one has its queue."""
        self._broker.resources.create_temporary(name, routing, self._owner, user)
        self.addresses[name] = None
        self._known.made(name, routing, self._owner)

    def delete(self, queue: Queue, user: str) -> None:
        """A client deletes a queue, temporary or not."""
        if self.owns(queue):
            del self.temporary[queue.name]
        address = queue.address.name
        if address in self.addresses and len(self._broker.addresses[address].queues()) == 1:
            self.drop_address(address)
        else:
            self._broker.resources.delete_queue(queue.name, user)

    def drop_address(self, name: str) -> None:
        """One that came with a temporary queue goes with it, or as that could not be made."""
        del self.addresses[name]
        self._broker.resources.delete_temporary(self._owner, name)
        self._known.ended(name)

    def take_over(self, other: "ConnectionQueues") -> None:
        """Its client has come back by this connection: what ended with the other one ends with this."""
        self._broker.resources.move_temporary(other._owner, self._owner)
        self.temporary.update(other.temporary)
        self.shared.update(other.shared)
        self.addresses.update(other.addresses)
        other.temporary.clear()
        other.shared.clear()
        other.addresses.clear()

    def close(self) -> None:
        """The connection has ended."""
        resources = self._broker.resources
        for queue in self._left(self.shared):
            if queue.temporary and not queue.holders:
                resources.delete_queue(queue.name)
        self.shared.clear()
        for queue in self._left(self.temporary):
            if queue.address.name not in self.addresses:
                resources.delete_queue(queue.name)
        self.temporary.clear()
        if self.addresses:
            ended = list(self.addresses)
            self.addresses.clear()
            resources.delete_temporary(self._owner)
            for address in ended:
                self._known.ended(address)


class SessionQueues:
    """Of one session."""

    def __init__(
        self,
        machine: SessionMachine,
        connection: ConnectionQueues,
        *,
        permissions: Permissions,
        destinations: CoreDestinations,
    ) -> None:
        self._broker = machine.services.broker
        self._connection = connection
        self._permissions = permissions
        self._destinations = destinations

    def move(self, connection: ConnectionQueues) -> None:
        """The session has another connection."""
        self._connection = connection

    def create_address(self, packet: CreateAddressPacket) -> None:
        """Handles a CREATE_ADDRESS; one that is there takes these routing types as well.

        Raises:
            BrokerError: it can't be.
        """
        target = self._destinations.decode(packet.address)
        routings = set(packet.routing_types)
        if target.routing != ANY_ROUTING:
            routings = {target.routing}
        routings.discard(ANY_ROUTING)
        known = self._broker.addresses.get(target.address)
        self._permissions.require(target.address, CREATE_ADDRESS)
        if known is None or not routings <= known.routing_types:
            if not routings:
                routings = {self._broker.bindings.settings_of(target.address).default_address_routing_type}
            self._broker.resources.create_address(
                target.address, routings, self._permissions.user, auto_created=packet.auto_created
            )

    def create(self, packet: CreateQueuePacket) -> None:
        """Handles a CREATE_QUEUE of either form.

        Raises:
            BrokerError: it can't be.
        """
        target = self._destinations.decode(packet.address)
        name = self._destinations.queue_name(packet.queue_name)
        if name in self._broker.queues:
            raise errors.queue_exists(name)
        routing = target.routing
        attributes = QueueAttributes()
        auto_created = False
        max_consumers: int | None = None
        purge: bool | None = None
        if isinstance(packet, CreateQueueV2):
            routing = routing or packet.routing_type
            attributes = packet.attributes
            auto_created = packet.auto_created
            max_consumers = packet.max_consumers
            purge = packet.purge_on_no_consumers
        elif routing == ANY_ROUTING:
            routing = ANYCAST if target.address.startswith(_OLD_QUEUE_PREFIXES) else MULTICAST
        routing = routing or self._default_routing(target.address)
        settings = _settings(
            QueueSettings(
                name,
                target.address,
                routing,
                durable=packet.durable and not packet.temporary,
                auto_created=auto_created and not packet.temporary,
                filter=packet.filter_string or "",
                max_consumers=max_consumers,
                purge_on_no_consumers=purge,
            ),
            attributes,
            self._broker.bindings.settings_of(target.address),
        )
        if packet.temporary:
            self._create_temporary(settings)
        else:
            self._create(settings)

    def _default_routing(self, address: str) -> int:
        known = self._broker.addresses.get(address)
        default = self._broker.bindings.settings_of(address).default_queue_routing_type
        if known is None or default in known.routing_types:
            return default
        return self._broker.bindings.resolve_routing(address, ANY_ROUTING)

    def _create(self, settings: QueueSettings, *, goes_with_consumers: bool = False) -> Queue:
        self._check(settings)
        self._permissions.require_creation(
            settings.address,
            "",
            settings.routing_type,
            for_subscription=True,
            subscription=SubscriptionOptions(name=settings.name, durable=settings.durable),
        )
        return self._broker.resources.create_queue(
            settings, self._permissions.user, of_client=True, temporary=goes_with_consumers
        )

    def _check(self, settings: QueueSettings) -> None:
        """Whether an address takes a queue, or may be made.

        Raises:
            CoreError: it may not.
        """
        name = settings.address
        known = self._broker.addresses.get(name)
        if known is None:
            if not self._broker.bindings.settings_of(name).auto_create_addresses:
                raise errors.no_such_address(name)
        elif settings.routing_type not in known.routing_types and (
            known.owner or not known.settings.auto_create_addresses
        ):
            raise errors.wrong_routing(name, ROUTING_NAMES[settings.routing_type])

    def _create_temporary(self, settings: QueueSettings) -> None:
        connection = self._connection
        connection.check_limit()
        resources = self._broker.resources
        name = settings.address
        user = self._permissions.user
        # A temporary queue or topic of JMS. Other queues that are temporary are those of subscribers to topics.
        is_alone = name not in self._broker.addresses and settings.name == name
        if is_alone:
            self._permissions.require_temporary(name, queue=True)
            connection.make_address(name, settings.routing_type, user)
            queue = self._broker.queues.get(name)
            if queue is not None and not settings.filter:
                connection.temporary[name] = queue.id
                return
            if queue is not None:
                resources.delete_queue(name)
        else:
            self._check(settings)
            self._permissions.require_creation(
                name,
                "",
                settings.routing_type,
                for_subscription=True,
                subscription=SubscriptionOptions(name=settings.name),
            )
        try:
            queue = resources.create_queue(settings, user, of_client=True)
        except BrokerError:
            if is_alone:
                connection.drop_address(name)
            raise
        connection.temporary[queue.name] = queue.id

    def create_shared(self, packet: CreateSharedQueue) -> None:
        """Handles a CREATE_SHARED_QUEUE of either form; one that is there already must be the same.

        Raises:
            BrokerError: it can't be.
        """
        target = self._destinations.decode(packet.address)
        name = self._destinations.queue_name(packet.queue_name)
        text = packet.filter_string or ""
        known = self._broker.queues.get(name)
        if known is not None:
            if known.address.name != target.address or known.settings.filter != text or known.internal:
                raise errors.other_shared_queue(name, known.address.name, known.settings.filter)
            return
        routing = target.routing
        attributes = QueueAttributes()
        max_consumers: int | None = None
        purge: bool | None = None
        if isinstance(packet, CreateSharedQueueV2):
            routing = routing or packet.routing_type
            attributes = packet.attributes
            max_consumers = packet.max_consumers
            purge = packet.purge_on_no_consumers
        settings = _settings(
            QueueSettings(
                name,
                target.address,
                routing or self._default_routing(target.address),
                durable=packet.durable,
                filter=text,
                max_consumers=max_consumers,
                purge_on_no_consumers=purge,
            ),
            attributes,
            self._broker.bindings.settings_of(target.address),
        )
        queue = self._create(settings, goes_with_consumers=not packet.durable)
        if not packet.durable:
            self._connection.note_shared(queue)

    def delete(self, name: str) -> None:
        """Handles a DELETE_QUEUE.

        Raises:
            BrokerError: there is none, it has consumers, or the user may not.
        """
        queue_name = self._destinations.queue_name(name)
        queue = self._broker.queues.get(queue_name)
        if queue is None or queue.internal:
            raise errors.no_such_queue(name)
        if not self._connection.owns(queue):
            right = DELETE_DURABLE_QUEUE if queue.settings.durable else DELETE_NON_DURABLE_QUEUE
            self._permissions.require_use(queue.address.name, queue_name, right)
        if queue.holders:
            raise errors.queue_in_use(queue_name)
        self._connection.delete(queue, self._permissions.user)


def _settings(plain: QueueSettings, attributes: QueueAttributes, address: AddressSettings) -> QueueSettings:
    """The settings of a queue with what its maker asked for besides. What its address says anyway stays its address's:
    JMS clients send back all that a query told them."""
    last_value_key = attributes.last_value_key
    if not last_value_key and attributes.last_value:
        last_value_key = LAST_VALUE_NAME
    auto_delete = attributes.auto_delete
    if auto_delete is None and not plain.durable and not plain.auto_created:
        auto_delete = False
    wanted = replace(
        plain,
        ring_size=attributes.ring_size,
        exclusive=attributes.exclusive,
        last_value_key=last_value_key or None,
        non_destructive=attributes.non_destructive,
        group_rebalance=attributes.group_rebalance,
        group_rebalance_pause_dispatch=attributes.group_rebalance_pause_dispatch,
        group_buckets=attributes.group_buckets,
        group_first_key=attributes.group_first_key,
        consumers_before_dispatch=attributes.consumers_before_dispatch,
        delay_before_dispatch=attributes.delay_before_dispatch,
        auto_delete=auto_delete,
        auto_delete_delay=attributes.auto_delete_delay,
        auto_delete_message_count=attributes.auto_delete_message_count,
        enabled=attributes.enabled is not False,
    )
    said: dict[str, Any] = {
        name: None
        for name in _SAID_BY_ADDRESS
        if getattr(wanted, name) == getattr(address, QUEUE_SETTINGS[name].defaults[0])
    }
    return replace(wanted, **said)
