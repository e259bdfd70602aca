"""The fields of OpenWire's commands, and the data structures within them: ids, destinations, exceptions.

A constructor declares its fields once: it asks `Fields` for the empty value of each, and the same call, noted, is the
field's place in the layout. What is made for each message is written by hand, with its layout in `wire_format`.
Decoded values may be shared between commands (ids, destinations), so treat them as read-only.
"""

from typing import Final, TypeVar

# Type codes. Source: CommandTypes of the Java client.
BROKER_INFO: Final = 2
CONNECTION_INFO: Final = 3
SESSION_INFO: Final = 4
CONSUMER_INFO: Final = 5
PRODUCER_INFO: Final = 6
TRANSACTION_INFO: Final = 7
DESTINATION_INFO: Final = 8
REMOVE_SUBSCRIPTION_INFO: Final = 9
KEEP_ALIVE_INFO: Final = 10
SHUTDOWN_INFO: Final = 11
REMOVE_INFO: Final = 12
CONTROL_COMMAND: Final = 14
FLUSH_COMMAND: Final = 15
CONNECTION_ERROR: Final = 16
CONSUMER_CONTROL: Final = 17
CONNECTION_CONTROL: Final = 18
PRODUCER_ACK: Final = 19
MESSAGE_PULL: Final = 20
MESSAGE_DISPATCH: Final = 21
MESSAGE_ACK: Final = 22
RESPONSE: Final = 30
EXCEPTION_RESPONSE: Final = 31
DATA_RESPONSE: Final = 32
DATA_ARRAY_RESPONSE: Final = 33
INTEGER_RESPONSE: Final = 34
SUBSCRIPTION_INFO: Final = 55
MESSAGE_DISPATCH_NOTIFICATION: Final = 90
NETWORK_BRIDGE_FILTER: Final = 91
BROKER_SUBSCRIPTION_INFO: Final = 92
MESSAGE_ID: Final = 110
LOCAL_TRANSACTION_ID: Final = 111
XA_TRANSACTION_ID: Final = 112
CONNECTION_ID: Final = 120
SESSION_ID: Final = 121
CONSUMER_ID: Final = 122
PRODUCER_ID: Final = 123
BROKER_ID: Final = 124

QUEUE: Final = 100
TOPIC: Final = 101
TEMP_QUEUE: Final = 102
TEMP_TOPIC: Final = 103

RESPONSES: Final = frozenset((RESPONSE, EXCEPTION_RESPONSE, DATA_RESPONSE, DATA_ARRAY_RESPONSE, INTEGER_RESPONSE))
SENT_BY_BROKERS: Final = RESPONSES - {RESPONSE} | {
    BROKER_INFO,
    CONTROL_COMMAND,
    CONNECTION_ERROR,
    PRODUCER_ACK,
    MESSAGE_DISPATCH,
    MESSAGE_DISPATCH_NOTIFICATION,
    BROKER_SUBSCRIPTION_INFO,
}
"""Types that clients have no use for sending."""

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


T = TypeVar("T")


