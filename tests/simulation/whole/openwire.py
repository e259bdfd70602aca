"""Clients that speak OpenWire to real sessions, without sockets, and receive with a consumer for each message.

Acknowledgements wait for an answer or don't, as with the Java client; each is followed by the next consumer, whose
answer need not wait for it. Some consumers make queues and durable subscriptions: after the answer those are there.
"""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.host import Peer
from delosmq.sessions.names import durable_queue_name
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    BYTES_MESSAGE,
    STANDARD_ACK,
    TEXT_MESSAGE,
    ConnectionError,
    ConnectionInfo,
    ConsumerInfo,
    ExceptionResponse,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    RemoveInfo,
    RemoveSubscriptionInfo,
    Response,
    SessionInfo,
    ShutdownInfo,
)
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree, encode_wire_format_info
from delosmq.wire.openwire.structures import (
    QUEUE,
    TOPIC,
    Command,
    ConnectionId,
    ConsumerId,
    Destination,
    MessageId,
    ProducerId,
    SessionId,
    Structure,
)
from tests.sessions.support import Host
from tests.simulation.broker_world import Reference, body_of
from tests.simulation.whole.stomp import PASSWORD, USER

if TYPE_CHECKING:
    from tests.simulation.whole.life import Life

ACCEPTOR = AcceptorSettings("openwire", "localhost", 0, ("OPENWIRE",), support_advisory=False)
ADDRESSES = ("jobs", "prices", "solo", "ranks")
QUEUES = ("jobs", "prices", "solo", "late")
PREFETCH = 3
MOST = 2
"""Peers at a time."""
SUBSCRIPTIONS = ("x", "y")
CHAT = "chat"
"""The topic of the durable subscriptions, to which nothing is sent."""
_SESSION = 1

Learn = Callable[[], None]


class Reader:
    """The consumer of the moment."""

    def __init__(self, queue: str, consumer_id: ConsumerId) -> None:
        self.queue = queue
        self.id = consumer_id
        self.seen: list[tuple[int, MessageId]] = []


