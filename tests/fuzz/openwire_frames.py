"""Frames to attack a broker with: recorded ones, commands of every type that belong together, and what spoils them."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from random import Random
from typing import TypeVar

from delosmq.model.properties import STRING_KIND, TypedValue
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    BYTES_MESSAGE,
    TEXT_MESSAGE,
    ConnectionControl,
    ConnectionInfo,
    ConsumerControl,
    ConsumerInfo,
    DestinationInfo,
    KeepAliveInfo,
    MessageAck,
    MessageCommand,
    MessagePull,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
    SessionInfo,
    ShutdownInfo,
    TransactionInfo,
)
from delosmq.wire.openwire.negotiation import WireFormatInfo, encode_wire_format_info
from delosmq.wire.openwire.primitives import encode_map
from delosmq.wire.openwire.structures import (
    QUEUE,
    TEMP_QUEUE,
    TOPIC,
    Command,
    ConnectionId,
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
    SessionId,
    Throwable,
    TransactionId,
    XATransactionId,
)
from delosmq.wire.openwire.wire_format import WireFormat
from tests.fuzz.openwire_forged import forge
from tests.sessions.openwire.recordings import NAMES, Recording
from tests.sessions.support import PASSWORD, USER
from tests.wire.openwire.test_conversion import PROPERTIES
from tests.wire.openwire.test_fuzz import seeds

C = TypeVar("C", bound=Command)

SEQUENCE = 0x7E57_ABCD_0102_0304
"""Stands in for a broker's sequence, which is put in when the frame is sent."""
DESTINATIONS = (
    Destination("fuzz.a"),
    Destination("fuzz.b?consumer.prefetchSize=3"),
    Destination("fuzz.a,topic://fuzz.t"),
    Destination("fuzz.*"),
    Destination("fuzz.t", TOPIC),
    Destination("fuzz.>", TOPIC),
    Destination("VirtualTopic.fuzz", TOPIC),
    Destination("Consumer.x.VirtualTopic.fuzz"),
    Destination("ActiveMQ.Advisory.Consumer.Queue.>", TOPIC),
)
# One bit changed makes a comma of a dot. No part of what is read from a queue may then stand for all queues.
WIDE = (
    Destination(",".join(f"fuzz.c{number}" for number in range(30))),
    Destination(",".join(["fuzz.*"] * 100)),
    Destination(",".join(["fuzz.*", "*.a", "fuzz.*.x", "fuzz.c1", "topic://fuzz.*"] * 20)),
    Destination(",".join(["fuzz.>", "fuzz.*", "*.t", "fuzz.t"] * 25), TOPIC),
    Destination(",".join(f"VirtualTopic.v{number}" for number in range(10)), TOPIC),
    Destination(",".join(["ActiveMQ.Advisory.Consumer.>"] * 100), TOPIC),
    Destination(
        ",".join(
            f"ActiveMQ.Advisory.{name}"
            for name in ("Consumer.>", "Producer.>", "Connection", "Queue", "Topic", "TempQueue", "TempTopic", ">")
        ),
        TOPIC,
    ),
    Destination("ActiveMQ.Advisory.Connection", TOPIC),
    Destination("ActiveMQ.Advisory.Expired.Queue.>", TOPIC),
)
"""Destinations of many parts, and those that take much in."""
MANY = Destination("fuzz.many")
"""What a client that behaves fills."""
EXTREMES = (
    "a\ud800",
    "\udfff",
    "x" * 32_000,
    "\u20ac" * 10_000,
    "a\0b",
    "a\n",
    "p," * 90,
    "q," * 12_000,
    "\U0001f600" * 1_000,
)
VERSIONS = (1, 5, 9, 10, 11, 12)
FORMS = tuple(product(VERSIONS, (False, True), (False, True)))
_FORGED_SHARE = 0.3
"""Of the messages say what only the broker says."""
SLOTS = 3
"""Connections that attack at the same time."""


