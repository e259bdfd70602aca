"""Advisories about messages: expired, dead, consumed, delivered to the broker, discarded, without a consumer, and about
addresses that are full.

Which of them are told is up to the address-settings of the destination, but for the first two, as in ActiveMQ Classic.
Source: AdvisoryBroker and BaseDestination there.
"""

from typing import Final

from delosmq.engine.api import EngineBroker, Queue, Slot, consumers_of
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError, InvariantError
from delosmq.model.message import ANYCAST, MULTICAST, Message
from delosmq.model.properties import INT_KIND, LONG_KIND, TypedValue
from delosmq.model.settings import AddressSettings
from delosmq.model.virtual_topics import CLASSIC, virtual_topic_of
from delosmq.sessions.openwire.server.advisories import topics
from delosmq.sessions.openwire.server.advisories.pending_advisories import PendingAdvisories, PendingAdvisory
from delosmq.sessions.openwire.server.advisories.publisher import NO_PROPERTIES, AdvisoryPublisher, Properties, text
from delosmq.sessions.openwire.server.consumers.subscription import Source
from delosmq.sessions.openwire.server.destinations import queue_destination_of
from delosmq.wire.openwire.commands import MessageCommand, ProducerInfo
from delosmq.wire.openwire.dispatch import DispatchEncoder, Route
from delosmq.wire.openwire.structures import QUEUE, TEMP_QUEUE, TEMP_TOPIC, TOPIC, ConsumerId, Destination
from delosmq.wire.openwire.wire_format import NEWEST_VERSION, PLAIN_FORMATS

_ORIGINAL_ID: Final = "orignalMessageId"
_ORIGINAL_DESTINATION: Final = "orignalDestination"
"""Spelt as in ActiveMQ."""
_MEMORY: Final = "memory"


