"""Messages as columns: plain lists in the order and with the names of the published schema.

``timestamp`` and ``expiration`` are microseconds since the epoch (UTC), `LAST_MS` at most; properties are lists of
names and of texts with the ends of each row.
"""

from typing import Final

from delosmq.engine.api import Slot
from delosmq.model.conversion import Conversion, Conversions
from delosmq.model.errors import BrokerError
from delosmq.model.ids import LAST_MS
from delosmq.model.message import BODY_KIND_NAMES, BYTES_BODY, HubMessage, Message

BODY: Final = "body"
PROPERTIES: Final = "properties"
NAMES: Final = (
    BODY,
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

BODY_BYTES: Final = "body_bytes"
"""A column of those who ask for it: how long the body is, also where it is left out as it is too long."""
NO_LIMIT: Final = -1

_US_PER_MS: Final = 1000
_OF_HEADERS: Final = frozenset(("group_id", "correlation_id", "reply_to", "type", "content_type", PROPERTIES))
_NEEDS_HUB: Final = _OF_HEADERS.union((BODY, "body_kind", BODY_BYTES))


class PropertyColumn:
    """The properties of all rows, one after another.

    Attributes:
        ends: of each row among names and texts, after a leading 0.
    """

    def __init__(self) -> None:
        self.ends: list[int] = [0]
        self.names: list[str] = []
        self.texts: list[str] = []

    def add(self, hub: HubMessage) -> None:
        """Appends a row."""
        if hub.properties:
            texts = hub.property_texts()
            self.names.extend(texts.keys())
            self.texts.extend(texts.values())
        self.ends.append(len(self.names))


class Columns:
    """Collects rows, column by column, and converts of each message only what a column asks for.

    Args:
        most_body_bytes: a longer body is left out: its row has an empty one.

    Attributes:
        values: one list for each name, all of the same length; that of `PROPERTIES` stays empty.
        properties: what is asked for in its place.
        rows: how many there are.
        size_bytes: of them as messages: heads, and bodies where they are asked for, as large as they are in the rows.
        unreadable: messages with an encoding that could not be read; their row has the body as it is and no properties.
    """

    def __init__(
        self, names: tuple[str, ...], queue: str, conversions: Conversions, most_body_bytes: int = NO_LIMIT
    ) -> None:
        self.names = names
        self._most_body_bytes = most_body_bytes
        self._lengths: list[object] = []
        self.values: list[list[object]] = [[] for _ in names]
        self.properties: PropertyColumn = PropertyColumn()
        self.rows: int = 0
        self.size_bytes: int = 0
        self.unreadable: list[BrokerError] = []
        self._queue = queue
        self._conversions = conversions
        self._needs_hub: bool = any(name in _NEEDS_HUB for name in names)
        self._needs_headers: bool = any(name in _OF_HEADERS for name in names)
        self._sends_bodies: bool = BODY in names
        # Of the rows that are being added.
        self._hubs: list[HubMessage] = []
        self._bodies: list[object] = []
        self._kinds: list[object] = []
        # Neighbours often come from one producer: what was the same for the last message is not found out again.
        self._protocol: str = ""
        self._conversion: Conversion | None = None
        self._relays_bodies: bool = False
        self._head: bytes | None = None
        self._headers: HubMessage = HubMessage(b"", BYTES_BODY)

    def add(self, slots: list[Slot], start: int, stop: int, most_bytes: int) -> int:
        """Appends messages from ``start`` to ``stop`` (exclusive), fewer when the columns have reached ``most_bytes``;
        gives which one comes next."""
        at = start
        while at < stop and self.size_bytes < most_bytes:
            message = slots[at].message
            self.size_bytes += len(message.head)
            if self._sends_bodies:
                self.size_bytes += len(message.body)
            if self._needs_hub:
                self._convert(message)
            at += 1
        if self._most_body_bytes != NO_LIMIT or BODY_BYTES in self.names:
            self._measure_bodies()
        taken = slots[start:at]
        for i, name in enumerate(self.names):
            if name == PROPERTIES:
                for hub in self._hubs:
                    self.properties.add(hub)
            elif name in _NEEDS_HUB:
                self.values[i] += self._of_hubs(name)
            else:
                self.values[i] += self._of_slots(name, taken)
        self.rows += len(taken)
        self._hubs = []
        self._bodies = []
        self._kinds = []
        return at

    def _measure_bodies(self) -> None:
        bodies = self._bodies
        self._lengths = []
        for i in range(len(bodies)):
            body = bodies[i]
            assert isinstance(body, bytes)
            self._lengths.append(len(body))
            if NO_LIMIT != self._most_body_bytes < len(body):
                bodies[i] = b""

    def _convert(self, message: Message) -> None:
        """Appends the hub form of a message, as far as it is needed, its body and its kind."""
        if message.protocol != self._protocol:
            self._meet(message.protocol)
        if not self._relays_bodies:
            hub = self._hub(message)
            self._hubs.append(hub)
            self._bodies.append(hub.body)
            self._kinds.append(BODY_KIND_NAMES[hub.body_kind])
            if self._sends_bodies:
                self.size_bytes += max(0, len(hub.body) - len(message.body))
            return
        self._bodies.append(message.body)
        self._kinds.append(BODY_KIND_NAMES[message.body_kind])
        if self._needs_headers:
            if message.annotations is not None or message.head != self._head:
                self._headers = self._hub(message)
                self._head = message.head if message.annotations is None else None
            self._hubs.append(self._headers)

    def _meet(self, protocol: str) -> None:
        self._protocol = protocol
        self._conversion = self._conversions.find(protocol)
        self._relays_bodies = self._conversion is not None and self._conversion.relays_bodies()
        self._head = None

    def _hub(self, message: Message) -> HubMessage:
        try:
            if self._conversion is None:
                return self._conversions.to_hub(message)
            if self._relays_bodies:
                return self._conversion.headers_to_hub(message)
            if self._needs_headers:
                return self._conversion.to_hub(message)
            return self._conversion.body_to_hub(message)
        except BrokerError as unreadable:
            # One odd message must not keep a reader from all that follow.
            self.unreadable.append(unreadable)
            return HubMessage(message.body, BYTES_BODY)

    def _of_hubs(self, name: str) -> list[object]:
        hubs = self._hubs
        if name == BODY:
            return self._bodies
        if name == "body_kind":
            return self._kinds
        if name == BODY_BYTES:
            return self._lengths
        if name == "group_id":
            # An empty one is no group, and none to selectors.
            return [hub.group_id or None for hub in hubs]
        if name == "correlation_id":
            return [hub.correlation_id for hub in hubs]
        if name == "reply_to":
            return [hub.reply_to for hub in hubs]
        if name == "type":
            return [hub.type for hub in hubs]
        return [hub.content_type for hub in hubs]

    def _of_slots(self, name: str, slots: list[Slot]) -> list[object]:
        if name == "message_id":
            return [f"ID:{slot.message.message_id}" for slot in slots]
        if name == "address":
            return [slot.message.address for slot in slots]
        if name == "queue":
            return [self._queue] * len(slots)
        if name == "sequence":
            return [slot.sequence for slot in slots]
        if name == "priority":
            return [slot.message.priority for slot in slots]
        if name == "durable":
            return [slot.message.durable for slot in slots]
        if name == "timestamp":
            return [min(slot.message.timestamp_ms, LAST_MS) * _US_PER_MS for slot in slots]
        if name == "expiration":
            return [expires_at_us(slot.message) for slot in slots]
        if name == "redelivered":
            return [slot.delivery_count > 1 for slot in slots]
        if name == "delivery_count":
            return [slot.delivery_count for slot in slots]
        if name == "user":
            return [slot.message.user or None for slot in slots]
        return self._protocols(slots)

    @staticmethod
    def _protocols(slots: list[Slot]) -> list[object]:
        found: list[object] = []
        protocol, family = "", ""
        for slot in slots:
            if slot.message.protocol != protocol:
                protocol = slot.message.protocol
                family = protocol.partition("/")[0].upper()
            found.append(family)
        return found


def body_of(message: Message, conversions: Conversions) -> bytes:
    """The body of a message as its row has it, however long."""
    columns = Columns((BODY,), "", conversions)
    columns.add([Slot(message, True)], 0, 1, len(message.head) + len(message.body) + 1)
    body = columns.values[0][0]
    assert isinstance(body, bytes)
    return body


def body_lengths(slots: list[Slot], conversions: Conversions) -> list[int]:
    """How long the bodies of messages are in their rows."""
    columns = Columns((BODY_BYTES,), "", conversions)
    columns.add(slots, 0, len(slots), 1 << 62)
    return [length for length in columns.values[0] if isinstance(length, int)]


def expires_at_us(message: Message) -> int | None:
    """When a message expires; None for never."""
    return min(message.expires_at_ms, LAST_MS) * _US_PER_MS if message.expires_at_ms else None