class Arsenal:
    """The frames of one connection in one form, all unspoilt.

    Attributes:
        greeting: the negotiation.
        login: the ConnectionInfo.
        opening: sessions, producers and consumers, in a good order.
        frames: everything else, to be sent in any order.
    """

    def __init__(self, version: int, tight: bool, caching: bool, slot: int) -> None:
        self.form = WireFormat(version, tight=tight, caching=caching)
        hello = WireFormatInfo(version)
        hello.tight_encoding_enabled = tight
        hello.cache_enabled = caching
        self.greeting = encode_wire_format_info(hello)
        # All slots have the same but for their name, so that what one finds out is true of all.
        made = _Commands(f"ID:fuzz-{slot}", Random(version))
        self.login = self._encoded(made.login())
        self.opening = self._known(made.opening())
        self.frames = self._known(made.everything())
        self.frames += [self._encoded(made.ack()) for _ in range(len(self.frames) // 2)]
        self.frames += seeds(self.form)
        self.frames += self._known(recorded())

    def _known(self, commands: Iterable[Command]) -> list[bytes]:
        """Those that this version has."""
        return [self._encoded(one) for one in commands if one.code in self.form.layout]

    def _encoded(self, command: Command) -> bytes:
        return encode_command(command, self.form)


@cache
def recorded() -> list[Command]:
    """What the real client sent after it was logged in."""
    steps = [step for name in NAMES for step in Recording(name).steps if step.by_client]
    found = [step.frame for step in steps if not isinstance(step.frame, ConnectionInfo)]
    return [frame for frame in found if isinstance(frame, Command)]


class _Commands:
    """Commands of one connection that name each other's objects."""

    def __init__(self, name: str, rng: Random) -> None:
        self._name = name
        self._rng = rng
        self._count = 0

    def login(self) -> ConnectionInfo:
        info = ConnectionInfo()
        info.connection_id = ConnectionId(self._name)
        info.client_id = self._name
        info.user_name = USER
        info.password = PASSWORD
        info.manageable = True
        return self._numbered(info)

    def opening(self) -> Iterator[Command]:
        for value in (1, 2):
            session = SessionInfo()
            session.session_id = SessionId(self._name, value)
            yield self._numbered(session)
        yield from (self.begin(), self.producer(), self.consumer(), self.consumer(), self.message(), self.message())

    def everything(self) -> Iterator[Command]:
        """Some of each kind."""
        kinds: tuple[tuple[int, Callable[[], Command]], ...] = (
            (60, self.message),
            (24, self.consumer),
            (6, self.producer),
            (20, self.transaction),
            (6, self.begin),
            (14, self.pull),
            (20, self.remove),
            (6, self.control),
            (6, self.temporary),
            (3, self.unsubscribe),
            (40, self.extreme),
            (20, self.wide),
            (4, self.greedy),
        )
        for count, make in kinds:
            for _ in range(count):
                yield self._numbered(make())
        for one in (KeepAliveInfo(), ShutdownInfo(), ConnectionControl()):
            yield self._numbered(one)

    def message(self) -> Command:
        rng = self._rng
        command = MessageCommand(rng.choice((TEXT_MESSAGE, BYTES_MESSAGE)))
        self._count += 1
        command.producer_id = ProducerId(self._name, 1, rng.randint(1, 2))
        command.message_id = MessageId(command.producer_id, self._count)
        command.destination = rng.choice(DESTINATIONS)
        command.transaction_id = self._transaction_id()
        command.persistent = rng.random() < 0.5
        command.priority = rng.randrange(10)
        command.expiration = rng.choice((0, 0, 1, 1 << 50))
        command.group_id = rng.choice((None, None, "g"))
        command.reply_to = rng.choice((None, *DESTINATIONS))
        command.correlation_id = rng.choice((None, "c"))
        command.content = b"\0\0\0\5hello" if rng.random() < 0.8 else bytes(rng.choice((0, 3, 2_000)))
        command.compressed = rng.random() < 0.1
        command.marshalled_properties = rng.choice((None, encode_map(PROPERTIES)))
        if rng.random() < _FORGED_SHARE:
            forge(command)
        return self._numbered(command)

    def consumer(self) -> Command:
        rng = self._rng
        info = ConsumerInfo()
        info.consumer_id = self._consumer_id()
        info.destination = rng.choice(DESTINATIONS)
        info.prefetch_size = rng.choice((0, 1, 3, 100))
        info.browser = rng.random() < 0.1
        info.exclusive = rng.random() < 0.1
        info.no_local = rng.random() < 0.1
        info.retroactive = rng.random() < 0.1
        info.selector = rng.choice((None, None, "a = 1", "JMSPriority > 4", "a ="))
        info.priority = rng.choice((0, 0, 5, 127))
        if info.destination.code == TOPIC and rng.random() < 0.5:
            info.subscription_name = "s"
        return self._numbered(info)

    def wide(self) -> Command:
        """Reads, makes, asks for or sends to much at once."""
        rng = self._rng
        command: Command = rng.choice((self.message, self.consumer, self.consumer, self.producer, self.pull))()
        if isinstance(command, MessageCommand | ConsumerInfo | ProducerInfo | MessagePull):
            command.destination = rng.choice(WIDE)
        return command

    def greedy(self) -> Command:
        """Has very many messages in delivery."""
        info = self.consumer()
        if isinstance(info, ConsumerInfo):
            info.destination = MANY
            info.prefetch_size = 32_766
            info.browser = False
        return info

    def producer(self) -> Command:
        info = ProducerInfo()
        info.producer_id = ProducerId(self._name, 1, self._rng.randint(1, 2))
        info.destination = self._rng.choice((None, *DESTINATIONS))
        info.window_size = self._rng.choice((0, 10_000))
        return self._numbered(info)

    def begin(self) -> Command:
        return self._ended(0)

    def transaction(self) -> Command:
        return self._ended(self._rng.randrange(1, 8))

    def _ended(self, kind: int) -> Command:
        info = TransactionInfo()
        info.connection_id = ConnectionId(self._name)
        info.transaction_id = self._transaction_id() or LocalTransactionId(1, ConnectionId(self._name))
        info.type = kind
        return self._numbered(info)

    def ack(self) -> Command:
        rng = self._rng
        ack = MessageAck()
        ack.consumer_id = self._consumer_id()
        ack.destination = rng.choice((*DESTINATIONS, *WIDE, MANY, MANY))
        ack.ack_type = rng.choice((0, 1, 2, 2, 2, 3, 4, 4, 5, 6))
        ack.transaction_id = self._transaction_id()
        ack.last_message_id = self._message_id(rng.choice((SEQUENCE, SEQUENCE, SEQUENCE, 0)))
        first = self._message_id(rng.choice((0, 1, SEQUENCE)))
        ack.first_message_id = rng.choice((None, ack.last_message_id, first))
        ack.message_count = rng.choice((1, 1, 2, 100, 1 << 14, (1 << 31) - 1, 0, -1))
        ack.poison_cause = rng.choice((None, Throwable("java.lang.Throwable", "why")))
        return self._numbered(ack)

    def pull(self) -> Command:
        pull = MessagePull()
        pull.consumer_id = self._consumer_id()
        pull.destination = self._rng.choice(DESTINATIONS)
        pull.timeout = self._rng.choice((0, -1, 50))
        return self._numbered(pull)

    def remove(self) -> Command:
        rng = self._rng
        info = RemoveInfo()
        info.object_id = rng.choice(
            (self._consumer_id(), self._consumer_id(), ProducerId(self._name, 1, 1), SessionId(self._name, 2))
        )
        info.last_delivered_sequence_id = rng.choice((-1, -2, 0, SEQUENCE))
        return self._numbered(info)

    def control(self) -> Command:
        control = ConsumerControl()
        control.consumer_id = self._consumer_id()
        control.destination = self._rng.choice(DESTINATIONS)
        control.prefetch = self._rng.choice((0, 2, 50))
        control.close = self._rng.random() < 0.3
        return self._numbered(control)

    def temporary(self) -> Command:
        info = DestinationInfo()
        info.connection_id = ConnectionId(self._name)
        info.destination = Destination(f"{self._name}:1", TEMP_QUEUE)
        info.operation_type = self._rng.randrange(2)
        return self._numbered(info)

    def unsubscribe(self) -> Command:
        info = RemoveSubscriptionInfo()
        info.connection_id = ConnectionId(self._name)
        info.client_id = self._name
        info.subscription_name = "s"
        return self._numbered(info)

    def extreme(self) -> Command:
        """Well encoded, with a text or id that is very long, no text elsewhere, or another's."""
        rng = self._rng
        text = rng.choice(EXTREMES)
        name = Destination(text, rng.choice((QUEUE, TOPIC, TEMP_QUEUE)))
        command: Command = rng.choice((self.message, self.consumer, self.producer, self.temporary, self._session))()
        if isinstance(command, MessageCommand):
            choice = rng.randrange(5)
            if choice == 0:
                command.destination = name
            elif choice == 1:
                command.group_id = text
            elif choice == 2:
                command.marshalled_properties = encode_map({"_AMQ_DUPL_ID": TypedValue(STRING_KIND, text)})
            elif choice == 3:
                command.transaction_id = XATransactionId(1, text.encode("utf-8", "surrogatepass"), b"b")
            else:
                command.correlation_id = text
        elif isinstance(command, ConsumerInfo):
            if rng.random() < 0.5:
                command.destination = name
            else:
                command.destination = DESTINATIONS[4]
                command.subscription_name = text
        elif isinstance(command, ProducerInfo | DestinationInfo):
            command.destination = name
        return command

    def _session(self) -> Command:
        info = SessionInfo()
        info.session_id = SessionId(f"ID:fuzz-{self._rng.randrange(SLOTS)}", 2)
        return info

    def _consumer_id(self) -> ConsumerId:
        return ConsumerId(self._name, self._rng.randint(1, 2), self._rng.randint(1, 3))

    def _message_id(self, sequence: int) -> MessageId:
        """With the broker's sequence, or without one as a client would that did not keep it."""
        producer = ProducerId(self._name, 1, self._rng.randint(1, 2))
        return MessageId(producer, self._rng.randint(1, max(1, self._count)), sequence)

    def _transaction_id(self) -> TransactionId | None:
        number = self._rng.randrange(8)
        if number < 5:
            return None
        if number == 7:
            return XATransactionId(7, b"fuzz", self._name.encode())
        return LocalTransactionId(number - 4, ConnectionId(self._name))

    def _numbered(self, command: C) -> C:
        self._count += 1
        command.command_id = self._count
        command.response_required = self._rng.random() < 0.7
        return command


def flipped(rng: Random, frame: bytes, at: int) -> bytes:
    """With one bit of a byte changed."""
    changed = bytearray(frame)
    changed[at] ^= 1 << int(rng.random() * 8)
    return bytes(changed)


def spoilt(rng: Random, frame: bytes, other: bytes) -> bytes:
    """An extreme byte, cut short, longer, of another type, with another's end, or with a wrong size."""
    choice = rng.random()
    size = len(frame)
    changed = bytearray(frame)
    cut = rng.randrange(5, size) if size > 5 else 4
    if choice < 0.3:
        changed[cut] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        return bytes(changed)
    if choice < 0.4:
        return rng.choice((0, 1, 0x7F, 0x80, 0xFF, size, 1 << 20)).to_bytes(4) + frame[4:]
    if choice < 0.55:
        changed[4] = rng.randrange(256)
        return bytes(changed)
    if choice < 0.7:
        del changed[cut : cut + rng.randint(1, 8)]
    elif choice < 0.85:
        changed[cut:cut] = rng.randbytes(rng.randint(1, 8))
    else:
        changed[cut:] = other[rng.randrange(4, len(other)) :]
    changed[:4] = (len(changed) - 4).to_bytes(4)
    return bytes(changed)
