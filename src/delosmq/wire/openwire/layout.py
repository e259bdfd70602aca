"""What travels in which order: one table for all commands, data structures and versions.

Every command but a WireFormatInfo begins with ``command_id`` and ``response_required``, which the table leaves out. A
WireFormatInfo has a form of its own: `negotiation`.

Source: the openwire v1 to v12 marshallers of ActiveMQ.
"""

from typing import Final

from delosmq.wire.openwire.commands import (
    BrokerId,
    BrokerInfo,
    BrokerSubscriptionInfo,
    ConnectionControl,
    ConnectionError,
    ConnectionId,
    ConnectionInfo,
    ConsumerControl,
    ConsumerId,
    ConsumerInfo,
    ControlCommand,
    DataArrayResponse,
    DataResponse,
    Destination,
    DestinationInfo,
    ExceptionResponse,
    FlushCommand,
    IntegerResponse,
    KeepAliveInfo,
    LocalTransactionId,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    MessageDispatchNotification,
    MessageId,
    MessagePull,
    NetworkBridgeFilter,
    ProducerAck,
    ProducerId,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
    Response,
    SessionId,
    SessionInfo,
    ShutdownInfo,
    Structure,
    SubscriptionInfo,
    TransactionInfo,
    XATransactionId,
)

OLDEST_VERSION: Final = 1
NEWEST_VERSION: Final = 12

# The kinds of fields. Those in capitals of the specification's notation stand beside them.
FLAG: Final = 1  # b
BYTE: Final = 2  # y, signed
INT: Final = 3  # i
LONG: Final = 4  # L
STRING: Final = 5  # S
NAME: Final = 6  # S that may not be null
NESTED: Final = 7  # N
CACHED: Final = 8  # C: sent once and then by number, when both sides cache values
ARRAY: Final = 9  # A
BYTES: Final = 10  # Q
BLOCK: Final = 11  # Q that may not be null
THROWABLE: Final = 12  # X

_ALWAYS: Final = 99


class Field:
    """One field of a command.

    Attributes:
        name: of the attribute.
        kind: one of the constants above.
        of: the type codes that a nested value may have.
        since, until: the versions that have it, both included.
    """

    def __init__(
        self, name: str, kind: int, of: frozenset[int] = frozenset(), *, since: int = 1, until: int = _ALWAYS
    ) -> None:
        self.name = name
        self.kind = kind
        self.of = of
        self.since = since
        self.until = until


DESTINATIONS: Final = frozenset((100, 101, 102, 103))
TRANSACTIONS: Final = frozenset((111, 112))
MESSAGES: Final = frozenset((23, 24, 25, 26, 27, 28, 29))
_MESSAGE_IDS: Final = frozenset((110,))
_CONNECTIONS: Final = frozenset((120,))
_SESSIONS: Final = frozenset((121,))
_CONSUMERS: Final = frozenset((122,))
_PRODUCERS: Final = frozenset((123,))
_BROKERS: Final = frozenset((124,))
_BROKER_INFOS: Final = frozenset((2,))
_SUBSCRIPTIONS: Final = frozenset((55,))
_IDS: Final = frozenset((110, 111, 112, 120, 121, 122, 123, 124))

NOT_FRAMES: Final = frozenset((55, 91))
"""Types below 100 that only travel inside others."""

BROKER_SEQUENCE: Final = "broker_sequence_id"
_BROKER_PATH: Final = Field("broker_path", ARRAY, _BROKERS)
_CORRELATION: Final = Field("correlation_id", INT)

CLASSES: Final[dict[int, type[Structure]]] = {
    2: BrokerInfo,
    3: ConnectionInfo,
    4: SessionInfo,
    5: ConsumerInfo,
    6: ProducerInfo,
    7: TransactionInfo,
    8: DestinationInfo,
    9: RemoveSubscriptionInfo,
    10: KeepAliveInfo,
    11: ShutdownInfo,
    12: RemoveInfo,
    14: ControlCommand,
    15: FlushCommand,
    16: ConnectionError,
    17: ConsumerControl,
    18: ConnectionControl,
    19: ProducerAck,
    20: MessagePull,
    21: MessageDispatch,
    22: MessageAck,
    30: Response,
    31: ExceptionResponse,
    32: DataResponse,
    33: DataArrayResponse,
    34: IntegerResponse,
    55: SubscriptionInfo,
    90: MessageDispatchNotification,
    91: NetworkBridgeFilter,
    92: BrokerSubscriptionInfo,
    110: MessageId,
    111: LocalTransactionId,
    112: XATransactionId,
    120: ConnectionId,
    121: SessionId,
    122: ConsumerId,
    123: ProducerId,
    124: BrokerId,
}
"""What stands for a type, but for messages and destinations, whose classes hold several."""

