"""What a packet is: its type, its channel, and its fields, each declared once.

A constructor asks `PacketFields` for the empty value of each field, in the order in which they travel, and the same
call, noted, is the field's place in the layout. What is made for each message is written by hand, in `message_packets`.
"""

from typing import Final

from delosmq.model.message import ANY_ROUTING
from delosmq.model.properties import TypedValue

OLDEST_VERSION: Final = 129
NEWEST_VERSION: Final = 136
VERSIONS: Final = tuple(range(OLDEST_VERSION, NEWEST_VERSION + 1))
ASYNC_SINCE: Final = 130
"""Answers say which request they belong to, and consumers have a priority."""

MOST_INT: Final = 2**31 - 1
"""What a field of 32 bits can say."""
PING_CHANNEL: Final = 0
SESSION_CHANNEL: Final = 1
FIRST_OF_SESSIONS: Final = 10
"""Clients number the channels of their sessions from here on."""

NO_CORRELATION: Final = -1

# Types. Source: PacketImpl.
PING: Final = 10
DISCONNECT: Final = 11
DISCONNECT_CONSUMER: Final = 12
DISCONNECT_CONSUMER_KILL: Final = 13
EXCEPTION: Final = 20
NULL_RESPONSE: Final = 21
PACKETS_CONFIRMED: Final = 22
CREATESESSION: Final = 30
CREATESESSION_RESP: Final = 31
REATTACH_SESSION: Final = 32
REATTACH_SESSION_RESP: Final = 33
CREATE_QUEUE: Final = 34
DELETE_QUEUE: Final = 35
CREATE_SHARED_QUEUE: Final = 36
SESS_XA_FAILED: Final = 39
SESS_CREATECONSUMER: Final = 40
SESS_ACKNOWLEDGE: Final = 41
SESS_EXPIRED: Final = 42
SESS_COMMIT: Final = 43
SESS_ROLLBACK: Final = 44
SESS_QUEUEQUERY: Final = 45
SESS_QUEUEQUERY_RESP: Final = 46
SESS_BINDINGQUERY: Final = 49
SESS_BINDINGQUERY_RESP: Final = 50
SESS_XA_START: Final = 51
SESS_XA_END: Final = 52
SESS_XA_COMMIT: Final = 53
SESS_XA_PREPARE: Final = 54
SESS_XA_RESP: Final = 55
SESS_XA_ROLLBACK: Final = 56
SESS_XA_JOIN: Final = 57
SESS_XA_SUSPEND: Final = 58
SESS_XA_RESUME: Final = 59
SESS_XA_FORGET: Final = 60
SESS_XA_INDOUBT_XIDS: Final = 61
SESS_XA_INDOUBT_XIDS_RESP: Final = 62
SESS_XA_SET_TIMEOUT: Final = 63
SESS_XA_SET_TIMEOUT_RESP: Final = 64
SESS_XA_GET_TIMEOUT: Final = 65
SESS_XA_GET_TIMEOUT_RESP: Final = 66
SESS_START: Final = 67
SESS_STOP: Final = 68
SESS_CLOSE: Final = 69
SESS_FLOWTOKEN: Final = 70
SESS_SEND: Final = 71
SESS_SEND_LARGE: Final = 72
SESS_SEND_CONTINUATION: Final = 73
SESS_CONSUMER_CLOSE: Final = 74
SESS_RECEIVE_MSG: Final = 75
SESS_RECEIVE_LARGE_MSG: Final = 76
SESS_RECEIVE_CONTINUATION: Final = 77
SESS_FORCE_CONSUMER_DELIVERY: Final = 78
SESS_PRODUCER_REQUEST_CREDITS: Final = 79
SESS_PRODUCER_CREDITS: Final = 80
SESS_INDIVIDUAL_ACKNOWLEDGE: Final = 81
SESS_PRODUCER_FAIL_CREDITS: Final = 82
SESS_ADD_METADATA: Final = 104
SESS_ADD_METADATA2: Final = 105
SESS_UNIQUE_ADD_METADATA: Final = 106
CLUSTER_TOPOLOGY: Final = 110
SUBSCRIBE_TOPOLOGY: Final = 112
SUBSCRIBE_TOPOLOGY_V2: Final = 113
CLUSTER_TOPOLOGY_V2: Final = 114
CLUSTER_TOPOLOGY_V3: Final = 122
DISCONNECT_V2: Final = 124
CHECK_FOR_FAILOVER: Final = -4
CHECK_FOR_FAILOVER_REPLY: Final = -5
SESS_QUEUEQUERY_RESP_V2: Final = -7
SESS_BINDINGQUERY_RESP_V2: Final = -8
SESS_BINDINGQUERY_RESP_V3: Final = -10
CREATE_ADDRESS: Final = -11
CREATE_QUEUE_V2: Final = -12
CREATE_SHARED_QUEUE_V2: Final = -13
SESS_QUEUEQUERY_RESP_V3: Final = -14
SESS_BINDINGQUERY_RESP_V4: Final = -15
CLUSTER_TOPOLOGY_V4: Final = -17
CREATESESSION_V2: Final = -18
DISCONNECT_V3: Final = -19
CREATE_PRODUCER: Final = -20
REMOVE_PRODUCER: Final = -21
SESS_BINDINGQUERY_RESP_V5: Final = -22

