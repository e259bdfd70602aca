"""STOMP messages to and from the hub form.

The head of a STOMP message is the header lines of its SEND that travel on; what the broker keeps in fields of its own
(priority, persistence, times) and what concerned only the hop to the broker (receipt, length) is not in it.

STOMP has text and bytes. Maps and streams of others come as their JSON text (`delosmq.model.bodies`), and the header
``amq-msg-type`` says what they are.
"""

from typing import Final, cast

from delosmq.model.conversion import Conversion, Encoded, rewritten
from delosmq.model.message import (
    BODY_KIND_NAMES,
    BYTES_BODY,
    EMPTY_BODY,
    MAP_BODY,
    OBJECT_BODY,
    QUEUE_SCHEME,
    STREAM_BODY,
    TEMPORARY_QUEUE_SCHEME,
    TEMPORARY_TOPIC_SCHEME,
    TEXT_BODY,
    TOPIC_SCHEME,
    HubMessage,
    Message,
)
from delosmq.model.properties import PropertyValue
from delosmq.model.reserved_names import RESERVED, reads_as
from delosmq.wire.stomp.heads import escape, unescape
from delosmq.wire.stomp.versions import V10, V11, V12

PROTOCOL_TAGS: Final = {V10: "stomp/10", V11: "stomp/11", V12: "stomp/12"}
VERSION_OF_TAG: Final = {tag: version for version, tag in PROTOCOL_TAGS.items()}

DESTINATION: Final = "destination"
DESTINATION_TYPE: Final = "destination-type"
_CORRELATION_ID: Final = "correlation-id"
_REPLY_TO: Final = "reply-to"
_TYPE: Final = "type"
_CONTENT_TYPE: Final = "content-type"
_GROUP_ID: Final = "JMSXGroupID"
MESSAGE_TYPE: Final = "amq-msg-type"
"""Classic's name for what a body is."""
_TEXT_BODIES: Final = frozenset((TEXT_BODY, MAP_BODY, STREAM_BODY, EMPTY_BODY))
_NAMED_BODIES: Final = frozenset((MAP_BODY, STREAM_BODY, OBJECT_BODY))
_JSON_BODIES: Final = frozenset((MAP_BODY, STREAM_BODY))
_JSON: Final = "application/json"
# What frames to a client say for themselves; a property of that name would be taken for it.
OF_FRAMES: Final = frozenset(
    (
        DESTINATION,
        DESTINATION_TYPE,
        MESSAGE_TYPE,
        "ack",
        "browser",
        "content-length",
        "expires",
        "ingress-timestamp",
        "message-id",
        "original-destination",
        "persistent",
        "priority",
        "receipt",
        "receipt-id",
        "redelivered",
        "subscription",
        "timestamp",
        "transaction",
    )
)

# Headers of a SEND that do not travel on: all those but for the two that its sender decides.
NOT_RELAYED: Final = OF_FRAMES.difference((DESTINATION, MESSAGE_TYPE)).union(RESERVED)

# Prefix of a temporary destination of another connection, how the hub form marks it, and how addresses of STOMP's own
# begin. Source: LegacyFrameTranslator of ActiveMQ Classic.
REMOTE_QUEUE: Final = "/remote-temp-queue/"
REMOTE_TOPIC: Final = "/remote-temp-topic/"
OWN_QUEUE: Final = "temp-queue."
OWN_TOPIC: Final = "temp-topic."
_REMOTE: Final = ((REMOTE_QUEUE, TEMPORARY_QUEUE_SCHEME, OWN_QUEUE), (REMOTE_TOPIC, TEMPORARY_TOPIC_SCHEME, OWN_TOPIC))
# How the names of temporary destinations begin that JMS clients make, which are addresses as they are.
_OF_JMS: Final = "ID:"


