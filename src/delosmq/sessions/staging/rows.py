"""Rows of a sink as messages: columns as plain lists, named as in the published schema of the source."""

from typing import Final

from delosmq.model.conversion import Conversions
from delosmq.model.errors import MisuseError
from delosmq.model.ids import WallMs
from delosmq.model.message import (
    BODY_KIND_NAMES,
    BYTES_BODY,
    EMPTY_BODY,
    HIGHEST_PRIORITY,
    MAP_BODY,
    OBJECT_BODY,
    STREAM_BODY,
    TEXT_BODY,
    HubMessage,
    Message,
)
from delosmq.model.names import QUEUE_MARK, check_name
from delosmq.model.phrases import counted

COLUMNS: Final = (
    "body",
    "destination",
    "message_id",
    "properties",
    "group_id",
    "correlation_id",
    "reply_to",
    "type",
    "content_type",
    "expiration",
    "priority",
    "scheduled_at",
    "duplicate_id",
    "body_kind",
)
ORIGINAL_ID: Final = "original_message_id"
"""The property that keeps what the column ``message_id`` says: a message gets its own id from the broker."""
HEAD_LIMIT_BYTES: Final = 64 * 1024
MOST_PROPERTIES: Final = 1_000
"""As for headers that clients send."""
DUPLICATE_ID_LIMIT_BYTES: Final = 1_024

_FAMILY: Final = "stomp"
"""How rows are encoded; every protocol can read that."""
_BESIDE_TEXT: Final = frozenset((MAP_BODY, STREAM_BODY, EMPTY_BODY))
"""What STOMP sends as text: the message itself says what it is, as one does that a client sent."""
_KINDS: Final = {name: kind for kind, name in BODY_KIND_NAMES.items() if kind != OBJECT_BODY}


class RowDefaults:
    """What holds for rows that do not say it.

    Attributes:
        address: "" when each row names its destination.
        time_to_live_ms: 0 for ever.
    """

    def __init__(self, address: str, *, durable: bool, priority: int, time_to_live_ms: int) -> None:
        self.address = address
        self.durable = durable
        self.priority = priority
        self.time_to_live_ms = time_to_live_ms


class Rows:
    """Rows of one slice.

    Attributes:
        count: how many there are.
    """

    def __init__(self, columns: dict[str, list[object]], first: int) -> None:
        """``first``: the number of the first row in its part, for errors."""
        self._columns = columns
        self._first = first
        self.count: int = len(columns["body"])

    def message(self, at: int, defaults: RowDefaults, conversions: Conversions, user: str, now_ms: int) -> Message:
        """One of them.

        Raises:
            MisuseError: it is no message.
        """
        address, mark, queue_name = (self._text("destination", at) or defaults.address).partition(QUEUE_MARK)
        if mark:
            check_name("queue", queue_name)
        if not address:
            raise self._refusal(
                at, "has no destination; set the option topic or queue, or fill the column 'destination'"
            )
        check_name("address", address)
        hub = self._hub(at)
        encoded = conversions.from_hub(_FAMILY, hub, address)
        if len(encoded.head) > HEAD_LIMIT_BYTES:
            raise self._refusal(
                at, f"has properties of {len(encoded.head)} bytes; a message takes {HEAD_LIMIT_BYTES}, send fewer"
            )
        return Message(
            address,
            encoded.protocol,
            encoded.head,
            encoded.body,
            body_kind=hub.body_kind if hub.body_kind in _BESIDE_TEXT else encoded.body_kind,
            priority=self._priority(at, defaults.priority),
            durable=defaults.durable,
            timestamp_ms=WallMs(now_ms),
            expires_at_ms=self._expires_at(at, defaults, now_ms),
            user=user,
            due_at_ms=max(0, self._number("scheduled_at", at)),
            group_id=hub.group_id or "",
            duplicate_id=self._duplicate_id(at),
        )

    def queue_name(self, at: int, defaults: RowDefaults) -> str:
        """The one queue that gets the row, of a destination ``address::queue``; "" for all of its address."""
        return (self._text("destination", at) or defaults.address).partition(QUEUE_MARK)[2]

    def _hub(self, at: int) -> HubMessage:
        value = self._value("body", at)
        kind = TEXT_BODY
        body = b""
        if isinstance(value, str):
            body = value.encode()
        elif isinstance(value, bytes):
            kind, body = BYTES_BODY, value
        named = self._text("body_kind", at)
        if named:
            if named not in _KINDS:
                raise self._refusal(at, f"has the body_kind '{named[:40]}'; choose one of {', '.join(_KINDS)}")
            kind = _KINDS[named]
            if kind == EMPTY_BODY and body:
                raise self._refusal(at, f"has the body_kind 'empty' and a body of {counted(len(body), 'byte')}")
        hub = HubMessage(body, kind)
        hub.correlation_id = self._text("correlation_id", at) or None
        hub.reply_to = self._text("reply_to", at) or None
        hub.type = self._text("type", at) or None
        hub.content_type = self._text("content_type", at) or None
        hub.group_id = self._text("group_id", at) or None
        original = self._text("message_id", at)
        if original:
            hub.properties[ORIGINAL_ID] = original
        properties = self._value("properties", at)
        if isinstance(properties, list):
            if len(properties) > MOST_PROPERTIES:
                raise self._refusal(at, f"has {len(properties)} properties; a message takes {MOST_PROPERTIES}")
            for name, value in properties:
                if value is not None:
                    hub.properties[str(name)] = str(value)
        return hub

    def _priority(self, at: int, default: int) -> int:
        value = self._value("priority", at)
        if value is None:
            return default
        if isinstance(value, int) and 0 <= value <= HIGHEST_PRIORITY:
            return value
        raise self._refusal(at, f"has the priority {value}; it is 0 to {HIGHEST_PRIORITY}")

    def _expires_at(self, at: int, defaults: RowDefaults, now_ms: int) -> int:
        if self._value("expiration", at) is not None:
            # What has expired already expires at once; 0 would be never.
            return max(1, self._number("expiration", at))
        return now_ms + defaults.time_to_live_ms if defaults.time_to_live_ms else 0

    def _duplicate_id(self, at: int) -> bytes:
        value = self._value("duplicate_id", at)
        given = b""
        if isinstance(value, str):
            given = value.encode()
        elif isinstance(value, bytes):
            given = value
        if len(given) > DUPLICATE_ID_LIMIT_BYTES:
            raise self._refusal(
                at, f"has a duplicate_id of {len(given)} bytes; it may have {DUPLICATE_ID_LIMIT_BYTES}, use a hash"
            )
        return given

    def _value(self, name: str, at: int) -> object:
        column = self._columns.get(name)
        return None if column is None else column[at]

    def _text(self, name: str, at: int) -> str:
        value = self._value(name, at)
        return value if isinstance(value, str) else ""

    def _number(self, name: str, at: int) -> int:
        value = self._value(name, at)
        return value if isinstance(value, int) else 0

    def _refusal(self, at: int, what: str) -> MisuseError:
        return MisuseError("DMQ5410", f"row {self._first + at} {what}")