# The kinds of fields.
FLAG: Final = 1
BYTE: Final = 2  # signed
INT: Final = 3
LONG: Final = 4
SIMPLE_STRING: Final = 5
SIMPLE_STRING_OR_NULL: Final = 6
STRING: Final = 7
STRING_OR_NULL: Final = 8
FLAG_OR_NULL: Final = 9
INT_OR_NULL: Final = 10
LONG_OR_NULL: Final = 11
BYTES: Final = 12
XID: Final = 13
TRANSPORT_OR_NULL: Final = 14
ROUTING: Final = 15
SIMPLE_STRINGS: Final = 16
XIDS: Final = 17
ROUTINGS: Final = 18
ATTRIBUTES: Final = 19
END_FOR_OLDER: Final = 20
"""No field: what older peers send may end here, and the fields behind keep their empty values."""


class CoreXid:
    """The name of a branch of a distributed transaction."""

    def __init__(self, format_id: int, branch_qualifier: bytes, global_transaction_id: bytes) -> None:
        self.format_id = format_id
        self.branch_qualifier = branch_qualifier
        self.global_transaction_id = global_transaction_id

    def key(self) -> tuple[int, bytes, bytes]:
        """What branches are told apart by."""
        return self.format_id, self.global_transaction_id, self.branch_qualifier


class TransportConfiguration:
    """How to connect to a node.

    Attributes:
        name: of the connector.
        factory_class_name: a class of the Java client, which stands for the kind of transport.
        params: such as ``host`` and ``port``; of the kinds BOOLEAN, INT, LONG and STRING.
    """

    def __init__(self, name: str, factory_class_name: str, params: dict[str, TypedValue]) -> None:
        self.name = name
        self.factory_class_name = factory_class_name
        self.params = params


class QueueAttributes:
    """What a queue is created with, or would have been; None where the settings of its address decide."""

    def __init__(self) -> None:
        self.exclusive: bool | None = None
        self.last_value: bool | None = None
        self.last_value_key: str | None = None
        self.non_destructive: bool | None = None
        self.consumers_before_dispatch: int | None = None
        self.delay_before_dispatch: int | None = None
        self.group_rebalance: bool | None = None
        self.group_buckets: int | None = None
        self.auto_delete: bool | None = None
        self.auto_delete_delay: int | None = None
        self.auto_delete_message_count: int | None = None
        self.group_first_key: str | None = None
        self.ring_size: int | None = None
        self.enabled: bool | None = None
        self.group_rebalance_pause_dispatch: bool | None = None


class PacketField:
    """One field of a packet.

    Attributes:
        name: of the attribute.
        kind: one of the constants above.
        since: the first version that has it.
        unless: an attribute that is True when the field is missing; "" for none.
        parts: the fields of `QueueAttributes` that stand here.
    """

    def __init__(
        self, name: str, kind: int, since: int = 0, *, unless: str = "", parts: "tuple[PacketField, ...]" = ()
    ) -> None:
        self.name = name
        self.kind = kind
        self.since = since
        self.unless = unless
        self.parts = parts


