"""Messages: text, bytes, maps, streams and those without a body, with the headers of JMS and typed properties."""

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any, Final

from delosmq.client.destinations import JmsDestination, Named, named, of_wire
from delosmq.client.errors import loop_over, unreadable, wrong_argument, wrong_kind, wrong_value
from delosmq.client.options.arguments import MOST_INT, MOST_MS, demand_entries, demand_number, demand_text
from delosmq.client.values import Content, Int, Long, PropertyContent, typed, untyped
from delosmq.model.errors import PeerError
from delosmq.sessions.client_errors import IllegalStateError
from delosmq.sessions.openwire.client.errors import CLOSED
from delosmq.wire.openwire.bodies import inflate
from delosmq.wire.openwire.commands import (
    ACTIVEMQ_MESSAGE,
    BYTES_MESSAGE,
    MAP_MESSAGE,
    OBJECT_MESSAGE,
    STREAM_MESSAGE,
    TEXT_MESSAGE,
    MessageCommand,
)
from delosmq.wire.openwire.modified_utf8 import LONGEST_BYTES, decode_text, encode_text
from delosmq.wire.openwire.primitives import decode_map, decode_stream, encode_map, encode_stream

DELAY: Final = "AMQ_SCHEDULED_DELAY"
PERIOD: Final = "AMQ_SCHEDULED_PERIOD"
REPEAT: Final = "AMQ_SCHEDULED_REPEAT"
CRON: Final = "AMQ_SCHEDULED_CRON"
DEFAULT_PRIORITY: Final = 4

_GROUP: Final = "JMSXGroupID"
_GROUP_SEQUENCE: Final = "JMSXGroupSeq"
_CORRELATION_ID: Final = "JMSCorrelationID"
_TYPE: Final = "JMSType"
_REPLY_TO: Final = "JMSReplyTo"
_HEADERS: Final = (_CORRELATION_ID, _TYPE, _REPLY_TO)
_I32: Final = Struct(">i")
_WHOLE_NUMBER: Final = re.compile("-?[0-9]{1,18}")
_MOST_INFLATED_BYTES: Final = 1 << 30
_NOT_SET: Final = "say it when the message is made"


class JmsMessage:
    """A message without a body, and what all messages have.

    Attributes:
        properties: by name, in their order.
        correlation_id, type: what the application says; None for nothing.
        reply_to: where an answer is to be sent.
        group_id, group_sequence: messages of a group go to one consumer.
        message_id: "" until it is sent.
        destination: where it was sent to; None until then.
        persistent, priority, timestamp_ms, expiration_ms: as the producer set them; an expiration of 0 is none.
        delivery_count: 1 at the first delivery, 0 before it is sent.
        user_id: who sent it, if the broker says so.
    """

    CODE = ACTIVEMQ_MESSAGE

    def __init__(
        self,
        *,
        properties: Mapping[str, PropertyContent] | None = None,
        correlation_id: str | None = None,
        reply_to: Named | None = None,
        type: str | None = None,
        group_id: str | None = None,
        group_sequence: int = 0,
    ) -> None:
        self.properties: dict[str, Any] = {} if properties is None else _entries("properties", properties)
        self.correlation_id = correlation_id
        self.reply_to: JmsDestination | None = None if reply_to is None else named(reply_to)
        self.type = type
        self.group_id = group_id
        self.group_sequence = group_sequence
        self.message_id: str = ""
        self.destination: JmsDestination | None = None
        self.persistent: bool = True
        self.priority: int = DEFAULT_PRIORITY
        self.timestamp_ms: int = 0
        self.expiration_ms: int = 0
        self.delivery_count: int = 0
        self.user_id: str | None = None
        self._acknowledge: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.message_id or 'not sent'}>"

    @property
    def redelivered(self) -> bool:
        """It was delivered before."""
        return self.delivery_count > 1

    @property
    def text(self) -> str:
        """The text of a TextMessage.

        Raises:
            MessageFormatError: DMQ9061, it is none; DMQ9062, it can't be read.
        """
        raise wrong_kind(type(self).__name__, "text", "look at its body, or at what its sender sends.")

    @property
    def body(self) -> Any:
        """A str, bytes, dict or list by the message's class; None for a message without a body.

        Raises:
            MessageFormatError: DMQ9062, it can't be read.
        """
        return None

    def acknowledge(self) -> None:
        """In a session with AckMode.CLIENT: this message and all that its session has delivered so far. With
        INDIVIDUAL: this one alone. In other modes nothing, as these acknowledge by themselves.

        Raises:
            IllegalStateError: DMQ9001, the consumer or the session is closed, and the message has gone back.
        """
        if self._acknowledge is not None:
            self._acknowledge()

    def _content(self) -> bytes | None:
        """The body as it travels."""
        return None

    def _take_content(self, content: bytes | None) -> None:
        """The reverse, when the application asks for it."""


