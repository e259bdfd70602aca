"""What two peers have agreed on: the layout of each command in their version, and what they remember of each other.

A layout follows from the constructor of the command. What is made for each message (messages, acknowledgements, ids,
destinations) has a constructor written by hand, and its layout here.
"""

from typing import Final

from delosmq.wire.openwire import errors
from delosmq.wire.openwire.commands import (
    ACTIVEMQ_MESSAGE,
    BLOB_MESSAGE,
    BYTES_MESSAGE,
    COMMANDS,
    MAP_MESSAGE,
    OBJECT_MESSAGE,
    STREAM_MESSAGE,
    TEXT_MESSAGE,
    MessageAck,
    MessageCommand,
)
from delosmq.wire.openwire.structures import (
    ARRAY,
    BLOCK,
    BROKER_ID,
    BROKER_SUBSCRIPTION_INFO,
    BYTE,
    BYTES,
    CACHED,
    CONNECTION_ID,
    CONSUMER_ID,
    FLAG,
    INT,
    LOCAL_TRANSACTION_ID,
    LONG,
    MESSAGE_ACK,
    MESSAGE_ID,
    MESSAGE_PULL,
    NAME,
    NESTED,
    NETWORK_BRIDGE_FILTER,
    PRODUCER_ACK,
    PRODUCER_ID,
    QUEUE,
    SESSION_ID,
    STRING,
    SUBSCRIPTION_INFO,
    TEMP_QUEUE,
    TEMP_TOPIC,
    THROWABLE,
    TOPIC,
    XA_TRANSACTION_ID,
    BrokerId,
    ConnectionId,
    ConsumerId,
    Destination,
    Field,
    Fields,
    Id,
    LocalTransactionId,
    MessageId,
    ProducerId,
    SessionId,
    Structure,
    TransactionId,
    XATransactionId,
)

OLDEST_VERSION: Final = 1
NEWEST_VERSION: Final = 12

MESSAGES: Final = frozenset(
    (ACTIVEMQ_MESSAGE, BYTES_MESSAGE, MAP_MESSAGE, OBJECT_MESSAGE, STREAM_MESSAGE, TEXT_MESSAGE, BLOB_MESSAGE)
)
DESTINATIONS: Final = frozenset((QUEUE, TOPIC, TEMP_QUEUE, TEMP_TOPIC))
_TRANSACTIONS: Final = frozenset((LOCAL_TRANSACTION_ID, XA_TRANSACTION_ID))
_MESSAGE_IDS: Final = frozenset((MESSAGE_ID,))
_CONSUMERS: Final = frozenset((CONSUMER_ID,))
_PRODUCERS: Final = frozenset((PRODUCER_ID,))
_CONNECTIONS: Final = frozenset((CONNECTION_ID,))
_BROKERS: Final = frozenset((BROKER_ID,))
NOT_FRAMES: Final = frozenset((SUBSCRIPTION_INFO, NETWORK_BRIDGE_FILTER))
"""Types below 100 that only travel inside others."""

BROKER_SEQUENCE: Final = "broker_sequence_id"

_MESSAGE: Final = (
    Field("producer_id", CACHED, _PRODUCERS),
    Field("destination", CACHED, DESTINATIONS),
    Field("transaction_id", CACHED, _TRANSACTIONS),
    Field("original_destination", CACHED, DESTINATIONS),
    Field("message_id", NESTED, _MESSAGE_IDS),
    Field("original_transaction_id", CACHED, _TRANSACTIONS),
    Field("group_id", STRING),
    Field("group_sequence", INT),
    Field("correlation_id", STRING),
    Field("persistent", FLAG),
    Field("expiration", LONG),
    Field("priority", BYTE),
    Field("reply_to", NESTED, DESTINATIONS),
    Field("timestamp", LONG),
    Field("type", STRING),
    Field("content", BYTES),
    Field("marshalled_properties", BYTES),
    Field("data_structure", NESTED),
    Field("target_consumer_id", CACHED, _CONSUMERS),
    Field("compressed", FLAG),
    Field("redelivery_counter", INT),
    Field("broker_path", ARRAY, _BROKERS),
    Field("arrival", LONG),
    Field("user_id", STRING),
    Field("received_by_df_bridge", FLAG),
    Field("droppable", FLAG, since=2),
    Field("cluster", ARRAY, _BROKERS, since=3),
    Field("broker_in_time", LONG, since=3),
    Field("broker_out_time", LONG, since=3),
    Field("group_first_for_consumer", FLAG, since=10),
)


_NAME: Final = (Field("name", NAME),)
_BLOB: Final = (
    *_MESSAGE,
    Field("remote_blob_url", STRING, since=3),
    Field("mime_type", STRING, since=3),
    Field("deleted_by_broker", FLAG, since=3),
)

