"""Advisories: what the broker tells about connections, destinations, consumers and producers, as messages on topics.

A late subscriber is told first what is there already. Clients need those about temporary destinations: they refuse to send
to one they have not heard of. Source: AdvisoryBroker and AdvisorySupport of ActiveMQ Classic.
"""

from collections import deque
from typing import Final

from delosmq.engine.broker import Broker
from delosmq.engine.consumer import Consumer
from delosmq.model.message import ANYCAST
from delosmq.model.ports import Clock
from delosmq.model.properties import INT_KIND, TypedValue
from delosmq.sessions.openwire import failures
from delosmq.sessions.openwire.advisory_notices import DestinationNotices, Notice, Replay, known_as, told_of
from delosmq.sessions.openwire.advisory_posting import Listener, Posting, text
from delosmq.sessions.openwire.destinations import ADVISORY_PREFIX, Destinations, parts_of
from delosmq.sessions.protocol import SessionHost
from delosmq.wire.openwire.commands import (
    ADD_DESTINATION,
    REMOVE_DESTINATION,
    TOPIC,
    BrokerId,
    ConnectionId,
    ConnectionInfo,
    ConsumerId,
    ConsumerInfo,
    Destination,
    DestinationInfo,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
    Structure,
)

CONNECTIONS: Final = f"{ADVISORY_PREFIX}Connection"
_CONSUMERS: Final = f"{ADVISORY_PREFIX}Consumer."
_PRODUCERS: Final = f"{ADVISORY_PREFIX}Producer."
_ADDRESSED: Final = 1_000
"""Notices that wait at most; what is told of more than that is lost, and the log says so."""
_TOLD_AT_ONCE: Final = 200
"""About 4 ms in pure Python."""


