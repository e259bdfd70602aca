"""The commands of OpenWire, one class each: fields under the names of the specification, None for null."""

from typing import Final

from delosmq.wire.openwire.structures import (
    BROKER_INFO,
    BROKER_SUBSCRIPTION_INFO,
    CONNECTION_CONTROL,
    CONNECTION_ERROR,
    CONNECTION_INFO,
    CONSUMER_CONTROL,
    CONSUMER_INFO,
    CONTROL_COMMAND,
    DATA_ARRAY_RESPONSE,
    DATA_RESPONSE,
    DESTINATION_INFO,
    EMPTY,
    EXCEPTION_RESPONSE,
    FLUSH_COMMAND,
    INTEGER_RESPONSE,
    KEEP_ALIVE_INFO,
    MESSAGE_ACK,
    MESSAGE_DISPATCH,
    MESSAGE_DISPATCH_NOTIFICATION,
    MESSAGE_PULL,
    NETWORK_BRIDGE_FILTER,
    PRODUCER_ACK,
    PRODUCER_INFO,
    REMOVE_INFO,
    REMOVE_SUBSCRIPTION_INFO,
    RESPONSE,
    SESSION_INFO,
    SHUTDOWN_INFO,
    SUBSCRIPTION_INFO,
    TRANSACTION_INFO,
    BrokerId,
    Command,
    ConnectionId,
    ConsumerId,
    Destination,
    Fields,
    Id,
    MessageId,
    ProducerId,
    SessionId,
    Structure,
    Throwable,
    TransactionId,
)

BEGIN: Final = 0
PREPARE: Final = 1
COMMIT_ONE_PHASE: Final = 2
COMMIT_TWO_PHASE: Final = 3
ROLLBACK: Final = 4
RECOVER: Final = 5
FORGET: Final = 6
END: Final = 7

ADD_DESTINATION: Final = 0
REMOVE_DESTINATION: Final = 1

DELIVERED_ACK: Final = 0
POISON_ACK: Final = 1
STANDARD_ACK: Final = 2
REDELIVERED_ACK: Final = 3
INDIVIDUAL_ACK: Final = 4
UNMATCHED_ACK: Final = 5
EXPIRED_ACK: Final = 6

ACTIVEMQ_MESSAGE: Final = 23
BYTES_MESSAGE: Final = 24
MAP_MESSAGE: Final = 25
OBJECT_MESSAGE: Final = 26
STREAM_MESSAGE: Final = 27
TEXT_MESSAGE: Final = 28
BLOB_MESSAGE: Final = 29

MESSAGE_COST_BYTES: Final = 1024
"""What a producer's window counts for a message beside its bytes. Source: Message.getSize of the Java client."""


# --- connection


