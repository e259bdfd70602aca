"""CORE sessions on a real engine without sockets: a test plays the client and has time and syncs in its hand."""

from typing import TypeVar, Unpack

from delosmq.model.conversion import Conversions
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.properties import BYTE_KIND, BYTES_KIND, LONG_KIND, STRING_KIND, TypedValue
from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.core.server.protocol import CoreProtocol
from delosmq.sessions.host import Peer
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.openwire.server.protocol import OpenWireProtocol
from delosmq.wire.core.codec import encode_packet
from delosmq.wire.core.connection_packets import (
    CreateSession,
    CreateSessionResponse,
    CreateSessionV2,
    ExceptionPacket,
    NullResponse,
)
from delosmq.wire.core.conversion import CoreConversion
from delosmq.wire.core.decoder import HANDSHAKE, CoreDecoder, CoreLimits
from delosmq.wire.core.error_codes import CoreErrorCode
from delosmq.wire.core.message import TEXT_TYPE, CoreMessage
from delosmq.wire.core.message_packets import SessionReceiveMessage, SessionSend
from delosmq.wire.core.packet import NEWEST_VERSION, Packet
from delosmq.wire.core.properties import FORCED_DELIVERY, ROUTING_TYPE, decode_properties, encode_properties
from delosmq.wire.core.queue_packets import CreateQueueV2
from delosmq.wire.core.session_packets import (
    Acknowledge,
    ConsumerFlowCredit,
    CreateConsumer,
    ForceConsumerDelivery,
    SessionClose,
    SessionCommit,
    SessionRollback,
    SessionStart,
    SessionStop,
)
from delosmq.wire.core.strings import encode_simple
from delosmq.wire.stomp.conversion import StompConversion
from tests.sessions.support import PASSWORD, USER, Bench, Host, Options

ACCEPTOR = AcceptorSettings("core", "localhost", 0, ("CORE",))
WINDOW = 1 << 20
Answer = TypeVar("Answer", bound=Packet)


class CoreBench(Bench["Client"]):
    """A bench with clients of CORE."""

    def __init__(self, *, acceptor: AcceptorSettings = ACCEPTOR, **options: Unpack[Options]) -> None:
        self.protocol = CoreProtocol()
        self.openwire = OpenWireProtocol()
        conversions = Conversions(
            {"stomp": StompConversion(), "openwire": self.openwire.conversion, "core": CoreConversion()}
        )
        super().__init__(acceptor, conversions, self.openwire.events, **options)
        self.names = 0

    def connect(self, version: int = NEWEST_VERSION) -> "Client":
        """A client that has said that it speaks CORE."""
        client = Client(self, version)
        client.feed_raw(HANDSHAKE)
        return client

    def session(self, version: int = NEWEST_VERSION, **wishes: object) -> "Session":
        """A session on a connection of its own; see `Client.open`."""
        return self.connect(version).open(**wishes)