class TextMessage(JmsMessage):
    """
    Args:
        text: the body.
    """

    CODE = TEXT_MESSAGE

    def __init__(self, text: str = "", **headers: Any) -> None:
        super().__init__(**headers)
        demand_text("text", text)
        self._text: str | None = text
        self._encoded: bytes | None = None

    @property
    def text(self) -> str:
        if self._text is None:
            encoded = self._encoded
            try:
                self._text = "" if not encoded else decode_text(encoded[_I32.size :])
            except PeerError as error:
                raise unreadable("text", error.message) from None
        return self._text

    @property
    def body(self) -> str:
        return self.text

    def _content(self) -> bytes:
        encoded = encode_text(self.text)
        return _I32.pack(len(encoded)) + encoded

    def _take_content(self, content: bytes | None) -> None:
        self._text = None
        self._encoded = content


class BytesMessage(JmsMessage):
    """
    Args:
        body: any bytes.
    """

    CODE = BYTES_MESSAGE

    def __init__(self, body: bytes | bytearray | memoryview = b"", **headers: Any) -> None:
        super().__init__(**headers)
        if not isinstance(body, bytes | bytearray | memoryview):
            raise wrong_argument("body", type(body), "bytes")
        self._body: bytes = bytes(body)

    @property
    def body(self) -> bytes:
        return self._body

    def _content(self) -> bytes | None:
        return self._body or None

    def _take_content(self, content: bytes | None) -> None:
        self._body = content or b""


class ObjectMessage(BytesMessage):
    """A serialised object of Java: its bytes, which are never made an object of."""

    CODE = OBJECT_MESSAGE


class MapMessage(JmsMessage):
    """
    Args:
        body: values by name; maps and lists may be nested.
    """

    CODE = MAP_MESSAGE

    def __init__(self, body: Mapping[str, Content] | None = None, **headers: Any) -> None:
        super().__init__(**headers)
        self._entries: dict[str, Any] | None = {} if body is None else _entries("body", body)
        self._encoded: bytes | None = None

    @property
    def body(self) -> dict[str, Any]:
        if self._entries is None:
            try:
                entries = decode_map(self._encoded) if self._encoded else {}
            except PeerError as error:
                raise unreadable("map", error.message) from None
            self._entries = {name: untyped(value) for name, value in entries.items()}
        return self._entries

    def _content(self) -> bytes | None:
        entries = {checked_name(name): typed(name, value) for name, value in self.body.items()}
        return encode_map(entries) if entries else None

    def _take_content(self, content: bytes | None) -> None:
        self._entries = None
        self._encoded = content


