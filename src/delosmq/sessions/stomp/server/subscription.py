"""One subscription: deliveries as MESSAGE frames, and the ids under which they are acknowledged."""

from typing import Final

from delosmq.engine.api import ByteCredit, Consumer, Credit, MessageCredit, OpenCredit, Slot
from delosmq.model.conversion import Conversions, Encoded
from delosmq.model.errors import BrokerError
from delosmq.model.ids import NOTHING_DURABLE
from delosmq.model.message import BYTES_BODY, HIGHEST_PRIORITY, Message
from delosmq.model.settings import DispatchProfile
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.outbox import Outbox
from delosmq.sessions.stomp.server.errors import header_wrong
from delosmq.sessions.stomp.server.headers import parse_count
from delosmq.sessions.stream import NO_SEQUENCE, DeliveryPort, FrameParts, Stream
from delosmq.wire.stomp.conversion import (
    DESTINATION,
    PROTOCOL_TAGS,
    VERSION_OF_TAG,
    StompConversion,
    decode_head,
    encode_lines,
)
from delosmq.wire.stomp.encoder import transcode_head
from delosmq.wire.stomp.versions import V10, V12

AUTO: Final = 0
CLIENT: Final = 1
INDIVIDUAL: Final = 2
ACK_MODES: Final = {"auto": AUTO, "client": CLIENT, "client-individual": INDIVIDUAL}

WINDOW: Final = "consumer-window-size"
PREFETCH: Final = "activemq.prefetchSize"

# Deliveries one subscription may leave unanswered, whatever it asked for. Each costs the broker a slot it can't give
# to another consumer; 65,536 is twice the largest prefetch of any client we know.
MAX_UNACKNOWLEDGED: Final = 65_536

_ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
_ID_MARK: Final = "-"
_GROUP_FIRST: Final = "JMSXGroupFirstForConsumer"

# Everything between the relayed headers and the timestamp, by persistence and priority.
_PRIORITIES: Final = range(HIGHEST_PRIORITY + 1)
_PERSISTENT: Final = [b"persistent:true\npriority:%d\ntimestamp:" % priority for priority in _PRIORITIES]
_VOLATILE: Final = [b"persistent:false\npriority:%d\ntimestamp:" % priority for priority in _PRIORITIES]


