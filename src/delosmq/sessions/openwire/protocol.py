"""OpenWire as the server registers it."""

from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.openwire.registry import Registry
from delosmq.sessions.openwire.session import OpenWireSession
from delosmq.sessions.protocol import Peer, Protocol, Session, SessionHost, SessionServices
from delosmq.wire.openwire.negotiation import detect


class OpenWireProtocol(Protocol):
    """OpenWire, versions 1 to 12, of one broker."""

    def __init__(self) -> None:
        self.name: str = "OPENWIRE"
        self.websocket_subprotocols = ()
        self._registry: Registry | None = None

    def detect(self, start: bytes) -> int:
        return detect(start)

    def open(
        self, host: SessionHost, peer: Peer, acceptor: AcceptorSettings, services: SessionServices, now: MonotonicNs
    ) -> Session:
        if self._registry is None:
            self._registry = Registry(services)
        return OpenWireSession(host, peer, acceptor, services, registry=self._registry, now=now)
