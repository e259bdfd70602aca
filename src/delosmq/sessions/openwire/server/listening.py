"""What the engine tells, for those of OpenWire who want to know."""

from delosmq.engine.api import EngineEvents, Slot
from delosmq.model.message import Message
from delosmq.sessions.openwire.server.registry import Registry


class Listening(EngineEvents):
    """Passes on what concerns advisories and consumers of wildcards.

    Attributes:
        registry: None before the first connection, when there is nobody to tell.
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

    def message_acknowledged(self, queue: str, slot: Slot) -> None:
        if self.registry is not None:
            self.registry.advisories.messages.acknowledged(queue, slot)

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