class OpenWirePeer:
    """One connection and what its client knows."""

    def __init__(self, life: "Life", index: int) -> None:
        self.life = life
        self.index = index
        self.name = f"ID:o{index}-{life.number()}"
        self.client_id = f"app{index}"
        self.gone = False
        self.leaves = False
        self.host = Host()
        self.reader: Reader | None = None
        self.sent: set[Reference] = set()
        self.asked: dict[int, tuple[Command, Learn]] = {}
        self.made = 0
        self.commands = 0
        now = life.clock.monotonic_ns()
        peer = Peer(self.name, self.name)
        self.session = life.openwire_protocol.open(self.host, peer, ACCEPTOR, life.services, now)
        self.decoder = OpenWireDecoder(OpenWireLimits())
        self.raw = b""
        self.session.receive(encode_wire_format_info(WireFormatInfo()), now)
        chunk = self.session.outbox.take()
        self.session.outbox.confirm_written()
        theirs = self.decoder.next_frame(chunk)
        assert isinstance(theirs, WireFormatInfo)
        self.form = agree(WireFormatInfo(), theirs).form
        self.decoder.agreed(self.form)
        self._log_in()

    def _log_in(self) -> None:
        info = ConnectionInfo()
        info.connection_id = ConnectionId(self.name)
        info.client_id = self.client_id
        info.user_name, info.password = USER, PASSWORD
        self.ask(info)
        session = SessionInfo()
        session.session_id = SessionId(self.name, _SESSION)
        self.feed(session)

    def left(self) -> None:
        """The broker has answered the end."""
        self.life.knowledge.confirmed |= self.sent
        self.feed(ShutdownInfo())

    # -- bytes ---------------------------------------------------------------------------------------------------

    def feed(self, command: Command) -> None:
        """A command, cut in two now and then."""
        self.commands += 1
        command.command_id = self.commands
        frame = encode_command(command, self.form)
        now = self.life.clock.monotonic_ns()
        cut = self.life.random.randrange(len(frame))
        self.session.receive(frame[:cut], now)
        self.session.receive(frame[cut:], now)

    def ask(self, command: Command, learn: Learn = lambda: None) -> None:
        """A command that wants an answer; ``learn`` runs when it comes, unless it is a refusal."""
        command.response_required = True
        self.asked[self.commands + 1] = (command, learn)
        self.feed(command)

    def write(self) -> None:
        """What the server does at the end of a turn."""
        outbox = self.session.outbox
        while chunk := outbox.take():
            outbox.confirm_written()
            self.raw += chunk
        now = self.life.clock.monotonic_ns()
        self.session.handle_written(now)
        if self.host.wakes:
            self.host.wakes = 0
            self.session.handle_timer(now)
        raw, self.raw = self.raw, b""
        frame = self.decoder.next_frame(raw)
        while frame is not None:
            self._received(frame)
            frame = self.decoder.next_frame()
        if self.host.finished:
            self.lose()

    def lose(self) -> None:
        """The socket is gone."""
        if not self.gone:
            self.gone = True
            self.session.connection_lost()
            self.life.openwire_peers.remove(self)

    # -- what comes ----------------------------------------------------------------------------------------------

    def _received(self, frame: Structure) -> None:
        if isinstance(frame, Response):
            _, learn = self.asked.pop(frame.correlation_id)
            if isinstance(frame, ExceptionResponse):
                self.life.errors.append(str(frame.exception and frame.exception.message))
            else:
                learn()
        elif isinstance(frame, ConnectionError):
            self.life.errors.append(str(frame.exception and frame.exception.message))
        elif isinstance(frame, MessageDispatch) and frame.message is not None:
            self._delivered(frame, frame.message)

    def _delivered(self, frame: MessageDispatch, message: MessageCommand) -> None:
        content = message.content or b""
        body = content[4:] if message.code == TEXT_MESSAGE else content
        number = int(body[: body.index(b":")])
        knowledge = self.life.knowledge
        assert body == knowledge.bodies[number], f"message {number} arrives with another body"
        reader = self.reader
        if reader is None or frame.consumer_id is None or frame.consumer_id.key() != reader.id.key():
            return  # under way when its consumer went
        assert message.message_id is not None
        knowledge.seen(number, reader.queue)
        reader.seen.append((number, message.message_id))

    # -- commands ------------------------------------------------------------------------------------------------

    def consumer(self, destination: Destination) -> ConsumerInfo:
        """A consumer to be."""
        self.made += 1
        info = ConsumerInfo()
        info.consumer_id = ConsumerId(self.name, _SESSION, self.made)
        info.destination = destination
        info.prefetch_size = PREFETCH
        return info

    def end(self, consumer_id: ConsumerId | None, last: int = -1) -> None:
        """The end of a consumer, which the client does not wait for."""
        info = RemoveInfo()
        info.object_id = consumer_id
        info.last_delivered_sequence_id = last
        self.feed(info)


# -- steps -------------------------------------------------------------------------------------------------------


def connect(life: "Life", rng: Random) -> str:
    taken = {peer.index for peer in life.openwire_peers}
    if len(taken) >= MOST:
        return ""
    peer = OpenWirePeer(life, min({*range(MOST)} - taken))
    life.openwire_peers.append(peer)
    return f"{peer.name} connects by OpenWire"


def lose(life: "Life", rng: Random) -> str:
    peer = _able(life, rng)
    if peer is None:
        return ""
    peer.lose()
    return f"{peer.name} loses its connection"


def leave(life: "Life", rng: Random) -> str:
    """The connection ends in order: then all is stored that it sent."""
    peer = _able(life, rng)
    if peer is None:
        return ""
    peer.reader = None
    info = RemoveInfo()
    info.object_id = ConnectionId(peer.name)
    info.last_delivered_sequence_id = -1
    peer.leaves = True
    peer.ask(info, peer.left)
    return f"{peer.name} closes its connection"


def _able(life: "Life", rng: Random) -> OpenWirePeer | None:
    able = [peer for peer in life.openwire_peers if peer.session.reading and not peer.host.finished and not peer.leaves]
    return rng.choice(able) if able else None


