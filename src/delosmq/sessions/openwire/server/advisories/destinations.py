"""Advisories of queues and topics of all protocols. Nothing is kept of them without a listener.

Temporary ones are not among these: they are told of by the session that makes them.
"""

from typing import Final

from delosmq.engine.api import EngineBroker
from delosmq.model.message import MULTICAST
from delosmq.sessions.openwire.server.advisories import topics
from delosmq.sessions.openwire.server.advisories.pending_advisories import (
    PendingAdvisories,
    PendingAdvisory,
    PresentAdvisories,
    PresentObjects,
)
from delosmq.sessions.openwire.server.advisories.publisher import AdvisoryListener, AdvisoryPublisher
from delosmq.sessions.openwire.server.destinations import queue_destination_of
from delosmq.wire.openwire.commands import ADD_DESTINATION, REMOVE_DESTINATION, DestinationInfo
from delosmq.wire.openwire.structures import TOPIC, ConnectionId, Destination

# What it is to the engine.
_QUEUE: Final = 0
_ADDRESS: Final = 1


class DestinationAdvisories(PresentObjects):
    """Tells of queues and topics.

    Attributes:
        acting: the connection with the command that is being handled; None for no command.
    """

    def __init__(self, broker: EngineBroker, publisher: AdvisoryPublisher, notices: PendingAdvisories) -> None:
        self._broker = broker
        self._publisher = publisher
        self._notices = notices
        # (kind, its name to the engine) -> what was told of it.
        self._known: dict[tuple[int, str], DestinationInfo] = {}
        self.acting: ConnectionId | None = None

    # -- what the engine tells ---------------------------------------------------------------------------------------

    def queue_created(self, queue: str, address: str) -> None:
        """A queue, and perhaps with it the first of its kind on the address."""
        if self._is_watched():
            self._notices.add(_Change(self, _QUEUE, queue, self.acting))
            self._notices.add(_Change(self, _ADDRESS, address, self.acting))

    def address_created(self, address: str) -> None:
        if self._is_watched():
            self._notices.add(_Change(self, _ADDRESS, address, self.acting))

    def queue_deleted(self, queue: str) -> None:
        if self._is_watched():
            self._notices.add(_Change(self, _QUEUE, queue, self.acting))

    def address_deleted(self, address: str) -> None:
        if self._is_watched():
            self._notices.add(_Change(self, _ADDRESS, address, self.acting))

    def _is_watched(self) -> bool:
        publisher = self._publisher
        if publisher.listeners_of(topics.QUEUES) or publisher.listeners_of(topics.TOPICS):
            return True
        self._known.clear()
        return False

    # -- telling -----------------------------------------------------------------------------------------------------

    def listen(self, listener: AdvisoryListener) -> None:
        """A new listener is told of what there is, when it asks for these by name."""
        publisher = self._publisher
        if publisher.hears(listener, topics.QUEUES):
            self._notices.add(PresentAdvisories(self, listener, _QUEUE))
        if publisher.hears(listener, topics.TOPICS):
            self._notices.add(PresentAdvisories(self, listener, _ADDRESS))

    def keys(self, kind: int) -> list[str]:
        return list(self._broker.queues if kind == _QUEUE else self._broker.addresses)

    def look(self, kind: int, name: str, connection_id: ConnectionId | None) -> None:
        """Tells what became of a destination, if that was not told."""
        key = (kind, name)
        known = self._known.get(key)
        destination = self.destination_of(kind, name)
        if known is None and destination is not None:
            info = destination_info(destination, connection_id, ADD_DESTINATION)
            self._known[key] = info
            self._publisher.tell(topics.of_destinations(destination), info)
        elif known is not None and known.destination is not None and destination is None:
            del self._known[key]
            info = destination_info(known.destination, known.connection_id or connection_id, REMOVE_DESTINATION)
            self._publisher.tell(topics.of_destinations(known.destination), info)

    def present(self, kind: int, key: str, listener: AdvisoryListener) -> PendingAdvisory | None:
        destination = self.destination_of(kind, key)
        if destination is None:
            return None
        info = self._known.setdefault((kind, key), destination_info(destination, None, ADD_DESTINATION))
        topic = topics.of_destinations(destination)
        if listener.address == topic:
            self._publisher.tell(topic, info, only=listener)
        return None

    def destination_of(self, kind: int, name: str) -> Destination | None:
        """What clients know it as; None for what they don't, or what is gone."""
        broker = self._broker
        if kind == _QUEUE:
            queue = broker.queues.get(name)
            return None if queue is None or queue.owner or queue.internal else queue_destination_of(queue)
        address = broker.addresses.get(name)
        if address is None or address.owner or address.wild or MULTICAST not in address.routing_types:
            return None
        destination = Destination(name, TOPIC)
        return None if topics.is_advisory(destination) else destination


class _Change(PendingAdvisory):
    """Something was made or deleted."""

    def __init__(
        self, advisories: DestinationAdvisories, kind: int, name: str, connection_id: ConnectionId | None
    ) -> None:
        self._advisories = advisories
        self._kind = kind
        self._name = name
        self._connection_id = connection_id

    def tell(self, room: int) -> int:
        self._advisories.look(self._kind, self._name, self._connection_id)
        return max(room - 1, 1)


def destination_info(destination: Destination, connection_id: ConnectionId | None, operation: int) -> DestinationInfo:
    """What is told of a destination that ``connection_id`` made."""
    info = DestinationInfo()
    info.connection_id = connection_id
    info.destination = destination
    info.operation_type = operation
    return info
