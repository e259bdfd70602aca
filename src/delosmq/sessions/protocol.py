"""What a protocol registers: its name in `delosmq.model.protocol_names`, its class in `delosmq.composition`."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.engine.api import NO_EVENTS, EngineEvents
from delosmq.model.conversion import Conversion
from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import AcceptorSettings, AddressMatch
from delosmq.sessions.host import Peer, SessionHost, SessionServices
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.protocol_session import ProtocolSession


@mypyc_attr(allow_interpreted_subclasses=True)
class Protocol(ABC):
    """One protocol, as the server knows it.

    Attributes:
        name: as in ``protocols=`` of an acceptor.
        family: in the tags of messages that it encodes (``stomp`` of ``stomp/12``).
        conversion: by which others read those; None when it encodes none.
        websocket_subprotocols: by which WebSocket clients ask for it; empty when it isn't spoken there.
        events: hears what the engine tells, from before the first connection on.
        address_settings: for addresses of its own; what broker.xml says of them counts more.
    """

    name: str
    family: str = ""
    conversion: Conversion | None = None
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
