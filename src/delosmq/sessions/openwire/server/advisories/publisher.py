"""Publishes advisories as messages to the listeners of their topic.

Each subscriber has a queue of its own, so an advisory goes right there and no address is made for its topic.
Source: AdvisoryBroker.fireAdvisory of ActiveMQ Classic.
"""

from typing import Final

from delosmq.engine.api import Consumer, EngineBroker
from delosmq.model.errors import BrokerError, InvariantError, MisuseError
from delosmq.model.ids import WallMs
from delosmq.model.message import MULTICAST, Message
from delosmq.model.ports import Clock
from delosmq.model.properties import STRING_KIND, TypedValue
from delosmq.model.wildcard import WildcardPattern
from delosmq.sessions.host import SessionHost
from delosmq.wire.openwire.commands import MessageCommand
from delosmq.wire.openwire.heads import BODY_KINDS, PROTOCOL_TAGS, encode_head, measure, stored_body
from delosmq.wire.openwire.primitives import encode_map
from delosmq.wire.openwire.structures import TOPIC, BrokerId, ConsumerId, Destination, MessageId, ProducerId, Structure
from delosmq.wire.openwire.wire_format import NEWEST_VERSION

Properties = dict[str, TypedValue]

NO_PROPERTIES: Final[Properties] = {}

_TYPE: Final = "Advisory"
_DEFAULT_URL: Final = "tcp://localhost:61616"
_PROTOCOL: Final = "OPENWIRE"


class AdvisoryListener:
    """One subscriber's queue on one advisory topic, or on all that a wildcard stands for.

    Attributes:
        address: what it subscribed to.
        pattern: for many topics; None for one.
        host: of its connection.
    """

    def __init__(self, address: str, consumer: Consumer, consumer_id: ConsumerId, host: SessionHost) -> None:
        self.address = address
        self.consumer = consumer
        self.consumer_id = consumer_id
        self.host = host
        self.pattern: WildcardPattern | None = None


class AdvisoryPublisher:
    """Knows who listens, and tells them."""

    def __init__(self, broker: EngineBroker, clock: Clock, broker_id: BrokerId, broker_name: str) -> None:
        self._broker = broker
        self._clock = clock
        self._producer: ProducerId = ProducerId(broker_id.value, -1, 1)
        self._sequence: int = 0
        self._by_topic: dict[str, list[AdvisoryListener]] = {}
        self._wild: list[tuple[WildcardPattern, AdvisoryListener]] = []
        self._topics: dict[str, list[str]] = {}
        self._origin: Properties = {
            "originBrokerId": TypedValue(STRING_KIND, broker_id.value),
            "originBrokerName": TypedValue(STRING_KIND, broker_name),
            "originBrokerURL": TypedValue(STRING_KIND, _url_of(broker)),
        }

    # -- who listens -----------------------------------------------------------------------------------------------

    def join(self, listener: AdvisoryListener) -> None:
        pattern = WildcardPattern(listener.address, self._broker.settings.wildcards)
        if pattern.is_literal:
            self._by_topic.setdefault(listener.address, []).append(listener)
        else:
            self._wild.append((pattern, listener))
            listener.pattern = pattern
        self._topics.setdefault(listener.consumer_id.key(), []).append(listener.address)

    def leave(self, consumer_id: ConsumerId) -> None:
        """A subscriber is gone."""
        key = consumer_id.key()
        addresses = self._topics.pop(key, None)
        if addresses is None:
            return
        for address in addresses:
            left = [one for one in self._by_topic.pop(address, []) if one.consumer_id.key() != key]
            if left:
                self._by_topic[address] = left
        self._wild = [(pattern, one) for pattern, one in self._wild if one.consumer_id.key() != key]

    def listeners_of(self, topic: str) -> list[AdvisoryListener]:
        found = self._by_topic.get(topic, _NO_LISTENERS)
        if self._wild:
            found = found + [one for pattern, one in self._wild if pattern.matches(topic)]
        return found

    def hears(self, listener: AdvisoryListener, topic: str) -> bool:
        pattern = listener.pattern
        return listener.address == topic if pattern is None else pattern.matches(topic)

    def any_listener(self) -> AdvisoryListener | None:
        """A consumer that listens to anything."""
        for listeners in self._by_topic.values():
            return listeners[0]
        return self._wild[0][1] if self._wild else None

    # -- telling -----------------------------------------------------------------------------------------------------

    def tell(
        self,
        topic: str,
        told: Structure | None,
        properties: Properties = NO_PROPERTIES,
        only: AdvisoryListener | None = None,
    ) -> int:
        """Sends an advisory about ``told`` to all who hear its topic, or to one of them; none that can't be encoded, as
        texts in it are the peer's. Gives to how many."""
        listeners = self.listeners_of(topic) if only is None else [only]
        if not listeners:
            return 0
        self._sequence += 1
        command = MessageCommand()
        command.destination = Destination(topic, TOPIC)
        command.producer_id = self._producer
        command.message_id = MessageId(self._producer, self._sequence)
        command.type = _TYPE
        command.data_structure = told
        if only is not None:
            command.target_consumer_id = only.consumer_id
        command.marshalled_properties = encode_map({**self._origin, **properties})
        try:
            measure(command, NEWEST_VERSION)
        except MisuseError:
            return 0
        self._send(command, listeners)
        return len(listeners)

    def pass_on(self, topic: str, command: MessageCommand) -> None:
        """Sends a message itself to all who hear a topic."""
        listeners = self.listeners_of(topic)
        if not listeners:
            return
        command.destination = Destination(topic, TOPIC)
        try:
            measure(command, NEWEST_VERSION)
        except MisuseError:
            return
        self._send(command, listeners)

    def _send(self, command: MessageCommand, listeners: list[AdvisoryListener]) -> None:
        now = self._clock.wall_ms()
        head = encode_head(command, NEWEST_VERSION, now)
        for listener in listeners:
            queue = listener.consumer.queue
            if queue is None or queue.deleted:
                continue
            message = Message(
                queue.address.name,
                PROTOCOL_TAGS[NEWEST_VERSION],
                head,
                stored_body(command),
                body_kind=BODY_KINDS[command.code],
                priority=command.priority,
                timestamp_ms=WallMs(now),
                expires_at_ms=command.expiration,
            )
            try:
                self._broker.producers.send(message, queue_name=queue.name, routing=MULTICAST)
            except InvariantError:
                raise
            except BrokerError:
                # When its address is full a subscriber misses one; it is worth no failure of what it tells of.
                continue


_NO_LISTENERS: Final[list[AdvisoryListener]] = []


def text(value: str) -> TypedValue:
    """A property."""
    return TypedValue(STRING_KIND, value)


def _url_of(broker: EngineBroker) -> str:
    """Where clients find this broker: at its first acceptor for them."""
    for acceptor in broker.settings.acceptors:
        if _PROTOCOL in acceptor.protocols:
            return f"tcp://{acceptor.host}:{acceptor.port}"
    return _DEFAULT_URL