class StreamMessage(JmsMessage):
    """
    Args:
        body: values in their order.
    """

    CODE = STREAM_MESSAGE

    def __init__(self, body: Sequence[Content] = (), **headers: Any) -> None:
        super().__init__(**headers)
        whole: object = body
        if not isinstance(whole, Sequence) or isinstance(whole, str | bytes | bytearray | memoryview):
            raise wrong_argument("body", type(whole), "a list or tuple of values")
        self._values: list[Any] | None = list(body)
        self._encoded: bytes = b""

    @property
    def body(self) -> list[Any]:
        if self._values is None:
            try:
                self._values = [untyped(value) for value in decode_stream(self._encoded)]
            except PeerError as error:
                raise unreadable("stream", error.message) from None
        return self._values

    def _content(self) -> bytes | None:
        values = [typed(f"value {index}", value) for index, value in enumerate(self.body)]
        return encode_stream(values) if values else None

    def _take_content(self, content: bytes | None) -> None:
        self._values = None
        self._encoded = content or b""


Sendable = JmsMessage | str | bytes | Mapping[str, Content] | Sequence[Content] | None
"""A message, or a body of which one is made."""

_CLASSES: Final[dict[int, type[JmsMessage]]] = {
    one.CODE: one for one in (JmsMessage, TextMessage, BytesMessage, ObjectMessage, MapMessage, StreamMessage)
}


def message_of(body: Sendable, properties: Mapping[str, PropertyContent] | None = None) -> JmsMessage:
    """The message for a body: text for str, and bytes, a map, a stream or none for what these are.

    Raises:
        MessageFormatError: DMQ9060, JMS has no message for it.
    """
    if isinstance(body, JmsMessage):
        if properties is not None:
            body.properties.update(_entries("properties", properties))
        return body
    if isinstance(body, str):
        return TextMessage(body, properties=properties)
    if isinstance(body, bytes | bytearray | memoryview):
        return BytesMessage(body, properties=properties)
    if isinstance(body, Mapping):
        return MapMessage(body, properties=properties)
    if isinstance(body, Sequence):
        return StreamMessage(body, properties=properties)
    if body is None:
        return JmsMessage(properties=properties)
    raise wrong_value("body", f"JMS has no message for a {type(body).__name__}")


def take_headers(message: JmsMessage) -> None:
    """Makes headers of the properties that bear their names, as the Java client does.

    Raises:
        ClientOptionError: DMQ9055, DMQ9056, it is no such header.
    """
    demand_entries("properties", message.properties)
    given = {name: message.properties[name] for name in _HEADERS if message.properties.get(name) is not None}
    if _CORRELATION_ID in given:
        message.correlation_id = _fitting(_CORRELATION_ID, given[_CORRELATION_ID])
    if _TYPE in given:
        message.type = _fitting(_TYPE, given[_TYPE])
    if _REPLY_TO in given:
        message.reply_to = named(given[_REPLY_TO])
    if not message.properties.keys().isdisjoint(_HEADERS):
        message.properties = {name: value for name, value in message.properties.items() if name not in _HEADERS}


def command_of(message: JmsMessage, *, compresses: bool) -> MessageCommand:
    """What travels, without what the producer sets.

    Raises:
        MessageFormatError: DMQ9060, a property or a part of the body has no type in JMS.
    """
    command = MessageCommand(message.CODE)
    take_headers(message)
    properties = _entries("properties", message.properties)
    group_id, sequence = properties.pop(_GROUP, None), properties.pop(_GROUP_SEQUENCE, None)  # headers of OpenWire
    _check_schedule(properties)
    content = message._content()
    if content is not None and compresses:
        length = _I32.pack(len(content)) if message.CODE == BYTES_MESSAGE else b""
        content = length + zlib.compress(content)
        command.compressed = True
    command.content = content
    entries = {checked_name(name): typed(name, each, nested=False) for name, each in properties.items()}
    command.marshalled_properties = encode_map(entries) if entries else None
    command.correlation_id = _fitting("correlation_id", message.correlation_id)
    command.type = _fitting("type", message.type)
    command.group_id = _fitting("group_id", message.group_id) if group_id is None else _fitting(_GROUP, group_id)
    if sequence is None:
        demand_number("group_sequence", message.group_sequence, MOST_INT, -MOST_INT - 1)
        sequence = message.group_sequence
    else:
        demand_number(_GROUP_SEQUENCE, sequence, MOST_INT, -MOST_INT - 1)
    command.group_sequence = sequence
    command.reply_to = None if message.reply_to is None else named(message.reply_to).wire()
    return command


