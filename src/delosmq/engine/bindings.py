"""Addresses and queues: creating, changing, finding and deleting them, recorded so that they outlive a restart."""

import json
from typing import Final

from delosmq.engine.address import Address
from delosmq.engine.events import EngineEvents
from delosmq.engine.identifiers import Identifiers
from delosmq.engine.log import Log
from delosmq.engine.queue import Queue
from delosmq.engine.records import BINDING, encode_json
from delosmq.model.errors import LimitError, MisuseError, NotFoundError
from delosmq.model.ids import QueueId
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST, ROUTING_NAMES
from delosmq.model.settings import UNLIMITED, AddressSettings, QueueSettings
from delosmq.model.wildcard import ANY_WORDS, ONE_WORD, SEPARATOR, AddressSettingsTable

NAME_LIMIT_BYTES: Final = 1024
ENTRY_BYTES: Final = 160


def queue_as_json(queue: Queue) -> dict[str, object]:
    """A queue as BINDING records and state blocks hold it."""
    settings = queue.settings
    return {
        "id": int(queue.id),
        "name": settings.name,
        "address": settings.address,
        "routing_type": settings.routing_type,
        "ring_size": settings.ring_size,
        "max_consumers": settings.max_consumers,
        "auto_created": settings.auto_created,
    }


def address_as_json(address: Address) -> dict[str, object]:
    """An address as BINDING records and state blocks hold it."""
    return {"name": address.name, "routing_types": sorted(address.routing_types), "auto_created": address.auto_created}


def queue_from_json(value: dict[str, object]) -> QueueSettings:
    """The settings in what `queue_as_json` wrote."""
    ring_size = value["ring_size"]
    max_consumers = value["max_consumers"]
    return QueueSettings(
        name=str(value["name"]),
        address=str(value["address"]),
        routing_type=int(str(value["routing_type"])),
        durable=True,
        ring_size=None if ring_size is None else int(str(ring_size)),
        max_consumers=None if max_consumers is None else int(str(max_consumers)),
        auto_created=bool(value["auto_created"]),
    )


def _state_bytes_of(*names: str) -> int:
    """What an address or a durable queue takes in a state block, with room for the largest numbers it may get."""
    return ENTRY_BYTES + sum(len(json.dumps(name)) for name in names)


def check_ring_size(queue: str, ring_size: int | None) -> None:
    """Refuses negative rings other than -1.

    Raises:
        MisuseError: with the queue and the values allowed.
    """
    if ring_size is not None and ring_size < UNLIMITED:
        raise MisuseError(
            "DMQ2101",
            f"ring-size {ring_size} of queue '{queue}' makes no sense; use -1 for none, 0 or a positive number",
        )


