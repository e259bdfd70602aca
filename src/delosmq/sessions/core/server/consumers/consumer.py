"""One consumer of a session: what the engine delivers as frames, and how much of it its client takes.

Source: ServerConsumerImpl of Artemis, with its LargeMessageDeliverer: of large messages one at a time, in parts that
each need credit.
"""

from typing import Final

from delosmq.engine.api import Consumer, EngineBroker, Slot
from delosmq.model.errors import BrokerError
from delosmq.model.ids import NOTHING_DURABLE
from delosmq.sessions.core.server.consumers.consumer_credit import FrameCredit
from delosmq.sessions.core.server.session_port import SessionPort
from delosmq.sessions.stream import NO_SEQUENCE, DeliveryPort, FrameParts, Stream
from delosmq.wire.core.dispatch import ReceiveEncoder
from delosmq.wire.core.session_packets import DisconnectConsumer

LEAST_PART_BYTES: Final = 1_024
MOST_PART_BYTES: Final = 1 << 20
"""Of a large message, whatever the client asks for."""


class LargeDelivery:
    """A large message on its way.

    Attributes:
        at: so much of its body is.
    """

    def __init__(self, slot: Slot, body: bytes) -> None:
        self.slot = slot
        self.body = body
        self.at: int = 0


class CoreConsumer(DeliveryPort):
    """Encodes what the engine delivers.

    Attributes:
        id: as its client calls it.
        consumer: set right after subscribing, before anything is delivered.
        is_browser: it consumes nothing, and gets messages of a session that is not started as well.
        settles_itself: what it gets is acknowledged once it is sent (preAcknowledge).
        markers: for which the client waits, by the number that it gave.
    """

    def __init__(
        self,
        consumer_id: int,
        session: SessionPort,
        broker: EngineBroker,
        *,
        encoder: ReceiveEncoder,
        part_bytes: int,
        is_browser: bool,
        settles_itself: bool,
    ) -> None:
        self.id = consumer_id
        self.session: SessionPort = session
        self.credit: FrameCredit = FrameCredit()
        self.is_browser = is_browser
        self.settles_itself = settles_itself
        self.stream: Stream = Stream(settles_itself, session.replies.stream)
        self.consumer: Consumer | None = None
        self.queue_name: str = ""
        self.markers: list[int] = []
        self._replies = session.replies
        self._broker = broker
        self._encoder = encoder
        self._part_bytes: int = min(max(part_bytes, LEAST_PART_BYTES), MOST_PART_BYTES)
        self._large: LargeDelivery | None = None

    def attach(self, consumer: Consumer) -> None:
        """Completes it once the engine knows it."""
        self.consumer = consumer
        self.stream.owner_id = consumer.id
        self.queue_name = "" if consumer.queue is None else consumer.queue.name

    def is_served(self) -> bool:
        """Whether its session gets messages for it."""
        return self.is_browser or self.session.started

    # -- deliveries ------------------------------------------------------------------------------------------------

    def deliver(self, slot: Slot) -> None:
        message = slot.message
        encoder = self._encoder
        if encoder.is_large(message):
            self._begin_large(slot)
        elif encoder.is_relayed(message):
            self.credit.spend(encoder.frame_bytes(message))
            self._replies.deliver(self.stream, slot, self)
        else:
            frame = b"".join(self.encode(slot, slot.delivery_count))
            self._put(slot, frame, slot.sequence)

    def encode(self, slot: Slot, delivery_count: int) -> FrameParts:
        return self._encoder.encode(slot.message, self._told(delivery_count))

    def _told(self, delivery_count: int) -> int:
        # A browser looks: that is no delivery.
        return delivery_count - 1 if self.is_browser else delivery_count

    def _put(self, slot: Slot, frame: bytes, sequence: int) -> None:
        self.credit.spend(len(frame))
        position = slot.message.position if slot.recorded else NOTHING_DURABLE
        self._replies.put(self.stream, position, frame, sequence)

    def _begin_large(self, slot: Slot) -> None:
        frame, body = self._encoder.encode_large(slot.message, self._told(slot.delivery_count))
        self._large = LargeDelivery(slot, body)
        self._put(slot, frame, NO_SEQUENCE)
        self.go_on_large()

    def go_on_large(self) -> None:
        """Sends more of a large message, as far as credit and the outbox allow."""
        large = self._large
        if large is None:
            return
        whole = False
        while not whole:
            if not (self.is_served() and self.credit.has_room() and self._replies.has_room()):
                return
            body = large.body
            parts = self._encoder.encode_part(body, large.at, self._part_bytes)
            large.at += len(parts[1])
            whole = large.at >= len(body)
            self._put(large.slot, b"".join(parts), large.slot.sequence if whole else NO_SEQUENCE)
        self._large = None

    def drop_large(self) -> None:
        """What is under way goes back."""
        self._large = None

    def has_room(self) -> bool:
        return self._large is None and self.is_served() and self._replies.has_room()

    # -- markers ---------------------------------------------------------------------------------------------------

    def mark(self, number: int) -> None:
        """Tells the client that it has all there was."""
        frame = self._encoder.encode_marker(self.queue_name, number)
        self._replies.put(self._replies.stream, NOTHING_DURABLE, frame, NO_SEQUENCE)

    def pull_unanswered(self) -> None:
        self.credit.asked = False
        for number in self.markers:
            self.mark(number)
        self.markers.clear()

    # -- ends ------------------------------------------------------------------------------------------------------

    def settle_written(self) -> bool:
        """Acknowledges what has reached the client, where that is enough. True when there was something.

        Raises:
            StorageError: it could not be recorded.
        """
        stream = self.stream
        subscribed = self.consumer
        if not self.settles_itself or not stream.written or subscribed is None or subscribed.closed:
            return False
        self._broker.consumers.acknowledge_through(subscribed, stream.written)
        stream.written = 0
        return True

    def closed_by_broker(self, reason: BrokerError) -> None:
        self._large = None
        self.pull_unanswered()
        self._replies.close_streams([self.stream])
        self._replies.tell(DisconnectConsumer(self.id))

    def connection_name(self) -> str:
        return self.session.peer.name

    def user_name(self) -> str:
        return self.session.user
