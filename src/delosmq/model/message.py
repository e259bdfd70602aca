"""A message: its encoded original plus what the broker knows of it."""

from typing import Final

from delosmq.model.ids import NOTHING_DURABLE, MessageId, Position, Sequence, WallMs
from delosmq.model.properties import PropertyValue, kind_of, property_text

ANYCAST: Final = 1
MULTICAST: Final = 2
ANY_ROUTING: Final = 0
ROUTING_NAMES: Final = {ANY_ROUTING: "ANY", ANYCAST: "ANYCAST", MULTICAST: "MULTICAST"}

DEFAULT_PRIORITY: Final = 4
HIGHEST_PRIORITY: Final = 9

# What a message costs beside its bytes: measured on CPython 3.11 with one queue reference (docs/decisions/0015).
MESSAGE_OVERHEAD_BYTES: Final = 512

TEXT_BODY: Final = 1
BYTES_BODY: Final = 2
MAP_BODY: Final = 3
STREAM_BODY: Final = 4
OBJECT_BODY: Final = 5
EMPTY_BODY: Final = 6
BODY_KIND_NAMES: Final = {
    TEXT_BODY: "text",
    BYTES_BODY: "bytes",
    MAP_BODY: "map",
    STREAM_BODY: "stream",
    OBJECT_BODY: "object",
    EMPTY_BODY: "empty",
}

# How the hub form says what an address is where answers go, as in ``queue://orders``.
QUEUE_SCHEME: Final = "queue://"
TOPIC_SCHEME: Final = "topic://"
TEMPORARY_QUEUE_SCHEME: Final = "temp-queue://"
TEMPORARY_TOPIC_SCHEME: Final = "temp-topic://"

SEQUENCES_PER_PRODUCER: Final = (1 << 31) - 1
"""Ids of messages of other protocols end in two numbers for JMS clients, some of which keep the last one as an int: the
broker's id divided by this, and the rest. Source: OpenWireMessageConverter of Artemis."""


NO_LIMIT: Final = 1 << 60
"""Of an account: more than any machine holds."""


class Account:
    """What is counted against the limits of an address: each message once, whatever the number of its queues.

    Attributes:
        most_bytes, most_messages: these limits.
        full: it is at one of them. Kept by those who count, as every send asks.
    """

    def __init__(self) -> None:
        self.used_bytes: int = 0
        self.used_messages: int = 0
        self.most_bytes: int = NO_LIMIT
        self.most_messages: int = NO_LIMIT
        self.full: bool = False

    def set_limits(self, max_bytes: int, max_messages: int) -> None:
        """Puts limits into force; -1 (`UNLIMITED`) is none."""
        self.most_bytes = NO_LIMIT if max_bytes < 0 else max_bytes
        self.most_messages = NO_LIMIT if max_messages < 0 else max_messages
        self.full = self.reaches(self)

    def reaches(self, limits: "Account") -> bool:
        """Whether what it counts is all that another one, or itself, may count."""
        return self.used_bytes >= limits.most_bytes or self.used_messages >= limits.most_messages


class Home:
    """Where a store keeps the body of one message: the store's to fill, the engine's to hand back.

    Attributes:
        segment: number of the segment, 0 before the message is stored.
        offset: of its body within the segment, in bytes.
        size_bytes: of its body.
    """

    # As of messages and slots there are millions: a dictionary for each would double what they take when not compiled.
    __slots__ = ("offset", "segment", "size_bytes")

    def __init__(self) -> None:
        self.segment: int = 0
        self.offset: int = 0
        self.size_bytes: int = 0


