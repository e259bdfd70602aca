"""CORE messages as the broker keeps them, and to and from the hub form.

The head of a message that the broker keeps is that of `delosmq.wire.core.message`, without the properties that only the
broker may set, and its body is the body as it came. A message that came in parts, a large one, differs in its tag.

Source: ActiveMQMessage of artemis-jms-client, MessageUtil of artemis-core-client, OpenWireMessageConverter and
StompUtils of Artemis.
"""

from typing import Final

from delosmq.model.conversion import Conversion, Encoded, rewritten
from delosmq.model.errors import PeerError
from delosmq.model.ids import WallMs
from delosmq.model.message import BYTES_BODY, HIGHEST_PRIORITY, HubMessage, Message
from delosmq.model.properties import (
    BYTE_KIND,
    BYTES_KIND,
    INT_KIND,
    LONG_KIND,
    STRING_KIND,
    PropertyValue,
    TypedValue,
    kind_of,
)
from delosmq.wire.core import errors
from delosmq.wire.core.bodies import MAX_INFLATED_BYTES, body_kind, core_body, hub_body, inflate
from delosmq.wire.core.errors import InflatedTooFarError
from delosmq.wire.core.message import CoreMessage, CoreMessageReader, as_uuid, type_of, user_id_of, with_address
from delosmq.wire.core.properties import (
    CONTENT_TYPE,
    DUPLICATE_ID,
    FORCED_DELIVERY,
    GROUP_ID,
    GROUP_SEQUENCE,
    LARGE_BODY_SIZE,
    LARGE_COMPRESSED,
    ROUTING_TYPE,
    SCHEDULED_DELIVERY,
    BrokerProperties,
    decode_properties,
    encode_properties,
    with_properties,
)
from delosmq.wire.core.strings import encode_simple

FAMILY: Final = "core"
PROTOCOL_TAG: Final = "core/129"
"""Since this version of the wire messages are encoded as they are."""
LARGE_TAG: Final = "core/129-large"
TAGS: Final = frozenset((PROTOCOL_TAG, LARGE_TAG))

CORRELATION_ID: Final = "JMSCorrelationID"
REPLY_TO: Final = "JMSReplyTo"
TYPE: Final = "JMSType"
VALIDATED_USER: Final = "_AMQ_VALIDATED_USER"
CONTENT_ENCODING: Final = "content-encoding"
DEFLATED: Final = "deflate"
"""Tells of a body that is left compressed, in the words of HTTP: zlib."""

LONGEST_ID: Final = 1_024
"""Characters of a group, or bytes of a duplicate id, as the broker keeps both. None that clients make comes near."""
_HUB_GROUP_SEQUENCE: Final = "JMSXGroupSeq"
_ID: Final = "ID:"
_FIELDS: Final = frozenset((CORRELATION_ID, REPLY_TO, TYPE, CONTENT_TYPE, GROUP_ID, GROUP_SEQUENCE))
"""Properties that the hub form has as fields, or under another name."""
_OF_CORE: Final = frozenset(
    (
        FORCED_DELIVERY,
        LARGE_BODY_SIZE,
        LARGE_COMPRESSED,
        ROUTING_TYPE,
        "_AMQ_BRIDGE_DUP",
        "_AMQ_PREFIX",
    )
)
"""Properties by which CORE peers tell each other how a message travels: others neither see nor set them."""
_OF_ARTEMIS: Final = ("__HDR_", "_AMQ_ROUTE_TO", "_AMQ_ACK_ROUTE_TO", "_AMQ_SCALEDOWN_TO")
"""Likewise, those that begin so."""
_DELAYS: Final = ("AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME")
_SAID_OTHERWISE: Final = _OF_CORE.union(
    (CONTENT_TYPE, GROUP_ID, GROUP_SEQUENCE, SCHEDULED_DELIVERY, _HUB_GROUP_SEQUENCE, *_DELAYS)
)
"""Properties of other protocols that CORE clients get from fields of the message, or not at all."""
_ANNOTATION_KINDS: Final = {
    "_AMQ_ACTUAL_EXPIRY": LONG_KIND,
    "_AMQ_ORIG_MESSAGE_ID": LONG_KIND,
    "_AMQ_ORIG_ROUTING_TYPE": BYTE_KIND,
    "originalExpiration": LONG_KIND,
}
"""Of what the broker says in texts, this is numbers to clients."""
_BOUNDS: Final = {BYTE_KIND: 1 << 7, INT_KIND: 1 << 31, LONG_KIND: 1 << 63}
_COMPRESSED_SIGN: Final = encode_simple(LARGE_COMPRESSED)