class BrokerInfo(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = BROKER_INFO
        self.broker_id = fields.cached("broker_id", BrokerId)
        self.broker_url = fields.string("broker_url")
        self.peer_broker_infos = fields.array("peer_broker_infos", BrokerInfo)
        self.broker_name = fields.string("broker_name")
        self.slave_broker = fields.flag("slave_broker")
        self.master_broker = fields.flag("master_broker")
        self.fault_tolerant_configuration = fields.flag("fault_tolerant_configuration")
        self.duplex_connection = fields.flag("duplex_connection", since=2)
        self.network_connection = fields.flag("network_connection", since=2)
        self.connection_id = fields.int64("connection_id", since=2)
        self.broker_upload_url = fields.string("broker_upload_url", since=3)
        self.network_properties = fields.string("network_properties", since=3)


class ConnectionInfo(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = CONNECTION_INFO
        self.connection_id = fields.cached("connection_id", ConnectionId)
        self.client_id = fields.string("client_id")
        self.password = fields.string("password")
        self.user_name = fields.string("user_name")
        self.broker_path = fields.array("broker_path", BrokerId)
        self.broker_master_connector = fields.flag("broker_master_connector")
        self.manageable = fields.flag("manageable")
        self.client_master = fields.flag("client_master", since=2)
        self.fault_tolerant = fields.flag("fault_tolerant", since=6)
        self.failover_reconnect = fields.flag("failover_reconnect", since=6)
        self.client_ip = fields.string("client_ip", since=8)


class ConnectionControl(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = CONNECTION_CONTROL
        self.close = fields.flag("close")
        self.exit = fields.flag("exit")
        self.fault_tolerant = fields.flag("fault_tolerant")
        self.resume = fields.flag("resume")
        self.suspend = fields.flag("suspend")
        self.connected_brokers = fields.string("connected_brokers", since=6)
        self.reconnect_to = fields.string("reconnect_to", since=6)
        self.rebalance_connection = fields.flag("rebalance_connection", since=6)
        self.token = fields.octets("token", since=8)


class KeepAliveInfo(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = KEEP_ALIVE_INFO


class ShutdownInfo(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = SHUTDOWN_INFO


class FlushCommand(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = FLUSH_COMMAND


class ControlCommand(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = CONTROL_COMMAND
        self.command = fields.string("command")


class RemoveInfo(Command):
    """Closes what ``object_id`` names: a connection, session, producer or consumer."""

    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = REMOVE_INFO
        self.object_id = fields.cached("object_id", Id)
        self.last_delivered_sequence_id = fields.int64("last_delivered_sequence_id", since=5)


class ConnectionError(Command):
    def __init__(
        self, exception: "Throwable | None" = None, connection_id: ConnectionId | None = None, fields: Fields = EMPTY
    ) -> None:
        self.code = CONNECTION_ERROR
        self.exception = fields.throwable("exception", exception)
        self.connection_id = fields.nested("connection_id", ConnectionId, connection_id)


# --- sessions, consumers, producers


class SessionInfo(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = SESSION_INFO
        self.session_id = fields.cached("session_id", SessionId)


class ConsumerInfo(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = CONSUMER_INFO
        self.consumer_id = fields.cached("consumer_id", ConsumerId)
        self.browser = fields.flag("browser")
        self.destination = fields.cached("destination", Destination)
        self.prefetch_size = fields.int32("prefetch_size")
        self.maximum_pending_message_limit = fields.int32("maximum_pending_message_limit")
        self.dispatch_async = fields.flag("dispatch_async")
        self.selector = fields.string("selector")
        self.client_id = fields.string("client_id", since=10)
        self.subscription_name = fields.string("subscription_name")
        self.no_local = fields.flag("no_local")
        self.exclusive = fields.flag("exclusive")
        self.retroactive = fields.flag("retroactive")
        self.priority = fields.byte("priority")
        self.broker_path = fields.array("broker_path", BrokerId)
        self.additional_predicate = fields.nested("additional_predicate", Structure)
        self.network_subscription = fields.flag("network_subscription")
        self.optimized_acknowledge = fields.flag("optimized_acknowledge")
        self.no_range_acks = fields.flag("no_range_acks")
        self.network_consumer_path = fields.array("network_consumer_path", ConsumerId, since=4)

    def drop_path(self) -> None:
        """Drops what concerns networks of brokers alone; before it is kept."""
        self.broker_path = None
        self.network_consumer_path = None
        self.additional_predicate = None


class ConsumerControl(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = CONSUMER_CONTROL
        self.destination = fields.nested("destination", Destination, since=6)
        self.close = fields.flag("close")
        self.consumer_id = fields.nested("consumer_id", ConsumerId)
        self.prefetch = fields.int32("prefetch")
        self.flush = fields.flag("flush", since=2)
        self.start = fields.flag("start", since=2)
        self.stop = fields.flag("stop", since=2)


class ProducerInfo(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = PRODUCER_INFO
        self.producer_id = fields.cached("producer_id", ProducerId)
        self.destination = fields.cached("destination", Destination)
        self.broker_path = fields.array("broker_path", BrokerId)
        self.dispatch_async = fields.flag("dispatch_async", since=2)
        self.window_size = fields.int32("window_size", since=3)


class ProducerAck(Command):
    def __init__(self, producer_id: ProducerId | None = None, size: int = 0, fields: Fields = EMPTY) -> None:
        self.code = PRODUCER_ACK
        self.producer_id = fields.nested("producer_id", ProducerId, producer_id)
        self.size = fields.int32("size", size)


class DestinationInfo(Command):
    """Adds or removes a destination: ``operation_type`` is ADD_DESTINATION or REMOVE_DESTINATION."""

    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = DESTINATION_INFO
        self.connection_id = fields.cached("connection_id", ConnectionId)
        self.destination = fields.cached("destination", Destination)
        self.operation_type = fields.byte("operation_type")
        self.timeout = fields.int64("timeout")
        self.broker_path = fields.array("broker_path", BrokerId)


class RemoveSubscriptionInfo(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = REMOVE_SUBSCRIPTION_INFO
        self.connection_id = fields.cached("connection_id", ConnectionId)
        self.subscription_name = fields.string("subscription_name")
        self.client_id = fields.string("client_id")


class SubscriptionInfo(Structure):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = SUBSCRIPTION_INFO
        self.client_id = fields.string("client_id")
        self.destination = fields.cached("destination", Destination)
        self.selector = fields.string("selector")
        self.subscription_name = fields.string("subscription_name")
        self.subscribed_destination = fields.nested("subscribed_destination", Destination, since=3)
        self.no_local = fields.flag("no_local", since=11)


class BrokerSubscriptionInfo(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = BROKER_SUBSCRIPTION_INFO
        self.broker_id = fields.nested("broker_id", BrokerId)
        self.broker_name = fields.string("broker_name")
        self.subscription_infos = fields.array("subscription_infos", SubscriptionInfo)


class NetworkBridgeFilter(Structure):
    """What a network bridge adds to its consumers."""

    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = NETWORK_BRIDGE_FILTER
        self.network_ttl = fields.int32("network_ttl", until=9)
        self.network_broker_id = fields.cached("network_broker_id", BrokerId)
        self.message_ttl = fields.int32("message_ttl", since=10)
        self.consumer_ttl = fields.int32("consumer_ttl", since=10)


# --- transactions and responses


class TransactionInfo(Command):
    """``type`` is one of BEGIN to END."""

    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = TRANSACTION_INFO
        self.connection_id = fields.cached("connection_id", ConnectionId)
        self.transaction_id = fields.cached("transaction_id", TransactionId)
        self.type = fields.byte("type")


class Response(Command):
    def __init__(self, correlation_id: int = 0, fields: Fields = EMPTY) -> None:
        self.code = RESPONSE
        self.correlation_id = fields.int32("correlation_id", correlation_id)


class ExceptionResponse(Response):
    def __init__(self, correlation_id: int = 0, exception: Throwable | None = None, fields: Fields = EMPTY) -> None:
        self.code = EXCEPTION_RESPONSE
        self.correlation_id = fields.int32("correlation_id", correlation_id)
        self.exception = fields.throwable("exception", exception)


class DataResponse(Response):
    def __init__(self, correlation_id: int = 0, value: Structure | None = None, fields: Fields = EMPTY) -> None:
        self.code = DATA_RESPONSE
        self.correlation_id = fields.int32("correlation_id", correlation_id)
        self.value = fields.nested("value", Structure, value)


class DataArrayResponse(Response):
    def __init__(
        self, correlation_id: int = 0, values: list[Structure | None] | None = None, fields: Fields = EMPTY
    ) -> None:
        self.code = DATA_ARRAY_RESPONSE
        self.correlation_id = fields.int32("correlation_id", correlation_id)
        self.values = fields.array("values", Structure, values)


class IntegerResponse(Response):
    def __init__(self, correlation_id: int = 0, result: int = 0, fields: Fields = EMPTY) -> None:
        self.code = INTEGER_RESPONSE
        self.correlation_id = fields.int32("correlation_id", correlation_id)
        self.result = fields.int32("result", result)


# --- messages


class MessagePull(Command):
    """Asks for one message: ``timeout`` in ms, 0 waits for ever, -1 not at all."""

    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = MESSAGE_PULL
        self.consumer_id = fields.cached("consumer_id", ConsumerId)
        self.destination = fields.cached("destination", Destination)
        self.timeout = fields.int64("timeout")
        self.correlation_id = fields.string("correlation_id", since=3)
        self.message_id = fields.nested("message_id", MessageId, since=3)


class MessageAck(Command):
    """``ack_type`` is one of DELIVERED_ACK to EXPIRED_ACK."""

    def __init__(self) -> None:
        self.code = MESSAGE_ACK
        self.destination: Destination | None = None
        self.transaction_id: TransactionId | None = None
        self.consumer_id: ConsumerId | None = None
        self.ack_type: int = 0
        self.first_message_id: MessageId | None = None
        self.last_message_id: MessageId | None = None
        self.message_count: int = 0
        self.poison_cause: Throwable | None = None


class MessageDispatchNotification(Command):
    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = MESSAGE_DISPATCH_NOTIFICATION
        self.consumer_id = fields.cached("consumer_id", ConsumerId)
        self.destination = fields.cached("destination", Destination)
        self.delivery_sequence_id = fields.int64("delivery_sequence_id")
        self.message_id = fields.nested("message_id", MessageId)


class MessageCommand(Command):
    """A message of any kind: ``code`` is one of ACTIVEMQ_MESSAGE to BLOB_MESSAGE.

    Attributes:
        content: the encoded body; None when there is none.
        marshalled_properties: an encoded primitive map; `properties` reads it.
        before, tail: what stood before and behind the content, when the frame was loosely encoded and nothing was
            cached; empty otherwise. `heads` stores them. Call `heads.measure` after a change of a field.
        destination_at, destination_end, transaction_end, sequence_at, expiration_at: offsets within ``before``.
        times_at: offset of ``broker_in_time`` within ``tail``.
    """

    producer_id: ProducerId | None = None
    destination: Destination | None = None
    transaction_id: TransactionId | None = None
    original_destination: Destination | None = None
    message_id: MessageId | None = None
    original_transaction_id: TransactionId | None = None
    group_id: str | None = None
    group_sequence: int = 0
    correlation_id: str | None = None
    persistent: bool = False
    expiration: int = 0
    priority: int = 0
    reply_to: Destination | None = None
    timestamp: int = 0
    type: str | None = None
    content: bytes | None = None
    marshalled_properties: bytes | None = None
    data_structure: Structure | None = None
    target_consumer_id: ConsumerId | None = None
    compressed: bool = False
    redelivery_counter: int = 0
    broker_path: list[Structure | None] | None = None
    arrival: int = 0
    user_id: str | None = None
    received_by_df_bridge: bool = False
    droppable: bool = False
    cluster: list[Structure | None] | None = None
    broker_in_time: int = 0
    broker_out_time: int = 0
    group_first_for_consumer: bool = False
    remote_blob_url: str | None = None
    mime_type: str | None = None
    deleted_by_broker: bool = False
    before: bytes = b""
    tail: bytes = b""
    destination_at: int = 0
    destination_end: int = 0
    transaction_end: int = 0
    sequence_at: int = 0
    expiration_at: int = 0
    times_at: int = 0

    def __init__(self, code: int = ACTIVEMQ_MESSAGE) -> None:
        self.code = code

    def size_bytes(self) -> int:
        """What the message counts in its producer's window."""
        content = self.content
        properties = self.marshalled_properties
        size = MESSAGE_COST_BYTES + (0 if content is None else len(content))
        return size + (0 if properties is None else len(properties))


class MessageDispatch(Command):
    """Without message and destination: nothing to give (pull), or the end (browser)."""

    def __init__(self, fields: Fields = EMPTY) -> None:
        self.code = MESSAGE_DISPATCH
        self.consumer_id = fields.cached("consumer_id", ConsumerId)
        self.destination = fields.cached("destination", Destination)
        self.message = fields.nested("message", MessageCommand)
        self.redelivery_counter = fields.int32("redelivery_counter")


COMMANDS: Final = (
    BrokerInfo,
    ConnectionInfo,
    ConnectionControl,
    KeepAliveInfo,
    ShutdownInfo,
    FlushCommand,
    ControlCommand,
    RemoveInfo,
    ConnectionError,
    SessionInfo,
    ConsumerInfo,
    ConsumerControl,
    ProducerInfo,
    ProducerAck,
    DestinationInfo,
    RemoveSubscriptionInfo,
    SubscriptionInfo,
    BrokerSubscriptionInfo,
    NetworkBridgeFilter,
    TransactionInfo,
    Response,
    ExceptionResponse,
    DataResponse,
    DataArrayResponse,
    IntegerResponse,
    MessagePull,
    MessageDispatchNotification,
    MessageDispatch,
)
"""All of one type each, and the structures that declare their fields."""
