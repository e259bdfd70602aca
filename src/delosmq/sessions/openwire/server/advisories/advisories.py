"""Advisories: what the broker tells about connections, destinations, consumers and producers, as messages on topics.

A late subscriber is told first what is there already. Clients need those about temporary destinations: they refuse to
send to one they have not heard of. Source: AdvisoryBroker and AdvisorySupport of ActiveMQ Classic.
"""

from collections.abc import Mapping
from typing import Final

from delosmq.engine.api import Consumer, EngineBroker
from delosmq.model.conversion import Conversions
from delosmq.model.message import ANYCAST
from delosmq.model.ports import Clock
from delosmq.model.properties import INT_KIND, TypedValue
from delosmq.model.wildcard import WildcardPattern
from delosmq.sessions.host import SessionHost
from delosmq.sessions.openwire.server.advisories import topics
from delosmq.sessions.openwire.server.advisories.destinations import DestinationAdvisories, destination_info
from delosmq.sessions.openwire.server.advisories.messages import MessageAdvisories
from delosmq.sessions.openwire.server.advisories.pending_advisories import (
    AdvisoryBatch,
    PendingAdvisories,
    PendingAdvisory,
    PresentAdvisories,
    PresentObjects,
    SingleAdvisory,
)
from delosmq.sessions.openwire.server.advisories.publisher import AdvisoryListener, AdvisoryPublisher, text
from delosmq.sessions.openwire.server.destinations import (
    TEMPORARY_TOPICS,
    OpenWireDestinations,
    OpenWireTarget,
    parts_of,
    target_of_queue,
)
from delosmq.wire.openwire.commands import (
    ADD_DESTINATION,
    REMOVE_DESTINATION,
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
)
from delosmq.wire.openwire.structures import TOPIC, BrokerId, ConnectionId, ConsumerId, Destination, Id, Structure

_NAMES_A_TIME: Final = 10
"""Names compared with wildcards that take as long as one advisory."""

# What a new listener is told of.
_CONNECTION: Final = 0
_TEMPORARY: Final = 1
_CONSUMER: Final = 2
_PRODUCER: Final = 3
_NO_KIND: Final = 4
_NOTHING: Final[Mapping[str, Structure]] = {}


