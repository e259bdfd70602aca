"""What a consumer gets: RECEIVE, and RECEIVE_LARGE with its RECEIVE_CONTINUATIONs.

A message that came over CORE goes out as it is, but for its id, its expiration, and what the broker has changed in its
durability and priority; one with annotations gets these as properties. Any other is converted.

Source: ServerConsumerImpl, LargeMessageDeliverer, SessionReceiveMessage and its siblings of Artemis.
"""

from struct import Struct
from typing import Final

from delosmq.model.conversion import Conversions
from delosmq.model.message import ANY_ROUTING, ANYCAST, Message
from delosmq.model.properties import BYTE_KIND, INT_KIND, LONG_KIND, STRING_KIND, TypedValue
from delosmq.wire.core.bodies import core_body
from delosmq.wire.core.codec import encode_packet
from delosmq.wire.core.conversion import (
    LARGE_TAG,
    TAGS,
    VALIDATED_USER,
    annotation_entries,
    entries_of_hub,
    stored_head,
)
from delosmq.wire.core.message import NO_BODY_END, CoreMessage, CoreMessageReader, as_uuid, with_fields
from delosmq.wire.core.message_packets import SessionReceiveMessage
from delosmq.wire.core.packet import (
    NEWEST_VERSION,
    SESS_RECEIVE_CONTINUATION,
    SESS_RECEIVE_LARGE_MSG,
    SESS_RECEIVE_MSG,
)
from delosmq.wire.core.properties import (
    FORCED_DELIVERY,
    GROUP_ID,
    GROUP_SEQUENCE,
    ROUTING_TYPE,
    SCHEDULED_DELIVERY,
    encode_properties,
    with_properties,
)

# size, type, channel, end of the body
_START: Final = Struct(">ibqi")
# message id
_ID: Final = Struct(">q")
# consumer id, delivery count
_END: Final = Struct(">qi")
# size, type, channel, consumer id, delivery count, size of the body, message id
_LARGE: Final = Struct(">ibqqiqq")
# size, type, channel, size of the part
_PART: Final = Struct(">ibqi")
# continues, consumer id
_PART_END: Final = Struct(">Bq")
_SIZE_BYTES: Final = 4
_RECEIVE_BYTES: Final = _START.size + _ID.size + _END.size
PART_OVERHEAD_BYTES: Final = _PART.size + _PART_END.size
"""Of a frame with a part of a body, beside that."""
_CORE_ANYCAST: Final = 1
_CORE_MULTICAST: Final = 0
_BROKER_ID_BYTES: Final = 8
_MARKER_BODY: Final = bytes(4)
"""As Artemis has it."""
_ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
_SAYS_WHERETO: Final = frozenset((ROUTING_TYPE,))


