"""Frames byte for byte as Artemis makes them, and what is in them."""

import pytest

from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.properties import (
    BOOLEAN_KIND,
    BYTE_KIND,
    BYTES_KIND,
    CHAR_KIND,
    DOUBLE_KIND,
    FLOAT_KIND,
    INT_KIND,
    LONG_KIND,
    NULL_KIND,
    SHORT_KIND,
    STRING_KIND,
    TypedValue,
)
from delosmq.wire.core.codec import encode_packet
from delosmq.wire.core.message_packets import (
    SessionReceiveLargeMessage,
    SessionReceiveMessage,
    SessionSend,
    SessionSendContinuation,
    SessionSendLarge,
)
from delosmq.wire.core.packet import Packet
from delosmq.wire.core.properties import decode_properties, encode_properties
from tests.wire.core.support import CODES, golden, read, row

GOLDEN = golden()
XID = (77, b"\3\4\5", b"\1\2")
PARAMS = {
    "host": (STRING_KIND, "localhost"),
    "port": (INT_KIND, 61616),
    "sslEnabled": (BOOLEAN_KIND, False),
    "ttl": (LONG_KIND, 60_000),
}
CONNECTOR = ("netty-connector", "org.example.Factory", PARAMS)
# Attributes of `QueueAttributes`, in its order.
ATTRIBUTES = [True, False, "key", True, 2, 3_000, True, 64, False, 4_000, -1, "first", 100, True, True]
NO_ATTRIBUTES = [None] * 15
SOME = [None, None, None, False, *[None] * 11]
QUERIED = [True, True, False, 2, 3, "x = 1", "a", "q"]
BOUND = [True, ["q1", "q2"]]
IDS = [2, 7]