class Message:
    """One message as accepted: immutable but for the fields the engine fills in.

    Attributes:
        protocol: the encoding of ``head`` and ``body``, such as ``stomp/12``; names the conversion to the hub form.
        head: encoded headers as their protocol wrote them.
        body: the encoded body.
        body_kind: one of the ``*_BODY`` constants.
        expires_at_ms: wall clock, 0 for never. The engine may change it once, before the message is routed.
        due_at_ms: wall clock; not delivered earlier, 0 for at once. delay_ms: it is the end of so long a delay; 0
            when it is a time of day.
        group_id, group_sequence: as in ``JMSXGroupID`` and ``JMSXGroupSeq``; "" is no group.
        duplicate_id: as in ``_AMQ_DUPL_ID``; empty for none.
        connection_id: of its sender, for consumers that want no messages of their own connection; not stored.
        annotations: properties the broker adds (``_AMQ_ORIG_ADDRESS``, ...); None when there are none.
        user: who sent it, validated.
        message_id, sequence, position: given by the engine; the position is that of the batch which stored it.
        references: in how many queues it is; recorded_references: in how many of them the store holds it.
        home: where the store holds it; None when no store does.
        account: what the message is charged to; None before it is routed.
    """

    __slots__ = (
        "account",
        "address",
        "annotations",
        "body",
        "body_kind",
        "connection_id",
        "delay_ms",
        "due_at_ms",
        "duplicate_id",
        "durable",
        "encoded_size_bytes",
        "expires_at_ms",
        "group_id",
        "group_sequence",
        "head",
        "home",
        "message_id",
        "position",
        "priority",
        "protocol",
        "recorded_references",
        "references",
        "sequence",
        "timestamp_ms",
        "user",
    )

    def __init__(
        self,
        address: str,
        protocol: str,
        head: bytes,
        body: bytes,
        *,
        body_kind: int = BYTES_BODY,
        priority: int = DEFAULT_PRIORITY,
        durable: bool = False,
        timestamp_ms: WallMs,
        expires_at_ms: int = 0,
        user: str = "",
        annotations: dict[str, str] | None = None,
        due_at_ms: int = 0,
        group_id: str = "",
        group_sequence: int = 0,
        duplicate_id: bytes = b"",
        connection_id: str = "",
    ) -> None:
        self.address = address
        self.protocol = protocol
        self.head = head
        self.body = body
        self.body_kind = body_kind
        self.priority = priority
        self.durable = durable
        self.timestamp_ms = timestamp_ms
        self.expires_at_ms = expires_at_ms
        self.user = user
        self.annotations = annotations
        self.due_at_ms = due_at_ms
        self.delay_ms: int = 0
        self.group_id = group_id
        self.group_sequence = group_sequence
        self.duplicate_id = duplicate_id
        self.connection_id = connection_id
        self.account: Account | None = None
        self.message_id: MessageId = MessageId(0)
        self.sequence: Sequence = Sequence(0)
        self.position: Position = NOTHING_DURABLE
        self.references: int = 0
        self.recorded_references: int = 0
        self.home: Home | None = None
        self.encoded_size_bytes: int = len(head) + len(body)
        """What the message counts against a consumer's window and in the size of a lease."""

    @property
    def charge_bytes(self) -> int:
        """What the message counts against memory limits, once per address whatever the number of its queues."""
        return MESSAGE_OVERHEAD_BYTES + self.encoded_size_bytes


class HubMessage:
    """The form in which protocols meet: typed body, typed properties.

    Attributes:
        body: text as UTF-8, map and stream bodies as JSON text (`delosmq.model.bodies`), others as they are.
        properties: application properties in the order they were sent.
        property_kinds: the JMS type where the value alone does not say it: bytes, shorts, floats, small longs.
        correlation_bytes: the correlation id of a sender that gave bytes; the text has them as UTF-8, if they are that.
        reply_to: one of the ``*_SCHEME`` constants and an address; without one, what only its sender understands.
    """

    def __init__(self, body: bytes, body_kind: int) -> None:
        self.body = body
        self.body_kind = body_kind
        self.properties: dict[str, PropertyValue] = {}
        self.property_kinds: dict[str, int] = {}
        self.correlation_id: str | None = None
        self.correlation_bytes: bytes | None = None
        self.reply_to: str | None = None
        self.type: str | None = None
        self.content_type: str | None = None
        self.group_id: str | None = None

    def property_kind(self, name: str) -> int:
        """The JMS type of a property: one of the constants of `delosmq.model.properties`.

        Raises:
            KeyError: there is no such property.
        """
        kind = self.property_kinds.get(name)
        return kind_of(self.properties[name]) if kind is None else kind

    def property_texts(self) -> dict[str, str]:
        """All properties as text, for those who have no types."""
        kinds = self.property_kinds
        texts: dict[str, str] = {}
        for name, value in self.properties.items():
            texts[name] = value if isinstance(value, str) else property_text(value, kinds.get(name, 0))
        return texts