def stored_message(
    sent: CoreMessage,
    address: str,
    asked: BrokerProperties,
    now: WallMs,
    *,
    user: str,
    connection_id: str,
    large: bool = False,
    large_body_size: int = -1,
) -> Message:
    """A message that was sent as the broker keeps it, with what it has to know of it. The body is not decoded.

    Args:
        sent: of a large message, with its whole body.
        address: where it goes, without a prefix and without the name of a queue.
        asked: what a `BrokerPropertyReader` has read of it; its routing is for those who send it.
        large_body_size: of a large message, as its sender told it with the last part; -1 for nothing.

    Raises:
        LimitError: DMQ5613, an id is too long to be kept.
    """
    group = asked.group_id
    if len(group) > LONGEST_ID:
        raise errors.id_too_long(GROUP_ID, len(group), LONGEST_ID)
    if len(asked.duplicate_id) > LONGEST_ID:
        raise errors.id_too_long(DUPLICATE_ID, len(asked.duplicate_id), LONGEST_ID)
    head = sent.head
    properties = asked.encoded
    if large_body_size >= 0:
        size = {LARGE_BODY_SIZE: TypedValue(LONG_KIND, large_body_size)}
        properties = with_properties(properties, frozenset(), size)
    if len(properties) != len(head) - sent.properties_at:
        head = head[: sent.properties_at] + properties
    if sent.address != address:
        head = with_address(head, address)
    message = Message(
        address,
        LARGE_TAG if large else PROTOCOL_TAG,
        head,
        sent.body,
        body_kind=body_kind(sent.type, sent.body),
        priority=min(max(sent.priority, 0), HIGHEST_PRIORITY),
        durable=sent.durable,
        # 0 is what a sender says that gives none; its consumers see that.
        timestamp_ms=WallMs(sent.timestamp) if sent.timestamp > 0 else now,
        expires_at_ms=max(sent.expiration, 0),
        user=user,
        due_at_ms=asked.due_at_ms,
        group_id=group,
        duplicate_id=asked.duplicate_id,
        connection_id=connection_id,
    )
    if group:
        message.group_sequence = asked.group_sequence
    return message


class CoreConversion(Conversion):
    """Properties that JMS knows become fields, all others keep their types; those of nothing are left out.

    What a producer has encoded badly concerns its consumers alone, so it is shown as far as it can be read: a malformed
    body as bytes. A compressed body that would grow beyond ``max_inflated_bytes`` stays compressed, and says so.
    """

    def __init__(self, max_inflated_bytes: int = MAX_INFLATED_BYTES) -> None:
        self._max_inflated_bytes = max_inflated_bytes
        self._messages: CoreMessageReader = CoreMessageReader()
        # The last compressed body, and what it became: all subscribers of a topic ask for the same.
        self._deflated: bytes = b""
        self._inflated: HubMessage = HubMessage(b"", BYTES_BODY)

    def to_hub(self, message: Message) -> HubMessage:
        entries = self._entries(message)
        hub = _hub_headers(entries, message)
        body = self._body(type_of(message.head), message.body, _is_compressed(entries))
        hub.body = body.body
        hub.body_kind = body.body_kind
        for name, value in body.properties.items():
            hub.properties[name] = value
            hub.property_kinds.pop(name, None)
        return hub

    def headers_to_hub(self, message: Message) -> HubMessage:
        return _hub_headers(self._entries(message), message)

    def body_to_hub(self, message: Message) -> HubMessage:
        compressed = _COMPRESSED_SIGN in message.head and _is_compressed(self._entries(message))
        return self._body(type_of(message.head), message.body, compressed)

    def message_id(self, message: Message) -> str | None:
        user_id = user_id_of(message.head)
        if not user_id:
            return None
        digits = as_uuid(user_id).hex()
        return f"{_ID}{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def has_id(self, message: Message, message_id: str) -> bool:
        return self.message_id(message) == message_id

    def from_hub(self, hub: HubMessage, address: str) -> Encoded:
        message = CoreMessage()
        message.address = address
        message.body, message.type = core_body(hub.body, hub.body_kind)
        message.encode_head(encode_properties(entries_of_hub(hub)))
        return Encoded(PROTOCOL_TAG, message.head, message.body, body_kind(message.type, message.body))

    def rewritten_head(
        self, message: Message, drop: tuple[str, ...], rename: dict[str, str], replaced: tuple[str, ...]
    ) -> bytes:
        stored = stored_head(self._messages, message)
        kept = rewritten(decode_properties(stored.properties), drop, rename, replaced)
        return stored.head[: stored.properties_at] + encode_properties(kept)

    def _entries(self, message: Message) -> dict[str, TypedValue]:
        return decode_properties(stored_head(self._messages, message).properties)

    def _body(self, core_type: int, body: bytes, compressed: bool) -> HubMessage:
        """A body in the hub form, with the property that tells of one that is left compressed."""
        if not compressed or not body:
            found, kind = hub_body(core_type, body)
            return HubMessage(found, kind)
        if body is self._deflated:
            return self._inflated
        try:
            found, kind = hub_body(core_type, inflate(body, self._max_inflated_bytes))
        except InflatedTooFarError:
            left = HubMessage(body, BYTES_BODY)
            left.properties[CONTENT_ENCODING] = DEFLATED
            return left
        except PeerError:
            return HubMessage(body, BYTES_BODY)
        hub = HubMessage(found, kind)
        if max(len(body), len(found)) <= self._max_inflated_bytes:
            self._deflated = body
            self._inflated = hub
        return hub


