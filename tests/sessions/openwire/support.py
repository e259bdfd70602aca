"""OpenWire sessions on a real engine without sockets: a test plays the client and has time and syncs in its hand."""

from typing import Unpack

from delosmq.model.conversion import Conversions
from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.host import Peer
from delosmq.sessions.openwire.server.protocol import OpenWireProtocol
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    STANDARD_ACK,
    TEXT_MESSAGE,
    ConnectionError,
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    ExceptionResponse,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    ProducerInfo,
    RemoveInfo,
    Response,
    SessionInfo,
    TransactionInfo,
)
from delosmq.wire.openwire.conversion import OpenWireConversion
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree, encode_wire_format_info
from delosmq.wire.openwire.structures import (
    QUEUE,
    TOPIC,
    Command,
    ConnectionId,
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
    SessionId,
    Structure,
    Throwable,
    TransactionId,
)
from delosmq.wire.openwire.wire_format import WireFormat
from delosmq.wire.stomp.conversion import StompConversion
from tests.sessions.support import PASSWORD, USER, Bench, Host, Options

ACCEPTOR = AcceptorSettings("openwire", "localhost", 0, ("OPENWIRE",))

SECURITY = "java.lang.SecurityException"
INVALID_DESTINATION = "javax.jms.InvalidDestinationException"
JMS = "javax.jms.JMSException"
XA = "javax.transaction.xa.XAException"
ROLLED_BACK = "javax.jms.TransactionRolledBackException"


def queue(name: str) -> Destination:
    return Destination(name, QUEUE)


def topic(name: str) -> Destination:
    return Destination(name, TOPIC)


class OpenWireBench(Bench["Client"]):
    """A bench with clients of OpenWire."""

    def __init__(self, *, acceptor: AcceptorSettings = ACCEPTOR, **options: Unpack[Options]) -> None:
        self.protocol = OpenWireProtocol()
        conversions = Conversions({"stomp": StompConversion(), "openwire": OpenWireConversion()})
        super().__init__(acceptor, conversions, self.protocol.events, **options)

    def negotiate(self, info: WireFormatInfo | None = None) -> "Client":
        """A client that has negotiated and read the BrokerInfo."""
        client = Client(self)
        client.negotiate(info or WireFormatInfo())
        client.take()
        return client

    def connect(self, name: str = "", *, client_id: str = "", manageable: bool = False, user: str = USER) -> "Client":
        """A client that is logged in and has read all that belongs to it."""
        client = self.negotiate()
        client.log_in(name or f"ID:client-{len(self.clients)}", client_id=client_id, user=user, manageable=manageable)
        client.take()
        return client