_END: Final = PacketField("", END_FOR_OLDER)
EXCLUSIVE_AND_LAST_VALUE: Final = (
    PacketField("exclusive", FLAG_OR_NULL),
    PacketField("last_value", FLAG_OR_NULL),
)
DEFAULTS_SINCE_2_7: Final = (
    PacketField("last_value_key", SIMPLE_STRING_OR_NULL),
    PacketField("non_destructive", FLAG_OR_NULL),
    PacketField("consumers_before_dispatch", INT_OR_NULL),
    PacketField("delay_before_dispatch", LONG_OR_NULL),
)
ATTRIBUTES_SINCE_2_7: Final = (
    *DEFAULTS_SINCE_2_7,
    PacketField("group_rebalance", FLAG_OR_NULL),
    PacketField("group_buckets", INT_OR_NULL),
    PacketField("auto_delete", FLAG_OR_NULL),
    PacketField("auto_delete_delay", LONG_OR_NULL),
    PacketField("auto_delete_message_count", LONG_OR_NULL),
    _END,
    PacketField("group_first_key", SIMPLE_STRING_OR_NULL),
    _END,
    PacketField("ring_size", LONG_OR_NULL),
    _END,
    PacketField("enabled", FLAG_OR_NULL),
    _END,
    PacketField("group_rebalance_pause_dispatch", FLAG_OR_NULL),
)
ALL_ATTRIBUTES: Final = (*EXCLUSIVE_AND_LAST_VALUE, _END, *ATTRIBUTES_SINCE_2_7)


class PacketFields:
    """By which a constructor declares its fields, in the order in which they travel; each gets its empty value.

    Attributes:
        noted: what was declared; None when it is not asked for.
    """

    def __init__(self, noted: list[PacketField] | None = None) -> None:
        self.noted = noted

    def _note(self, name: str, kind: int, since: int = 0, unless: str = "") -> None:
        if self.noted is not None:
            self.noted.append(PacketField(name, kind, since, unless=unless))

    def end_for_older(self) -> None:
        self._note("", END_FOR_OLDER)

    def correlation_id(self, since: int = ASYNC_SINCE) -> int:
        """Which request an answer belongs to; peers may leave it out."""
        self._note("", END_FOR_OLDER)
        self._note("correlation_id", LONG, since)
        return NO_CORRELATION

    def flag(self, name: str, value: bool = False, *, unless: str = "") -> bool:
        self._note(name, FLAG, unless=unless)
        return value

    def byte(self, name: str) -> int:
        self._note(name, BYTE)
        return 0

    def int32(self, name: str, value: int = 0, *, since: int = 0) -> int:
        self._note(name, INT, since)
        return value

    def int64(self, name: str, value: int = 0, *, unless: str = "") -> int:
        self._note(name, LONG, unless=unless)
        return value

    def simple_string(self, name: str) -> str:
        self._note(name, SIMPLE_STRING)
        return ""

    def simple_string_or_null(self, name: str) -> str | None:
        self._note(name, SIMPLE_STRING_OR_NULL)
        return None

    def string(self, name: str) -> str:
        self._note(name, STRING)
        return ""

    def string_or_null(self, name: str) -> str | None:
        self._note(name, STRING_OR_NULL)
        return None

    def flag_or_null(self, name: str) -> bool | None:
        self._note(name, FLAG_OR_NULL)
        return None

    def int32_or_null(self, name: str) -> int | None:
        self._note(name, INT_OR_NULL)
        return None

    def octets(self, name: str) -> bytes:
        self._note(name, BYTES)
        return b""

    def xid(self, name: str) -> CoreXid:
        self._note(name, XID)
        return CoreXid(0, b"", b"")

    def transport_or_null(self, name: str, *, unless: str = "") -> TransportConfiguration | None:
        self._note(name, TRANSPORT_OR_NULL, unless=unless)
        return None

    def routing(self, name: str) -> int:
        """A routing type, by the numbers of the model."""
        self._note(name, ROUTING)
        return ANY_ROUTING

    def simple_strings(self, name: str) -> list[str]:
        self._note(name, SIMPLE_STRINGS)
        return []

    def xids(self, name: str) -> list[CoreXid]:
        self._note(name, XIDS)
        return []

    def routings(self, name: str) -> list[int]:
        self._note(name, ROUTINGS)
        return []

    def attributes(self, name: str, value: QueueAttributes, parts: tuple[PacketField, ...]) -> QueueAttributes:
        if self.noted is not None:
            self.noted.append(PacketField(name, ATTRIBUTES, parts=parts))
        return value


EMPTY: Final = PacketFields()


class Packet:
    """Anything that is a frame of its own.

    Attributes:
        code: its type.
        channel: on which it came or goes.
        size_bytes: of its whole frame, as credits and windows count it; 0 for what was not decoded or encoded.
        correlation_id: which request an answer belongs to; `NO_CORRELATION` for those that have no such field.
        requires_response: its sender asks for an answer. False for those that have no such field: some types are
            answered always.
    """

    code: int = 0
    channel: int = 0
    size_bytes: int = 0
    correlation_id: int = NO_CORRELATION
    requires_response: bool = False

    @property
    def body_bytes(self) -> int:
        """Of the frame, so many are the body of a message or a part of one."""
        return 0