class Advisories(PresentObjects):
    """What is told to all connections of one broker.

    Attributes:
        destinations, messages: told of by the engine; `go_on` passes it on.
    """

    def __init__(
        self, broker: EngineBroker, clock: Clock, conversions: Conversions, *, broker_id: BrokerId, broker_name: str
    ) -> None:
        self._broker = broker
        self._names = OpenWireDestinations(broker.settings.wildcards, broker.queues)
        self._connections: dict[str, ConnectionInfo] = {}
        self._consumers: dict[str, ConsumerInfo] = {}
        self._producers: dict[str, ProducerInfo] = {}
        self._producer_counts: dict[str, int] = {}
        self._temporary: dict[str, DestinationInfo] = {}
        self._publisher: AdvisoryPublisher = AdvisoryPublisher(broker, clock, broker_id, broker_name)
        self._notices: PendingAdvisories = PendingAdvisories(self._publisher)
        self.destinations: DestinationAdvisories = DestinationAdvisories(broker, self._publisher, self._notices)
        self.messages: MessageAdvisories = MessageAdvisories(
            broker,
            self._publisher,
            self._notices,
            conversions=conversions,
            broker_id=broker_id.value,
            producers=self._producers,
        )

    def go_on(self) -> None:
        """Tells what the engine told meanwhile. Called whenever a connection is woken."""
        self._notices.go_on()

    # -- connections -------------------------------------------------------------------------------------------------

    def connection_opened(self, info: ConnectionInfo, client_ip: str) -> None:
        if info.connection_id is None:
            return
        told = _without_password(info, client_ip)
        self._connections[info.connection_id.value] = told
        self._publisher.tell(topics.CONNECTIONS, told)

    def connection_closed(self, info: ConnectionInfo) -> None:
        connection_id = info.connection_id
        if connection_id is not None and self._connections.pop(connection_id.value, None) is not None:
            self._publisher.tell(topics.CONNECTIONS, _removal(connection_id))

    # -- temporary destinations --------------------------------------------------------------------------------------

    def temporary_made(self, destination: Destination, owner: ConnectionId | None) -> None:
        key = destination.qualified_name()
        if key not in self._temporary:
            self._temporary[key] = destination_info(destination, owner, ADD_DESTINATION)
            self._publisher.tell(topics.of_destinations(destination), self._temporary[key])

    def temporary_ended(self, destination: Destination) -> None:
        made = self._temporary.pop(destination.qualified_name(), None)
        if made is not None:
            told = destination_info(destination, made.connection_id, REMOVE_DESTINATION)
            self._publisher.tell(topics.of_destinations(destination), told)

    # -- consumers ---------------------------------------------------------------------------------------------------

    def consumer_opened(self, info: ConsumerInfo) -> None:
        destination = info.destination
        if info.consumer_id is None or destination is None or topics.is_advisory(destination):
            return
        self._consumers[info.consumer_id.key()] = info
        self._tell_consumers(destination, info)

    def consumer_closed(self, info: ConsumerInfo) -> None:
        consumer_id = info.consumer_id
        destination = info.destination
        if consumer_id is None or destination is None or self._consumers.pop(consumer_id.key(), None) is None:
            return
        if self._may_publish(destination):
            self._tell_consumers(destination, _removal(consumer_id))

    def subscription_removed(self, info: RemoveSubscriptionInfo, address: str) -> None:
        """A durable subscription is gone for good."""
        destination = Destination(address, TOPIC)
        if not topics.is_advisory(destination):
            self._tell_consumers(destination, info)

    def consumer_slow(self, info: ConsumerInfo, destination: Destination) -> None:
        """A consumer is full while messages wait for it."""
        if info.consumer_id is not None and not topics.is_advisory(destination):
            properties = {"consumerId": text(info.consumer_id.key())}
            self._publisher.tell(topics.of_all_kinds("SlowConsumer", destination), info, properties)

    def _may_publish(self, destination: Destination) -> bool:
        # A listener that hears that a temporary destination is gone knows the rest.
        return not destination.is_temporary or destination.qualified_name() in self._temporary

    def _tell_consumers(self, destination: Destination, told: Structure) -> None:
        if self._publisher.listeners_of(topics.of_consumers(destination)):
            self._notices.tell(_Counted(self, destination, told))

    def tell_count(self, destination: Destination, told: Structure, count: int, only: AdvisoryListener | None) -> int:
        """Tells of a consumer, and how many there are of its destination. Gives to how many listeners."""
        return self._publisher.tell(
            topics.of_consumers(destination), told, {"consumerCount": TypedValue(INT_KIND, count)}, only
        )

    def count_consumers(self, target: OpenWireTarget) -> int:
        """Of all protocols, on what is no wildcard of queues."""
        broker = self._broker
        if target.routing != ANYCAST and not target.queue_name:
            address = broker.addresses.get(target.address)
            return 0 if address is None else sum([len(queue.holders) for queue in address.multicast])
        queue = broker.queues.get(target.queue_name or target.address)
        return 0 if queue is None else len(queue.holders)

    # -- producers ---------------------------------------------------------------------------------------------------

    def producer_opened(self, info: ProducerInfo) -> None:
        """A producer is there; those without a destination are not told of."""
        if info.producer_id is None or info.destination is None or topics.is_advisory(info.destination):
            return
        self._producers[info.producer_id.key()] = info
        for part in parts_of(info.destination):
            name = part.qualified_name()
            self._producer_counts[name] = self._producer_counts.get(name, 0) + 1
            self._tell_producers(part, info)

    def producer_closed(self, info: ProducerInfo) -> None:
        producer_id = info.producer_id
        if producer_id is None or info.destination is None or self._producers.pop(producer_id.key(), None) is None:
            return
        for part in parts_of(info.destination):
            name = part.qualified_name()
            count = self._producer_counts.pop(name, 0) - 1
            if count > 0:
                self._producer_counts[name] = count
            if self._may_publish(part):
                self._tell_producers(part, _removal(producer_id))

    def _tell_producers(self, part: Destination, told: Structure) -> None:
        if self._publisher.listeners_of(topics.of_producers(part)):
            self._notices.tell(self._producer_advisory(part, told))

    def _producer_advisory(
        self, part: Destination, told: Structure, only: AdvisoryListener | None = None
    ) -> SingleAdvisory:
        count = TypedValue(INT_KIND, self._producer_counts.get(part.qualified_name(), 0))
        return SingleAdvisory(
            self._publisher, topics.of_producers(part), told, properties={"producerCount": count}, only=only
        )

    # -- who listens -------------------------------------------------------------------------------------------------

    def listen(self, consumer_id: ConsumerId, address: str, consumer: Consumer, host: SessionHost) -> None:
        """A consumer of an advisory topic begins: is told what is there already, if it asks for that by name and not
        only hears it as one of many."""
        listener = AdvisoryListener(address, consumer, consumer_id, host)
        self._publisher.join(listener)
        kind = _kind_of(address)
        if self._present_of(kind):
            self._notices.tell(PresentAdvisories(self, listener, kind), needed=True)
        self.destinations.listen(listener)

    def leave(self, consumer_id: ConsumerId) -> None:
        """A subscriber of an advisory topic is gone."""
        self._publisher.leave(consumer_id)
        self._notices.wake()

    def keys(self, kind: int) -> list[str]:
        return list(self._present_of(kind))

    def _present_of(self, kind: int) -> Mapping[str, Structure]:
        if kind == _CONNECTION:
            return self._connections
        if kind == _TEMPORARY:
            return self._temporary
        if kind == _CONSUMER:
            return self._consumers
        return self._producers if kind == _PRODUCER else _NOTHING

    def present(self, kind: int, key: str, listener: AdvisoryListener) -> PendingAdvisory | None:
        publisher = self._publisher
        if kind == _CONNECTION:
            connection = self._connections.get(key)
            if connection is not None:
                publisher.tell(topics.CONNECTIONS, connection, only=listener)
        elif kind == _TEMPORARY:
            info = self._temporary.get(key)
            if info is not None and info.destination is not None:
                topic = topics.of_destinations(info.destination)
                if listener.address == topic:
                    publisher.tell(topic, info, only=listener)
        elif kind == _CONSUMER:
            consumer = self._consumers.get(key)
            destination = None if consumer is None else consumer.destination
            if consumer is None or destination is None:
                return None
            if publisher.hears(listener, topics.of_consumers(destination)):
                return _Counted(self, destination, consumer, listener)
        else:
            producer = self._producers.get(key)
            if producer is None or producer.destination is None:
                return None
            told: list[SingleAdvisory] = []
            for part in parts_of(producer.destination):
                if publisher.hears(listener, topics.of_producers(part)):
                    told.append(self._producer_advisory(part, producer, listener))
            return AdvisoryBatch(told) if told else None
        return None

    def begin_count(self, destination: Destination) -> tuple[list[OpenWireTarget], list[WildcardPattern], list[str]]:
        """What is to be counted of a destination: what it names, and queues that match one of some patterns."""
        plain: list[OpenWireTarget] = []
        patterns: list[WildcardPattern] = []
        for target in self._names.targets_of(destination):
            if target.wildcard and target.routing == ANYCAST:
                patterns.append(self._names.pattern_of(target))
            else:
                plain.append(target)
        return plain, patterns, list(self._broker.queues) if patterns else []

    def count_matching(self, name: str) -> int:
        """The consumers of a queue for which a wildcard may stand."""
        queue = self._broker.queues.get(name)
        return 0 if queue is None or not queue.holders or target_of_queue(queue) is None else len(queue.holders)


