"""DestinationInfo: temporary destinations, which end with their connection, and lasting ones.

Of temporary ones others are told here, at once, as their maker may use them the next moment; of lasting ones the engine
tells, of all protocols. Names of temporary destinations are the client's: all clients begin them with the id of their
connection, and must, as nothing but the name tells a temporary address from others. Source: RegionBroker.addDestination
and removeDestination of ActiveMQ Classic; createTempDestination of its clients in Java, C++ and .NET.
"""

from delosmq.engine.api import Address
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import QueueSettings
from delosmq.security.access import (
    CREATE_ADDRESS,
    CREATE_DURABLE_QUEUE,
    DELETE_ADDRESS,
    DELETE_DURABLE_QUEUE,
)
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.advisories.advisories import Advisories
from delosmq.sessions.openwire.server.destinations import OpenWireDestinations, OpenWireTarget
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.temporary_destinations import TemporaryListener
from delosmq.wire.openwire.commands import ADD_DESTINATION, DestinationInfo
from delosmq.wire.openwire.structures import TEMP_QUEUE, TEMP_TOPIC, ConnectionId, Destination


class OpenWireTemporaryDestinations:
    """The destinations that one connection makes and deletes."""

    def __init__(
        self,
        machine: SessionMachine,
        advisories: Advisories,
        *,
        destinations: OpenWireDestinations,
        permissions: Permissions,
        peers_id: str,
    ) -> None:
        """
        Args:
            peers_id: what the peer calls the connection.
        """
        self._broker = machine.services.broker
        self._advisories = advisories
        self._destinations = destinations
        self._permissions = permissions
        self._connection_id = machine.peer.connection_id
        self._peers_id = peers_id
        self._limit: int = machine.acceptor.max_subscriptions
        self._own: dict[str, Destination] = {}

    def handle(self, info: DestinationInfo) -> None:
        """Adds or removes what a DestinationInfo names; again is nothing.

        Raises:
            BrokerError: it can't be.
        """
        destination = info.destination
        if destination is None:
            raise errors.field_missing("destination", "a DestinationInfo")
        named = info.connection_id
        if named is not None and named.value != self._peers_id:
            # All would hear that it made the destination.
            raise errors.destination_of_another(named.value, self._peers_id)
        for target in self._destinations.targets_of(destination):
            if info.operation_type == ADD_DESTINATION:
                self._add(target)
            else:
                self._remove(target)

    def _add(self, target: OpenWireTarget) -> None:
        broker = self._broker
        if target.advisory or target.wildcard:
            return
        name = target.address
        if not target.temporary:
            self._add_lasting(target)
            return
        if name in self._own:
            return
        if len(self._own) >= self._limit:
            raise errors.too_many("temporary destinations", self._limit)
        known = broker.addresses.get(name)
        if known is not None and known.owner != "":
            raise errors.temporary_foreign(name)
        if known is not None or not name.startswith(self._peers_id + ":"):
            raise errors.temporary_name_wrong(name, self._peers_id)
        self._permissions.require_temporary(name, queue=target.routing == ANYCAST)
        broker.resources.create_temporary(name, target.routing, self._connection_id, self._permissions.user)
        self._own[name] = target.destination
        self._advisories.temporary_made(target.destination, ConnectionId(self._peers_id))

    def _add_lasting(self, target: OpenWireTarget) -> None:
        broker = self._broker
        name = target.address
        self._destinations.check_new(target)
        if name not in broker.addresses:
            self._permissions.require(name, CREATE_ADDRESS)
            broker.resources.create_address(name, {target.routing}, self._permissions.user)
        if target.routing == ANYCAST and name not in broker.queues:
            self._permissions.require(name, CREATE_DURABLE_QUEUE)
            settings = QueueSettings(name, name, ANYCAST, durable=True, auto_created=True)
            broker.resources.create_queue(settings, self._permissions.user)

    def _remove(self, target: OpenWireTarget) -> None:
        broker = self._broker
        name = target.address
        address = broker.addresses.get(name)
        if target.temporary:
            own = self._own.pop(name, None)
            if own is None and address is not None:
                raise errors.temporary_foreign(name)
            if address is not None:
                broker.resources.delete_temporary(self._connection_id, name)
            if own is not None:
                self._advisories.temporary_ended(own)
        elif target.queue_name:
            self._remove_queue(target)
        elif address is not None:
            self._remove_address(target, address)

    def _remove_queue(self, target: OpenWireTarget) -> None:
        """One queue of an address, such as that of a virtual topic: the others stay."""
        broker = self._broker
        queue = broker.queues.get(target.queue_name)
        if queue is None or queue.address.name != target.address:
            return
        if queue.holders:
            raise errors.destination_in_use(target.destination.qualified_name())
        self._permissions.require(target.address, DELETE_DURABLE_QUEUE)
        broker.resources.delete_queue(queue.name, self._permissions.user)

    def _remove_address(self, target: OpenWireTarget, address: Address) -> None:
        broker = self._broker
        name = target.address
        queues = [*address.anycast, *address.multicast]
        if any(queue.holders for queue in queues):
            raise errors.destination_in_use(target.destination.qualified_name())
        if target.routing == MULTICAST and any(queue.settings.durable for queue in address.multicast):
            raise errors.durable_subscribers(target.destination.qualified_name())
        self._permissions.require(name, DELETE_ADDRESS)
        for queue in queues:
            if queue.settings.routing_type == target.routing:
                self._permissions.require(name, DELETE_DURABLE_QUEUE)
                broker.resources.delete_queue(queue.name, self._permissions.user)
        if not address.anycast and not address.multicast and name in broker.addresses:
            broker.resources.delete_address(name, user=self._permissions.user)

    def close(self) -> None:
        """Ends all temporary ones of this connection."""
        left = list(self._own.values())
        self._own.clear()
        if not left:
            return
        self._broker.resources.delete_temporary(self._connection_id)
        for destination in left:
            self._advisories.temporary_ended(destination)


class ForeignTemporaries(TemporaryListener):
    """Tells OpenWire clients of temporary destinations that connections of other protocols make and delete."""

    def __init__(self, advisories: Advisories) -> None:
        self._advisories = advisories

    def made(self, address: str, routing: int, owner: str) -> None:
        self._advisories.temporary_made(_destination(address, routing), ConnectionId(owner))

    def ended(self, address: str, routing: int, owner: str) -> None:
        self._advisories.temporary_ended(_destination(address, routing))


def _destination(address: str, routing: int) -> Destination:
    return Destination(address, TEMP_QUEUE if routing == ANYCAST else TEMP_TOPIC)