_MESSAGE: Final = (
    Field("producer_id", CACHED, _PRODUCERS),
    Field("destination", CACHED, DESTINATIONS),
    Field("transaction_id", CACHED, TRANSACTIONS),
    Field("original_destination", CACHED, DESTINATIONS),
    Field("message_id", NESTED, _MESSAGE_IDS),
    Field("original_transaction_id", CACHED, TRANSACTIONS),
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
    _BROKER_PATH,
    Field("arrival", LONG),
    Field("user_id", STRING),
    Field("received_by_df_bridge", FLAG),
    Field("droppable", FLAG, since=2),
    Field("cluster", ARRAY, _BROKERS, since=3),
    Field("broker_in_time", LONG, since=3),
    Field("broker_out_time", LONG, since=3),
    Field("group_first_for_consumer", FLAG, since=10),
)

TABLE: Final[dict[int, tuple[Field, ...]]] = {
    2: (
        Field("broker_id", CACHED, _BROKERS),
        Field("broker_url", STRING),
        Field("peer_broker_infos", ARRAY, _BROKER_INFOS),
        Field("broker_name", STRING),
        Field("slave_broker", FLAG),
        Field("master_broker", FLAG),
        Field("fault_tolerant_configuration", FLAG),
        Field("duplex_connection", FLAG, since=2),
        Field("network_connection", FLAG, since=2),
        Field("connection_id", LONG, since=2),
        Field("broker_upload_url", STRING, since=3),
        Field("network_properties", STRING, since=3),
    ),
    3: (
        Field("connection_id", CACHED, _CONNECTIONS),
        Field("client_id", STRING),
        Field("password", STRING),
        Field("user_name", STRING),
        _BROKER_PATH,
        Field("broker_master_connector", FLAG),
        Field("manageable", FLAG),
        Field("client_master", FLAG, since=2),
        Field("fault_tolerant", FLAG, since=6),
        Field("failover_reconnect", FLAG, since=6),
        Field("client_ip", STRING, since=8),
    ),
    4: (Field("session_id", CACHED, _SESSIONS),),
    5: (
        Field("consumer_id", CACHED, _CONSUMERS),
        Field("browser", FLAG),
        Field("destination", CACHED, DESTINATIONS),
        Field("prefetch_size", INT),
        Field("maximum_pending_message_limit", INT),
        Field("dispatch_async", FLAG),
        Field("selector", STRING),
        Field("client_id", STRING, since=10),
        Field("subscription_name", STRING),
        Field("no_local", FLAG),
        Field("exclusive", FLAG),
        Field("retroactive", FLAG),
        Field("priority", BYTE),
        _BROKER_PATH,
        Field("additional_predicate", NESTED),
        Field("network_subscription", FLAG),
        Field("optimized_acknowledge", FLAG),
        Field("no_range_acks", FLAG),
        Field("network_consumer_path", ARRAY, _CONSUMERS, since=4),
    ),
    6: (
        Field("producer_id", CACHED, _PRODUCERS),
        Field("destination", CACHED, DESTINATIONS),
        _BROKER_PATH,
        Field("dispatch_async", FLAG, since=2),
        Field("window_size", INT, since=3),
    ),
    7: (
        Field("connection_id", CACHED, _CONNECTIONS),
        Field("transaction_id", CACHED, TRANSACTIONS),
        Field("type", BYTE),
    ),
    8: (
        Field("connection_id", CACHED, _CONNECTIONS),
        Field("destination", CACHED, DESTINATIONS),
        Field("operation_type", BYTE),
        Field("timeout", LONG),
        _BROKER_PATH,
    ),
    9: (
        Field("connection_id", CACHED, _CONNECTIONS),
        Field("subscription_name", STRING),
        Field("client_id", STRING),
    ),
    10: (),
    11: (),
    12: (Field("object_id", CACHED, _IDS), Field("last_delivered_sequence_id", LONG, since=5)),
    14: (Field("command", STRING),),
    15: (),
    16: (Field("exception", THROWABLE), Field("connection_id", NESTED, _CONNECTIONS)),
    17: (
        Field("destination", NESTED, DESTINATIONS, since=6),
        Field("close", FLAG),
        Field("consumer_id", NESTED, _CONSUMERS),
        Field("prefetch", INT),
        Field("flush", FLAG, since=2),
        Field("start", FLAG, since=2),
        Field("stop", FLAG, since=2),
    ),
    18: (
        Field("close", FLAG),
        Field("exit", FLAG),
        Field("fault_tolerant", FLAG),
        Field("resume", FLAG),
        Field("suspend", FLAG),
        Field("connected_brokers", STRING, since=6),
        Field("reconnect_to", STRING, since=6),
        Field("rebalance_connection", FLAG, since=6),
        Field("token", BYTES, since=8),
    ),
    19: (Field("producer_id", NESTED, _PRODUCERS), Field("size", INT)),
    20: (
        Field("consumer_id", CACHED, _CONSUMERS),
        Field("destination", CACHED, DESTINATIONS),
        Field("timeout", LONG),
        Field("correlation_id", STRING, since=3),
        Field("message_id", NESTED, _MESSAGE_IDS, since=3),
    ),
    21: (
        Field("consumer_id", CACHED, _CONSUMERS),
        Field("destination", CACHED, DESTINATIONS),
        Field("message", NESTED, MESSAGES),
        Field("redelivery_counter", INT),
    ),
    22: (
        Field("destination", CACHED, DESTINATIONS),
        Field("transaction_id", CACHED, TRANSACTIONS),
        Field("consumer_id", CACHED, _CONSUMERS),
        Field("ack_type", BYTE),
        Field("first_message_id", NESTED, _MESSAGE_IDS),
        Field("last_message_id", NESTED, _MESSAGE_IDS),
        Field("message_count", INT),
        Field("poison_cause", THROWABLE, since=7),
    ),
    23: _MESSAGE,
    24: _MESSAGE,
    25: _MESSAGE,
    26: _MESSAGE,
    27: _MESSAGE,
    28: _MESSAGE,
    29: (
        *_MESSAGE,
        Field("remote_blob_url", STRING, since=3),
        Field("mime_type", STRING, since=3),
        Field("deleted_by_broker", FLAG, since=3),
    ),
    30: (_CORRELATION,),
    31: (_CORRELATION, Field("exception", THROWABLE)),
    32: (_CORRELATION, Field("value", NESTED)),
    33: (_CORRELATION, Field("values", ARRAY)),
    34: (_CORRELATION, Field("result", INT)),
    55: (
        Field("client_id", STRING),
        Field("destination", CACHED, DESTINATIONS),
        Field("selector", STRING),
        Field("subscription_name", STRING),
        Field("subscribed_destination", NESTED, DESTINATIONS, since=3),
        Field("no_local", FLAG, since=11),
    ),
    90: (
        Field("consumer_id", CACHED, _CONSUMERS),
        Field("destination", CACHED, DESTINATIONS),
        Field("delivery_sequence_id", LONG),
        Field("message_id", NESTED, _MESSAGE_IDS),
    ),
    91: (
        Field("network_ttl", INT, until=9),
        Field("network_broker_id", CACHED, _BROKERS),
        Field("message_ttl", INT, since=10),
        Field("consumer_ttl", INT, since=10),
    ),
    92: (
        Field("broker_id", NESTED, _BROKERS),
        Field("broker_name", STRING),
        Field("subscription_infos", ARRAY, _SUBSCRIPTIONS),
    ),
    100: (Field("name", NAME),),
    101: (Field("name", NAME),),
    102: (Field("name", NAME),),
    103: (Field("name", NAME),),
    110: (
        Field("text_view", STRING, since=10),
        Field("producer_id", CACHED, _PRODUCERS),
        Field("producer_sequence_id", LONG),
        Field(BROKER_SEQUENCE, LONG),
    ),
    111: (Field("value", LONG), Field("connection_id", CACHED, _CONNECTIONS)),
    112: (Field("format_id", INT), Field("global_transaction_id", BLOCK), Field("branch_qualifier", BLOCK)),
    120: (Field("value", NAME),),
    121: (Field("connection_id", NAME), Field("value", LONG)),
    122: (Field("connection_id", NAME), Field("session_id", LONG), Field("value", LONG)),
    123: (Field("connection_id", NAME), Field("value", LONG), Field("session_id", LONG)),
    124: (Field("value", NAME),),
}

TYPE_SINCE: Final[dict[int, int]] = {19: 3, 20: 2, 29: 3, 92: 12}
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
