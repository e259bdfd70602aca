"""The registry of the OpenWire connections of one broker."""

from delosmq.sessions.host import SessionServices
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.advisories.advisories import Advisories
from delosmq.sessions.openwire.server.consumers.wildcards import QueueWatchers
from delosmq.sessions.openwire.server.temporary_destinations import ForeignTemporaries
from delosmq.wire.openwire.structures import BrokerId


class Registry:
    """The connections of the broker, and what all are told.

    Attributes:
        broker_id: new each time the broker starts.
        watchers: connections with consumers of wildcards.
    """

    def __init__(self, services: SessionServices) -> None:
        name = services.broker.settings.name
        self.broker_id: BrokerId = BrokerId(f"ID:{name}-{services.clock.wall_ms()}-0:1")
        self.broker_name: str = name
        self.advisories: Advisories = Advisories(
            services.broker, services.clock, services.conversions, broker_id=self.broker_id, broker_name=name
        )
        services.temporaries.listen(ForeignTemporaries(self.advisories))
        self.watchers: QueueWatchers = QueueWatchers()
        self._by_client_id: dict[str, SessionMachine] = {}
        self._by_connection_id: dict[str, SessionMachine] = {}
        self._users: dict[str, str] = {}

    def enter(self, connection_id: str, client_id: str, connection: SessionMachine, *, user: str) -> None:
        """Makes a connection known.

        Raises:
            OpenWireError: its client id is another's, or its own id another user's.
        """
        stale = self._by_connection_id.get(connection_id)
        if stale is not None and stale is not connection and self._users[connection_id] != user:
            raise errors.connection_id_taken(connection_id, stale.peer.name)
        other = self._by_client_id.get(client_id) if client_id else None
        if other is not None and other is not connection and other is not stale:
            raise errors.client_id_taken(client_id, other.peer.name)
        if stale is not None and stale is not connection:
            # After a failover the client is here before its old connection is known to be dead.
            stale.fail(errors.replaced(connection_id))
        if client_id:
            self._by_client_id[client_id] = connection
        self._by_connection_id[connection_id] = connection
        self._users[connection_id] = user

    def leave(self, connection_id: str, client_id: str, connection: SessionMachine) -> None:
        if self._by_connection_id.get(connection_id) is connection:
            del self._by_connection_id[connection_id]
            del self._users[connection_id]
        if self._by_client_id.get(client_id) is connection:
            del self._by_client_id[client_id]
