"""What a protocol registers with the server."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.engine.api import NO_EVENTS, EngineEvents
from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import AcceptorSettings, AddressMatch
from delosmq.sessions.host import Peer, SessionHost, SessionServices
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.protocol_session import ProtocolSession


@mypyc_attr(allow_interpreted_subclasses=True)
class Protocol(ABC):
    """What a protocol registers with the server; nothing else in the tree lists protocols.

    Attributes:
        name: as in ``protocols=`` of an acceptor.
        websocket_subprotocols: by which WebSocket clients ask for it; empty when it isn't spoken there.
        events: hears what the engine tells, from before the first connection on.
        address_settings: for addresses of its own; what broker.xml says of them counts more.
    """

    name: str
    websocket_subprotocols: tuple[str, ...] = ()
    events: EngineEvents = NO_EVENTS
    address_settings: tuple[AddressMatch, ...] = ()

    @abstractmethod
    def detect(self, start: bytes) -> int:
        """Whether a connection that begins with ``start`` speaks it: see `delosmq.wire.first_bytes`."""

    @abstractmethod
    def begin(self, machine: SessionMachine, now: MonotonicNs) -> ProtocolSession:
        """What it brings to the session of a connection that was detected."""

    def open(
        self, host: SessionHost, peer: Peer, acceptor: AcceptorSettings, services: SessionServices, now: MonotonicNs
    ) -> SessionMachine:
        """A session for a connection that was detected."""
        machine = SessionMachine(host, peer, acceptor, services)
        machine.begin(self.begin(machine, now))
        return machine