FIELDS: dict[str, list[object]] = {
    "SESS_SEND_CONTINUATION 129": [b"\t\b\7", True, -1, True, -1, -1],
    "SESS_SEND_CONTINUATION-last 133": [b"\t\b\7", False, 3, True, -2, -1],
    "SESS_SEND_CONTINUATION-last 136": [b"\t\b\7", False, 3, True, -2, 3],
    "EXCEPTION 129": [100, "no queue", -1],
    "EXCEPTION 136": [100, "no queue", -2],
    "NULL_RESPONSE 129": [-1],
    "NULL_RESPONSE 130": [-2],
    "SESS_XA_RESP 136": [True, -4, "unknown", -2],
    "SESS_COMMIT 131": [-1],
    "SESS_COMMIT 132": [-2],
    "SESS_CREATECONSUMER 129": [1, "q", "x > 1", False, True, 0],
    "SESS_CREATECONSUMER 136": [1, "q", "x > 1", False, True, 7],
    "SESS_RECEIVE_CONTINUATION 136": [b"\1\2\3", True, 2],
    "PING 136": [60_000],
    "DISCONNECT 136": ["node"],
    "DISCONNECT_V2 136": ["node", "down"],
    "DISCONNECT_V3 136": ["node", 2, "target", CONNECTOR],
    "DISCONNECT_V3-shut 136": [None, 4, None, None],
    "DISCONNECT_CONSUMER 136": [2],
    "DISCONNECT_CONSUMER_KILL 136": ["node"],
    "PACKETS_CONFIRMED 136": [12],
    "CREATESESSION 136": ["name", 10, 130, "user", "secret", 102_400, True, True, False, -1, True, None],
    "CREATESESSION_V2 136": [
        *("a-longer-name", 10, 136, None, None, 102_400, False, False, True, 1_048_576, False, "default"),
        "client",
    ],
    "CREATESESSION_RESP 136": [136],
    "REATTACH_SESSION 136": ["name", 5],
    "REATTACH_SESSION_RESP 136": [6, True],
    "CHECK_FOR_FAILOVER 136": ["node"],
    "CHECK_FOR_FAILOVER-null 136": [None],
    "CHECK_FOR_FAILOVER_REPLY 136": [True],
    "CLUSTER_TOPOLOGY 136": [False, "node", CONNECTOR, None, True],
    "CLUSTER_TOPOLOGY-exit 136": [True, "node", None, None, False],
    "CLUSTER_TOPOLOGY_V2 136": [False, "node", 9, CONNECTOR, None, True, "group"],
    "CLUSTER_TOPOLOGY_V2-exit 136": [True, "node", 9, None, None, False, None],
    "CLUSTER_TOPOLOGY_V3 136": [False, "node", 9, CONNECTOR, None, True, "group", "down"],
    "CLUSTER_TOPOLOGY_V4 136": [False, "node", 9, None, CONNECTOR, True, "group", None, 136],
    "SUBSCRIBE_TOPOLOGY 136": [False],
    "SUBSCRIBE_TOPOLOGY_V2 136": [True, 136],
    "CREATE_ADDRESS 136": ["a", [MULTICAST, ANYCAST], True, True],
    "CREATE_QUEUE 136": ["a", "q", None, False, True, True],
    "CREATE_QUEUE_V2 136": ["a", "q", "x = 1", True, False, True, True, ANYCAST, 5, True, ATTRIBUTES],
    "CREATE_QUEUE_V2-null 136": ["a", "q", None, True, False, False, False, 0, -1, False, NO_ATTRIBUTES],
    "CREATE_SHARED_QUEUE 136": ["a", "q", None, True, True],
    "CREATE_SHARED_QUEUE_V2 136": ["a", "q", "x = 1", True, ANYCAST, True, 5, True, ATTRIBUTES],
    "DELETE_QUEUE 136": ["q"],
    "SESS_QUEUEQUERY 136": ["q"],
    "SESS_QUEUEQUERY_RESP 136": QUERIED,
    "SESS_QUEUEQUERY_RESP_V2 136": [*QUERIED, True],
    "SESS_QUEUEQUERY_RESP_V3 136": [
        *(*QUERIED, True, True, True, MULTICAST, 5, ATTRIBUTES, 1_048_576, ATTRIBUTES, False),
    ],
    "SESS_BINDINGQUERY 136": ["a"],
    "SESS_BINDINGQUERY_RESP 136": BOUND,
    "SESS_BINDINGQUERY_RESP_V2 136": [*BOUND, True],
    "SESS_BINDINGQUERY_RESP_V3 136": [*BOUND, True, False],
    "SESS_BINDINGQUERY_RESP_V5 136": [*BOUND, True, False, True, -1, SOME, SOME, True, False],
    "SESS_XA_START 136": [XID],
    "SESS_XA_END 136": [XID, True],
    "SESS_XA_COMMIT 136": [XID, True],
    "SESS_XA_PREPARE 136": [XID],
    "SESS_XA_ROLLBACK 136": [XID],
    "SESS_XA_JOIN 136": [XID],
    "SESS_XA_SUSPEND 136": [],
    "SESS_XA_RESUME 136": [XID],
    "SESS_XA_FORGET 136": [XID],
    "SESS_XA_FAILED 136": [XID],
    "SESS_XA_INDOUBT_XIDS 136": [],
    "SESS_XA_INDOUBT_XIDS_RESP 136": [[XID, XID]],
    "SESS_XA_SET_TIMEOUT 136": [30],
    "SESS_XA_SET_TIMEOUT_RESP 136": [True],
    "SESS_XA_GET_TIMEOUT 136": [],
    "SESS_XA_GET_TIMEOUT_RESP 136": [300],
    "SESS_START 136": [],
    "SESS_STOP 136": [],
    "SESS_CLOSE 136": [],
    "SESS_FLOWTOKEN 136": [2, -1],
    "SESS_CONSUMER_CLOSE 136": [2],
    "SESS_FORCE_CONSUMER_DELIVERY 136": [2, 4],
    "SESS_EXPIRED 136": IDS,
    "SESS_ACKNOWLEDGE 136": [*IDS, True],
    "SESS_INDIVIDUAL_ACKNOWLEDGE 136": [*IDS, False],
    "SESS_ROLLBACK 136": [True],
    "SESS_PRODUCER_REQUEST_CREDITS 136": [32_768, "a"],
    "SESS_PRODUCER_CREDITS 136": [32_768, "a"],
    "SESS_PRODUCER_FAIL_CREDITS 136": [32_768, "a"],
    "SESS_ADD_METADATA 136": ["key", "v"],
    "SESS_ADD_METADATA2 136": ["jms-session", "", True],
    "SESS_UNIQUE_ADD_METADATA 136": ["jms-client-id", "client", True],
    "CREATE_PRODUCER 136": [3, "a"],
    "CREATE_PRODUCER-null 136": [3, None],
    "REMOVE_PRODUCER 136": [3],
    "SESS_ADD_METADATA-astral 136": ["😀", "grin 😀 grin"],
}


