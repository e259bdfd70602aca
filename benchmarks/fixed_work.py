"""Work that is the same to the last instruction: one broker without sockets, on a clock that stands still.

`benchmarks.count_worker` counts its instructions, `tools.house` follows one message through it. A conversation of
sessions is held once, to learn what the clients answer, and then played again to a broker that is new: of the second
time only the broker is counted, not the clients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from benchmarks.engine_worker import DroppingStore
from delosmq.engine.broker import EngineBroker
from delosmq.engine.log.log import Store
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.message import ANYCAST
from delosmq.model.ports import Clock, Random
from delosmq.model.settings import AcceptorSettings, BrokerSettings, QueueSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS, AccessControl, LoginAttempt
from delosmq.sessions.host import Peer, SessionHost, SessionServices
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.openwire.server.protocol import OpenWireProtocol
from delosmq.sessions.outbox import Gate
from delosmq.sessions.protocol import Protocol
from delosmq.sessions.stomp.server.protocol import StompProtocol
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    STANDARD_ACK,
    TEXT_MESSAGE,
    BrokerInfo,
    ConnectionInfo,
    ConsumerInfo,
    ExceptionResponse,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    ProducerInfo,
    SessionInfo,
)
from delosmq.wire.openwire.conversion import OpenWireConversion
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree, encode_wire_format_info
from delosmq.wire.openwire.structures import (
    QUEUE,
    Command,
    ConnectionId,
    ConsumerId,
    Destination,
    MessageId,
    ProducerId,
    SessionId,
)
from delosmq.wire.openwire.wire_format import WireFormat
from delosmq.wire.stomp.conversion import StompConversion

QUEUE_NAME = "q"
BODY = b"x" * 1024
USER = "user"
PASSWORD = "password"
TURN = 16
"""Frames that come in one read, and share a tick."""
CLIENT, READER = 0, 1
"""The connections: one sends, the other consumes."""


ONE_QUEUE = BrokerSettings(queues=(QueueSettings(QUEUE_NAME, QUEUE_NAME, ANYCAST),))


def recording(reader: QueueSettings | None) -> BrokerSettings:
    """Event records as many as there are, and the queue that gets them."""
    queues = ONE_QUEUE.queues if reader is None else (*ONE_QUEUE.queues, reader)
    return replace(ONE_QUEUE, queues=queues, delosmq_events=1 << 40)


class StillClock(Clock):
    """Always the same moment."""

    def wall_ms(self) -> WallMs:
        return WallMs(1_700_000_000_000)

    def monotonic_ns(self) -> MonotonicNs:
        return MonotonicNs(1_000_000_000_000)


class Numbers(Random):
    """Counts instead of drawing lots."""

    def __init__(self) -> None:
        self._count = 0

    def token(self, size_bytes: int) -> str:
        self._count += 1
        return f"token{self._count}"

    def fraction(self) -> float:
        return 0.5


class Host(SessionHost):
    """A connection whose peer always reads."""

    write_wanted = wake_soon = list[object]().clear
    """A function in C that does nothing."""

    def verify(self, attempt: LoginAttempt, password: str) -> None:
        raise RuntimeError("the login was to be known already")

    def report(self, trouble: BrokerError) -> None:
        raise trouble

    def finish(self, reason: BrokerError | None) -> None:
        raise reason or RuntimeError("the session ended")


class Bench:
    """A broker with one queue, and two connections that are logged in to it by one protocol."""

    def __init__(self, protocol: Protocol, store: Store | None = None, settings: BrokerSettings = ONE_QUEUE) -> None:
        clock = StillClock()
        conversions = Conversions({"stomp": StompConversion(), "openwire": OpenWireConversion()})
        self.broker = EngineBroker(
            settings,
            store or DroppingStore(),
            clock=clock,
            random=Numbers(),
            events=protocol.events,
            conversions=conversions,
        )
        self.gate = Gate()
        self.gate.on_synced(self.broker.start())
        everything = SecurityMatch("#", {permission: frozenset({"all"}) for permission in PERMISSIONS})
        access = AccessControl({USER: "stored"}, {USER: frozenset({"all"})}, (everything,), cache_key=b"k" * 32)
        access.finish(access.attempt(USER, PASSWORD), True)  # known, so that a login needs no hash
        services = SessionServices(
            self.broker, self.gate, clock=clock, access=access, conversions=conversions, server_name="DelosMQ"
        )
        self.now = clock.monotonic_ns()
        acceptor = AcceptorSettings("any", "localhost", 0, (protocol.name,))
        self.sessions: list[SessionMachine] = [
            protocol.open(Host(), Peer(f"10.0.0.1:{5000 + number}", f"c{number}"), acceptor, services, self.now)
            for number in (CLIENT, READER)
        ]

    def turn(self, number: int, chunk: bytes, written: Callable[[int, bytes], object]) -> None:
        """One read of a connection and all that follows, as the server's ticker does it."""
        self.sessions[number].receive(chunk, self.now)
        broker, gate, now = self.broker, self.gate, self.now
        more = True
        while more:
            more = broker.tick()
            gate.on_synced(broker.log.position)
            for to, session in enumerate(self.sessions):
                outbox = session.outbox
                while piece := outbox.take():
                    written(to, piece)
                    outbox.confirm_written()
                more = session.handle_written(now) or more


