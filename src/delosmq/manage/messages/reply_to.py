"""Where the answer of a management message goes."""

from dataclasses import dataclass

from delosmq.engine.api import EngineBroker
from delosmq.model.message import (
    ANY_ROUTING,
    ANYCAST,
    MULTICAST,
    QUEUE_SCHEME,
    TEMPORARY_QUEUE_SCHEME,
    TEMPORARY_TOPIC_SCHEME,
    TOPIC_SCHEME,
)
from delosmq.model.names import QUEUE_MARK
from delosmq.security.access import SEND, AccessControl, Login

_SCHEMES = (
    (TEMPORARY_QUEUE_SCHEME, ANYCAST),
    (TEMPORARY_TOPIC_SCHEME, MULTICAST),
    (QUEUE_SCHEME, ANYCAST),
    (TOPIC_SCHEME, MULTICAST),
)


@dataclass(frozen=True)
class ReplyTo:
    """An address, perhaps one queue of it, and a routing type."""

    address: str
    queue_name: str
    routing: int

    def is_there(self, broker: EngineBroker) -> bool:
        """Whether an answer can go there: none makes an address or a queue."""
        address = broker.addresses.get(self.address)
        if address is None:
            return False
        if self.queue_name:
            queue = broker.queues.get(self.queue_name)
            return queue is not None and queue.address is address and not queue.internal
        if self.routing == ANYCAST:
            return len(address.anycast) > 0
        return self.routing == ANY_ROUTING or self.routing in address.routing_types

    def require(self, broker: EngineBroker, access: AccessControl, login: Login) -> None:
        """Raises PermissionDeniedError unless a user may send there; anybody may to a temporary destination."""
        address = broker.addresses.get(self.address)
        if address is None or not address.owner:
            access.require(login, self.address, SEND)


def read_reply_to(text: str | None, broker: EngineBroker) -> ReplyTo | None:
    """What the hub form says of it; None when no answer is wanted."""
    if not text:
        return None
    routing = ANY_ROUTING
    name = text
    for scheme, kind in _SCHEMES:
        if text.startswith(scheme):
            name = text[len(scheme) :]
            routing = kind
            break
    address, _, queue_name = name.partition(QUEUE_MARK)
    if not queue_name and routing == ANYCAST:
        queue = broker.queues.get(name)
        if queue is not None and queue.address.name != name and not queue.internal:
            # JMS clients know queues by their names alone.
            return ReplyTo(queue.address.name, name, queue.settings.routing_type)
    return ReplyTo(address, queue_name, routing)
