"""The commands and data structures of OpenWire, one class each.

Fields have the names of the specification; `layout` says in which order they travel and since which version. None
stands for null. Decoded values may be shared between commands (ids, destinations), so treat them as read-only.
"""

from typing import Final

QUEUE: Final = 100
TOPIC: Final = 101
TEMP_QUEUE: Final = 102
TEMP_TOPIC: Final = 103

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


class Structure:
    """Anything with a type code of its own on the wire.

    Attributes:
        code: the type code.
    """

    code: int = 0


class Command(Structure):
    """What may be a frame of its own.

    Attributes:
        command_id: the sender's number, which a Response repeats as ``correlation_id``.
        response_required: the sender waits for a Response.
    """

    command_id: int = 0
    response_required: bool = False


# --- ids


class BrokerId(Structure):
    def __init__(self, value: str = "") -> None:
        self.code = 124
        self.value = value


class ConnectionId(Structure):
    def __init__(self, value: str = "") -> None:
        self.code = 120
        self.value = value

    def key(self) -> str:
        """The id as text, as Java prints it; equal ids have equal texts."""
        return self.value


class SessionId(Structure):
    def __init__(self, connection_id: str = "", value: int = 0) -> None:
        self.code = 121
        self.connection_id = connection_id
        self.value = value

    def key(self) -> str:
        return f"{self.connection_id}:{self.value}"


class ConsumerId(Structure):
    def __init__(self, connection_id: str = "", session_id: int = 0, value: int = 0) -> None:
        self.code = 122
        self.connection_id = connection_id
        self.session_id = session_id
        self.value = value
        self._key: str = ""

    def key(self) -> str:
        """Made once: every acknowledgement names its consumer."""
        if not self._key:
            self._key = f"{self.connection_id}:{self.session_id}:{self.value}"
        return self._key


class ProducerId(Structure):
    def __init__(self, connection_id: str = "", session_id: int = 0, value: int = 0) -> None:
        self.code = 123
        self.connection_id = connection_id
        self.value = value
        self.session_id = session_id
        self._key: str = ""

    def key(self) -> str:
        """Made once: every message names its producer."""
        if not self._key:
            self._key = f"{self.connection_id}:{self.session_id}:{self.value}"
        return self._key


class TransactionId(Structure):
    """A local or an XA transaction."""

    def key(self) -> str:
        """Equal ids have equal texts."""
        return ""


class LocalTransactionId(TransactionId):
    def __init__(self, value: int = 0, connection_id: ConnectionId | None = None) -> None:
        self.code = 111
        self.value = value
        self.connection_id = connection_id
        self._key: str = ""

    def key(self) -> str:
        """Made once: every message of a transaction names it."""
        if not self._key:
            connection = self.connection_id
            self._key = f"TX:{'' if connection is None else connection.value}:{self.value}"
        return self._key


class XATransactionId(TransactionId):
    def __init__(self, format_id: int = 0, global_transaction_id: bytes = b"", branch_qualifier: bytes = b"") -> None:
        self.code = 112
        self.format_id = format_id
        self.global_transaction_id = global_transaction_id
        self.branch_qualifier = branch_qualifier
        self._key: str = ""

    def key(self) -> str:
        """Made once, as above."""
        if not self._key:
            self._key = f"XID:{self.format_id}:{self.global_transaction_id.hex()}:{self.branch_qualifier.hex()}"
        return self._key


class MessageId(Structure):
    """
    Attributes:
        text_view: the id as another protocol wrote it; goes before the other fields when it is set.
    """

    def __init__(
        self, producer_id: ProducerId | None = None, producer_sequence_id: int = 0, broker_sequence_id: int = 0
    ) -> None:
        self.code = 110
        self.text_view: str | None = None
        self.producer_id = producer_id
        self.producer_sequence_id = producer_sequence_id
        self.broker_sequence_id = broker_sequence_id

    def key(self) -> str:
        """As in JMSMessageID."""
        if self.text_view is not None:
            return self.text_view if self.text_view.startswith("ID:") else f"ID:{self.text_view}"
        producer = self.producer_id
        return f"{'' if producer is None else producer.key()}:{self.producer_sequence_id}"


# --- destinations


class Destination(Structure):
    """A queue or topic, by what ``code`` says. ``name`` may be a comma list and have options behind ``?``."""

    def __init__(self, name: str = "", code: int = QUEUE) -> None:
        self.code = code
        self.name = name
        self._qualified: str = ""

    @property
    def is_queue(self) -> bool:
        return self.code == QUEUE or self.code == TEMP_QUEUE

    @property
    def is_temporary(self) -> bool:
        return self.code == TEMP_QUEUE or self.code == TEMP_TOPIC

    def qualified_name(self) -> str:
        """With what it is, such as ``queue://orders``; made once, as every message names its destination."""
        if not self._qualified:
            self._qualified = f"{QUALIFIERS[self.code]}{self.name}"
        return self._qualified