class MessageAdvisories:
    """Tells of messages.

    Attributes:
        producers: by their ids.
    """

    def __init__(
        self,
        broker: EngineBroker,
        publisher: AdvisoryPublisher,
        notices: PendingAdvisories,
        *,
        conversions: Conversions,
        broker_id: str,
        producers: dict[str, ProducerInfo],
    ) -> None:
        self._broker = broker
        self._publisher = publisher
        self._notices = notices
        self._producers = producers
        self._encoder = DispatchEncoder(PLAIN_FORMATS[NEWEST_VERSION], ConsumerId(), conversions, broker_id)

    # -- what the engine tells ---------------------------------------------------------------------------------------

    def expired(self, queue_name: str, slot: Slot, moved: bool) -> None:
        """A message grew too old; Classic's dead-letter queue is where it goes then."""
        queue = self._broker.queues.get(queue_name)
        if queue is None:
            return
        destination = self._place_of(queue, slot.message)
        self._note(topics.of_both_kinds("Expired", destination), slot.message, destination, with_id=True)
        if moved:
            self._note(topics.of_all_kinds("MessageDLQd", destination), slot.message, destination)

    def dead_lettered(self, queue_name: str, slot: Slot) -> None:
        """A message is where dead letters go."""
        queue = self._broker.queues.get(queue_name)
        if queue is not None:
            destination = self._place_of(queue, slot.message)
            self._note(topics.of_all_kinds("MessageDLQd", destination), slot.message, destination)

    def acknowledged(self, queue_id: int, slot: Slot) -> None:
        """A message was consumed; not told of subscriptions that go with their consumer. The queue may have been
        deleted before the transaction that acknowledged it was committed."""
        bindings = self._broker.bindings
        queue = bindings.by_id.get(queue_id) or bindings.deleted.get(queue_id)
        if queue is None or queue.temporary or not queue.traits.advisory_for_consumed:
            return
        destination = self._place_of(queue, slot.message)
        self._note(topics.of_all_kinds("MessageConsumed", destination), slot.message, destination, named=True)

    def routed(self, message: Message, queue_names: list[str]) -> None:
        """A message is in its queues."""
        settings = self._settings_of(message)
        if settings is None or not (settings.advisory_for_delivery or settings.advisory_if_no_consumers):
            return  # told for others
        told: set[str] = set()
        consumed = False
        virtual = False
        # A large commit goes on over several turns: a queue may have been deleted meanwhile.
        queues = [queue for name in queue_names if (queue := self._broker.queues.get(name)) is not None]
        for queue in queues:
            destination = self._place_of(queue, message)
            consumed = consumed or len(queue.holders) > 0
            if destination.name not in told:
                told.add(destination.name)
                self._delivered(settings, message, destination)
                virtual = virtual or virtual_topic_of(queue.name, CLASSIC) == message.address
        if virtual and message.address not in told:
            self._delivered_to_virtual_topic(settings, message)
        if not consumed and queues:
            self._no_consumer(settings, message, self._place_of(queues[0], message))

    def unrouted(self, message: Message) -> None:
        """No queue takes a message."""
        settings = self._settings_of(message)
        address = self._broker.addresses.get(message.address)
        if settings is None or address is None:
            return
        topic = MULTICAST in address.routing_types
        code = (TEMP_TOPIC if topic else TEMP_QUEUE) if address.owner else (TOPIC if topic else QUEUE)
        destination = Destination(message.address, code)
        self._delivered(settings, message, destination)
        self._no_consumer(settings, message, destination)

    def replaced(self, queue_name: str, slot: Slot) -> None:
        """A ring has pushed a message out."""
        queue = self._broker.queues.get(queue_name)
        if queue is None or not queue.address.settings.advisory_for_discarding_messages:
            return
        destination = self._place_of(queue, slot.message)
        properties: Properties = {}
        if queue.settings.routing_type == MULTICAST:
            properties["discardedCount"] = TypedValue(INT_KIND, queue.counters.replaced)
        for consumer in consumers_of(queue)[:1]:
            port = consumer.port
            if isinstance(port, Source) and port.subscription.info.consumer_id is not None:
                properties["consumerId"] = text(port.subscription.info.consumer_id.key())
        topic = topics.of_all_kinds("MessageDiscarded", destination)
        self._note(topic, slot.message, destination, named=True, properties=properties)

    def dropped(self, message: Message) -> None:
        """A full address drops a message (address-full-policy DROP)."""
        settings = self._settings_of(message)
        if settings is not None and settings.advisory_for_discarding_messages:
            destination = self._sent_to(message)
            self._note(topics.of_all_kinds("MessageDiscarded", destination), message, destination, named=True)

    def full(self, message: Message) -> None:
        """A send meets a full address."""
        settings = self._settings_of(message)
        if settings is None or not (settings.advisory_when_full or settings.advisory_for_fast_producers):
            return
        destination = self._sent_to(message)
        address = self._broker.addresses[message.address]
        if settings.advisory_when_full:
            topic = topics.of_all_kinds("FULL", destination)
            if self._publisher.listeners_of(topic):
                usage: Properties = {
                    "usageName": text(_MEMORY),
                    "usageCount": TypedValue(LONG_KIND, address.account.used_bytes),
                }
                self._notices.add(_Plain(self._publisher, topic, None, usage))
        if settings.advisory_for_fast_producers:
            self._fast_producer(message, destination)

    def _fast_producer(self, message: Message, destination: Destination) -> None:
        topic = topics.of_all_kinds("FastProducer", destination)
        if not self._publisher.listeners_of(topic):
            return
        command = self.command_of(message, destination)
        producer_id = None if command is None else command.producer_id
        if producer_id is None:
            return
        producer = self._producers.get(producer_id.key())
        if producer is not None:
            properties: Properties = {"producerId": text(producer_id.key())}
            self._notices.add(_Plain(self._publisher, topic, producer, properties))

    def _delivered(self, settings: AddressSettings, message: Message, destination: Destination) -> None:
        if settings.advisory_for_delivery:
            self._note(topics.of_all_kinds("MessageDelivered", destination), message, destination, named=True)

    def _delivered_to_virtual_topic(self, settings: AddressSettings, message: Message) -> None:
        """Classic tells of each queue and then of the topic, unless a queue was what the sender named."""
        topic = Destination(message.address, TOPIC)
        if not self._publisher.listeners_of(topics.of_all_kinds("MessageDelivered", topic)):
            return
        command = self.command_of(message, topic)
        named = None if command is None else command.destination
        if named is None or not named.is_queue:
            self._delivered(settings, message, topic)

    def _no_consumer(self, settings: AddressSettings, message: Message, destination: Destination) -> None:
        if message.durable or not settings.advisory_if_no_consumers:
            return
        topic = topics.of_both_kinds("NoConsumer", destination)
        if self._publisher.listeners_of(topic):
            about = _About(self, self._publisher, topic, message, destination)
            about.itself = True
            self._notices.add(about)

    def _note(
        self,
        topic: str,
        message: Message,
        destination: Destination,
        *,
        with_id: bool = False,
        named: bool = False,
        properties: Properties = NO_PROPERTIES,
    ) -> None:
        """Has a message told of. ``with_id``: with its id as a property; ``named``: with its destination as well."""
        if topics.is_advisory(destination) or not self._publisher.listeners_of(topic):
            return
        settings = self._settings_of(message)
        about = _About(self, self._publisher, topic, message, destination)
        about.with_body = settings is not None and settings.include_body_for_advisory
        about.with_id = with_id or named
        about.named = named
        about.properties = properties
        self._notices.add(about)

    # -- for notices -------------------------------------------------------------------------------------------------

    def command_of(self, message: Message, destination: Destination) -> MessageCommand | None:
        """The message as clients know it; None for one that can't be read."""
        try:
            return self._encoder.command(message, Route(destination), 0, 0).message
        except InvariantError:
            raise
        except BrokerError:
            return None

    def _settings_of(self, message: Message) -> AddressSettings | None:
        address = self._broker.addresses.get(message.address)
        return None if address is None else address.settings

    def _sent_to(self, message: Message) -> Destination:
        address = self._broker.addresses[message.address]
        if address.anycast:
            return self._place_of(address.anycast[0], message)
        queue = ANYCAST in address.routing_types and MULTICAST not in address.routing_types
        code = (TEMP_QUEUE if queue else TEMP_TOPIC) if address.owner else (QUEUE if queue else TOPIC)
        return Destination(message.address, code)

    def _place_of(self, queue: Queue, message: Message) -> Destination:
        """The destination of a message in a queue: for subscriptions the topic."""
        if queue.owner:
            return Destination(queue.address.name, TEMP_QUEUE if queue.settings.routing_type == ANYCAST else TEMP_TOPIC)
        destination = queue_destination_of(queue)
        return Destination(message.address, TOPIC) if destination is None else destination