def fields(packet: Packet) -> list[object]:
    found = row(packet)
    assert isinstance(found, tuple)
    _, _, channel, correlation_id, *others = found
    assert channel == 10
    assert correlation_id == packet.correlation_id
    return others


@pytest.mark.parametrize("name", GOLDEN)
def test_a_frame_of_artemis_comes_back_byte_for_byte(name: str) -> None:
    version, frame = GOLDEN[name]
    packet = read(frame, version)
    assert packet.size_bytes == len(frame)
    assert encode_packet(packet, version).hex(" ") == frame.hex(" ")
    if name in FIELDS:
        assert fields(packet) == FIELDS[name]


def test_each_type_has_a_frame_of_artemis() -> None:
    known = {read(frame, version).code for version, frame in GOLDEN.values()}
    assert known == set(CODES)


@pytest.mark.parametrize("version, correlation_id, sender_id", [(129, -1, -1), (130, -2, -1), (134, -2, 3)])
def test_a_send_of_each_version(version: int, correlation_id: int, sender_id: int) -> None:
    send = read(GOLDEN[f"SESS_SEND {version}"][1], version)
    assert isinstance(send, SessionSend)
    assert (send.requires_response, send.correlation_id, send.sender_id) == (True, correlation_id, sender_id)
    message = send.message
    assert (message.message_id, message.address, message.type, message.durable) == (7, "orders", 3, True)
    assert (message.expiration, message.timestamp, message.priority) == (1_700_000_005_000, 1_700_000_000_000, 4)
    assert message.user_id.hex() == "1002030405061708890a0b0c0d0e0f10"
    assert message.body[5:].decode("utf-16-le") == "héllo 😀"
    assert decode_properties(message.properties)["text"].value == "välue"
    assert message.encoded_size == send.size_bytes - 13 - {129: 1, 130: 9, 134: 13}[version]


def test_a_large_message() -> None:
    sent = read(GOLDEN["SESS_SEND_LARGE 136"][1])
    received = read(GOLDEN["SESS_RECEIVE_LARGE_MSG 136"][1])
    assert isinstance(sent, SessionSendLarge)
    assert isinstance(received, SessionReceiveLargeMessage)
    assert received.message.head == sent.message.head
    assert (received.consumer_id, received.delivery_count, received.body_size) == (2, 1, 123_456_789_012)
    part = read(GOLDEN["SESS_SEND_CONTINUATION 136"][1])
    assert isinstance(part, SessionSendContinuation)
    assert part.body == b"\t\b\7"


@pytest.mark.parametrize(
    "name, kind, value",
    [
        ("null", NULL_KIND, None),
        ("boolean", BOOLEAN_KIND, True),
        ("byte", BYTE_KIND, -2),
        ("bytes", BYTES_KIND, b"\1\2\xff"),
        ("short", SHORT_KIND, -300),
        ("int", INT_KIND, 70_000),
        ("long", LONG_KIND, 1 << 40),
        ("float", FLOAT_KIND, 1.5),
        ("double", DOUBLE_KIND, -2.25),
        ("string", STRING_KIND, "\0€😀"),
        ("char", CHAR_KIND, "€"),
    ],
)
def test_a_property_of_each_kind(name: str, kind: int, value: str | bytes | bool | int | float | None) -> None:
    received = read(GOLDEN[f"SESS_RECEIVE_MSG-{name} 136"][1])
    assert isinstance(received, SessionReceiveMessage)
    entries = decode_properties(received.message.properties)
    assert {key: (typed.kind, typed.value) for key, typed in entries.items()} == {name: (kind, value)}
    assert encode_properties({name: TypedValue(kind, value)}) == received.message.properties