QUALIFIERS: Final = {QUEUE: "queue://", TOPIC: "topic://", TEMP_QUEUE: "temp-queue://", TEMP_TOPIC: "temp-topic://"}


def destination_of(qualified_name: str) -> Destination:
    """The reverse of `Destination.qualified_name`; a queue when nothing is said."""
    for code, qualifier in QUALIFIERS.items():
        if qualified_name.startswith(qualifier):
            return Destination(qualified_name[len(qualifier) :], code)
    return Destination(qualified_name, QUEUE)


# --- connection


class BrokerInfo(Command):
    def __init__(self) -> None:
        self.code = 2
        self.broker_id: BrokerId | None = None
        self.broker_url: str | None = None
        self.peer_broker_infos: list[Structure | None] | None = None
        self.broker_name: str | None = None
        self.slave_broker: bool = False
        self.master_broker: bool = False
        self.fault_tolerant_configuration: bool = False
        self.duplex_connection: bool = False
        self.network_connection: bool = False
        self.connection_id: int = 0
        self.broker_upload_url: str | None = None
        self.network_properties: str | None = None


class ConnectionInfo(Command):
    def __init__(self) -> None:
        self.code = 3
        self.connection_id: ConnectionId | None = None
        self.client_id: str | None = None
        self.password: str | None = None
        self.user_name: str | None = None
        self.broker_path: list[Structure | None] | None = None
        self.broker_master_connector: bool = False
        self.manageable: bool = False
        self.client_master: bool = False
        self.fault_tolerant: bool = False
        self.failover_reconnect: bool = False
        self.client_ip: str | None = None


class ConnectionControl(Command):
    def __init__(self) -> None:
        self.code = 18
        self.close: bool = False
        self.exit: bool = False
        self.fault_tolerant: bool = False
        self.resume: bool = False
        self.suspend: bool = False
        self.connected_brokers: str | None = None
        self.reconnect_to: str | None = None
        self.rebalance_connection: bool = False
        self.token: bytes | None = None


class KeepAliveInfo(Command):
    def __init__(self) -> None:
        self.code = 10


class ShutdownInfo(Command):
    def __init__(self) -> None:
        self.code = 11


class FlushCommand(Command):
    def __init__(self) -> None:
        self.code = 15


class ControlCommand(Command):
    def __init__(self) -> None:
        self.code = 14
        self.command: str | None = None


class RemoveInfo(Command):
    """Closes what ``object_id`` names: a connection, session, producer or consumer."""

    def __init__(self) -> None:
        self.code = 12
        self.object_id: Structure | None = None
        self.last_delivered_sequence_id: int = 0


class ConnectionError(Command):
    def __init__(self, exception: "Throwable | None" = None, connection_id: ConnectionId | None = None) -> None:
        self.code = 16
        self.exception = exception
        self.connection_id = connection_id


class Throwable:
    """An exception by name; the Java client builds the class it knows by that name.

    Attributes:
        frames: of the stack, when both sides want stack traces: class, method, file, line.
    """

    def __init__(self, class_name: str | None = None, message: str | None = None) -> None:
        self.class_name = class_name
        self.message = message
        self.frames: list[tuple[str | None, str | None, str | None, int]] = []
        self.cause: Throwable | None = None


# --- sessions, consumers, producers


class SessionInfo(Command):
    def __init__(self) -> None:
        self.code = 4
        self.session_id: SessionId | None = None


class ConsumerInfo(Command):
    def __init__(self) -> None:
        self.code = 5
        self.consumer_id: ConsumerId | None = None
        self.browser: bool = False
        self.destination: Destination | None = None
        self.prefetch_size: int = 0
        self.maximum_pending_message_limit: int = 0
        self.dispatch_async: bool = False
        self.selector: str | None = None
        self.client_id: str | None = None
        self.subscription_name: str | None = None
        self.no_local: bool = False
        self.exclusive: bool = False
        self.retroactive: bool = False
        self.priority: int = 0
        self.broker_path: list[Structure | None] | None = None
        self.additional_predicate: Structure | None = None
        self.network_subscription: bool = False
        self.optimized_acknowledge: bool = False
        self.no_range_acks: bool = False
        self.network_consumer_path: list[Structure | None] | None = None

    def forget_path(self) -> None:
        """Drops what concerns networks of brokers alone; before it is kept."""
        self.broker_path = None
        self.network_consumer_path = None
        self.additional_predicate = None


class ConsumerControl(Command):
    def __init__(self) -> None:
        self.code = 17
        self.destination: Destination | None = None
        self.close: bool = False
        self.consumer_id: ConsumerId | None = None
        self.prefetch: int = 0
        self.flush: bool = False
        self.start: bool = False
        self.stop: bool = False