class Fields:
    """By which a constructor declares its fields, in the order in which they travel; each gets its empty value.

    Attributes:
        noted: what was declared; None when it is not asked for.
    """

    def __init__(self, noted: "list[Field] | None" = None, codes: "dict[type, frozenset[int]] | None" = None) -> None:
        """
        Args:
            codes: the type codes that stand for a class; all do for one that is missing.
        """
        self.noted = noted
        self._codes: dict[type, frozenset[int]] = {} if codes is None else codes

    def _note(self, name: str, kind: int, since: int, until: int = _ALWAYS) -> None:
        if self.noted is not None:
            self.noted.append(Field(name, kind, since=since, until=until))

    def _note_of(self, name: str, kind: int, of: type, since: int) -> None:
        if self.noted is not None:
            self.noted.append(Field(name, kind, self._codes.get(of, frozenset()), since=since))

    def flag(self, name: str, *, since: int = 1) -> bool:
        self._note(name, FLAG, since)
        return False

    def byte(self, name: str) -> int:
        self._note(name, BYTE, 1)
        return 0

    def int32(self, name: str, value: int = 0, *, since: int = 1, until: int = _ALWAYS) -> int:
        self._note(name, INT, since, until)
        return value

    def int64(self, name: str, *, since: int = 1) -> int:
        self._note(name, LONG, since)
        return 0

    def string(self, name: str, *, since: int = 1) -> str | None:
        self._note(name, STRING, since)
        return None

    def octets(self, name: str, *, since: int = 1) -> bytes | None:
        self._note(name, BYTES, since)
        return None

    def throwable(self, name: str, value: "Throwable | None" = None) -> "Throwable | None":
        self._note(name, THROWABLE, 1)
        return value

    def nested(self, name: str, of: type[T], value: T | None = None, *, since: int = 1) -> T | None:
        self._note_of(name, NESTED, of, since)
        return value

    def cached(self, name: str, of: type[T]) -> T | None:
        self._note_of(name, CACHED, of, 1)
        return None

    def array(
        self, name: str, of: type, value: "list[Structure | None] | None" = None, *, since: int = 1
    ) -> "list[Structure | None] | None":
        self._note_of(name, ARRAY, of, since)
        return value


EMPTY: Final = Fields()


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


class Id(Structure):
    """Names a broker, connection, session, consumer, producer, transaction or message."""


class BrokerId(Id):
    def __init__(self, value: str = "") -> None:
        self.code = BROKER_ID
        self.value = value


class ConnectionId(Id):
    def __init__(self, value: str = "") -> None:
        self.code = CONNECTION_ID
        self.value = value

    def key(self) -> str:
        """The id as text, as Java prints it; equal ids have equal texts."""
        return self.value


class SessionId(Id):
    def __init__(self, connection_id: str = "", value: int = 0) -> None:
        self.code = SESSION_ID
        self.connection_id = connection_id
        self.value = value

    def key(self) -> str:
        return f"{self.connection_id}:{self.value}"


class ConsumerId(Id):
    def __init__(self, connection_id: str = "", session_id: int = 0, value: int = 0) -> None:
        self.code = CONSUMER_ID
        self.connection_id = connection_id
        self.session_id = session_id
        self.value = value
        self._key: str = ""

    def key(self) -> str:
        """Made once: every acknowledgement names its consumer."""
        if not self._key:
            self._key = f"{self.connection_id}:{self.session_id}:{self.value}"
        return self._key


class ProducerId(Id):
    def __init__(self, connection_id: str = "", session_id: int = 0, value: int = 0) -> None:
        self.code = PRODUCER_ID
        self.connection_id = connection_id
        self.value = value
        self.session_id = session_id
        self._key: str = ""

    def key(self) -> str:
        """Made once: every message names its producer."""
        if not self._key:
            self._key = f"{self.connection_id}:{self.session_id}:{self.value}"
        return self._key


class TransactionId(Id):
    def key(self) -> str:
        """Equal ids have equal texts."""
        return ""


class LocalTransactionId(TransactionId):
    def __init__(self, value: int = 0, connection_id: ConnectionId | None = None) -> None:
        self.code = LOCAL_TRANSACTION_ID
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
        self.code = XA_TRANSACTION_ID
        self.format_id = format_id
        self.global_transaction_id = global_transaction_id
        self.branch_qualifier = branch_qualifier
        self._key: str = ""

    def key(self) -> str:
        """Made once, as above."""
        if not self._key:
            self._key = f"XID:{self.format_id}:{self.global_transaction_id.hex()}:{self.branch_qualifier.hex()}"
        return self._key


class MessageId(Id):
    """
    Attributes:
        text_view: the id as another protocol wrote it; goes before the other fields when it is set.
    """

    def __init__(
        self, producer_id: ProducerId | None = None, producer_sequence_id: int = 0, broker_sequence_id: int = 0
    ) -> None:
        self.code = MESSAGE_ID
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


# --- exceptions


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