class Conversation(ABC):
    """What two clients of one protocol say: one sends messages, the other acknowledges them one by one.

    Args:
        settings: of its brokers.
    """

    def __init__(self, settings: BrokerSettings = ONE_QUEUE) -> None:
        self.settings = settings
        self.bench = self.new_bench()
        self.said: list[tuple[int, bytes]] = []
        self.answered = (bytearray(), bytearray())

    @abstractmethod
    def new_bench(self, store: Store | None = None) -> Bench:
        """A broker to talk to."""

    @abstractmethod
    def begin(self) -> None:
        """Both log in; one subscribes."""

    @abstractmethod
    def send(self, count: int, durable: bool) -> None:
        """Messages, in one read."""

    @abstractmethod
    def acknowledge(self) -> int:
        """All that came, in one read; how many."""

    def say(self, number: int, chunk: bytes) -> bytes:
        """Says it, and keeps it to be said again; what came back on the same connection."""
        self.said.append((number, chunk))
        self.bench.turn(number, chunk, self._written)
        return self.taken(number)

    def taken(self, number: int) -> bytes:
        """What came since this was last asked."""
        found = bytes(self.answered[number])
        self.answered[number].clear()
        return found

    def _written(self, to: int, piece: bytes) -> None:
        self.answered[to].extend(piece)

    def hold(self, messages: int, durable: bool) -> list[tuple[int, bytes]]:
        """What is said in such a conversation from its beginning.

        Raises:
            RuntimeError: not all messages came.
        """
        self.begin()
        for _ in range(messages // TURN):
            self.send(TURN, durable)
            if (came := self.acknowledge()) != TURN:
                raise RuntimeError(f"{TURN} messages were sent in a turn, and {came} came")
        return self.said


class StompConversation(Conversation):
    """STOMP 1.2: SEND, RECEIPT for durable ones, MESSAGE, ACK of each."""

    def new_bench(self, store: Store | None = None) -> Bench:
        return Bench(StompProtocol(), store, self.settings)

    def begin(self) -> None:
        login = f"CONNECT\naccept-version:1.2\nhost:h\nlogin:{USER}\npasscode:{PASSWORD}\n\n\0".encode()
        for number in (CLIENT, READER):
            if not self.say(number, login).startswith(b"CONNECTED"):
                raise RuntimeError("the login was refused")
        self.say(
            READER,
            f"SUBSCRIBE\nid:0\ndestination:{QUEUE_NAME}\nack:client-individual\nconsumer-window-size:-1\n\n\0".encode(),
        )

    @staticmethod
    def frame(durable: bool) -> bytes:
        """One SEND."""
        more = "persistent:true\nreceipt:r\n" if durable else ""
        head = f"SEND\ndestination:{QUEUE_NAME}\ncontent-length:{len(BODY)}\n{more}\n"
        return head.encode() + BODY + b"\0"

    def send(self, count: int, durable: bool) -> None:
        receipts = self.say(CLIENT, self.frame(durable) * count).count(b"RECEIPT\n")
        if receipts != (count if durable else 0):
            raise RuntimeError(f"{receipts} receipts came for {count} messages")

    def acknowledge(self) -> int:
        heads = self.taken(READER).split(b"\nack:")[1:]
        frames = [b"ACK\nid:%b\n\n\0" % head[: head.index(b"\n")] for head in heads]
        self.say(READER, b"".join(frames))
        return len(frames)


class OpenWireConversation(Conversation):
    """OpenWire 12: ActiveMQTextMessage, Response for durable ones, MessageDispatch, MessageAck of each."""

    def __init__(self, settings: BrokerSettings = ONE_QUEUE) -> None:
        super().__init__(settings)
        self._form = WireFormat(12)
        self._decoders = [OpenWireDecoder(OpenWireLimits()) for _ in (CLIENT, READER)]
        self._names = [f"ID:client-{number}" for number in (CLIENT, READER)]
        self._commands = 0
        self._messages = 0
        self._destination = Destination(QUEUE_NAME, QUEUE)
        self._consumer = ConsumerId(self._names[READER], 1, 1)

    def new_bench(self, store: Store | None = None) -> Bench:
        return Bench(OpenWireProtocol(), store, self.settings)

    def begin(self) -> None:
        for number in (CLIENT, READER):
            self._log_in(number)
        producer = ProducerInfo()
        producer.producer_id = ProducerId(self._names[CLIENT], 1, 1)
        self._tell(CLIENT, producer)
        consumer = ConsumerInfo()
        consumer.consumer_id = self._consumer
        consumer.destination = self._destination
        consumer.prefetch_size = 1_000
        self._tell(READER, consumer)

    def _log_in(self, number: int) -> None:
        decoder = self._decoders[number]
        info = WireFormatInfo()
        theirs = decoder.next_frame(self.say(number, encode_wire_format_info(info)))
        if not isinstance(theirs, WireFormatInfo):
            raise RuntimeError(f"a {type(theirs).__name__} came where a WireFormatInfo was due")
        self._form = agree(info, theirs).form
        decoder.agreed(self._form)
        login = ConnectionInfo()
        login.connection_id = ConnectionId(self._names[number])
        login.client_id = self._names[number]
        login.user_name = USER
        login.password = PASSWORD
        self._tell(number, login)
        session = SessionInfo()
        session.session_id = SessionId(self._names[number], 1)
        self._tell(number, session)

    def _encoded(self, command: Command, answer: bool) -> bytes:
        self._commands += 1
        command.command_id = self._commands
        command.response_required = answer
        return encode_command(command, self._form)

    def _tell(self, number: int, command: Command) -> None:
        decoder = self._decoders[number]
        answer = decoder.next_frame(self.say(number, self._encoded(command, answer=True)))
        while answer is not None:
            if isinstance(answer, ExceptionResponse):
                raise RuntimeError(f"the broker refused {type(command).__name__}: {answer.exception}")
            answer = decoder.next_frame()

    def _message(self) -> MessageCommand:
        self._messages += 1
        message = MessageCommand(TEXT_MESSAGE)
        message.producer_id = ProducerId(self._names[CLIENT], 1, 1)
        message.message_id = MessageId(message.producer_id, self._messages)
        message.destination = self._destination
        message.priority = 4
        message.timestamp = 1_700_000_000_000
        message.content = len(BODY).to_bytes(4, "big") + BODY
        return message

    def send(self, count: int, durable: bool) -> None:
        chunk = b""
        for _ in range(count):
            message = self._message()
            message.persistent = durable
            chunk += self._encoded(message, answer=durable)
        answers = self._frames(CLIENT, self.say(CLIENT, chunk))
        if len(answers) != (count if durable else 0):
            raise RuntimeError(f"{len(answers)} responses came for {count} messages")

    def _frames(self, number: int, chunk: bytes) -> list[object]:
        decoder = self._decoders[number]
        found: list[object] = []
        frame = decoder.next_frame(chunk)
        while frame is not None:
            if not isinstance(frame, BrokerInfo):
                found.append(frame)
            frame = decoder.next_frame()
        return found

    def acknowledge(self) -> int:
        came = [one for one in self._frames(READER, self.taken(READER)) if isinstance(one, MessageDispatch)]
        chunk = b""
        for dispatch in came:
            command = MessageAck()
            command.destination = self._destination
            command.consumer_id = self._consumer
            command.ack_type = STANDARD_ACK
            message_id = dispatch.message.message_id if dispatch.message is not None else None
            command.first_message_id = command.last_message_id = message_id
            command.message_count = 1
            chunk += self._encoded(command, answer=False)
        self.say(READER, chunk)
        return len(came)
