"""The answers of one session, in one order with its deliveries.

No delivery may follow the answer of a STOP or of the end of a consumer, as the client clears its buffers there; so what
waits for the disk holds up what comes after it. An answer leaves once what its client may conclude from it is synced:

- that a message is stored or acknowledged, or a transaction ended: everything recorded till then (`confirm`);
- that a session or consumer is gone, and so all is stored that it sent without wanting answers: that (`part`);
- that an address or queue is there or gone: what is recorded about those (`grant`);
- nothing: `tell`.

All of that is kept until the client has confirmed it, where it has a window. Without a connection nothing leaves.
Source: ServerSessionPacketHandler of Artemis; ResponseCache of its client for what an answer must say.
"""

from delosmq.engine.api import Log, Slot
from delosmq.model.errors import BrokerError
from delosmq.model.ids import NOTHING_DURABLE, Position
from delosmq.sessions.core.server import errors
from delosmq.sessions.core.server.reattach.replay_cache import ReplayCache, as_int
from delosmq.sessions.outbox import Outbox
from delosmq.sessions.stream import NO_SEQUENCE, DeliveryPort, Stream
from delosmq.wire.core.codec import encode_packet
from delosmq.wire.core.connection_packets import ExceptionPacket, NullResponse, PacketsConfirmed
from delosmq.wire.core.error_codes import CoreErrorCode
from delosmq.wire.core.packet import Packet


class SessionReplies:
    """Answers and deliveries on one channel.

    Attributes:
        stream: where answers go; those of consumers share its order.
        outbox: of the connection; None while there is none.
        cache: what the client has not confirmed; None when nothing is kept.
    """

    def __init__(self, outbox: Outbox, log: Log, *, channel: int, version: int, cache: ReplayCache | None) -> None:
        self.stream: Stream = Stream(replies=True)
        self.channel = channel
        self.version = version
        self.outbox: Outbox | None = outbox
        self.cache: ReplayCache | None = cache
        self._log = log

    # -- connections -----------------------------------------------------------------------------------------------

    def detach(self, streams: list[Stream]) -> None:
        """The connection is lost: `Stream.unseen` has what did not leave any more.

        Args:
            streams: of consumers.
        """
        outbox = self.outbox
        if outbox is not None:
            self.outbox = None
            every = [self.stream, *streams]
            outbox.close_streams(every)
            for stream in every:
                stream.closed = False

    def attach(self, outbox: Outbox, streams: list[Stream], last: int) -> None:
        """There is a connection again: what the client has not had leaves by it.

        Args:
            last: the number of the last packet that it had.
        """
        for stream in streams:
            stream.unseen.clear()
            stream.noted = False
        self.outbox = outbox
        cache = self.cache
        if cache is not None:
            cache.confirm(last)
            for position, entry in cache.entries():
                outbox.replay(Position(position), entry)

    def has_room(self) -> bool:
        """Whether deliveries may be added."""
        outbox = self.outbox
        return outbox is not None and outbox.has_room()

    def begin_gently(self) -> None:
        """A consumer has come; see `Outbox.begin_gently`."""
        outbox = self.outbox
        if outbox is not None:
            outbox.begin_gently()

    def close_streams(self, streams: list[Stream]) -> None:
        """Consumers are closed, and what waits for them is not wanted. Where packets are numbered it leaves all the
        same: their client leaves it out."""
        outbox = self.outbox
        if outbox is not None and self.cache is None:
            outbox.close_streams(streams)

    def confirmed(self, number: int) -> None:
        """The client has all up to a number."""
        cache = self.cache
        if cache is not None:
            cache.confirm(number)

    def close(self) -> None:
        """Nothing is kept any more."""
        cache = self.cache
        if cache is not None:
            self.cache = None
            cache.clear()

    # -- what leaves -----------------------------------------------------------------------------------------------

    def put(self, stream: Stream, position: Position, frame: bytes, sequence: int) -> None:
        """Sends a frame; ``sequence`` is that of the message delivered."""
        cache = self.cache
        if cache is not None:
            cache.add(position, (frame, None, sequence, stream, None))
        outbox = self.outbox
        if outbox is not None:
            outbox.put(stream, position, frame, sequence)

    def deliver(self, stream: Stream, slot: Slot, port: DeliveryPort) -> None:
        """Sends a delivery, which ``port`` encodes when it leaves."""
        cache = self.cache
        if cache is not None:
            position = slot.message.position if slot.recorded else NOTHING_DURABLE
            cache.add(position, (b"", slot, slot.delivery_count, stream, port))
        outbox = self.outbox
        if outbox is not None:
            outbox.deliver(stream, slot, port)

    def write(self, packet: Packet, position: Position) -> None:
        """Sends a packet that depends on all up to ``position``."""
        packet.channel = self.channel
        self.put(self.stream, position, encode_packet(packet, self.version), NO_SEQUENCE)

    def tell_handled(self, number: int) -> None:
        """Tells the client up to where its packets are handled; that is not kept."""
        outbox = self.outbox
        if outbox is not None:
            packet = PacketsConfirmed(as_int(number))
            packet.channel = self.channel
            outbox.put(self.stream, self._log.position, encode_packet(packet, self.version), NO_SEQUENCE)

    def tell(self, packet: Packet) -> None:
        """Sends a packet that says nothing about what is recorded."""
        self.write(packet, NOTHING_DURABLE)

    def grant(self, packet: Packet, request: Packet) -> None:
        """Answers a request that is about addresses and queues."""
        packet.correlation_id = request.correlation_id
        self.write(packet, self._log.bindings_position)

    def answer(self, packet: Packet, request: Packet) -> None:
        """Answers a request that may be about messages."""
        packet.correlation_id = request.correlation_id
        self.write(packet, self._log.position)

    def confirm(self, request: Packet, position: Position) -> None:
        """Says that a request was carried out, as far as ``position``."""
        answer = NullResponse()
        answer.correlation_id = request.correlation_id
        self.write(answer, position)

    def done(self, request: Packet) -> None:
        """Says that a request was carried out that is about messages."""
        self.confirm(request, self._log.position)

    def made(self, request: Packet) -> None:
        """Says that a request was carried out that is about addresses and queues."""
        self.confirm(request, self._log.bindings_position)

    def part(self, request: Packet, sent: Position) -> None:
        """Confirms the end of something, once all that its session has ``sent`` is synced."""
        self.confirm(request, max(sent, self._log.bindings_position))

    def refuse(
        self, request: Packet, error: BrokerError, *, for_limits: CoreErrorCode = CoreErrorCode.ADDRESS_FULL
    ) -> None:
        """Says why a request was not carried out."""
        answer = ExceptionPacket(int(errors.error_code_of(error, for_limits=for_limits)), errors.text_of(error))
        self.answer(answer, request)
