"""MessageDispatch frames: what a consumer gets.

A message that came in the consumer's version is spliced: its head goes out as it is, but for the broker's sequence, the
expiration, the broker's times and, for copies, the destination. Any other is decoded and encoded again.

Source: ActiveMQ's TransportConnection and PrefetchSubscription; Artemis OpenWireMessageConverter.
"""

from struct import Struct
from typing import Final

from delosmq.model.conversion import Conversions
from delosmq.model.errors import PeerError
from delosmq.model.message import SEQUENCES_PER_PRODUCER, Message
from delosmq.model.properties import TypedValue
from delosmq.wire.openwire.codec import encode_command, encode_structure
from delosmq.wire.openwire.commands import ACTIVEMQ_MESSAGE, KeepAliveInfo, MessageCommand, MessageDispatch
from delosmq.wire.openwire.conversion import add_annotations, command_of_hub
from delosmq.wire.openwire.heads import HEAD, HEAD_BYTES, PROTOCOL_TAGS, VERSION_OF_TAG, StoredReader
from delosmq.wire.openwire.primitives import encode_map
from delosmq.wire.openwire.properties import decode_properties
from delosmq.wire.openwire.structures import QUEUE, TOPIC, ConsumerId, Destination, MessageId, ProducerId
from delosmq.wire.openwire.wire_format import PLAIN_FORMATS, WireFormat

ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
ORIGINAL_ROUTING_TYPE: Final = "_AMQ_ORIG_ROUTING_TYPE"
_ROUTING_TYPE_MULTICAST: Final = "0"
"""As Artemis numbers them."""

_DISPATCH: Final = b"\x15" + bytes(5)
"""Type, command id, response required."""
_I32: Final = Struct(">i")
_I64: Final = Struct(">q")
_unpack_head: Final = HEAD.unpack_from
_pack_i32: Final = _I32.pack
_pack_i64: Final = _I64.pack
_OUT_AND_FIRST: Final = Struct(">q?")
_LONG_BYTES: Final = 8
_FIRST_SINCE: Final = 10
_NULL: Final = b"\0"
_MESSAGE_STARTS: Final = {code: bytes((1, code)) + bytes(5) for code in range(23, 30)}

_FIXED_BYTES: Final = 7 + _I32.size
"""The start of the message, and the redelivery counter."""

# Messages are laid out alike within each of these. Source: `layout`, for messages, message ids and destinations.
_ALIKE: Final = ((1,), (2,), (3, 4, 5, 6, 7, 8, 9), (10, 11, 12))
_NO_SESSION: Final = -1


class Route:
    """How a consumer's messages reached it.

    Attributes:
        destination: what the consumer reads from.
        replaces: the message shows ``destination`` instead of the one it was sent to (virtual and composite topics).
        original: shown as the original destination of such a message that has none yet.
    """

    def __init__(
        self, destination: Destination, *, replaces: bool = False, original: Destination | None = None
    ) -> None:
        self.destination = destination
        self.replaces = replaces
        self.original = original
        plain = PLAIN_FORMATS[-1]
        self.encoded: bytes = encode_structure(destination, plain)
        self.encoded_original: bytes = encode_structure(original, plain)


