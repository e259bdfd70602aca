"""What a session is told of addresses and queues, or of what its settings would make of those that are not there.

Source: ActiveMQServerImpl.bindingQuery and queueQuery of Artemis.
"""

from typing import Final

from delosmq.engine.api import Address, Queue
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.names import QUEUE_MARK
from delosmq.model.settings import AddressSettings
from delosmq.sessions.core.server.destinations import CoreDestinations
from delosmq.sessions.core.server.queues.queues import ConnectionQueues
from delosmq.sessions.host import SessionServices
from delosmq.wire.core.packet import MOST_INT, QueueAttributes
from delosmq.wire.core.queue_packets import (
    BindingQueryResponseV4,
    BindingQueryResponseV5,
    QueueQueryResponseV3,
)

_BINDING_V5_SINCE: Final = 135
_BARE_NAMES_SINCE: Final = 130


class QueueQueries:
    """Looks, changes nothing."""

    def __init__(
        self, services: SessionServices, connection: ConnectionQueues, destinations: CoreDestinations, version: int
    ) -> None:
        self._broker = services.broker
        self._management_address = services.management.address
        self._connection = connection
        self._destinations = destinations
        self._version = version

    def move(self, connection: ConnectionQueues) -> None:
        """The session has another connection."""
        self._connection = connection

    def queue(self, name: str) -> QueueQueryResponseV3:
        """What there is to know of a queue.

        Raises:
            CoreError: that is no name.
        """
        target = self._destinations.decode(name)
        queue_name = target.queue_name or target.address
        queue = self._broker.queues.get(queue_name)
        answer = QueueQueryResponseV3()
        answer.name = queue_name
        if queue is None or queue.internal or (target.queue_name and queue.address.name != target.address):
            self._say_missing(answer, target.address, target.routing)
        else:
            self._say_found(answer, queue)
        return answer

    def _say_found(self, answer: QueueQueryResponseV3, queue: Queue) -> None:
        settings = queue.settings
        in_force = queue.in_force
        answer.exists = True
        answer.durable = settings.durable
        answer.temporary = queue.owner != "" or self._connection.owns(queue)
        answer.consumer_count = queue.consumer_count
        answer.message_count = queue.message_count
        answer.filter_string = settings.filter or None
        answer.address = queue.address.name
        answer.auto_create_queues = queue.address.settings.auto_create_queues
        answer.auto_created = settings.auto_created
        answer.purge_on_no_consumers = in_force.purge_on_no_consumers
        answer.routing_type = settings.routing_type
        answer.max_consumers = min(in_force.max_consumers, MOST_INT)
        answer.configuration_managed = queue.declared
        answer.default_consumer_window_size = queue.address.settings.default_consumer_window_size
        attributes = answer.attributes
        attributes.exclusive = in_force.exclusive
        attributes.last_value = in_force.last_value
        attributes.last_value_key = in_force.last_value_key or None
        attributes.non_destructive = in_force.non_destructive
        attributes.consumers_before_dispatch = min(in_force.consumers_before_dispatch, MOST_INT)
        attributes.delay_before_dispatch = in_force.delay_before_dispatch
        attributes.group_rebalance = in_force.group_rebalance
        attributes.group_rebalance_pause_dispatch = in_force.group_rebalance_pause_dispatch
        attributes.group_buckets = min(in_force.group_buckets, MOST_INT)
        attributes.group_first_key = in_force.group_first_key or None
        attributes.auto_delete = in_force.auto_delete
        attributes.auto_delete_delay = in_force.auto_delete_delay
        attributes.auto_delete_message_count = in_force.auto_delete_message_count
        attributes.ring_size = in_force.ring_size
        attributes.enabled = settings.enabled

    def _say_missing(self, answer: QueueQueryResponseV3, address: str, routing: int) -> None:
        settings = self._broker.bindings.settings_of(address)
        answer.durable = True
        answer.address = address
        answer.exists = address == self._management_address
        answer.auto_create_queues = settings.auto_create_queues
        answer.purge_on_no_consumers = settings.default_purge_on_no_consumers
        answer.routing_type = routing or settings.default_queue_routing_type
        answer.max_consumers = min(settings.default_max_consumers, MOST_INT)
        answer.default_consumer_window_size = settings.default_consumer_window_size
        _say_defaults(answer.attributes, settings)

    def bindings(self, name: str) -> BindingQueryResponseV4:
        """The queues of an address, and what would be made there.

        Raises:
            CoreError: that is no name.
        """
        target = self._destinations.decode(name)
        address = self._broker.addresses.get(target.address)
        settings = self._broker.bindings.settings_of(target.address)
        answer = BindingQueryResponseV5() if self._version >= _BINDING_V5_SINCE else BindingQueryResponseV4()
        answer.exists = address is not None or target.address == self._management_address
        if address is not None:
            answer.queue_names = self._queue_names(address, target.queue_name)
            if target.queue_name:
                answer.exists = len(answer.queue_names) > 0
        answer.auto_create_queues = settings.auto_create_queues
        answer.auto_create_addresses = settings.auto_create_addresses
        answer.default_purge_on_no_consumers = settings.default_purge_on_no_consumers
        answer.default_max_consumers = min(settings.default_max_consumers, MOST_INT)
        _say_defaults(answer.attributes, settings)
        if isinstance(answer, BindingQueryResponseV5):
            answer.supports_anycast = address is not None and ANYCAST in address.routing_types
            answer.supports_multicast = address is not None and MULTICAST in address.routing_types
        return answer

    def _queue_names(self, address: Address, queue_name: str) -> list[str]:
        names = [queue.name for queue in address.queues() if not queue.internal]
        if not queue_name:
            return names
        if queue_name not in names:
            return []
        return [queue_name if self._version >= _BARE_NAMES_SINCE else f"{address.name}{QUEUE_MARK}{queue_name}"]


def _say_defaults(attributes: QueueAttributes, settings: AddressSettings) -> None:
    attributes.exclusive = settings.default_exclusive_queue
    attributes.last_value = settings.default_last_value_queue or settings.default_last_value_key != ""
    attributes.last_value_key = settings.default_last_value_key or None
    attributes.non_destructive = settings.default_non_destructive
    attributes.consumers_before_dispatch = min(settings.default_consumers_before_dispatch, MOST_INT)
    attributes.delay_before_dispatch = settings.default_delay_before_dispatch
