"""The answers of one session, in one order with its deliveries.

No delivery may follow the answer of a STOP or of the end of a consumer, as the client clears its buffers there; so what
waits for the disk holds up what comes after it. An answer leaves once what its client may conclude from it is synced:

- that a message is stored or acknowledged, or a transaction ended: everything recorded till then (`confirm`);
- that a session or consumer is gone, and so all is stored that it sent without wanting answers: that (`part`);
- that an address or queue is there or gone: what is recorded about those (`grant`);
- nothing: `tell`.

Source: ServerSessionPacketHandler of Artemis; ResponseCache of its client for what an answer must say.
"""

from delosmq.engine.api import Log
from delosmq.model.errors import BrokerError
from delosmq.model.ids import NOTHING_DURABLE, Position
from delosmq.sessions.core.server import errors
from delosmq.sessions.outbox import Outbox
from delosmq.sessions.stream import NO_SEQUENCE, Stream
from delosmq.wire.core.codec import encode_packet
from delosmq.wire.core.connection_packets import ExceptionPacket, NullResponse
from delosmq.wire.core.error_codes import CoreErrorCode
from delosmq.wire.core.packet import Packet


class SessionReplies:
    """Answers on one channel.

    Attributes:
        stream: where they go; those of consumers share its order.
    """

    def __init__(self, outbox: Outbox, log: Log, *, channel: int, version: int) -> None:
        self.stream: Stream = Stream(replies=True)
        self.channel = channel
        self.version = version
        self._outbox = outbox
        self._log = log

    def write(self, packet: Packet, position: Position) -> None:
        """Sends a packet that depends on all up to ``position``."""
        packet.channel = self.channel
        self._outbox.put(self.stream, position, encode_packet(packet, self.version), NO_SEQUENCE)

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