class StompSubscription(DeliveryPort):
    """Encodes what the engine delivers.

    Attributes:
        destination: as the peer wrote it; replaces: messages show it instead of the one they were sent to.
        connection, user: of the consumer. Diagnostics only.
        consumer: set right after subscribing, before anything is delivered.
        machine: of its session; None before, and again when it is closed.
    """

    def __init__(
        self,
        header_id: str | None,
        mode: int,
        *,
        destination: str,
        version: int,
        outbox: Outbox,
        conversion: StompConversion,
        replaces: bool = False,
    ) -> None:
        self.mode = mode
        self.consumer: Consumer | None = None
        self.stream: Stream = Stream(reports=mode == AUTO)
        self.destination = destination
        self.connection: str = ""
        self.user: str = ""
        self._version = version
        # What came so goes out as it is.
        self._tag: str = "" if replaces else PROTOCOL_TAGS[version]
        self._replaces: bool = replaces
        self._conversion = conversion
        self._outbox = outbox
        self._conversions: Conversions | None = None
        self.machine: SessionMachine | None = None
        before = b"MESSAGE\n"
        if header_id is not None:
            before += encode_lines([("subscription", header_id)], version)
        self._before: bytes = before + b"message-id:"
        self._ack: bytes = b""

    def attach(self, consumer: Consumer, machine: SessionMachine, conversions: Conversions) -> None:
        """Completes the subscription once the engine knows it."""
        self.consumer = consumer
        self.stream.owner_id = consumer.id
        self.machine = machine
        self._conversions = conversions
        if self._version == V10:
            # ACK of 1.0 names the message and nothing else, and two subscriptions may hold the same one.
            self._before += b"%d-" % consumer.id
        elif self._version == V12 and self.mode != AUTO:
            self._ack = b"\nack:%d-" % consumer.id

    def deliver(self, slot: Slot) -> None:
        consumer = self.consumer
        if consumer is not None and consumer.first_of_group:
            # That is known now only.
            frame = b"".join(self.encode(slot, slot.delivery_count, _first_of_group(consumer)))
            position = slot.message.position if slot.recorded else NOTHING_DURABLE
            self._outbox.put(self.stream, position, frame, slot.sequence)
        else:
            self._outbox.deliver(self.stream, slot, self)

    def encode(self, slot: Slot, delivery_count: int, first_of_group: bytes = b"") -> FrameParts:
        message = slot.message
        number = b"%d" % slot.sequence
        body = message.body
        kind = message.body_kind
        if message.protocol == self._tag and message.annotations is None:
            head = message.head
        elif message.protocol in VERSION_OF_TAG:
            head = self._converted(message)
        else:
            encoded = self._foreign(message)
            head = encoded.head
            body = encoded.body
            kind = encoded.body_kind
        if message.expires_at_ms:
            head += b"expires:%d\n" % message.expires_at_ms
        if first_of_group:
            head += first_of_group
        if kind == BYTES_BODY or b"\0" in body:
            end = b"\ncontent-length:%d\n\n" % len(body)
        else:
            end = b"\n\n"
        start = b"".join(
            (
                self._before,
                number,
                self._ack + number if self._ack else b"",
                b"\nredelivered:false\n" if delivery_count == 1 else b"\nredelivered:true\n",
                head,
                _PERSISTENT[message.priority] if message.durable else _VOLATILE[message.priority],
                b"%d" % message.timestamp_ms,
                end,
            )
        )
        return start, body, b"\0"

    def browse_ended(self) -> None:
        # Source: StompQueueBrowserSubscription of ActiveMQ Classic.
        end = self._before + b"0\nbrowser:end\n" + encode_lines([(DESTINATION, self.destination)], self._version)
        self._outbox.put(self.stream, NOTHING_DURABLE, end + b"\n\0", NO_SEQUENCE)

    def connection_name(self) -> str:
        return self.connection

    def user_name(self) -> str:
        return self.user

    def has_room(self) -> bool:
        return self._outbox.has_room()

    def closed_by_broker(self, reason: BrokerError) -> None:
        self._outbox.close_stream(self.stream)
        if self.machine is not None:
            self.machine.fail_soon(reason)

    def _converted(self, message: Message) -> bytes:
        """The head in this connection's version, with what the broker added."""
        version = VERSION_OF_TAG[message.protocol]
        if message.annotations is None and not self._replaces:
            return transcode_head(message.head, version, self._version)
        headers = decode_head(message.head, version)
        if self._replaces:
            headers[DESTINATION] = self.destination
        if message.annotations is not None:
            if _ORIGINAL_ADDRESS in message.annotations:
                # A copy lies elsewhere than its sender said: it is told where it was found.
                headers[DESTINATION] = self.destination
            headers.update(message.annotations)
        return encode_lines(list(headers.items()), self._version)

    def _foreign(self, message: Message) -> Encoded:
        """A message of another protocol, in this connection's version."""
        assert self._conversions is not None  # attached before the first delivery
        encoded = self._conversion.from_hub(self._conversions.to_hub(message), self.destination)
        encoded.head = transcode_head(encoded.head, V12, self._version)
        return encoded


def _first_of_group(consumer: Consumer) -> bytes:
    """The header of the first message that a consumer gets of its group. Artemis sends it when ``group-first-key``
    names it, Classic always."""
    queue = consumer.queue
    if queue is None:
        return b""
    name = queue.in_force.group_first_key
    if not name and queue.address.settings.dispatch_profile is DispatchProfile.CLASSIC:
        name = _GROUP_FIRST
    return encode_lines([(name, "true")], V12) if name else b""


def read_credit(headers: dict[str, str], mode: int, default_window_bytes: int) -> Credit:
    """The credit a SUBSCRIBE asks for. With ``auto`` the outbox is the bound: what is written is acknowledged."""
    window = headers.get(WINDOW)
    prefetch = headers.get(PREFETCH)
    credit: Credit = OpenCredit()
    if window is not None:
        size = -1 if window == "-1" else parse_count(window)
        if size < 0 and window != "-1":
            raise header_wrong(WINDOW, "SUBSCRIBE", window, "a number of bytes, or -1 for no window")
        # A window of 0 is one message at a time.
        credit = MessageCredit(MAX_UNACKNOWLEDGED) if size < 0 else ByteCredit(max(1, size))
    elif prefetch is not None:
        count = parse_count(prefetch)
        if count < 1:
            raise header_wrong(PREFETCH, "SUBSCRIBE", prefetch, "a number of messages, 1 or more")
        credit = MessageCredit(min(count, MAX_UNACKNOWLEDGED))
    elif default_window_bytes < 0:
        credit = MessageCredit(MAX_UNACKNOWLEDGED)
    else:
        credit = ByteCredit(max(1, default_window_bytes))
    return OpenCredit() if mode == AUTO else credit


def split_ack_id(ack_id: str) -> tuple[int, int]:
    """Consumer and sequence of an ``ack`` header (1.2) or ``message-id`` (1.0); -1 for what can't be one of ours."""
    consumer, _, sequence = ack_id.partition(_ID_MARK)
    return parse_count(consumer), parse_count(sequence)
