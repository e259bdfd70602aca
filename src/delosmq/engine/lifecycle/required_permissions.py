"""What a command would create or read, asked before it runs so that permissions can be checked."""

from delosmq.engine.lifecycle.subscriptions import NO_OPTIONS, SubscriptionOptions
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST

Creation = tuple[str, str, str]
"""A permission, the address that it is asked for, and the queue there if a queue is made; "" for the address's own."""


class RequiredPermissions:
    """Looks, changes nothing."""

    def __init__(self, parts: EngineParts) -> None:
        self._bindings = parts.bindings

    def needs_creation(
        self,
        address: str,
        queue_name: str,
        routing: int,
        *,
        for_subscription: bool,
        subscription: SubscriptionOptions = NO_OPTIONS,
    ) -> list[Creation]:
        """The creations the next send or subscription would cause, [] normally."""
        needed: list[Creation] = []
        known = self._bindings.addresses.get(address)
        if known is None or (routing != ANY_ROUTING and routing not in known.routing_types):
            needed.append(("createAddress", address, ""))
        if for_subscription and subscription.name:
            queue = self._bindings.queues.get(subscription.name)
            if queue is None or self._is_other(queue, address, subscription):
                kind = "createDurableQueue" if subscription.durable else "createNonDurableQueue"
                needed.append((kind, address, subscription.name))
                if queue is not None and queue.address.name != address:
                    needed.append(("deleteDurableQueue", queue.address.name, ""))
            return needed
        kind_of_queue = self._bindings.resolve_routing(address, routing)
        if queue_name:
            # One that is on another address is refused like one that is not there.
            if for_subscription and not self._is_on(queue_name, address):
                needed.append(("createDurableQueue", address, queue_name))
        elif kind_of_queue == ANYCAST:
            if address not in self._bindings.queues and (known is None or not known.anycast or for_subscription):
                needed.append(("createDurableQueue", address, ""))
        elif for_subscription and not self._is_queue(address, routing):
            needed.append(("createNonDurableQueue", address, ""))
        return needed

    @staticmethod
    def _is_other(queue: Queue, address: str, subscription: SubscriptionOptions) -> bool:
        """Whether the subscription of that name would be replaced."""
        settings = queue.settings
        return (
            settings.address != address
            or settings.filter != subscription.filter
            or settings.durable != subscription.durable
        )

    def _is_on(self, queue_name: str, address: str) -> bool:
        queue = self._bindings.queues.get(queue_name)
        return queue is not None and queue.address.name == address

    def _is_queue(self, name: str, routing: int) -> bool:
        queue = self._bindings.queues.get(name)
        return routing != MULTICAST and queue is not None and queue.address.name == name