class ProducerInfo(Command):
    def __init__(self) -> None:
        self.code = 6
        self.producer_id: ProducerId | None = None
        self.destination: Destination | None = None
        self.broker_path: list[Structure | None] | None = None
        self.dispatch_async: bool = False
        self.window_size: int = 0


class ProducerAck(Command):
    def __init__(self, producer_id: ProducerId | None = None, size: int = 0) -> None:
        self.code = 19
        self.producer_id = producer_id
        self.size = size


class DestinationInfo(Command):
    """Adds or removes a destination: ``operation_type`` is ADD_DESTINATION or REMOVE_DESTINATION."""

    def __init__(self) -> None:
        self.code = 8
        self.connection_id: ConnectionId | None = None
        self.destination: Destination | None = None
        self.operation_type: int = 0
        self.timeout: int = 0
        self.broker_path: list[Structure | None] | None = None


class RemoveSubscriptionInfo(Command):
    def __init__(self) -> None:
        self.code = 9
        self.connection_id: ConnectionId | None = None
        self.subscription_name: str | None = None
        self.client_id: str | None = None


class SubscriptionInfo(Structure):
    def __init__(self) -> None:
        self.code = 55
        self.client_id: str | None = None
        self.destination: Destination | None = None
        self.selector: str | None = None
        self.subscription_name: str | None = None
        self.subscribed_destination: Destination | None = None
        self.no_local: bool = False


class BrokerSubscriptionInfo(Command):
    def __init__(self) -> None:
        self.code = 92
        self.broker_id: BrokerId | None = None
        self.broker_name: str | None = None
        self.subscription_infos: list[Structure | None] | None = None


class NetworkBridgeFilter(Structure):
    """What a network bridge adds to its consumers."""

    def __init__(self) -> None:
        self.code = 91
        self.network_ttl: int = 0
        self.network_broker_id: BrokerId | None = None
        self.message_ttl: int = 0
        self.consumer_ttl: int = 0


# --- transactions and responses


class TransactionInfo(Command):
    """``type`` is one of BEGIN to END."""

    def __init__(self) -> None:
        self.code = 7
        self.connection_id: ConnectionId | None = None
        self.transaction_id: TransactionId | None = None
        self.type: int = 0


class Response(Command):
    def __init__(self, correlation_id: int = 0) -> None:
        self.code = 30
        self.correlation_id = correlation_id


class ExceptionResponse(Response):
    def __init__(self, correlation_id: int = 0, exception: Throwable | None = None) -> None:
        self.code = 31
        self.correlation_id = correlation_id
        self.exception = exception


class DataResponse(Response):
    def __init__(self, correlation_id: int = 0, value: Structure | None = None) -> None:
        self.code = 32
        self.correlation_id = correlation_id
        self.value = value


class DataArrayResponse(Response):
    def __init__(self, correlation_id: int = 0, values: list[Structure | None] | None = None) -> None:
        self.code = 33
        self.correlation_id = correlation_id
        self.values = values


class IntegerResponse(Response):
    def __init__(self, correlation_id: int = 0, result: int = 0) -> None:
        self.code = 34
        self.correlation_id = correlation_id
        self.result = result


# --- messages


class MessagePull(Command):
    """Asks for one message: ``timeout`` in ms, 0 waits for ever, -1 not at all."""

    def __init__(self) -> None:
        self.code = 20
        self.consumer_id: ConsumerId | None = None
        self.destination: Destination | None = None
        self.timeout: int = 0
        self.correlation_id: str | None = None
        self.message_id: MessageId | None = None


class MessageAck(Command):
    """``ack_type`` is one of DELIVERED_ACK to EXPIRED_ACK."""

    def __init__(self) -> None:
        self.code = 22
        self.destination: Destination | None = None
        self.transaction_id: TransactionId | None = None
        self.consumer_id: ConsumerId | None = None
        self.ack_type: int = 0
        self.first_message_id: MessageId | None = None
        self.last_message_id: MessageId | None = None
        self.message_count: int = 0
        self.poison_cause: Throwable | None = None


class MessageDispatchNotification(Command):
    def __init__(self) -> None:
        self.code = 90
        self.consumer_id: ConsumerId | None = None
        self.destination: Destination | None = None
        self.delivery_sequence_id: int = 0
        self.message_id: MessageId | None = None


class MessageCommand(Command):
    """A message of any kind: ``code`` is one of ACTIVEMQ_MESSAGE to BLOB_MESSAGE.

    Attributes:
        content: the encoded body; None when there is none.
        marshalled_properties: an encoded primitive map; `properties` reads it.
        before, tail: what stood before and behind the content, when the frame was loosely encoded and nothing was
            cached; empty otherwise. `heads` stores them. Whoever changes a field calls `heads.measure` afterwards.
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

    def __init__(self) -> None:
        self.code = 21
        self.consumer_id: ConsumerId | None = None
        self.destination: Destination | None = None
        self.message: MessageCommand | None = None
        self.redelivery_counter: int = 0
