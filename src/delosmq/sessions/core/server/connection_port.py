"""What the sessions of a connection share, and ask of it."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.sessions.core.server.consumers.consumer import CoreConsumer
from delosmq.sessions.core.server.destinations import CoreDestinations
from delosmq.sessions.core.server.producers.large_messages import GatheredBytes
from delosmq.sessions.core.server.queues.queues import ConnectionQueues
from delosmq.sessions.core.server.registry import SessionNames
from delosmq.sessions.core.server.session_port import SessionPort
from delosmq.sessions.machine import SessionMachine


@mypyc_attr(allow_interpreted_subclasses=True)
class ConnectionState(ABC):
    """Of one connection.

    Attributes:
        consumers: of all its sessions, by the engine's ids.
        gathered: of large messages that are not complete.
        broker_id: 16 bytes, of this broker.
        names: of all sessions of the broker.
        most_sessions: it may have.
    """

    def __init__(self, machine: SessionMachine, names: SessionNames, broker_id: bytes) -> None:
        self.names = names
        self.consumers: dict[int, CoreConsumer] = {}
        self.destinations: CoreDestinations = CoreDestinations(machine.acceptor)
        self.queues: ConnectionQueues = ConnectionQueues(machine)
        self.gathered: GatheredBytes = GatheredBytes(machine.services.broker.producers.largest_message_bytes)
        self.broker_id = broker_id
        self.most_sessions: int = machine.acceptor.max_subscriptions

    @abstractmethod
    def note_busy(self, session: SessionPort, busy: bool) -> None:
        """Something of a session waits, or nothing does."""

    @abstractmethod
    def parked_changed(self) -> None:
        """What of a session waits has become more or less."""

    @abstractmethod
    def lose(self, *, least_window_bytes: int) -> None:
        """The connection is of no use any more: its sessions with such a window wait for their client, the others end.
        Nothing happens if they wait already."""

    @abstractmethod
    def release(self, session: SessionPort) -> None:
        """A session that waits goes to another connection."""

    @abstractmethod
    def drop(self, session: SessionPort) -> None:
        """A session ends that its client does not know of any more."""