def decode_head(head: bytes, version: int) -> dict[str, str]:
    """The headers of a head made of lines that end in LF; the first of repeated ones wins."""
    headers: dict[str, str] = {}
    if not head:
        return headers
    escaped = b"\\" in head
    for line in head.decode().removesuffix("\n").split("\n"):
        name, _, value = line.partition(":")
        if escaped:
            name, value = unescape(name, version), unescape(value, version)
        if name not in headers:
            headers[name] = value
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

    Args:
        anycast_prefixes, multicast_prefixes: by which ``reply-to`` tells queues from topics; the first are written.
    """

    def __init__(
        self, anycast_prefixes: tuple[str, ...] = ("/queue/",), multicast_prefixes: tuple[str, ...] = ("/topic/",)
    ) -> None:
        prefixes = [(prefix, QUEUE_SCHEME) for prefix in anycast_prefixes if prefix]
        prefixes += [(prefix, TOPIC_SCHEME) for prefix in multicast_prefixes if prefix]
        # The longest first, so that a prefix may begin with another one.
        self._prefixes: list[tuple[str, str]] = sorted(prefixes, key=_by_length, reverse=True)
        self._written: dict[str, str] = {
            QUEUE_SCHEME: anycast_prefixes[0] if anycast_prefixes else "",
            TOPIC_SCHEME: multicast_prefixes[0] if multicast_prefixes else "",
        }

    def to_hub(self, message: Message) -> HubMessage:
        hub = HubMessage(message.body, message.body_kind)
        headers = decode_head(message.head, VERSION_OF_TAG.get(message.protocol, V12))
        headers.pop(DESTINATION, None)
        headers.pop(DESTINATION_TYPE, None)
        headers.pop(MESSAGE_TYPE, None)
        hub.correlation_id = headers.pop(_CORRELATION_ID, None)
        reply_to = headers.pop(_REPLY_TO, None)
        hub.reply_to = None if reply_to is None else self._answers_at(reply_to)
        hub.type = headers.pop(_TYPE, None)
        hub.content_type = headers.pop(_CONTENT_TYPE, None)
        hub.group_id = headers.pop(_GROUP_ID, None)
        if message.annotations is not None:
            headers.update(message.annotations)
        hub.properties = cast("dict[str, PropertyValue]", headers)
        return hub

    def relays_bodies(self) -> bool:
        return True

    def from_hub(self, hub: HubMessage, address: str) -> Encoded:
        pairs: list[tuple[str, str]] = [(DESTINATION, address)]
        if hub.correlation_id is not None:
            pairs.append((_CORRELATION_ID, hub.correlation_id))
        if hub.reply_to is not None:
            pairs.append((_REPLY_TO, self._answer_to(hub.reply_to)))
        if hub.type is not None:
            pairs.append((_TYPE, hub.type))
        if hub.content_type is not None:
            pairs.append((_CONTENT_TYPE, hub.content_type))
        elif hub.body_kind in _JSON_BODIES:
            pairs.append((_CONTENT_TYPE, _JSON))
        if hub.body_kind in _NAMED_BODIES:
            pairs.append((MESSAGE_TYPE, BODY_KIND_NAMES[hub.body_kind]))
        if hub.group_id is not None:
            pairs.append((_GROUP_ID, hub.group_id))
        taken = OF_FRAMES.union([name for name, _ in pairs])
        pairs += [pair for pair in hub.property_texts().items() if not reads_as(pair[0], taken)]
        # A NUL ends a text, so that such a one needs its length as bytes do.
        kind = TEXT_BODY if hub.body_kind in _TEXT_BODIES and b"\0" not in hub.body else BYTES_BODY
        return Encoded(PROTOCOL_TAGS[V12], encode_lines(pairs, V12), hub.body, kind)

    def rewritten_head(
        self, message: Message, drop: tuple[str, ...], rename: dict[str, str], replaced: tuple[str, ...]
    ) -> bytes:
        version = VERSION_OF_TAG.get(message.protocol, V12)
        kept = rewritten(decode_head(message.head, version), drop, rename, replaced)
        return encode_lines(list(kept.items()), version)

    def _answers_at(self, reply_to: str) -> str:
        """What a ``reply-to`` is in the hub form."""
        for prefix, mark, start in _REMOTE:
            if reply_to.startswith(prefix):
                name = reply_to[len(prefix) :]
                return mark + (name if name.startswith(_OF_JMS) else start + name)
        for prefix, mark in self._prefixes:
            if reply_to.startswith(prefix):
                return mark + reply_to[len(prefix) :]
        return reply_to

    def _answer_to(self, hub_reply_to: str) -> str:
        """The reverse of `_answers_at`, for those who know the same prefixes."""
        for prefix, mark, start in _REMOTE:
            if hub_reply_to.startswith(mark):
                return prefix + hub_reply_to[len(mark) :].removeprefix(start)
        for mark, prefix in self._written.items():
            if hub_reply_to.startswith(mark):
                return prefix + hub_reply_to[len(mark) :]
        return hub_reply_to


def _by_length(entry: tuple[str, str]) -> int:
    return len(entry[0])
