"""What the tests of the CORE codec share: any packet of any type, comparable rows, and one way to decode."""

from pathlib import Path

from hypothesis import strategies as st

from delosmq.model.errors import PeerError
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST
from delosmq.model.properties import BOOLEAN_KIND, INT_KIND, LONG_KIND, STRING_KIND, TypedValue
from delosmq.wire.core.codec import CLASSES, TABLE, WHOLE_MESSAGES, PacketReader
from delosmq.wire.core.decoder import CoreDecoder, CoreLimits
from delosmq.wire.core.message import CoreMessage, CoreMessageReader
from delosmq.wire.core.message_packets import (
    SessionReceiveLargeMessage,
    SessionReceiveMessage,
    SessionSend,
    SessionSendLarge,
)
from delosmq.wire.core.packet import (
    ATTRIBUTES,
    BYTE,
    BYTES,
    END_FOR_OLDER,
    FLAG,
    FLAG_OR_NULL,
    INT,
    INT_OR_NULL,
    LONG,
    LONG_OR_NULL,
    NEWEST_VERSION,
    ROUTING,
    ROUTINGS,
    SESS_RECEIVE_LARGE_MSG,
    SESS_RECEIVE_MSG,
    SESS_SEND,
    SESS_SEND_LARGE,
    SIMPLE_STRING,
    SIMPLE_STRING_OR_NULL,
    SIMPLE_STRINGS,
    STRING,
    STRING_OR_NULL,
    TRANSPORT_OR_NULL,
    XID,
    XIDS,
    CoreXid,
    Packet,
    PacketField,
    QueueAttributes,
    TransportConfiguration,
)
from delosmq.wire.core.properties import encode_properties

GOLDEN = Path(__file__).parent / "golden"
CODES = sorted(TABLE.keys() | WHOLE_MESSAGES)
Row = tuple[object, ...]

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
ints = st.integers(-(1 << 31), (1 << 31) - 1)
longs = st.integers(-(1 << 63), (1 << 63) - 1)
xids = st.builds(CoreXid, ints, st.binary(max_size=6), st.binary(max_size=6))
params = st.one_of(
    st.builds(TypedValue, st.just(BOOLEAN_KIND), st.booleans()),
    st.builds(TypedValue, st.just(INT_KIND), ints),
    st.builds(TypedValue, st.just(LONG_KIND), longs),
    st.builds(TypedValue, st.just(STRING_KIND), texts),
)
transports = st.builds(TransportConfiguration, texts, texts, st.dictionaries(texts, params, max_size=3))
routings = st.sampled_from((ANY_ROUTING, ANYCAST, MULTICAST))
VALUES: dict[int, st.SearchStrategy[object]] = {
    FLAG: st.booleans(),
    BYTE: st.integers(-128, 127),
    INT: ints,
    LONG: longs,
    SIMPLE_STRING: texts,
    SIMPLE_STRING_OR_NULL: st.none() | texts,
    STRING: texts,
    STRING_OR_NULL: st.none() | texts,
    FLAG_OR_NULL: st.none() | st.booleans(),
    INT_OR_NULL: st.none() | ints,
    LONG_OR_NULL: st.none() | longs,
    BYTES: st.binary(max_size=20),
    XID: xids,
    TRANSPORT_OR_NULL: st.none() | transports,
    ROUTING: routings,
    SIMPLE_STRINGS: st.lists(texts, max_size=3),
    XIDS: st.lists(xids, max_size=3),
    ROUTINGS: st.lists(routings, max_size=3),
}


@st.composite
def messages(draw: st.DrawFn) -> CoreMessage:
    """A message with any headers and a few properties."""
    message = CoreMessage()
    message.message_id = draw(longs)
    message.address = draw(st.none() | texts)
    message.user_id = draw(st.just(b"") | st.binary(min_size=16, max_size=16))
    message.type = draw(st.integers(0, 8))
    message.durable = draw(st.booleans())
    message.expiration = draw(longs)
    message.timestamp = draw(longs)
    message.priority = draw(st.integers(0, 9))
    message.body = draw(st.binary(max_size=20))
    message.encode_head(encode_properties(draw(st.dictionaries(texts, params, max_size=3))))
    return message