_WRITTEN: Final[dict[int, tuple[Field, ...]]] = {
    **dict.fromkeys(MESSAGES, _MESSAGE),
    BLOB_MESSAGE: _BLOB,
    MESSAGE_ACK: (
        Field("destination", CACHED, DESTINATIONS),
        Field("transaction_id", CACHED, _TRANSACTIONS),
        Field("consumer_id", CACHED, _CONSUMERS),
        Field("ack_type", BYTE),
        Field("first_message_id", NESTED, _MESSAGE_IDS),
        Field("last_message_id", NESTED, _MESSAGE_IDS),
        Field("message_count", INT),
        Field("poison_cause", THROWABLE, since=7),
    ),
    **dict.fromkeys(DESTINATIONS, _NAME),
    MESSAGE_ID: (
        Field("text_view", STRING, since=10),
        Field("producer_id", CACHED, _PRODUCERS),
        Field("producer_sequence_id", LONG),
        Field(BROKER_SEQUENCE, LONG),
    ),
    LOCAL_TRANSACTION_ID: (Field("value", LONG), Field("connection_id", CACHED, _CONNECTIONS)),
    XA_TRANSACTION_ID: (
        Field("format_id", INT),
        Field("global_transaction_id", BLOCK),
        Field("branch_qualifier", BLOCK),
    ),
    CONNECTION_ID: (Field("value", NAME),),
    SESSION_ID: (Field("connection_id", NAME), Field("value", LONG)),
    CONSUMER_ID: (Field("connection_id", NAME), Field("session_id", LONG), Field("value", LONG)),
    PRODUCER_ID: (Field("connection_id", NAME), Field("value", LONG), Field("session_id", LONG)),
    BROKER_ID: (Field("value", NAME),),
}
"""Layouts of what is written by hand."""

_IDS: Final[dict[int, type[Structure]]] = {
    MESSAGE_ID: MessageId,
    LOCAL_TRANSACTION_ID: LocalTransactionId,
    XA_TRANSACTION_ID: XATransactionId,
    CONNECTION_ID: ConnectionId,
    SESSION_ID: SessionId,
    CONSUMER_ID: ConsumerId,
    PRODUCER_ID: ProducerId,
    BROKER_ID: BrokerId,
}

CLASSES: Final[dict[int, type[Structure]]] = {
    **{command().code: command for command in COMMANDS},
    **_IDS,
    MESSAGE_ACK: MessageAck,
}
"""The class of each type, but for messages and destinations: their classes have several types."""


def _codes() -> dict[type, frozenset[int]]:
    """The types that may stand where a field names a class."""
    codes: dict[type, frozenset[int]] = {kind: frozenset((code,)) for code, kind in CLASSES.items()}
    codes[Destination] = DESTINATIONS
    codes[MessageCommand] = MESSAGES
    codes[TransactionId] = _TRANSACTIONS
    codes[Id] = frozenset(_IDS)
    return codes


def _declared() -> dict[int, tuple[Field, ...]]:
    """The layouts that follow from constructors."""
    codes = _codes()
    layouts: dict[int, tuple[Field, ...]] = {}
    for command in COMMANDS:
        noted: list[Field] = []
        code = command(fields=Fields(noted, codes)).code
        layouts[code] = tuple(noted)
    return layouts


TABLE: Final[dict[int, tuple[Field, ...]]] = {**_declared(), **_WRITTEN}
"""All fields of each type, in the order in which they travel."""

TYPE_SINCE: Final = {PRODUCER_ACK: 3, MESSAGE_PULL: 2, BLOB_MESSAGE: 3, BROKER_SUBSCRIPTION_INFO: 12}
"""The first version with a type; 1 for those not named."""


def layout_of(version: int) -> dict[int, tuple[Field, ...]]:
    """The fields of each type that ``version`` has, in order."""
    return {
        code: tuple(field for field in fields if field.since <= version <= field.until)
        for code, fields in TABLE.items()
        if TYPE_SINCE.get(code, 1) <= version
    }


LAYOUTS: Final[list[dict[int, tuple[Field, ...]]]] = [layout_of(version) for version in range(NEWEST_VERSION + 1)]
"""By version; the first one is empty of use."""


def new_structure(code: int) -> Structure:
    """An empty value of a known type."""
    if code in MESSAGES:
        return MessageCommand(code)
    if code in DESTINATIONS:
        return Destination("", code)
    return CLASSES[code]()


CACHE_SIZE: Final = 1_024
"""Values remembered of one peer at most. Source: the cacheSize that the Java client asks for."""


class WireFormat:
    """How commands are encoded on one connection, in both directions.

    Attributes:
        tight: booleans are packed into bits ahead of the other fields, numbers and strings are shortened.
        caching: ids and destinations may be sent once and then by number. We only ever send them in full.
        stack_traces: exceptions travel with their stack and cause.
        max_frame_bytes: the largest frame that the peer takes, without its size.
        too_large: names a message that has not been sent for that; "" as long as all fitted.
        plain: none of the above, so that messages can be relayed as they are.
    """

    def __init__(
        self,
        version: int,
        *,
        tight: bool = False,
        caching: bool = False,
        stack_traces: bool = False,
        max_frame_bytes: int = (1 << 63) - 1,
    ) -> None:
        if version < OLDEST_VERSION:
            raise errors.no_such_version(version)
        self.version = min(version, NEWEST_VERSION)
        self.tight = tight
        self.caching = caching
        self.stack_traces = stack_traces
        self.max_frame_bytes = max_frame_bytes
        self.too_large: str = ""
        self.plain: bool = not (tight or caching or stack_traces)
        self.layout: dict[int, tuple[Field, ...]] = LAYOUTS[self.version]
        self._remembered: dict[int, Structure | None] = {}

    def remember(self, index: int, value: Structure | None) -> None:
        """Keeps what the peer sent in full under a number; a negative one is not kept."""
        if index >= CACHE_SIZE:
            raise errors.not_cached(index)
        if index >= 0:
            self._remembered[index] = value

    def recall(self, index: int) -> Structure | None:
        """What the peer sent under a number.

        Raises:
            PeerError: DMQ5213, nothing was.
        """
        if index not in self._remembered:
            raise errors.not_cached(index)
        return self._remembered[index]


PLAIN_FORMATS: Final = [WireFormat(max(OLDEST_VERSION, version)) for version in range(NEWEST_VERSION + 1)]
"""Loosely encoded, nothing cached: what real clients end up with. By version."""
