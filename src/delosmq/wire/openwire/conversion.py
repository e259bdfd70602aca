"""OpenWire messages to and from the hub form."""

from typing import Final

from delosmq.model.conversion import Conversion, Encoded, rewritten
from delosmq.model.errors import PeerError
from delosmq.model.message import BYTES_BODY, TEXT_BODY, HubMessage, Message
from delosmq.model.properties import LONG_KIND, STRING_KIND, TypedValue, kind_of
from delosmq.wire.openwire.bodies import MAX_INFLATED_BYTES, deflated_body, hub_body, set_body, text_body
from delosmq.wire.openwire.commands import (
    ACTIVEMQ_MESSAGE,
    BLOB_MESSAGE,
    BYTES_MESSAGE,
    OBJECT_MESSAGE,
    TEXT_MESSAGE,
    MessageCommand,
)
from delosmq.wire.openwire.errors import InflatesTooFarError
from delosmq.wire.openwire.heads import (
    BODY_KINDS,
    PROTOCOL_TAGS,
    VERSION_OF_TAG,
    StoredReader,
    encode_head,
    has_content,
    measure,
    plain_code,
    stored_body,
)
from delosmq.wire.openwire.modified_utf8 import LONGEST_BYTES, encode_text, well_formed
from delosmq.wire.openwire.primitives import decode_map, encode_map
from delosmq.wire.openwire.properties import decode_properties, plain_value
from delosmq.wire.openwire.structures import Destination, MessageId, ProducerId, destination_of
from delosmq.wire.openwire.wire_format import NEWEST_VERSION

INTERNAL_PREFIXES: Final = ("_AMQ", "__AMQ")
"""Properties that begin so concern the broker; OpenWire consumers don't see those that others have set. Source:
Artemis OpenWireMessageConverter.setAMQMsgObjectProperties."""

OPERATION_SUCCEEDED: Final = "_AMQ_OperationSucceeded"
"""Of the answer to a management message: the one such property that they see, as they can't tell success otherwise."""

ORIGINAL_EXPIRATION: Final = "originalExpiration"
CONTENT_ENCODING: Final = "content-encoding"
DEFLATED: Final = "deflate"
"""Tells of a body that is left compressed, in the words of HTTP: zlib."""

_CONTENT_IS_BODY: Final = frozenset((ACTIVEMQ_MESSAGE, BLOB_MESSAGE, BYTES_MESSAGE, OBJECT_MESSAGE))
_GROUP_SEQUENCE: Final = "JMSXGroupSeq"
_NUMBERS_IN_AN_ID: Final = 3
"""Session, producer and sequence."""


class OpenWireConversion(Conversion):
    """Destinations become text such as ``queue://name`` and back; types of properties and bodies are kept.

    What a producer has marshalled badly concerns its consumers alone, so it is shown as far as it can be read: a
    malformed body as bytes, malformed properties as none. A compressed body that would grow beyond
    ``max_inflated_bytes`` stays compressed, and says so.
    """

    def __init__(self, max_inflated_bytes: int = MAX_INFLATED_BYTES) -> None:
        self._max_inflated_bytes = max_inflated_bytes
        self._stored: StoredReader = StoredReader()
        # The last compressed content, and what it became: all subscribers of a topic ask for the same.
        self._deflated: bytes | None = None
        self._inflated: HubMessage = HubMessage(b"", BYTES_BODY)

    def to_hub(self, message: Message) -> HubMessage:
        command = self._stored.decode(message)
        hub = _hub_headers(command, message)
        if not command.compressed:
            self._set_body(hub, command)
            return hub
        body = self._inflated_body(command)
        hub.body = body.body
        hub.body_kind = body.body_kind
        for name, value in body.properties.items():
            hub.properties[name] = value
            hub.property_kinds.pop(name, None)
        return hub

    def body_to_hub(self, message: Message) -> HubMessage:
        code = plain_code(message)
        if code not in _CONTENT_IS_BODY and code != TEXT_MESSAGE:
            return self.to_hub(message)
        if not has_content(message):
            return HubMessage(b"", BODY_KINDS[code])
        if code != TEXT_MESSAGE:
            return HubMessage(message.body, BODY_KINDS[code])
        try:
            return HubMessage(text_body(message.body), TEXT_BODY)
        except PeerError:
            return HubMessage(message.body, BYTES_BODY)

    def _inflated_body(self, command: MessageCommand) -> HubMessage:
        """The body of a compressed message; one is kept, of at most ``max_inflated_bytes`` as it was sent and after."""
        content = command.content
        if content is not None and content is self._deflated:
            return self._inflated
        body = HubMessage(b"", BODY_KINDS[command.code])
        self._set_body(body, command)
        if content is not None and max(len(content), len(body.body)) <= self._max_inflated_bytes:
            self._deflated = content
            self._inflated = body
        return body

    def _set_body(self, hub: HubMessage, command: MessageCommand) -> None:
        try:
            hub.body = hub_body(command, self._max_inflated_bytes)
        except InflatesTooFarError:
            hub.body = deflated_body(command)
            hub.body_kind = BYTES_BODY
            hub.properties[CONTENT_ENCODING] = DEFLATED
        except PeerError:
            hub.body = stored_body(command)
            hub.body_kind = BYTES_BODY

    def headers_to_hub(self, message: Message) -> HubMessage:
        return _hub_headers(self._stored.decode_headers(message), message)

    def message_id(self, message: Message) -> str | None:
        message_id = self._stored.decode_headers(message).message_id
        return None if message_id is None else well_formed(message_id.key())

    def has_id(self, message: Message, message_id: str) -> bool:
        # The numbers at its end are no text in the head.
        connection_id = message_id.rsplit(":", _NUMBERS_IN_AN_ID)[0]
        return encode_text(connection_id) in message.head and self.message_id(message) == message_id

    def from_hub(self, hub: HubMessage, address: str) -> Encoded:
        command = command_of_hub(hub)
        command.destination = Destination(_fitting(address) or "")
        command.message_id = MessageId(ProducerId())
        head = encode_head(command, NEWEST_VERSION, 0)
        return Encoded(PROTOCOL_TAGS[NEWEST_VERSION], head, stored_body(command), BODY_KINDS[command.code])

    def rewritten_head(
        self, message: Message, drop: tuple[str, ...], rename: dict[str, str], replaced: tuple[str, ...]
    ) -> bytes:
        command = self._stored.decode(message)
        if not command.marshalled_properties:
            return message.head
        try:
            entries = decode_map(command.marshalled_properties)
        except PeerError:
            return message.head
        kept = rewritten(entries, drop, rename, replaced)
        command.marshalled_properties = encode_map(kept) if kept else None
        version = VERSION_OF_TAG[message.protocol]
        measure(command, version)
        return encode_head(command, version, command.broker_in_time)