def received(command: MessageCommand, acknowledge: Callable[[], None] | None) -> JmsMessage:
    """A message that came. Its body is read when it is asked for."""
    message = _CLASSES.get(command.code, BytesMessage)()
    content = command.content
    if content and command.compressed:
        try:
            content = inflate(content, command.code == BYTES_MESSAGE, _MOST_INFLATED_BYTES)
        except PeerError:
            command.compressed = False  # what can't be read is shown as it came
    message._take_content(content)
    try:
        entries = decode_map(command.marshalled_properties) if command.marshalled_properties else {}
    except PeerError:
        entries = {}
    message.properties = {name: untyped(value) for name, value in entries.items()}
    message.correlation_id = command.correlation_id
    message.reply_to = of_wire(command.reply_to)
    message.type = command.type
    message.group_id = command.group_id
    message.group_sequence = command.group_sequence
    message.delivery_count = command.redelivery_counter + 1
    message.user_id = command.user_id
    note_sent(message, command)
    message._acknowledge = acknowledge
    return message


def give_to_loop(message: JmsMessage, loop: str) -> Callable[[], None]:
    """Has a program that acknowledges it when its loop is over hear of that. Gives what the loop acknowledges it by."""
    acknowledge = message.acknowledge if message._acknowledge is None else message._acknowledge

    def acknowledge_in_loop() -> None:
        try:
            acknowledge()
        except IllegalStateError as error:
            raise loop_over(loop) if error.code == CLOSED else error from None

    message._acknowledge = acknowledge_in_loop
    return acknowledge


def note_sent(message: JmsMessage, command: MessageCommand) -> None:
    """What the producer has set."""
    message.message_id = "" if command.message_id is None else command.message_id.key()
    message.destination = of_wire(command.destination)
    message.persistent = command.persistent
    message.priority = command.priority
    message.timestamp_ms = command.timestamp
    message.expiration_ms = command.expiration


def checked_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise wrong_value(str(name), "a name is a string of at least one character")
    return name


def _entries(name: str, entries: Mapping[str, Any]) -> dict[str, Any]:
    demand_entries(name, entries)
    return dict(entries)


def _fitting(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    demand_text(name, text)
    if len(text) > LONGEST_BYTES // 3 and len(encode_text(text)) > LONGEST_BYTES:
        raise wrong_value(name, f"it has more than {LONGEST_BYTES} bytes")
    return text


def _check_schedule(properties: dict[str, Any]) -> None:
    """Refuses what the broker would not obey, and say nothing of; a number that came as text is one.

    Source: ActiveMQMessage.checkValidScheduled of the Java client; SchedulerBroker of ActiveMQ Classic reads texts."""
    for name, kind, most in ((DELAY, Long, MOST_MS), (PERIOD, Long, MOST_MS), (REPEAT, Int, MOST_INT)):
        value = properties.get(name)
        if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
            value = properties[name] = kind(value)
        if value is not None:
            demand_number(name, value, most, -1)
    if properties.get(CRON) is not None:
        demand_text(CRON, properties[CRON])


def set_schedule(message: JmsMessage, *, delay_ms: int, period_ms: int, repeat: int, cron: str) -> None:
    """Has the broker keep the message, and deliver it repeatedly; 0 and "" for no such wish.

    Source: ScheduledMessage of the Java client, and the types that the broker reads there."""
    wishes = {DELAY: Long(delay_ms), PERIOD: Long(period_ms), REPEAT: Int(repeat), CRON: cron}
    message.properties.update({name: wish for name, wish in wishes.items() if wish})


__all__ = ["BytesMessage", "Int", "JmsMessage", "MapMessage", "ObjectMessage", "StreamMessage", "TextMessage"]