class _Plain(PendingAdvisory):
    """An advisory without a message."""

    def __init__(
        self, publisher: AdvisoryPublisher, topic: str, told: ProducerInfo | None, properties: Properties
    ) -> None:
        self._publisher = publisher
        self._topic = topic
        self._told = told
        self._properties = properties

    def tell(self, room: int) -> int:
        self._publisher.tell(self._topic, self._told, self._properties)
        return room


class _About(PendingAdvisory):
    """An advisory about a message, or the message itself on an advisory topic."""

    def __init__(
        self,
        advisories: MessageAdvisories,
        publisher: AdvisoryPublisher,
        topic: str,
        message: Message,
        destination: Destination,
    ) -> None:
        self._advisories = advisories
        self._publisher = publisher
        self._topic = topic
        self._message = message
        self._destination = destination
        self.itself: bool = False
        self.with_body: bool = False
        self.with_id: bool = False
        self.named: bool = False
        self.properties: Properties = NO_PROPERTIES

    def tell(self, room: int) -> int:
        command = self._advisories.command_of(self._message, self._destination)
        if command is None:
            return room
        if self.itself:
            self._publisher.pass_on(self._topic, command)
            return room
        if not self.with_body:
            command.content = None
        properties = dict(self.properties)
        message_id = command.message_id
        if self.with_id and message_id is not None:
            properties[_ORIGINAL_ID] = text(message_id.key())
        if self.named:
            properties[_ORIGINAL_DESTINATION] = text(self._destination.qualified_name())
        self._publisher.tell(self._topic, command, properties)
        return room