def send(life: "Life", rng: Random) -> str:
    peer = _able(life, rng)
    addresses = [name for name in ADDRESSES if name in life.catalogue.addresses]
    if peer is None:
        return ""
    address = rng.choice(addresses)
    number = life.number()
    knowledge = life.knowledge
    body = body_of(number, rng.choice([10, 300, 1_500]))
    knowledge.bodies[number] = body
    knowledge.durable.add(number)
    queues = life.receivers(address, "blue")
    message = MessageCommand(BYTES_MESSAGE)
    message.producer_id = ProducerId(peer.name, _SESSION, 1)
    message.message_id = MessageId(message.producer_id, number)
    message.destination = Destination(address, QUEUE)
    message.persistent = True
    message.priority = 4
    message.timestamp = life.clock.wall_ms()
    message.content = body
    words = f"{peer.name} sends message {number} to {address}"
    places = {(number, queue) for queue in queues}
    if rng.random() < 0.5:
        peer.feed(message)
        peer.sent |= places
        return f"{words} and does not wait"
    peer.ask(message, lambda: knowledge.confirmed.update(places))
    return words


def receive(life: "Life", rng: Random) -> str:
    """As `JmsTemplate.receive`: the consumer of the last call acknowledges and goes, another one comes."""
    peer = _able(life, rng)
    if peer is None:
        return ""
    words = [peer.name]
    reader = peer.reader
    if reader is not None:
        peer.reader = None
        words.append(_acknowledge(peer, reader, rng))
    queue = rng.choice([name for name in QUEUES if name in life.broker.queues])
    info = peer.consumer(Destination(queue, QUEUE))
    assert info.consumer_id is not None
    peer.reader = Reader(queue, info.consumer_id)
    peer.ask(info)
    return " ".join([*words, f"consumes from {queue}"])


def _acknowledge(peer: OpenWirePeer, reader: Reader, rng: Random) -> str:
    """The first message that it saw, if any; the others go back."""
    if not reader.seen:
        peer.end(reader.id)
        return "closes its consumer and"
    number, message_id = reader.seen[0]
    place = (number, reader.queue)
    ack = MessageAck()
    ack.destination = Destination(reader.queue, QUEUE)
    ack.consumer_id = reader.id
    ack.ack_type = STANDARD_ACK
    ack.first_message_id = ack.last_message_id = message_id
    ack.message_count = 1
    knowledge = peer.life.knowledge
    knowledge.ack_issued.add(place)
    waits = rng.random() < 0.4
    if waits:
        peer.ask(ack, lambda: knowledge.ack_confirmed.add(place))
    else:
        peer.feed(ack)
    peer.end(reader.id, message_id.broker_sequence_id)
    return f"acknowledges {number} of {reader.queue}{'' if waits else ' without waiting'}, closes its consumer and"


def _ask_about(peer: OpenWirePeer, queue: str, command: Command, *, there: bool) -> None:
    """A command whose answer says that a queue is there, or gone."""
    knowledge = peer.life.knowledge
    version = 0
    peer.ask(command, lambda: knowledge.promise(queue, version, there=there))
    version = knowledge.versions.get(queue, 0)


def make(life: "Life", rng: Random) -> str:
    """A consumer that makes its queue, or finds that another has just made it."""
    peer = _able(life, rng)
    if peer is None:
        return ""
    durable = rng.random() < 0.5
    name = rng.choice(SUBSCRIPTIONS)
    info = peer.consumer(Destination(CHAT, TOPIC) if durable else Destination(f"made.{name}", QUEUE))
    if durable:
        info.subscription_name = name
    queue = durable_queue_name(peer.client_id, name) if durable else f"made.{name}"
    _ask_about(peer, queue, info, there=True)
    if durable or rng.random() < 0.5:
        peer.end(info.consumer_id)
    return f"{peer.name} consumes from {queue}, which may be new"


def unsubscribe(life: "Life", rng: Random) -> str:
    peer = _able(life, rng)
    if peer is None:
        return ""
    info = RemoveSubscriptionInfo()
    info.client_id = peer.client_id
    info.subscription_name = rng.choice(SUBSCRIPTIONS)
    queue = durable_queue_name(peer.client_id, info.subscription_name)
    _ask_about(peer, queue, info, there=False)
    return f"{peer.name} ends its subscription {info.subscription_name}"
