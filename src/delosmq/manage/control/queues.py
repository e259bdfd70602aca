"""Queues: list, look at, create, change, browse."""

from dataclasses import dataclass
from typing import Final

from delosmq.engine.broker import Broker
from delosmq.engine.queue import Queue
from delosmq.manage.control.browse import Browse
from delosmq.model.errors import MisuseError, NotFoundError
from delosmq.model.message import ANYCAST, MULTICAST, ROUTING_NAMES
from delosmq.model.settings import UNLIMITED, QueueSettings
from delosmq.security.access import BROWSE, CONSUME, EDIT, VIEW, AccessControl, Login

ROUTING_TYPES: Final = {"ANYCAST": ANYCAST, "MULTICAST": MULTICAST}


class ExistsError(MisuseError):
    """What is to be created is there already."""


@dataclass(frozen=True)
class QueueInfo:
    """A queue as it stands.

    Attributes:
        ring_size, max_consumers: in force, -1 for none.
        message_count: pending, scheduled and in delivery.
        messages_added: and the other totals, since the broker started.
        newest_sequence: of the last message added; oldest_sequence: the lowest that is there, 0 in an empty queue.
    """

    name: str
    address: str
    routing_type: str
    durable: bool
    temporary: bool
    auto_created: bool
    ring_size: int
    max_consumers: int
    message_count: int
    delivering_count: int
    scheduled_count: int
    consumer_count: int
    messages_added: int
    messages_acknowledged: int
    messages_replaced: int
    messages_killed: int
    messages_expired: int
    newest_sequence: int
    oldest_sequence: int
    paused: bool


@dataclass(frozen=True)
class QueueChange:
    """What `QueueControl.update` sets; what is not named stays as it is.

    Attributes:
        ring_size, max_consumers: None goes back to the default of the address.
        named: which of them are set.
    """

    named: frozenset[str]
    ring_size: int | None = None
    max_consumers: int | None = None


class QueueControl:
    """The queues of one broker."""

    def __init__(self, broker: Broker, access: AccessControl) -> None:
        self._broker = broker
        self._access = access

    def names(self, login: Login) -> list[str]:
        """Names of the queues this login may view, in order."""
        queues = self._broker.queues
        return [n for n in sorted(queues) if self._access.check(login.roles, queues[n].address.name, VIEW)]

    def get(self, login: Login, name: str) -> QueueInfo:
        """One queue.

        Raises:
            NotFoundError: there is none of that name.
        """
        return queue_info(self._broker, self._find(login, name, VIEW))

    def peek(self, login: Login, name: str) -> QueueInfo | None:
        """As `get`, or None when the queue went away since it was listed."""
        return self.get(login, name) if name in self._broker.queues else None

    def create(self, login: Login, settings: QueueSettings) -> QueueInfo:
        """Creates a queue and, if need be, its address.

        Raises:
            ExistsError: the name is taken.
            MisuseError: a setting makes no sense.
        """
        self._access.require(login, settings.address, EDIT)
        if settings.name in self._broker.queues:
            raise ExistsError("DMQ6204", f"queue '{settings.name}' exists already; update it or choose another name")
        _check_max_consumers(settings.name, settings.max_consumers)
        return queue_info(self._broker, self._broker.create_queue(settings))

    def update(self, login: Login, name: str, change: QueueChange) -> QueueInfo:
        """Changes a queue while it runs; a smaller ring removes nothing by itself.

        Raises:
            NotFoundError: there is none of that name.
            MisuseError: a setting makes no sense.
        """
        queue = self._find(login, name, EDIT)
        old = queue.settings
        max_consumers = change.max_consumers if "max_consumers" in change.named else old.max_consumers
        _check_max_consumers(name, max_consumers)
        self._broker.update_queue(
            name,
            ring_size=change.ring_size if "ring_size" in change.named else old.ring_size,
            max_consumers=max_consumers,
        )
        return queue_info(self._broker, queue)

    def browse(self, login: Login, name: str, *, after: int, until: int, max_rows: int) -> Browse:
        """A look at messages with ``after`` < sequence <= ``until``, at most ``max_rows``, by sequence. Takes nothing.

        Who may consume may browse, as consuming shows as much.

        Raises:
            NotFoundError: there is none of that name.
        """
        queue = self._find(login, name, CONSUME, BROWSE)
        return Browse(self._broker, queue, after=after, until=until, max_rows=max_rows)

    def _find(self, login: Login, name: str, *permissions: str) -> Queue:
        """The queue, for those who have one of the permissions on its address.

        Raises:
            PermissionDeniedError: they have none. That a queue doesn't exist learns only who might see it if it did: on
                an address of its name, as a queue has unless told otherwise.
            NotFoundError: there is none of that name.
        """
        queue = self._broker.queues.get(name)
        address = queue.address.name if queue is not None else name
        if not any(self._access.check(login.roles, address, permission) for permission in permissions):
            # First as for a queue that doesn't exist, so that the refusals are alike.
            self._access.require(login, name, permissions[-1])
            self._access.require(login, address, permissions[-1])
        if queue is None:
            raise NotFoundError("DMQ6201", f"there is no queue '{name}'; `delosmq queue stat` lists those that exist")
        return queue


def _check_max_consumers(queue: str, max_consumers: int | None) -> None:
    if max_consumers is not None and max_consumers < UNLIMITED:
        raise MisuseError(
            "DMQ6202",
            f"max-consumers {max_consumers} of queue '{queue}' makes no sense; use -1 for any number, 0 or more",
        )


def queue_info(broker: Broker, queue: Queue) -> QueueInfo:
    """A queue as it stands."""
    return QueueInfo(
        name=queue.name,
        address=queue.address.name,
        routing_type=ROUTING_NAMES[queue.settings.routing_type],
        durable=queue.settings.durable,
        temporary=queue.temporary,
        auto_created=queue.settings.auto_created,
        ring_size=queue.ring_size,
        max_consumers=queue.max_consumers,
        message_count=queue.message_count,
        delivering_count=queue.delivering_count,
        scheduled_count=queue.scheduled_count,
        consumer_count=len(queue.consumers),
        messages_added=queue.messages_added,
        messages_acknowledged=queue.messages_acknowledged,
        messages_replaced=queue.messages_replaced,
        messages_killed=queue.messages_killed,
        messages_expired=queue.messages_expired,
        newest_sequence=queue.newest_sequence,
        oldest_sequence=_oldest_sequence(broker, queue),
        paused=False,
    )


def _oldest_sequence(broker: Broker, queue: Queue) -> int:
    oldest = 0
    slot = queue.pending.head()
    while slot is not None:  # from priority to priority, ten at most
        oldest = slot.sequence
        slot = queue.pending.head_upto(oldest - 1)
    for sequence in _lowest_held(broker, queue):
        if oldest == 0 or sequence < oldest:
            oldest = sequence
    return oldest


def _lowest_held(broker: Broker, queue: Queue) -> list[int]:
    """Sequences in delivery, the lowest among them: all of a consumer's, of a lease only its own lowest."""
    held: list[int] = []
    leasing: set[int] = set()
    for group in broker.leases.on_queue(queue):
        leasing.add(id(group.consumer))
        if group.building:
            held.append(group.draft.lowest_sequence)
        held.extend(lease.lowest_sequence for lease in group.leases.values())
    for consumer in queue.consumers:
        if id(consumer) not in leasing:
            held.extend(slot.sequence for slot in consumer.held_newest_first())
    return held