class Bindings:
    """The addresses and queues of a broker.

    Args:
        state_limit_bytes: what their description may take in the state block of the store; more can't be created.
    """

    def __init__(
        self,
        log: Log,
        ids: Identifiers,
        table: AddressSettingsTable,
        events: EngineEvents,
        *,
        state_limit_bytes: int,
    ) -> None:
        self._log = log
        self._ids = ids
        self._table = table
        self._events = events
        self._state_limit_bytes = state_limit_bytes
        self._state_bytes: int = 0
        self.addresses: dict[str, Address] = {}
        self.queues: dict[str, Queue] = {}
        self.by_id: dict[int, Queue] = {}

    # -- the changes, made live and in replay --------------------------------------------------------------------

    def add_address(self, name: str, routing_types: set[int], *, auto_created: bool) -> Address:
        """Makes an address known, or widens the routing types of one that is."""
        address = self.addresses.get(name)
        if address is None:
            address = Address(name, set(routing_types), self._table.resolve(name))
            address.auto_created = auto_created
            self.addresses[name] = address
            self._state_bytes += _state_bytes_of(address.name)
        else:
            address.routing_types |= routing_types
            address.auto_created = address.auto_created and auto_created
        return address

    def add_queue(self, queue_id: QueueId, settings: QueueSettings) -> Queue:
        """Makes a queue known and binds it."""
        address = self.add_address(settings.address, {settings.routing_type}, auto_created=settings.auto_created)
        queue = Queue(queue_id, settings, address)
        address.bind(queue)
        self.queues[settings.name] = queue
        self.by_id[queue_id] = queue
        if settings.durable:
            self._state_bytes += _state_bytes_of(queue.name, queue.address.name)
        return queue

    def drop_queue(self, queue: Queue) -> None:
        """Unbinds a queue and forgets it; what it holds is the caller's."""
        queue.deleted = True
        queue.address.unbind(queue)
        del self.queues[queue.name]
        del self.by_id[queue.id]
        if queue.settings.durable:
            self._state_bytes -= _state_bytes_of(queue.name, queue.address.name)

    def drop_address(self, name: str) -> None:
        """Forgets an address without queues."""
        del self.addresses[name]
        self._state_bytes -= _state_bytes_of(name)

    # -- decisions; the caller closes the log --------------------------------------------------------------------

    def create_address(self, name: str, routing_types: set[int], *, auto_created: bool = False) -> Address:
        """Creates an address, or widens an existing one.

        One that is auto-created is not recorded: it comes again with its next use, or with its durable queues.

        Raises:
            LimitError: there are as many addresses and queues as the store can describe.
        """
        _check_name("address", name)
        known = self.addresses.get(name)
        if known is not None and routing_types <= known.routing_types and (auto_created or not known.auto_created):
            return known
        self._check_state()
        address = self.add_address(name, routing_types, auto_created=auto_created)
        if not auto_created:
            self._log.record(encode_json(BINDING, {"address": address_as_json(address)}))
        return address

    def _check_state(self) -> None:
        if self._state_bytes >= self._state_limit_bytes:
            raise LimitError(
                "DMQ2204",
                f"there are {len(self.addresses)} addresses and {len(self.queues)} queues already, as many as the"
                " broker can keep; delete some, or set a larger journal-file-size",
            )

    def drop_if_unused(self, address: Address) -> None:
        """Forgets an auto-created address once its last queue is gone."""
        if address.auto_created and not address.queues() and not address.waiters:
            self.drop_address(address.name)

    def create_queue(self, settings: QueueSettings, *, temporary: bool = False) -> Queue:
        """Creates a queue and, if need be, its address.

        Raises:
            MisuseError: the name is taken or a setting makes no sense.
        """
        _check_name("queue", settings.name)
        check_ring_size(settings.name, settings.ring_size)
        if settings.name in self.queues:
            raise MisuseError("DMQ2102", f"queue '{settings.name}' exists already; update it or choose another name")
        self._check_state()
        self.create_address(settings.address, {settings.routing_type}, auto_created=settings.auto_created)
        queue = self.add_queue(QueueId(self._ids.next()), settings)
        queue.temporary = temporary
        if settings.durable:
            self._log.record(encode_json(BINDING, {"queue": queue_as_json(queue)}))
        self._events.queue_created(queue.name, settings.address)
        return queue

    def update_queue(self, queue: Queue, settings: QueueSettings) -> None:
        """Changes what may change while a queue lives: ring-size and max-consumers. Removes nothing (RING-4)."""
        check_ring_size(queue.name, settings.ring_size)
        queue.apply_settings(settings)
        if settings.durable:
            self._log.record(encode_json(BINDING, {"queue": queue_as_json(queue)}))
        self._events.queue_updated(queue.name)

    def record_drop(self, queue: Queue) -> None:
        """Records that a queue is gone."""
        if queue.settings.durable:
            self._log.record(encode_json(BINDING, {"drop_queue": int(queue.id)}))

    # -- finding -------------------------------------------------------------------------------------------------

    def settings_of(self, address: str) -> AddressSettings:
        """The address-settings in force for a name, whether or not the address exists."""
        return self._table.resolve(address)

    def queue_named(self, name: str) -> Queue:
        """The queue.

        Raises:
            NotFoundError: there is none of that name.
        """
        queue = self.queues.get(name)
        if queue is None:
            raise NotFoundError("DMQ2103", f"there is no queue '{name}'; `delosmq queue stat` lists those that exist")
        return queue

    def resolve_routing(self, address_name: str, routing: int) -> int:
        """The routing type a subscription or auto-creation uses when the client named none."""
        if routing != ANY_ROUTING:
            return routing
        address = self.addresses.get(address_name)
        if address is None:
            return self._table.resolve(address_name).default_address_routing_type
        return ANYCAST if ANYCAST in address.routing_types else MULTICAST

    def check_routing(self, address: Address, routing: int) -> None:
        """Refuses a routing type that the address was not made for.

        Raises:
            MisuseError: names the types it takes.
        """
        if routing != ANY_ROUTING and routing not in address.routing_types:
            allowed = ", ".join(ROUTING_NAMES[kind] for kind in sorted(address.routing_types))
            raise MisuseError(
                "DMQ2104",
                f"address '{address.name}' takes {allowed}, not {ROUTING_NAMES[routing]}; send and subscribe with that"
                " routing type, or create the address with both",
            )


def _check_name(kind: str, name: str) -> None:
    if any(word in (ANY_WORDS, ONE_WORD) for word in name.split(SEPARATOR)):
        raise MisuseError(
            "DMQ2115", f"'{name}' has a wildcard word, and wildcards in names are not supported yet, name each one"
        )
    if not name or len(name.encode()) > NAME_LIMIT_BYTES or "\n" in name or "\0" in name:
        raise MisuseError(
            "DMQ2105", f"'{name[:80]}' is no name for a {kind}: 1 to {NAME_LIMIT_BYTES} bytes without line breaks"
        )