class Client:
    """The peer of one session."""

    def __init__(self, bench: OpenWireBench) -> None:
        self.bench = bench
        self.host = Host()
        self.name = ""
        peer = Peer("10.0.0.1:5000", f"c{len(bench.clients) + 1}")
        self.session = bench.protocol.open(self.host, peer, bench.acceptor, bench.services, bench.now)
        self.reads = True
        self.form = WireFormat(12)
        self._decoder = OpenWireDecoder(OpenWireLimits())
        self._raw = b""
        self._received: list[Structure] = []
        self._command_id = 0
        self._next_value = 0
        self._sequence = 0
        self._sessions: set[int] = set()
        bench.clients.append(self)

    def is_read(self) -> bool:
        """Whether the session wants bytes."""
        return self.session.reading

    # -- bytes -----------------------------------------------------------------------------------------------------

    def send(self, chunk: bytes) -> None:
        """Bytes from the peer, and the tick that follows."""
        self.session.receive(chunk, self.bench.now)
        self.bench.tick()

    def write(self) -> bool:
        """What the server does at the end of a tick, when the peer reads."""
        if not self.reads:
            return False
        outbox = self.session.outbox
        wrote = False
        while chunk := outbox.take():
            wrote = True
            self._raw += chunk
            outbox.confirm_written()
        touched = wrote and self.session.handle_written(self.bench.now)
        if self.host.wakes:
            self.host.wakes = 0
            self.session.handle_timer(self.bench.now)
            touched = True
        return touched

    def drop(self) -> None:
        """The socket breaks."""
        self.session.connection_lost()
        self.bench.clients.remove(self)
        self.bench.tick()

    def take(self) -> list[Structure]:
        """What came since the last call."""
        raw, self._raw = self._raw, b""
        frame = self._decoder.next_frame(raw)
        while frame is not None:
            self._received.append(frame)
            frame = self._decoder.next_frame()
        taken = self._received
        self._received = []
        return taken

    def keep(self, received: list[Structure]) -> None:
        """What the next `take` begins with."""
        self._received = received

    def agreed(self, form: WireFormat) -> None:
        """What comes from now on has this form."""
        self.form = form
        self._decoder.agreed(form)

    # -- commands --------------------------------------------------------------------------------------------------

    def negotiate(self, info: WireFormatInfo) -> WireFormatInfo:
        """Both WireFormatInfos; gives the broker's."""
        self.bench.tick()
        (theirs,) = self.take()
        assert isinstance(theirs, WireFormatInfo)
        self.agreed(agree(info, theirs).form)
        self.send(encode_wire_format_info(info))
        return theirs

    def log_in(
        self, name: str, *, client_id: str = "", user: str = USER, password: str = PASSWORD, manageable: bool = False
    ) -> Response:
        """The ConnectionInfo and its answer."""
        self.name = name
        info = ConnectionInfo()
        info.connection_id = ConnectionId(name)
        info.client_id = client_id
        info.user_name = user
        info.password = password
        info.manageable = manageable
        return self.call(info)

    def tell(self, command: Command) -> None:
        """A command for which no answer is awaited."""
        self.feed(command)
        self.bench.tick()

    def feed(self, command: Command, *, answer: bool = False) -> int:
        """A command, and no tick. Gives its id."""
        self._command_id += 1
        command.command_id = self._command_id
        command.response_required = answer
        self.session.receive(encode_command(command, self.form), self.bench.now)
        return self._command_id

    def ask(self, command: Command) -> list[Response]:
        """A command that wants an answer; the answers that came at once, taken out of what was received."""
        command_id = self.feed(command, answer=True)
        self.bench.tick()
        return self.answers(command_id)

    def answers(self, command_id: int) -> list[Response]:
        """The answers to one command, taken out of what was received."""
        received = self.take()
        found = [one for one in received if isinstance(one, Response) and one.correlation_id == command_id]
        self._received = [one for one in received if one not in found]
        return found

    def call(self, command: Command) -> Response:
        """A command and its one answer."""
        (answer,) = self.ask(command)
        return answer

    def ok(self, command: Command) -> None:
        """A command that succeeds."""
        answer = self.call(command)
        assert not isinstance(answer, ExceptionResponse), throwable(answer).message

    def refused(self, command: Command) -> Throwable:
        """A command that fails; the connection goes on."""
        exception = throwable(self.call(command))
        assert not self.host.finished
        return exception

    def error(self) -> Throwable:
        """The ConnectionError that was the last thing received."""
        last = self.take()[-1]
        assert isinstance(last, ConnectionError), last
        assert last.exception is not None
        return last.exception

    # -- what applications do ------------------------------------------------------------------------------------

    def number(self) -> int:
        self._next_value += 1
        return self._next_value

    def session_info(self, value: int = 1) -> SessionInfo:
        info = SessionInfo()
        info.session_id = SessionId(self.name, value)
        return info

    def open_session(self, value: int) -> None:
        """What a consumer or producer belongs to, unless it is there or nobody is logged in."""
        if self.name and value not in self._sessions:
            self._sessions.add(value)
            self.tell(self.session_info(value))

    def consumer_info(self, destination: Destination, prefetch: int = 1000, *, session: int = 1) -> ConsumerInfo:
        """A consumer to be, of a session that is there."""
        self.open_session(session)
        info = ConsumerInfo()
        info.consumer_id = ConsumerId(self.name, session, self.number())
        info.destination = destination
        info.prefetch_size = prefetch
        return info

    def consume(self, destination: Destination, prefetch: int = 1000) -> "Reader":
        """A consumer."""
        return self.subscribe(self.consumer_info(destination, prefetch))

    def subscribe(self, info: ConsumerInfo) -> "Reader":
        self.ok(info)
        return Reader(self, info)

    def durable(self, name: str, destination: Destination, prefetch: int = 100) -> "Reader":
        """A durable subscription."""
        info = self.consumer_info(destination, prefetch)
        info.subscription_name = name
        return self.subscribe(info)

    def producer_info(self, destination: Destination | None, window: int = 0, *, session: int = 1) -> ProducerInfo:
        """A producer to be, of a session that is there."""
        self.open_session(session)
        info = ProducerInfo()
        info.producer_id = ProducerId(self.name, session, self.number())
        info.destination = destination
        info.window_size = window
        return info

    def text(
        self, destination: Destination, body: str, transaction: TransactionId | None = None, *, persistent: bool = True
    ) -> MessageCommand:
        """A text message, not sent."""
        self._sequence += 1
        command = MessageCommand(TEXT_MESSAGE)
        command.producer_id = ProducerId(self.name, 1, 1)
        command.message_id = MessageId(command.producer_id, self._sequence)
        command.destination = destination
        command.transaction_id = transaction
        command.persistent = persistent
        command.priority = 4
        command.timestamp = self.bench.clock.wall_ms()
        encoded = body.encode()
        command.content = len(encoded).to_bytes(4, "big") + encoded
        return command

    def publish(self, destination: Destination, bodies: str, transaction: TransactionId | None = None) -> None:
        """Text messages, one for each word, each confirmed."""
        for body in bodies.split():
            self.ok(self.text(destination, body, transaction))

    def begin(self) -> LocalTransactionId:
        """A local transaction."""
        transaction = LocalTransactionId(self.number(), ConnectionId(self.name))
        self.tell(self.transaction_info(transaction, 0))
        return transaction

    def transaction_info(self, transaction: TransactionId | None, kind: int) -> TransactionInfo:
        info = TransactionInfo()
        info.connection_id = ConnectionId(self.name)
        info.transaction_id = transaction
        info.type = kind
        return info

    def remove_info(self, object_id: Structure | None, last_delivered: int = -1) -> RemoveInfo:
        info = RemoveInfo()
        info.object_id = object_id
        info.last_delivered_sequence_id = last_delivered
        return info

    def dispatches(self) -> list[MessageDispatch]:
        """The MessageDispatches that came since the last call; everything else stays."""
        received = self.take()
        found = [one for one in received if isinstance(one, MessageDispatch)]
        self._received = [one for one in received if not isinstance(one, MessageDispatch)]
        return found