class Advisories:
    """What is told to all connections of one broker.

    What the engine tells comes as notices, which `go_on` carries out where the engine may be called.

    Attributes:
        posting: who listens.
        acting: whose command is being handled; None when it is nobody's.
    """

    def __init__(self, broker: Broker, clock: Clock, broker_id: BrokerId) -> None:
        self._broker = broker
        self._parts = Destinations(broker.settings.wildcards)
        self.posting: Posting = Posting(broker, clock, broker_id)
        self.acting: ConnectionId | None = None
        self._connections: dict[str, ConnectionInfo] = {}
        self._consumers: dict[str, ConsumerInfo] = {}
        self._producers: dict[str, ProducerInfo] = {}
        self._producer_counts: dict[str, int] = {}
        self._temporary: dict[str, DestinationInfo] = {}
        self.destinations: DestinationNotices = DestinationNotices(broker, self.posting)
        self._notices: deque[Notice] = deque()
        self._overrun: bool = False

    # -- connections -------------------------------------------------------------------------------------------------

    def connection_opened(self, info: ConnectionInfo, client_ip: str) -> None:
        """A connection is there."""
        if info.connection_id is None:
            return
        told = _without_password(info, client_ip)
        self._connections[info.connection_id.value] = told
        self.posting.tell(CONNECTIONS, told)

    def connection_closed(self, info: ConnectionInfo) -> None:
        """A connection is gone."""
        connection_id = info.connection_id
        if connection_id is not None and self._connections.pop(connection_id.value, None) is not None:
            self.posting.tell(CONNECTIONS, _removal(connection_id))

    # -- destinations ------------------------------------------------------------------------------------------------

    def temporary_changed(self, destination: Destination, connection_id: ConnectionId | None, *, added: bool) -> None:
        """A temporary destination was made or deleted; told at once, as its maker may use it the next moment."""
        key = destination.qualified_name()
        if added == (key in self._temporary):
            return
        info = DestinationInfo()
        info.connection_id = connection_id
        info.destination = destination
        info.operation_type = ADD_DESTINATION if added else REMOVE_DESTINATION
        if added:
            self._temporary[key] = info
        else:
            info.connection_id = self._temporary.pop(key).connection_id
        self.posting.tell(told_of(destination), info)

    # -- consumers and producers -------------------------------------------------------------------------------------

    def consumer_opened(self, info: ConsumerInfo) -> None:
        """A consumer is there."""
        destination = info.destination
        if info.consumer_id is None or destination is None or _is_advisory(destination):
            return
        self._consumers[info.consumer_id.key()] = info
        self._tell_consumers(destination, info)

    def consumer_closed(self, info: ConsumerInfo) -> None:
        """A consumer is gone."""
        consumer_id = info.consumer_id
        if consumer_id is None or info.destination is None or self._consumers.pop(consumer_id.key(), None) is None:
            return
        if not info.destination.is_temporary or info.destination.qualified_name() in self._temporary:
            self._tell_consumers(info.destination, _removal(consumer_id))

    def subscription_removed(self, info: RemoveSubscriptionInfo, address: str) -> None:
        """A durable subscription is gone for good."""
        destination = Destination(address, TOPIC)
        if not _is_advisory(destination):
            self._tell_consumers(destination, info)

    def consumer_slow(self, info: ConsumerInfo, destination: Destination) -> None:
        """A consumer is full while messages wait for it."""
        if info.consumer_id is not None and not _is_advisory(destination):
            properties = {"consumerId": text(info.consumer_id.key())}
            self.posting.tell(known_as("SlowConsumer", destination), info, properties)

    def producer_opened(self, info: ProducerInfo) -> None:
        """A producer is there; those without a destination are not told of."""
        if info.producer_id is None or info.destination is None or _is_advisory(info.destination):
            return
        self._producers[info.producer_id.key()] = info
        for part in parts_of(info.destination):
            name = part.qualified_name()
            self._producer_counts[name] = self._producer_counts.get(name, 0) + 1
            self._tell_producers(part, info)

    def producer_closed(self, info: ProducerInfo) -> None:
        """A producer is gone."""
        producer_id = info.producer_id
        if producer_id is None or info.destination is None or self._producers.pop(producer_id.key(), None) is None:
            return
        for part in parts_of(info.destination):
            name = part.qualified_name()
            count = self._producer_counts.pop(name, 1) - 1
            if count > 0:
                self._producer_counts[name] = count
            if not part.is_temporary or name in self._temporary:
                self._tell_producers(part, _removal(producer_id))

    def producer_named(self, key: str) -> ProducerInfo | None:
        """A producer that is there, by its id."""
        return self._producers.get(key)

    def _tell_consumers(self, destination: Destination, told: Structure, only: Listener | None = None) -> None:
        topic = consumer_topic(destination)
        if only is not None or self.posting.listeners_of(topic):
            count = TypedValue(INT_KIND, self._count_consumers(destination))
            self.posting.tell(topic, told, {"consumerCount": count}, only)

    def _tell_producers(self, part: Destination, told: Structure, only: Listener | None = None) -> None:
        topic = producer_topic(part)
        if only is not None or self.posting.listeners_of(topic):
            count = TypedValue(INT_KIND, self._producer_counts.get(part.qualified_name(), 0))
            self.posting.tell(topic, told, {"producerCount": count}, only)

    def _count_consumers(self, destination: Destination) -> int:
        """Of all protocols."""
        broker = self._broker
        count = 0
        for target in self._parts.targets_of(destination):
            if target.routing != ANYCAST and not target.queue_name:
                address = broker.addresses.get(target.address)
                count += 0 if address is None else sum(len(queue.consumers) for queue in address.multicast)
                continue
            names = [target.queue_name or target.address]
            if target.wildcard:
                names = [found.queue_name for found in self._parts.queues_of(target, broker)]
            for name in names:
                queue = broker.queues.get(name)
                count += 0 if queue is None else len(queue.consumers)
        return count

    # -- who listens -------------------------------------------------------------------------------------------------

    def listen(self, consumer_id: ConsumerId, address: str, consumer: Consumer, host: SessionHost) -> None:
        """Somebody subscribes to an advisory topic: is told what is there already."""
        listener = Listener(address, consumer, consumer_id, host)
        posting = self.posting
        posting.join(listener)
        replay = Replay(listener)
        for topic in {told_of(info.destination) for info in self._temporary.values() if info.destination is not None}:
            if posting.hears(listener, topic):
                replay.temporary += [
                    key for key, info in self._temporary.items() if info.destination and told_of(info.destination) == topic
                ]
        # Only who asks for these by name is told, not who listens to everything.
        if address == CONNECTIONS:
            replay.connections = list(self._connections)
        elif address.startswith(_CONSUMERS):
            replay.consumers = list(self._consumers)
        elif address.startswith(_PRODUCERS):
            replay.producers = list(self._producers)
        replay.destinations = self.destinations.listen(listener)
        if not self.replay(replay, _TOLD_AT_ONCE):
            self._notices.append(Notice(replay=replay))
            host.wake_soon()

    def leave(self, consumer_id: ConsumerId) -> None:
        """That subscriber is gone."""
        self.posting.leave(consumer_id)
        self.destinations.leave()
        if self.posting.any_listener() is None:
            self._notices.clear()
            self._overrun = False