def stored_head(messages: CoreMessageReader, message: Message) -> CoreMessage:
    """The headers of a message that the broker keeps.

    Raises:
        MisuseError: DMQ5616, it is none of CORE.
    """
    if message.protocol not in TAGS or not message.head:
        raise errors.not_a_head(message.protocol)
    return messages.read_head(message.head, 0, len(message.head))


def _is_compressed(entries: dict[str, TypedValue]) -> bool:
    compressed = entries.get(LARGE_COMPRESSED)
    return compressed is not None and compressed.value is True


def _hub_headers(entries: dict[str, TypedValue], message: Message) -> HubMessage:
    hub = HubMessage(b"", BYTES_BODY)
    for name, typed in entries.items():
        value = typed.value
        if value is None or isinstance(value, dict | list):
            continue
        if name in _FIELDS:
            _set_field(hub, name, value)
        elif name not in _OF_CORE and not name.startswith(_OF_ARTEMIS):
            hub.properties[name] = value
            if kind_of(value) != typed.kind:
                hub.property_kinds[name] = typed.kind
    if message.annotations is not None:
        for name, text in message.annotations.items():
            hub.properties[name] = text
            hub.property_kinds.pop(name, None)
    return hub


def _set_field(hub: HubMessage, name: str, value: PropertyValue) -> None:
    text = _text(value)
    if name == CORRELATION_ID:
        hub.correlation_id = text
        hub.correlation_bytes = value if isinstance(value, bytes) else None
    elif name == REPLY_TO:
        hub.reply_to = text
    elif name == TYPE:
        hub.type = text
    elif name == CONTENT_TYPE:
        hub.content_type = text
    elif name == GROUP_ID:
        hub.group_id = text
    else:
        hub.properties[_HUB_GROUP_SEQUENCE] = value


def _text(value: PropertyValue) -> str | None:
    """As Artemis has it where a text is needed: bytes that are none say nothing."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) else str(value)


def entries_of_hub(hub: HubMessage) -> dict[str, TypedValue]:
    """The properties of a message with what the hub form knows."""
    entries: dict[str, TypedValue] = {}
    for name, value in hub.properties.items():
        if name not in _SAID_OTHERWISE:
            kind = _ANNOTATION_KINDS.get(name, 0)
            typed = as_number(value, kind) if kind else None
            entries[name] = TypedValue(hub.property_kind(name), value) if typed is None else typed
    _add_text(entries, CORRELATION_ID, hub.correlation_id)
    if hub.correlation_bytes is not None:
        entries[CORRELATION_ID] = TypedValue(BYTES_KIND, hub.correlation_bytes)
    _add_text(entries, REPLY_TO, hub.reply_to)
    _add_text(entries, TYPE, hub.type)
    _add_text(entries, CONTENT_TYPE, hub.content_type)
    _add_text(entries, GROUP_ID, hub.group_id)
    sequence = as_number(hub.properties.get(_HUB_GROUP_SEQUENCE), INT_KIND)
    if sequence is not None:
        entries[GROUP_SEQUENCE] = sequence
    due = as_number(hub.properties.get(SCHEDULED_DELIVERY), LONG_KIND)
    if due is not None:
        entries[SCHEDULED_DELIVERY] = due
    return entries


def _add_text(entries: dict[str, TypedValue], name: str, text: str | None) -> None:
    if text is not None:
        entries[name] = TypedValue(STRING_KIND, text)


def as_number(value: object, kind: int) -> TypedValue | None:
    """A whole number, or the text of one, as a value of a kind; None where it is none."""
    number = 0
    if isinstance(value, str):
        digits = value.removeprefix("-")
        if not digits.isdecimal() or not digits.isascii() or len(digits) > 19:
            return None
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        return None
    bound = _BOUNDS[kind]
    return TypedValue(kind, number) if -bound <= number < bound else None


def annotation_entries(annotations: dict[str, str]) -> dict[str, TypedValue]:
    """What the broker says of a message, as properties with the types that clients expect."""
    entries: dict[str, TypedValue] = {}
    for name, text in annotations.items():
        kind = _ANNOTATION_KINDS.get(name, 0)
        typed = as_number(text, kind) if kind else None
        entries[name] = TypedValue(STRING_KIND, text) if typed is None else typed
    return entries
