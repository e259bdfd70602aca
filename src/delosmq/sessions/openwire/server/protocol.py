"""OpenWire as the server registers it."""

from typing import Final

from delosmq.model.ids import MonotonicNs
from delosmq.model.reserved_names import ADVISORY_PREFIX
from delosmq.model.settings import AcceptorSettings, AddressMatch
from delosmq.sessions.openwire.server.advisories.topics import TEMPORARY
from delosmq.sessions.openwire.server.listening import Listening
from delosmq.sessions.openwire.server.registry import Registry
from delosmq.sessions.openwire.server.session import OpenWireSession
from delosmq.sessions.protocol import Peer, Protocol, Session, SessionHost, SessionServices
from delosmq.wire.openwire.negotiation import detect

_KEPT_ADVISORIES: Final = 1_000
"""As many as clients take in one go."""

ADVISORY_SETTINGS: Final = AddressMatch(
    f"{ADVISORY_PREFIX}#",
    {
        "auto_create_addresses": True,
        "auto_delete_addresses": True,
        "auto_delete_addresses_delay": 0,
        "dead_letter_address": "",
        "send_to_dla_on_no_route": False,
        "expiry_address": "",
        "no_expiry": True,
        "retroactive_message_count": 0,
        "subscription_recovery_count": 0,
        "subscription_recovery_duration": 0,
        "subscription_recovery_size": 0,
        "subscription_recovery_retained": False,
        "default_ring_size": _KEPT_ADVISORIES,
        "enable_metrics": False,
    },
)
"""Of advisory topics nothing is kept: they come with their first subscriber and go with the last. One that does not
keep up misses the oldest."""


_KEPT_OF_TEMPORARY: Final = 20_000
TEMPORARY_SETTINGS: Final = tuple(
    AddressMatch(address, {"default_ring_size": _KEPT_OF_TEMPORARY}) for address in sorted(TEMPORARY)
)
"""Clients send to no temporary destination that they have not heard of, so more is kept for them."""


class OpenWireProtocol(Protocol):
    """OpenWire, versions 1 to 12, of one broker."""

    def __init__(self) -> None:
        self.name: str = "OPENWIRE"
        self.websocket_subprotocols = ()
        self._listening: Listening = Listening()
        self.events = self._listening
        self.address_settings = (ADVISORY_SETTINGS, *TEMPORARY_SETTINGS)
        self._registry: Registry | None = None

    def detect(self, start: bytes) -> int:
        return detect(start)

    def open(
        self, host: SessionHost, peer: Peer, acceptor: AcceptorSettings, services: SessionServices, now: MonotonicNs
    ) -> Session:
        if self._registry is None:
            self._registry = Registry(services)
            self._listening.registry = self._registry
        return OpenWireSession(host, peer, acceptor, services, registry=self._registry, now=now)