@st.composite
def packets(draw: st.DrawFn, code: int, version: int) -> Packet:
    """A packet of type ``code``, with all fields that ``version`` has."""
    packet = with_message(code, draw(messages())) if code in WHOLE_MESSAGES else CLASSES[code]()
    if isinstance(packet, SessionSendLarge | SessionReceiveLargeMessage):
        packet.message.body = b""
    packet.channel = draw(longs)
    if isinstance(packet, SessionSend):
        packet.requires_response = draw(st.booleans())
        packet.correlation_id = draw(longs) if version >= 130 else -1
        packet.sender_id = draw(ints) if version >= 134 else -1
    elif isinstance(packet, SessionReceiveMessage | SessionReceiveLargeMessage):
        packet.consumer_id = draw(longs)
        packet.delivery_count = draw(ints)
        if isinstance(packet, SessionReceiveLargeMessage):
            packet.body_size = draw(longs)
    for field in TABLE.get(code, ()):
        if field.since <= version:
            _fill(draw, packet, field)
    return packet


def with_message(code: int, message: CoreMessage) -> Packet:
    kinds = {
        SESS_SEND: SessionSend,
        SESS_SEND_LARGE: SessionSendLarge,
        SESS_RECEIVE_MSG: SessionReceiveMessage,
        SESS_RECEIVE_LARGE_MSG: SessionReceiveLargeMessage,
    }
    return kinds[code](message)


def _fill(draw: st.DrawFn, target: Packet | QueueAttributes, field: PacketField) -> None:
    if field.kind == ATTRIBUTES:
        for part in field.parts:
            _fill(draw, getattr(target, field.name), part)
    elif field.kind != END_FOR_OLDER and not (field.unless and getattr(target, field.unless)):
        setattr(target, field.name, draw(VALUES[field.kind]))


def row(value: object) -> object:
    """All that a value holds, to compare by."""
    if isinstance(value, Packet):
        names = [field.name for field in TABLE.get(value.code, ()) if field.name]
        if value.code in WHOLE_MESSAGES:
            hand_written = ("message", "requires_response", "sender_id", "consumer_id", "delivery_count", "body_size")
            names = [name for name in hand_written if hasattr(value, name)]
        common: Row = (type(value).__name__, value.code, value.channel, value.correlation_id)
        return (*common, *[row(getattr(value, name)) for name in names])
    if isinstance(value, CoreMessage):
        headers = (value.message_id, value.address, value.user_id, value.type, value.durable, value.expiration)
        return (*headers, value.timestamp, value.priority, value.body, value.head)
    if isinstance(value, QueueAttributes):
        return [getattr(value, name) for name in ATTRIBUTE_NAMES]
    if isinstance(value, TransportConfiguration):
        typed = {key: (param.kind, param.value) for key, param in value.params.items()}
        return (value.name, value.factory_class_name, typed)
    if isinstance(value, CoreXid):
        return value.key()
    return [row(each) for each in value] if isinstance(value, list) else value


ATTRIBUTE_NAMES = (
    "exclusive",
    "last_value",
    "last_value_key",
    "non_destructive",
    "consumers_before_dispatch",
    "delay_before_dispatch",
    "group_rebalance",
    "group_buckets",
    "auto_delete",
    "auto_delete_delay",
    "auto_delete_message_count",
    "group_first_key",
    "ring_size",
    "enabled",
    "group_rebalance_pause_dispatch",
)


def read(frame: bytes, version: int = NEWEST_VERSION) -> Packet:
    """The packet of one frame."""
    return PacketReader(version).read(frame, 4, len(frame))


def open_decoder(version: int = NEWEST_VERSION, limits: CoreLimits | None = None) -> CoreDecoder:
    """A decoder behind the creation of a session."""
    decoder = CoreDecoder(limits or CoreLimits())
    decoder.agreed(version)
    return decoder


def decode(chunks: list[bytes], version: int = NEWEST_VERSION) -> tuple[list[object], str | None]:
    """Rows of the packets, and the code of the refusal."""
    decoder = open_decoder(version)
    rows: list[object] = []
    for chunk in chunks:
        try:
            packet = decoder.next_frame(chunk)
            while packet is not None:
                rows.append(row(packet))
                packet = decoder.next_frame()
        except PeerError as refusal:
            return rows, refusal.code
    return rows, None


def golden() -> dict[str, tuple[int, bytes]]:
    """The frames of Artemis by name and version."""
    lines = (GOLDEN / "packets.txt").read_text("utf-8").splitlines()
    found: dict[str, tuple[int, bytes]] = {}
    for line in lines:
        if not line.startswith("#"):
            name, version, frame = line.split()
            found[f"{name} {version}"] = (int(version), bytes.fromhex(frame))
    return found


def golden_messages() -> dict[str, CoreMessage]:
    """The messages of Java clients by name."""
    lines = (GOLDEN / "messages.txt").read_text("utf-8").splitlines()
    found: dict[str, CoreMessage] = {}
    for line in lines:
        if not line.startswith("#"):
            name, message = line.split()
            encoded = bytes.fromhex(message)
            found[name] = CoreMessageReader().read(encoded, 0, len(encoded))
    return found
