"""OpenWire as the server registers it, and the events of the engine that it passes on."""

from typing import Final

from delosmq.engine.api import EngineEvents, Slot
from delosmq.model.ids import MonotonicNs
from delosmq.model.message import Message
from delosmq.model.protocol_names import OPENWIRE
from delosmq.model.reserved_names import ADVISORY_PREFIX
from delosmq.model.settings import AcceptorSettings, AddressMatch
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.openwire.server.destinations import TEMPORARY_TOPICS
from delosmq.sessions.openwire.server.registry import Registry
from delosmq.sessions.openwire.server.session import OpenWireSession
from delosmq.sessions.protocol import Protocol
from delosmq.sessions.protocol_session import ProtocolSession
from delosmq.wire.openwire.conversion import OpenWireConversion
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
    AddressMatch(address, {"default_ring_size": _KEPT_OF_TEMPORARY}) for address in sorted(TEMPORARY_TOPICS)
)
"""Clients send to no temporary destination that they have not heard of, so more is kept for them."""


class OpenWireEvents(EngineEvents):
    """Passes on what concerns advisories and consumers of wildcards.

    Attributes:
        registry: None before the first connection.
    """

    def __init__(self) -> None:
        self.registry: Registry | None = None

    def queue_created(self, queue: str, address: str) -> None:
        if self.registry is not None:
            self.registry.advisories.destinations.queue_created(queue, address)
            self.registry.watchers.queue_created(queue)

    def queue_deleted(self, queue: str) -> None:
        if self.registry is not None:
            self.registry.advisories.destinations.queue_deleted(queue)

    def address_created(self, address: str) -> None:
        if self.registry is not None:
            self.registry.advisories.destinations.address_created(address)

    def address_deleted(self, address: str) -> None:
        if self.registry is not None:
            self.registry.advisories.destinations.address_deleted(address)

    def message_expired(self, queue: str, slot: Slot, expiry_address: str) -> None:
        if self.registry is not None:
            self.registry.advisories.messages.expired(queue, slot, expiry_address != "")

    def message_dead_lettered(self, queue: str, slot: Slot, dead_letter_address: str) -> None:
        if self.registry is not None and dead_letter_address:
            self.registry.advisories.messages.dead_lettered(queue, slot)

    def message_acknowledged(self, queue: str, queue_id: int, slot: Slot, holder: str, user: str) -> None:
        if self.registry is not None:
            self.registry.advisories.messages.acknowledged(queue_id, slot)

    def message_routed(self, message: Message, queues: list[str]) -> None:
        if self.registry is not None:
            self.registry.advisories.messages.routed(message, queues)

    def message_unrouted(self, message: Message) -> None:
        if self.registry is not None:
            self.registry.advisories.messages.unrouted(message)

    def message_replaced(self, queue: str, slot: Slot) -> None:
        if self.registry is not None:
            self.registry.advisories.messages.replaced(queue, slot)

    def message_dropped(self, message: Message) -> None:
        if self.registry is not None:
            self.registry.advisories.messages.dropped(message)

    def address_full(self, message: Message) -> None:
        if self.registry is not None:
            self.registry.advisories.messages.full(message)


class OpenWireProtocol(Protocol):
    """OpenWire, versions 1 to 12, of one broker."""

    def __init__(self, acceptors: tuple[AcceptorSettings, ...] = ()) -> None:
        self.name = OPENWIRE
        self.family = "openwire"
        self.conversion = OpenWireConversion()
        self.websocket_subprotocols = ()
        self._events: OpenWireEvents = OpenWireEvents()
        self.events = self._events
        self.address_settings = (ADVISORY_SETTINGS, *TEMPORARY_SETTINGS)
        self._registry: Registry | None = None

    def detect(self, start: bytes) -> int:
        return detect(start)

    def begin(self, machine: SessionMachine, now: MonotonicNs) -> ProtocolSession:
        if self._registry is None:
            self._registry = Registry(machine.services)
            self._events.registry = self._registry
        return OpenWireSession(machine, self._registry)