class Reader:
    """One consumer of a client, and what it got."""

    def __init__(self, client: Client, info: ConsumerInfo) -> None:
        self.client = client
        self.info = info
        assert info.consumer_id is not None
        self.id: ConsumerId = info.consumer_id
        self.got: list[MessageDispatch] = []
        self.ended = 0
        """How many empty dispatches came."""

    def take(self) -> list[MessageDispatch]:
        """The dispatches with a message that came for it since the last call. `got` keeps all."""
        received = self.client.take()
        rest: list[Structure] = []
        found: list[MessageDispatch] = []
        for one in received:
            if (
                not isinstance(one, MessageDispatch)
                or one.consumer_id is None
                or one.consumer_id.key() != self.id.key()
            ):
                rest.append(one)
            elif one.message is None:
                self.ended += 1
            else:
                found.append(one)
        self.client.keep(rest)
        self.got += found
        return found

    def bodies(self) -> str:
        """The bodies that came since the last call; "r2" behind one that was delivered twice before."""
        return " ".join(
            text_of(one) + (f"r{one.redelivery_counter}" if one.redelivery_counter else "") for one in self.take()
        )

    def sequence(self, index: int) -> int:
        """The broker's sequence of a message it got."""
        return self.message_id(index).broker_sequence_id

    def message_id(self, index: int) -> MessageId:
        message = self.got[index].message
        assert message is not None
        assert message.message_id is not None
        return message.message_id

    def ack(
        self,
        kind: int,
        last: int | MessageId,
        *,
        first: int | None = None,
        count: int = 1,
        transaction: TransactionId | None = None,
        cause: Throwable | None = None,
    ) -> MessageAck:
        """An acknowledgement, not sent; messages by their index in `got`. ``first`` None is null."""
        command = MessageAck()
        command.destination = self.info.destination
        command.consumer_id = self.id
        command.transaction_id = transaction
        command.ack_type = kind
        command.first_message_id = None if first is None else self.message_id(first)
        command.last_message_id = last if isinstance(last, MessageId) else self.message_id(last)
        command.message_count = count
        command.poison_cause = cause
        return command

    def done(self, first: int, last: int | None = None, transaction: TransactionId | None = None) -> None:
        """STANDARD for one message or a range, confirmed."""
        end = first if last is None else last
        self.client.ok(self.ack(STANDARD_ACK, end, first=first, count=end - first + 1, transaction=transaction))

    def close(self, last_delivered: int = -1) -> None:
        self.client.ok(self.client.remove_info(self.id, last_delivered))


def change(client: Client, destination: Destination, operation: int) -> DestinationInfo:
    """A destination that is to be added or removed."""
    info = DestinationInfo()
    info.connection_id = ConnectionId(client.name)
    info.destination = destination
    info.operation_type = operation
    return info


def text_of(dispatch: MessageDispatch) -> str:
    """The body of a text message."""
    message = dispatch.message
    assert message is not None
    assert message.content is not None
    return message.content[4:].decode()


def throwable(answer: Structure) -> Throwable:
    """What an ExceptionResponse says."""
    assert isinstance(answer, ExceptionResponse), answer
    assert answer.exception is not None
    return answer.exception


def code_of(exception: Throwable) -> str:
    """The class, without its package, and the code of DelosMQ."""
    text = exception.message or ""
    class_name = (exception.class_name or "").rpartition(".")[2]
    return f"{class_name} {text[:7]}"