class Client:
    """The peer of one connection."""

    def __init__(self, bench: CoreBench, version: int) -> None:
        self.bench = bench
        self.version = version
        self.host = Host()
        peer = Peer("10.0.0.1:5000", f"c{len(bench.clients) + 1}")
        self.machine = bench.protocol.open(self.host, peer, bench.acceptor, bench.services, bench.now)
        self.reads = True
        self.channels = 9
        self._decoder = CoreDecoder(CoreLimits())
        self._decoder.agreed(version)
        self._raw = b""
        self._received: list[Packet] = []
        bench.clients.append(self)

    @property
    def session(self) -> SessionMachine:
        return self.machine

    def feed_raw(self, chunk: bytes) -> None:
        """Bytes, and no tick."""
        self.machine.receive(chunk, self.bench.now)

    def feed(self, packet: Packet, channel: int) -> None:
        """A packet, and no tick."""
        packet.channel = channel
        self.feed_raw(encode_packet(packet, self.version))

    def tell(self, packet: Packet, channel: int) -> None:
        """A packet, and the tick that follows."""
        self.feed(packet, channel)
        self.bench.tick()

    def write(self) -> bool:
        """What the server does at the end of a tick, when the peer reads."""
        if not self.reads:
            return False
        outbox = self.machine.outbox
        while chunk := outbox.take():
            self._raw += chunk
            outbox.confirm_written()
        touched = self.machine.handle_written(self.bench.now)
        if self.host.wakes:
            self.host.wakes = 0
            self.machine.handle_timer(self.bench.now)
            touched = True
        return touched

    def take(self, channel: int | None = None) -> list[Packet]:
        """What was received since the last call, on one channel or on all."""
        raw, self._raw = self._raw, b""
        packet = self._decoder.next_frame(raw)
        while packet is not None:
            self._received.append(packet)
            packet = self._decoder.next_frame()
        found = [one for one in self._received if channel is None or one.channel == channel]
        self._received = [one for one in self._received if one not in found]
        return found

    def keep(self, packets: list[Packet]) -> None:
        """Puts back what was taken, for others."""
        self._received += packets

    def ask(self, packet: Packet, channel: int) -> Packet:
        """A packet and its one answer."""
        self.tell(packet, channel)
        (answer,) = self.take(channel)
        return answer

    def leave(self) -> None:
        """The socket is gone."""
        self.machine.connection_lost()
        self.bench.clients.remove(self)
        self.bench.tick()

    def cut(self, arrived: float) -> list[Packet]:
        """The socket is gone; of the bytes since the last `take` only that share has arrived. Gives what came whole."""
        self._raw = self._raw[: int(len(self._raw) * arrived)]
        received = self.take()
        self.leave()
        return received

    def request(self, *, user: str = USER, password: str = PASSWORD, **wishes: object) -> CreateSession:
        """What begins a session. Wishes are fields of the packet."""
        packet = CreateSessionV2() if self.version >= 131 else CreateSession()
        self.channels += 1
        self.bench.names += 1
        packet.name = f"name-{self.bench.names}"
        packet.session_channel_id = self.channels
        packet.version = self.version
        packet.username = user
        packet.password = password
        packet.min_large_message_size = 102_400
        packet.auto_commit_sends = True
        packet.auto_commit_acks = True
        packet.window_size = -1
        for name, value in wishes.items():
            assert hasattr(packet, name), name
            setattr(packet, name, value)
        return packet

    def open(self, **wishes: object) -> "Session":
        """A session that is there."""
        request = self.request(**wishes)
        answer = self.ask(request, 1)
        assert isinstance(answer, CreateSessionResponse), code_of(answer)
        return Session(self, request)


class Session:
    """One session of a client."""

    def __init__(self, client: Client, request: CreateSession) -> None:
        self.client = client
        self.bench = client.bench
        self.request = request
        self.channel = request.session_channel_id
        self.consumers = 0
        self.correlation = -1

    def tell(self, packet: Packet) -> None:
        self.client.tell(packet, self.channel)

    def feed(self, packet: Packet) -> None:
        self.client.feed(packet, self.channel)

    def take(self) -> list[Packet]:
        return self.client.take(self.channel)

    def ask(self, packet: Packet, kind: type[Answer]) -> Answer:
        """A request and its answer, which is the only thing that came."""
        answer = self.client.ask(packet, self.channel)
        assert isinstance(answer, kind), code_of(answer)
        return answer

    def ok(self, packet: Packet) -> None:
        """A request that succeeds; what came besides stays."""
        self.tell(packet)
        received = self.take()
        answers = [one for one in received if isinstance(one, NullResponse | ExceptionPacket)]
        assert [type(one) for one in answers] == [NullResponse], [code_of(one) for one in answers]
        self.client.keep([one for one in received if one not in answers])

    def refused(self, packet: Packet) -> str:
        """A request that fails: the code and the first word of the text."""
        return code_of(self.client.ask(packet, self.channel))

    # -- what applications do ------------------------------------------------------------------------------------

    def queue(self, name: str, address: str = "", routing: int = ANYCAST, **wishes: object) -> CreateQueueV2:
        """What makes a queue."""
        packet = CreateQueueV2()
        packet.address = address or name
        packet.queue_name = name
        packet.durable = True
        packet.requires_response = True
        packet.routing_type = routing
        packet.max_consumers = -1
        for wish, value in wishes.items():
            setattr(packet, wish, value)
        return packet

    def subscribe(self, name: str, topic: str, **wishes: object) -> None:
        self.ok(self.queue(name, topic, MULTICAST, **wishes))

    def message(
        self, address: str, body: str, routing: int = ANYCAST, *, durable: bool = True, **properties: object
    ) -> CoreMessage:
        message = CoreMessage()
        message.address = address
        message.type = TEXT_TYPE
        message.durable = durable
        message.timestamp = self.bench.clock.wall_ms()
        message.body = b"\1" + encode_simple_string(body)
        entries = {name: typed(value) for name, value in properties.items()}
        if routing:
            entries[ROUTING_TYPE] = TypedValue(BYTE_KIND, 1 if routing == ANYCAST else 0)
        message.encode_head(encode_properties(entries))
        return message

    def send_packet(
        self, address: str, body: str, routing: int = ANYCAST, *, answer: bool = True, **properties: object
    ) -> SessionSend:
        packet = SessionSend(self.message(address, body, routing, **properties))
        packet.requires_response = answer
        if answer:
            self.correlation -= 1
            packet.correlation_id = self.correlation
        return packet

    def send(self, address: str, bodies: str, routing: int = ANYCAST) -> None:
        """Messages, one for each word, each confirmed."""
        for body in bodies.split():
            self.ok(self.send_packet(address, body, routing))

    def publish(self, address: str, bodies: str) -> None:
        self.send(address, bodies, MULTICAST)

    def consumer(self, queue: str, credits: int = WINDOW, **wishes: object) -> "Reader":
        """A consumer with credits."""
        packet = CreateConsumer()
        packet.id = self.consumers
        self.consumers += 1
        packet.queue_name = queue
        for name, value in wishes.items():
            setattr(packet, name, value)
        self.tell(packet)
        reader = Reader(self, packet.id)
        if credits:
            reader.flow(credits)
        return reader

    def start(self) -> None:
        self.tell(SessionStart())

    def stop(self) -> None:
        self.ok(SessionStop())

    def commit(self) -> None:
        self.ok(SessionCommit())

    def roll_back(self, *, first_counts: bool = False) -> None:
        packet = SessionRollback()
        packet.consider_last_message_as_delivered = first_counts
        self.ok(packet)

    def close(self) -> None:
        self.ok(SessionClose())