class _Counted(PendingAdvisory):
    """Tells of a consumer, once those of its destination are counted: a wildcard stands for any number of queues.

    Source: AdvisoryBroker.fireConsumerAdvisory of ActiveMQ Classic, which counts each queue once.
    """

    def __init__(
        self, advisories: Advisories, destination: Destination, told: Structure, only: AdvisoryListener | None = None
    ) -> None:
        self._advisories = advisories
        self._destination = destination
        self._told = told
        self._only = only
        self._begun: bool = False
        self._plain: set[str] = set()
        self._patterns: list[WildcardPattern] = []
        self._names: list[str] = []
        self._at: int = 0
        self._count: int = 0

    def tell(self, room: int) -> int:
        if not self._begun:
            room -= self._begin()
        looks = max(room, 1) * _NAMES_A_TIME
        names = self._names
        while self._at < len(names) and looks > 0:
            name = names[self._at]
            self._at += 1
            looks -= 1
            count = self._advisories.count_matching(name)
            if not count or name in self._plain:
                continue
            for pattern in self._patterns:
                looks -= 1
                if pattern.matches(name):
                    self._count += count
                    break
        if self._at < len(names):
            return 0
        told = self._advisories.tell_count(self._destination, self._told, self._count, self._only)
        return max(looks // _NAMES_A_TIME - told, 1)

    def _begin(self) -> int:
        """Gives what it took of the room."""
        self._begun = True
        plain, self._patterns, self._names = self._advisories.begin_count(self._destination)
        for target in plain:
            if target.routing == ANYCAST or target.queue_name:
                self._plain.add(target.queue_name or target.address)
            self._count += self._advisories.count_consumers(target)
        return (len(plain) + len(self._patterns)) // _NAMES_A_TIME


def _kind_of(address: str) -> int:
    """What there may be already of what is told there."""
    if address == topics.CONNECTIONS:
        return _CONNECTION
    if address in TEMPORARY_TOPICS:
        return _TEMPORARY
    if address.startswith(topics.CONSUMERS):
        return _CONSUMER
    return _PRODUCER if address.startswith(topics.PRODUCERS) else _NO_KIND


def _removal(object_id: Id) -> RemoveInfo:
    removal = RemoveInfo()
    removal.object_id = object_id
    return removal


def _without_password(info: ConnectionInfo, client_ip: str) -> ConnectionInfo:
    told = ConnectionInfo()
    told.connection_id = info.connection_id
    told.client_id = info.client_id
    told.user_name = info.user_name
    told.password = ""
    told.manageable = info.manageable
    told.fault_tolerant = info.fault_tolerant
    told.failover_reconnect = info.failover_reconnect
    told.client_ip = client_ip  # not what it says itself
    return told
