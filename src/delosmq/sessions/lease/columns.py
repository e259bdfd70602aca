"""Messages as columns: plain lists in the order and with the names of the published schema.

``timestamp`` and ``expiration`` are microseconds since the epoch (UTC), properties are lists of pairs.
"""

from typing import Final

from delosmq.engine.api import Slot
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError
from delosmq.model.message import BODY_KIND_NAMES, BYTES_BODY, HubMessage, Message

PROPERTIES: Final = "properties"
NAMES: Final = (
    "body",
    "message_id",
    "address",
    "queue",
    "sequence",
    "priority",
    "durable",
    "timestamp",
    "expiration",
    "redelivered",
    "delivery_count",
    "group_id",
    "correlation_id",
    "reply_to",
    "type",
    "content_type",
    "user",
    "protocol",
    PROPERTIES,
    "body_kind",
)

_US_PER_MS: Final = 1000
_NEEDS_HUB: Final = frozenset(
    ("body", "group_id", "correlation_id", "reply_to", "type", "content_type", PROPERTIES, "body_kind")
)


class Columns:
    """Collects rows.

    Attributes:
        values: one list for each name, all of the same length.
        rows: how many there are.
        grown_bytes: by how much the bodies are larger than the broker keeps them, as they were compressed.
        unreadable: messages with an encoding that could not be read; their row has the body as it is and no properties.
    """

    def __init__(self, names: tuple[str, ...], queue: str, conversions: Conversions) -> None:
        self.names = names
        self.values: list[list[object]] = [[] for _ in names]
        self.rows: int = 0
        self.unreadable: list[BrokerError] = []
        self.grown_bytes: int = 0
        self._queue = queue
        self._conversions = conversions
        self._needs_hub = any(name in _NEEDS_HUB for name in names)

    def add(self, slot: Slot) -> None:
        """Appends one message."""
        hub = self._hub(slot.message) if self._needs_hub else None
        for i, name in enumerate(self.names):
            self.values[i].append(self._plain(name, slot) if hub is None else self._value(name, slot, hub))
        self.rows += 1

    def _hub(self, message: Message) -> HubMessage:
        try:
            hub = self._conversions.to_hub(message)
            self.grown_bytes += max(0, len(hub.body) - len(message.body))
            return hub
        except BrokerError as unreadable:
            # One odd message must not keep a reader from all that follow.
            self.unreadable.append(unreadable)
            return HubMessage(message.body, BYTES_BODY)

    def _value(self, name: str, slot: Slot, hub: HubMessage) -> object:
        if name == "body":
            return hub.body
        if name == "body_kind":
            return BODY_KIND_NAMES[hub.body_kind]
        if name == PROPERTIES:
            return list(hub.property_texts().items())
        if name == "group_id":
            return hub.group_id
        if name == "correlation_id":
            return hub.correlation_id
        if name == "reply_to":
            return hub.reply_to
        if name == "type":
            return hub.type
        if name == "content_type":
            return hub.content_type
        return self._plain(name, slot)

    def _plain(self, name: str, slot: Slot) -> object:
        message = slot.message
        if name == "message_id":
            return f"ID:{message.message_id}"
        if name == "address":
            return message.address
        if name == "queue":
            return self._queue
        if name == "sequence":
            return int(slot.sequence)
        if name == "priority":
            return message.priority
        if name == "durable":
            return message.durable
        if name == "timestamp":
            return message.timestamp_ms * _US_PER_MS
        if name == "expiration":
            return message.expires_at_ms * _US_PER_MS if message.expires_at_ms else None
        if name == "redelivered":
            return slot.delivery_count > 1
        if name == "delivery_count":
            return slot.delivery_count
        if name == "user":
            return message.user or None
        return message.protocol.partition("/")[0].upper()