class Reader:
    """One consumer of a session."""

    def __init__(self, session: Session, consumer_id: int) -> None:
        self.session = session
        self.id = consumer_id
        self.got: list[SessionReceiveMessage] = []

    def flow(self, credits: int) -> None:
        self.session.tell(ConsumerFlowCredit(self.id, credits))

    def take(self) -> list[SessionReceiveMessage]:
        """What came for it since the last call, markers included. `got` keeps all."""
        received = self.session.take()
        found = [one for one in received if isinstance(one, SessionReceiveMessage) and one.consumer_id == self.id]
        self.session.client.keep([one for one in received if one not in found])
        self.got += [one for one in found if not is_marker(one)]
        return found

    def bodies(self) -> str:
        """What came since the last call: "x2" behind a second delivery, "|" for a marker."""
        return " ".join(
            "|" if is_marker(one) else text_of(one) + (f"x{one.delivery_count}" if one.delivery_count != 1 else "")
            for one in self.take()
        )

    def ack(self, index: int, *, answer: bool = False) -> Acknowledge:
        return Acknowledge(self.id, self.got[index].message.message_id, answer)

    def done(self, index: int) -> None:
        """All up to this one, confirmed."""
        self.session.ok(self.ack(index, answer=True))

    def force(self, sequence: int) -> None:
        self.session.tell(ForceConsumerDelivery(self.id, sequence))


def encode_simple_string(text: str) -> bytes:
    encoded = encode_simple(text)
    return len(encoded).to_bytes(4, "big") + encoded


def typed(value: object) -> TypedValue:
    assert isinstance(value, str | bytes | int)
    if isinstance(value, str):
        return TypedValue(STRING_KIND, value)
    return TypedValue(BYTES_KIND if isinstance(value, bytes) else LONG_KIND, value)


def is_marker(packet: SessionReceiveMessage) -> bool:
    return FORCED_DELIVERY in decode_properties(packet.message.properties)


def text_of(packet: SessionReceiveMessage) -> str:
    return packet.message.body[5:].decode("utf-16-le")


def code_of(answer: Packet) -> str:
    """The code of an EXCEPTION by its name, and that of DelosMQ."""
    assert isinstance(answer, ExceptionPacket), answer
    return f"{CoreErrorCode(answer.error_code).name} {(answer.text or '')[:7]}"