class DispatchEncoder:
    """Encodes what one consumer gets.

    Args:
        form: what was agreed with its connection.
        broker_id: names this broker in the ids of messages that came in other protocols; unique for each broker.
    """

    def __init__(self, form: WireFormat, consumer_id: ConsumerId, conversions: Conversions, broker_id: str) -> None:
        self._form = form
        self._max_frame_bytes: int = form.max_frame_bytes
        self._consumer_id = consumer_id
        self._conversions = conversions
        self._broker_id: str = broker_id.removeprefix("ID:")
        self._stored: StoredReader = StoredReader()
        self._prefix: bytes = _DISPATCH + encode_structure(consumer_id, PLAIN_FORMATS[form.version])
        self._has_first: bool = form.version >= _FIRST_SINCE
        self._own_tag: str = PROTOCOL_TAGS[form.version] if form.plain else ""
        spliced: list[str] = []
        for alike in _ALIKE:
            if form.plain and form.version in alike:
                spliced = [PROTOCOL_TAGS[version] for version in alike]
        self._spliced: frozenset[str] = frozenset(spliced)

    def encode(
        self, message: Message, route: Route, redelivery: int, sent_at_ms: int, *, first_of_group: bool = False
    ) -> tuple[bytes, bytes, bytes]:
        """The frame: what stands before the body, the body (that of the message where it can be), what stands behind
        it. Of a message for which the peer has no room a keep-alive, and the form tells of it.

        Args:
            redelivery: how often it was delivered before.
            sent_at_ms: wall clock now; consumers see it as the broker's out-time.
        """
        protocol = message.protocol
        if message.annotations is None and (protocol == self._own_tag or protocol in self._spliced):
            head = message.head
            if not head[2] or protocol == self._own_tag:
                return self._splice(message, route, redelivery, sent_at_ms, first_of_group)
        dispatch = self.command(message, route, redelivery, sent_at_ms, first_of_group=first_of_group)
        frame = encode_command(dispatch, self._form)
        size = len(frame) - _I32.size
        return b"", self._in_its_place(message, size) if size > self._max_frame_bytes else frame, b""

    def _in_its_place(self, message: Message, size: int) -> bytes:
        self._form.too_large = f"message ID:{message.message_id} of '{message.address}' ({size} bytes)"
        return encode_command(KeepAliveInfo(), self._form)

    def encode_end(self, destination: Destination | None = None) -> bytes:
        """Nothing to give for a MessagePull, or the end of a browse."""
        dispatch = MessageDispatch()
        dispatch.consumer_id = self._consumer_id
        dispatch.destination = destination
        return encode_command(dispatch, self._form)

    def _splice(
        self, message: Message, route: Route, redelivery: int, sent_at_ms: int, first_of_group: bool
    ) -> tuple[bytes, bytes, bytes]:
        head = message.head
        _, code, _, destination_at, destination_end, sequence_at, expiration_at, tail_at, times_at = _unpack_head(head)
        body = message.body
        if route.replaces:
            start = self._replaced_start(route, head, destination_at, destination_end, sequence_at)
        else:
            start = head[HEAD_BYTES:sequence_at]
        if times_at:
            out_at = times_at + _LONG_BYTES
            tail = head[tail_at:out_at]
            if self._has_first:
                tail += _OUT_AND_FIRST.pack(sent_at_ms, first_of_group) + head[out_at + _OUT_AND_FIRST.size :]
            else:
                tail += _pack_i64(sent_at_ms) + head[out_at + _LONG_BYTES :]
        else:
            tail = head[tail_at:]
        length = _pack_i32(len(body)) if head[tail_at - 1] else b""
        prefix = self._prefix
        destination = route.encoded
        size = len(prefix) + len(destination) + _FIXED_BYTES + len(start) + tail_at - sequence_at
        size += len(length) + len(body) + len(tail)
        if size > self._max_frame_bytes:
            return b"", self._in_its_place(message, size), b""
        start_of_frame = b"".join(
            (
                _pack_i32(size),
                prefix,
                destination,
                _MESSAGE_STARTS[code],
                start,
                _pack_i64(message.sequence),
                head[sequence_at + _LONG_BYTES : expiration_at],
                _pack_i64(message.expires_at_ms),
                head[expiration_at + _LONG_BYTES : tail_at],
                length,
            )
        )
        return start_of_frame, body, tail + _pack_i32(redelivery)

    def _replaced_start(
        self, route: Route, head: bytes, destination_at: int, destination_end: int, sequence_at: int
    ) -> bytes:
        # Behind the destination: the transaction, which is never stored, and the original destination.
        original_at = destination_end + len(_NULL)
        if head[original_at]:
            rest = head[original_at:sequence_at]
        else:
            rest = route.encoded_original + head[original_at + 1 : sequence_at]
        return b"".join((head[HEAD_BYTES:destination_at], route.encoded, _NULL, rest))

    def command(
        self, message: Message, route: Route, redelivery: int, sent_at_ms: int, *, first_of_group: bool = False
    ) -> MessageDispatch:
        """What `encode` encodes, as a command."""
        replaces = route.replaces
        if message.protocol in VERSION_OF_TAG:
            command = self._stored.decode(message)
            if message.annotations is not None:
                if ORIGINAL_ADDRESS in message.annotations:
                    replaces = True
                    command.persistent = message.durable  # a dead letter may be kept safer than what it is of
                _annotate(command, message.annotations)
        else:
            command = self._foreign(message)
            replaces = True
        if replaces:
            if command.original_destination is None:
                command.original_destination = route.original
            command.destination = route.destination
        message_id = command.message_id
        if message_id is not None:
            message_id.broker_sequence_id = message.sequence
        self._fit(command)
        command.expiration = message.expires_at_ms
        command.redelivery_counter = redelivery
        command.broker_out_time = sent_at_ms
        command.group_first_for_consumer = first_of_group
        dispatch = MessageDispatch()
        dispatch.consumer_id = self._consumer_id
        dispatch.destination = route.destination
        dispatch.message = command
        dispatch.redelivery_counter = redelivery
        return dispatch

    def _fit(self, command: MessageCommand) -> None:
        """Leaves out what the consumer's version has no type for."""
        layout = self._form.layout
        if command.code not in layout:
            command.code = ACTIVEMQ_MESSAGE
        structure = command.data_structure
        if structure is not None and structure.code not in layout:
            command.data_structure = None

    def _foreign(self, message: Message) -> MessageCommand:
        """A message that came in another protocol."""
        command = command_of_hub(self._conversions.to_hub(message))
        number = message.message_id
        producer_id = ProducerId(f"ID:{self._broker_id}:-1", _NO_SESSION, number // SEQUENCES_PER_PRODUCER)
        command.producer_id = producer_id
        command.message_id = MessageId(producer_id, number % SEQUENCES_PER_PRODUCER)
        command.persistent = message.durable
        command.priority = message.priority
        command.timestamp = message.timestamp_ms
        command.broker_in_time = message.timestamp_ms
        if message.group_id:
            command.group_id = command.group_id or message.group_id
            command.group_sequence = message.group_sequence
        if message.annotations is not None:
            command.original_destination = _original_of(message.annotations)
        return command


def _annotate(command: MessageCommand, annotations: dict[str, str]) -> None:
    """Shows what the broker says of a copy: properties, and where the original was sent to."""
    if ORIGINAL_ADDRESS in annotations and command.original_destination is None:
        command.original_destination = command.destination
    try:
        entries: dict[str, TypedValue] = decode_properties(command.marshalled_properties)
    except PeerError:
        # What can't be read stays as it is.
        return
    add_annotations(entries, annotations)
    command.marshalled_properties = encode_map(entries) if entries else None


def _original_of(annotations: dict[str, str]) -> Destination | None:
    address = annotations.get(ORIGINAL_ADDRESS)
    if address is None:
        return None
    multicast = annotations.get(ORIGINAL_ROUTING_TYPE) == _ROUTING_TYPE_MULTICAST
    return Destination(address, TOPIC if multicast else QUEUE)