def _hub_headers(command: MessageCommand, message: Message) -> HubMessage:
    hub = HubMessage(b"", BODY_KINDS[command.code])
    hub.correlation_id = _optional(command.correlation_id)
    hub.type = _optional(command.type)
    hub.group_id = _optional(command.group_id)
    reply_to = command.reply_to
    hub.reply_to = None if reply_to is None else well_formed(reply_to.qualified_name())
    try:
        entries = decode_properties(command.marshalled_properties)
    except PeerError:
        entries = {}
    for name, typed in entries.items():
        value = plain_value(typed)
        if value is None:
            continue
        name = well_formed(name)
        hub.properties[name] = well_formed(value) if isinstance(value, str) else value
        if kind_of(value) != typed.kind and typed.kind <= STRING_KIND:
            hub.property_kinds[name] = typed.kind
    if message.annotations is not None:
        for name, text in message.annotations.items():
            hub.properties[name] = text
            hub.property_kinds.pop(name, None)
    return hub


def _optional(text: str | None) -> str | None:
    return None if text is None else well_formed(text)


def command_of_hub(hub: HubMessage) -> MessageCommand:
    """A message with what the hub form knows; destination, ids and times are left to the caller.

    Headers that don't fit into a field of OpenWire are left out.
    """
    command = MessageCommand()
    set_body(command, hub.body, hub.body_kind)
    command.correlation_id = _fitting(hub.correlation_id)
    command.type = _fitting(hub.type)
    command.group_id = _fitting(hub.group_id)
    reply_to = _fitting(hub.reply_to)
    command.reply_to = destination_of(reply_to) if reply_to else None
    entries: dict[str, TypedValue] = {}
    for name, value in hub.properties.items():
        internal = name.startswith(INTERNAL_PREFIXES) and name != OPERATION_SUCCEEDED
        if not internal and name != _GROUP_SEQUENCE:
            entries[name] = TypedValue(hub.property_kind(name), value)
    add_annotations(entries, {})
    command.marshalled_properties = encode_map(entries) if entries else None
    return command


def add_annotations(entries: dict[str, TypedValue], annotations: dict[str, str]) -> None:
    """Puts what the broker says of a message among its properties, as consumers of Classic expect it."""
    for name, text in annotations.items():
        if not name.startswith(INTERNAL_PREFIXES):
            entries[name] = TypedValue(STRING_KIND, text)
    expiration = entries.get(ORIGINAL_EXPIRATION)
    if expiration is not None and isinstance(expiration.value, str) and expiration.value.isdecimal():
        number = int(expiration.value[:19])
        entries[ORIGINAL_EXPIRATION] = TypedValue(LONG_KIND, number)


def _fitting(text: str | None) -> str | None:
    return None if text is None or len(encode_text(text)) > LONGEST_BYTES else text
