"""STOMP messages to and from the hub form.

The head of a STOMP message is the header lines of its SEND that travel on; what the broker keeps in fields of its own
(priority, persistence, times) and what concerned only the hop to the broker (receipt, length) is not in it.
"""

from typing import Final

from delosmq.model.conversion import Conversion, Encoded
from delosmq.model.message import BYTES_BODY, TEXT_BODY, HubMessage, Message
from delosmq.wire.stomp.encoder import escape, unescape
from delosmq.wire.stomp.frames import V10, V11, V12

FAMILY: Final = "stomp"
PROTOCOL_TAGS: Final = {V10: "stomp/10", V11: "stomp/11", V12: "stomp/12"}
VERSION_OF_TAG: Final = {tag: version for version, tag in PROTOCOL_TAGS.items()}

DESTINATION: Final = "destination"
DESTINATION_TYPE: Final = "destination-type"
_CORRELATION_ID: Final = "correlation-id"
_REPLY_TO: Final = "reply-to"
_TYPE: Final = "type"
_CONTENT_TYPE: Final = "content-type"
_GROUP_ID: Final = "JMSXGroupID"
_TEXT_BODIES: Final = frozenset((TEXT_BODY,))


def decode_head(head: bytes, version: int) -> dict[str, str]:
    """The headers of a head made of lines that end in LF; the first of repeated ones wins."""
    headers: dict[str, str] = {}
    if head:
        for line in head.decode().removesuffix("\n").split("\n"):
            name, _, value = line.partition(":")
            headers.setdefault(unescape(name, version), unescape(value, version))
    return headers


def encode_lines(pairs: list[tuple[str, str]], version: int) -> bytes:
    """Header lines in the escapes of ``version``, each with its LF."""
    lines = [f"{_name(name, version)}:{escape(value, version)}\n" for name, value in pairs]
    return "".join(lines).encode()


def _name(name: str, version: int) -> str:
    escaped = escape(name, version)
    return escaped.replace(":", "_") if version == V10 else escaped


class StompConversion(Conversion):
    """Headers that JMS knows become fields, all others are string properties.

    Typed properties of other protocols become the text that Java's toString gives, as Artemis writes them.
    """

    def to_hub(self, message: Message) -> HubMessage:
        hub = HubMessage(message.body, message.body_kind)
        headers = decode_head(message.head, VERSION_OF_TAG.get(message.protocol, V12))
        headers.pop(DESTINATION, None)
        headers.pop(DESTINATION_TYPE, None)
        hub.correlation_id = headers.pop(_CORRELATION_ID, None)
        hub.reply_to = headers.pop(_REPLY_TO, None)
        hub.type = headers.pop(_TYPE, None)
        hub.content_type = headers.pop(_CONTENT_TYPE, None)
        hub.group_id = headers.pop(_GROUP_ID, None)
        if message.annotations is not None:
            headers.update(message.annotations)
        hub.properties.update(headers)
        return hub

    def from_hub(self, hub: HubMessage, address: str) -> Encoded:
        pairs: list[tuple[str, str]] = [(DESTINATION, address)]
        if hub.correlation_id is not None:
            pairs.append((_CORRELATION_ID, hub.correlation_id))
        if hub.reply_to is not None:
            pairs.append((_REPLY_TO, hub.reply_to))
        if hub.type is not None:
            pairs.append((_TYPE, hub.type))
        if hub.content_type is not None:
            pairs.append((_CONTENT_TYPE, hub.content_type))
        if hub.group_id is not None:
            pairs.append((_GROUP_ID, hub.group_id))
        taken = {name for name, _ in pairs}
        pairs += [pair for pair in hub.property_texts().items() if pair[0] not in taken]
        # STOMP has two kinds of body: text, and bytes with a content-length.
        kind = TEXT_BODY if hub.body_kind in _TEXT_BODIES and b"\0" not in hub.body else BYTES_BODY
        return Encoded(PROTOCOL_TAGS[V12], encode_lines(pairs, V12), hub.body, kind)

    def rewritten_head(
        self, message: Message, drop: tuple[str, ...], rename: dict[str, str], replaced: tuple[str, ...]
    ) -> bytes:
        version = VERSION_OF_TAG.get(message.protocol, V12)
        headers = decode_head(message.head, version)
        for name in drop:
            headers.pop(name, None)
        kept = {name: value for name, value in headers.items() if name not in rename}
        for name, new_name in rename.items():
            if name in headers:
                kept[new_name] = headers[name]
        for name in replaced:
            kept.pop(name, None)
        return encode_lines(list(kept.items()), version)