class ReceiveEncoder:
    """Encodes what one consumer gets.

    Args:
        channel: of its session.
        broker_id: 16 bytes, unique for each broker. Messages of other protocols get user ids from it, by which Java
            clients tell messages apart.
        routing: of the consumer's queue, from which such messages are said to come.
        shows_user: consumers are told who sent a message.
    """

    def __init__(
        self,
        channel: int,
        consumer_id: int,
        conversions: Conversions,
        broker_id: bytes,
        *,
        routing: int = ANY_ROUTING,
        shows_user: bool = False,
    ) -> None:
        self._channel = channel
        self._consumer_id = consumer_id
        self._conversions = conversions
        self._broker_id: bytes = broker_id[:_BROKER_ID_BYTES]
        self._routing = routing
        self._shows_user = shows_user
        self._messages: CoreMessageReader = CoreMessageReader()

    def is_large(self, message: Message) -> bool:
        """Whether its sender sent it in parts, as consumers get it then."""
        return message.protocol == LARGE_TAG

    def frame_bytes(self, message: Message) -> int:
        """What `encode` will make of a message, in bytes, as credit counts it. Converts it if it is of another
        protocol."""
        if self.is_relayed(message):
            return _RECEIVE_BYTES + len(message.head) + len(message.body)
        head, body = self._converted(message)
        return _RECEIVE_BYTES + len(head) + len(body)

    def encode(self, message: Message, delivery_count: int) -> tuple[bytes, bytes, bytes]:
        """A RECEIVE: what stands before the body, the body (that of the message where it can be), what stands behind
        it.

        Args:
            delivery_count: 1 for the first delivery.
        """
        head, body = self._head_and_body(message)
        size = _RECEIVE_BYTES - _SIZE_BYTES + len(head) + len(body)
        start = _START.pack(size, SESS_RECEIVE_MSG, self._channel, NO_BODY_END + len(body))
        end = b"".join((_ID.pack(message.sequence), head, _END.pack(self._consumer_id, delivery_count)))
        return start, body, end

    def encode_large(self, message: Message, delivery_count: int) -> tuple[bytes, bytes]:
        """A RECEIVE_LARGE, and the body that has to follow it in parts."""
        head, body = self._head_and_body(message)
        size = _LARGE.size - _SIZE_BYTES + len(head)
        start = _LARGE.pack(
            size,
            SESS_RECEIVE_LARGE_MSG,
            self._channel,
            self._consumer_id,
            delivery_count,
            len(body),
            message.sequence,
        )
        return start + head, body

    def encode_part(self, body: bytes, at: int, part_bytes: int) -> tuple[bytes, bytes, bytes]:
        """A RECEIVE_CONTINUATION with at most ``part_bytes`` of a body, from ``at`` on; an empty body is one part. The
        last one is that which reaches the end of the body.

        Args:
            part_bytes: what the session's client has told as its minLargeMessageSize.
        """
        part = body[at : at + part_bytes]
        continues = 0xFF if at + len(part) < len(body) else 0
        size = PART_OVERHEAD_BYTES - _SIZE_BYTES + len(part)
        start = _PART.pack(size, SESS_RECEIVE_CONTINUATION, self._channel, len(part))
        return start, part, _PART_END.pack(continues, self._consumer_id)

    def encode_marker(self, queue_name: str, sequence: int) -> bytes:
        """The answer to FORCE_CONSUMER_DELIVERY: all that there was has been sent."""
        message = CoreMessage()
        message.address = queue_name
        message.priority = 0
        message.body = _MARKER_BODY
        message.encode_head(encode_properties({FORCED_DELIVERY: TypedValue(LONG_KIND, sequence)}))
        packet = SessionReceiveMessage(message, self._consumer_id, 0)
        packet.channel = self._channel
        return encode_packet(packet, NEWEST_VERSION)

    def is_relayed(self, message: Message) -> bool:
        """Whether it goes out as it came, but for some of its headers."""
        return message.annotations is None and message.protocol in TAGS and not self._shows_user

    def _head_and_body(self, message: Message) -> tuple[bytes, bytes]:
        if not self.is_relayed(message):
            return self._converted(message)
        head = with_fields(
            message.head, durable=message.durable, expiration=message.expires_at_ms, priority=message.priority
        )
        return head, message.body

    def _converted(self, message: Message) -> tuple[bytes, bytes]:
        if message.protocol in TAGS:
            stored = stored_head(self._messages, message)
            added = self._added(message)
            # A copy lies elsewhere than its sender said: it is told where it was found.
            stored.address = message.address
            drop = _SAYS_WHERETO if _ORIGINAL_ADDRESS in added else frozenset()
            properties = with_properties(stored.properties, drop, added)
            body = message.body
        else:
            hub = self._conversions.to_hub(message)
            entries = entries_of_hub(hub)
            entries.update(self._added_to_foreign(message))
            properties = encode_properties(entries)
            stored = CoreMessage()
            stored.address = message.address
            stored.user_id = as_uuid(self._broker_id + _ID.pack(message.message_id))
            stored.timestamp = message.timestamp_ms
            body, stored.type = core_body(hub.body, hub.body_kind)
        stored.durable = message.durable
        stored.priority = message.priority
        stored.expiration = message.expires_at_ms
        stored.encode_head(properties)
        return stored.head, body

    def _added(self, message: Message) -> dict[str, TypedValue]:
        """What the broker says of a message."""
        entries = {} if message.annotations is None else annotation_entries(message.annotations)
        if self._shows_user and message.user:
            entries[VALIDATED_USER] = TypedValue(STRING_KIND, message.user)
        return entries

    def _added_to_foreign(self, message: Message) -> dict[str, TypedValue]:
        entries = self._added(message)
        if message.group_id:
            entries[GROUP_ID] = TypedValue(STRING_KIND, message.group_id)
            entries[GROUP_SEQUENCE] = TypedValue(INT_KIND, message.group_sequence)
        if message.due_at_ms:
            entries[SCHEDULED_DELIVERY] = TypedValue(LONG_KIND, message.due_at_ms)
        if self._routing != ANY_ROUTING:
            number = _CORE_ANYCAST if self._routing == ANYCAST else _CORE_MULTICAST
            entries[ROUTING_TYPE] = TypedValue(BYTE_KIND, number)
        return entries
