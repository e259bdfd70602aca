"""Addresses and queues: creating, changing, finding and deleting them, recorded so that they outlive a restart."""

from abc import ABC, abstractmethod
from collections import deque

from mypy_extensions import mypyc_attr

from delosmq.engine.addresses.address import Address, address_of
from delosmq.engine.addresses.binding_codec import (
    address_as_json,
    address_state_bytes,
    queue_as_json,
    queue_state_bytes,
)
from delosmq.engine.addresses.destination_checks import RECORD_BYTES, DestinationChecks
from delosmq.engine.addresses.destinations import Destinations
from delosmq.engine.addresses.divert import Divert
from delosmq.engine.addresses.history import HistoryFills, HistoryRing, keeping_queues
from delosmq.engine.addresses.settings_checks import check_settings, check_update
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.log.log import Log
from delosmq.engine.log.records import BINDING, encode_json
from delosmq.engine.queues.queue import DELETED, Queue
from delosmq.model.errors import MisuseError, NotFoundError
from delosmq.model.ids import QueueId
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST, ROUTING_NAMES
from delosmq.model.names import check_name
from delosmq.model.ports import Clock
from delosmq.model.settings import BrokerSettings, DispatchPolicy, QueueSettings
from delosmq.model.wildcard import AddressSettingsTable


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueListener(ABC):
    """Learns of each new queue."""

    @abstractmethod
    def queue_added(self, queue: Queue, *, asked: bool) -> None:
        """A queue was created, by a command and not by replay; within its decision. ``asked``: its subscriber wants
        what its address keeps for those."""

    @abstractmethod
    def history_added(self, history: Queue) -> None:
        """An address keeps its last messages from now on."""


class Bindings(Destinations):
    """The addresses and queues of a broker.

    Attributes:
        listener: told of new queues.
        checks: whether one more may be made.
        ready_queues: that may have something to deliver, for the dispatcher.
        history_fills: queues that are still given what their address keeps for queues to come.
        wild_changes: counts changes of wildcard addresses; an address with another number in ``linked_at`` must
            look for its links again (`relink`).
    """

    def __init__(
        self,
        log: Log,
        table: AddressSettingsTable,
        events: EngineEvents,
        *,
        clock: Clock,
        settings: BrokerSettings,
    ) -> None:
        super().__init__(table, settings)
        self._log = log
        self._events = events
        self._clock = clock
        self.checks: DestinationChecks = DestinationChecks(self, log)
        self._diverts: dict[str, list[Divert]] = {}
        self.listener: QueueListener | None = None
        self.wild_changes: int = 0
        self.by_id: dict[int, Queue] = {}
        self.ready_queues: deque[Queue] = deque()
        self.history_fills: HistoryFills = HistoryFills(log)
        self.temporary: dict[str, list[Address]] = {}

    # -- the changes, made live and in replay --------------------------------------------------------------------

    def add_address(self, name: str, routing_types: set[int], *, auto_created: bool, made_by: str = "") -> Address:
        """Makes an address known, or widens the routing types of one that is.

        Args:
            made_by: the user of the client that made it. An address that is recorded with it counts to that user from
                now on.
        """
        address = self.addresses.get(name)
        if address is None:
            settings = self._table.resolve(name)
            address = Address(name, set(routing_types), settings, is_recorded=self.is_recorded(name))
            address.auto_created = auto_created
            address.usage.created_at = self._clock.monotonic_ns()
            address.diverts = self._diverts.get(name, [])
            self.addresses[name] = address
            self.client_limits.change("", 1, 0)
            self._give_address(address, made_by)
            if self.wildcards.is_wild(name):
                address.wild = True
                self.wildcards.add(name)
                self.wild_changes += 1
            else:
                self.limits.count(name, 1)
            self.relink(address)
        else:
            address.routing_types |= routing_types
            if not auto_created:
                address.auto_created = False
                self._give_address(address, made_by)
        return address

    def _give_address(self, address: Address, user: str) -> None:
        """What it takes counts to a user from now on."""
        self.client_limits.change(address.made_by, -1, -address.state_bytes)
        address.made_by = user
        address.state_bytes = 0 if address.auto_created else address_state_bytes(address.name, user)
        self.client_limits.change(user, 1, address.state_bytes)

    def add_queue(self, queue_id: QueueId, settings: QueueSettings, made_by: str) -> Queue:
        """Makes a queue known and binds it. An address that is recorded is known before it."""
        address = self.add_address(settings.address, {settings.routing_type}, auto_created=True, made_by=made_by)
        queue = Queue(queue_id, settings, address, self.ready_queues)
        queue.usage.created_at = self._clock.monotonic_ns()
        queue.owner = address.owner
        address.bind(queue)
        if queue is address.history:
            queue.ring = HistoryRing(queue)
        self._changed(address)
        self.queues[settings.name] = queue
        self.by_id[queue_id] = queue
        self.client_limits.change("", 0 if queue.internal else 1, 0)
        self._give_queue(queue, made_by)
        return queue

    def _give_queue(self, queue: Queue, user: str) -> None:
        """What it takes, as its settings are, counts to a user from now on."""
        count = 0 if queue.internal else 1
        self.client_limits.change(queue.made_by, -count, -queue.state_bytes)
        self.client_limits.change_filters(queue.made_by, -queue.filter_characters)
        queue.made_by = user
        queue.filter_characters = len(queue.settings.filter)
        self.client_limits.change_filters(user, queue.filter_characters)
        queue.state_bytes = queue_state_bytes(queue.settings, user) if queue.settings.durable else 0
        self.client_limits.change(user, count, queue.state_bytes)

    def change_queue(self, queue: Queue, settings: QueueSettings, made_by: str) -> None:
        """Puts new settings of a queue into force, its name included."""
        address = address_of(queue)
        if settings.name != queue.name:
            del self.queues[queue.name]
            queue.name = settings.name
            self.queues[queue.name] = queue
        address.unbind(queue)
        queue.apply_settings(settings)
        address.bind(queue)
        self._give_queue(queue, made_by)
        self._changed(address)

    def credit_address(self, address: Address) -> None:
        """After replay: an address that is not recorded counts to the maker of the first of its queues."""
        first: Queue | None = None
        for queue in (address.history, address.retained, *address.queues()):
            if queue is not None and (first is None or queue.id < first.id):
                first = queue
        self._give_address(address, "" if first is None else first.made_by)

    def drop_queue(self, queue: Queue) -> None:
        """Unbinds a queue and forgets it; what it holds is the caller's."""
        queue.suspended |= DELETED
        address = address_of(queue)
        address.unbind(queue)
        address.usage.unused_since = self._clock.monotonic_ns()
        self._changed(address)
        del self.queues[queue.name]
        del self.by_id[queue.id]
        if queue.traits.advisory_for_consumed and queue.delivering.count:
            self.keep_deleted(queue)
        self.history_fills.progress.pop(queue.id, None)
        self.client_limits.change(queue.made_by, 0 if queue.internal else -1, -queue.state_bytes)
        self.client_limits.change_filters(queue.made_by, -queue.filter_characters)

    def drop_address(self, name: str) -> None:
        """Forgets an address without queues."""
        address = self.addresses.pop(name)
        self.client_limits.change(address.made_by, -1, -address.state_bytes)
        if address.wild:
            self.wildcards.remove(name)
            self.wild_changes += 1
        elif not address.owner:
            self.limits.count(name, -1)

    def _changed(self, address: Address) -> None:
        if address.wild:
            self.wild_changes += 1

    def consumer_ranked(self, queue: Queue) -> None:
        """A topic subscription has a consumer with a priority: with ``dispatch-policy`` priority it is served before
        those of lower ones."""
        address = address_of(queue)
        if address.settings.dispatch_policy is DispatchPolicy.PRIORITY and queue.settings.routing_type == MULTICAST:
            address.serve_by_priority()
            self._changed(address)

    def replace_settings(self, table: AddressSettingsTable) -> list[Queue]:
        """Puts other address-settings into force; gives the queues of which something changed."""
        self._table = table
        found: list[Queue] = []
        for address in self.addresses.values():
            settings = table.resolve(address.name)
            if settings == address.settings:
                continue
            address.apply_settings(settings)
            for queue in address.queues():
                # Not bound anew: the order in which its queues are served stays.
                queue.apply_settings(queue.settings)
                found.append(queue)
            address.refresh()
            self._changed(address)
        return found

    def relink(self, address: Address) -> None:
        """Finds the wildcard addresses that stand for one."""
        found: list[Address] = []
        if self.wildcards.count and not address.wild:
            found = [self.addresses[name] for name in self.wildcards.matching(address.name)]
        address.link(found, self.wild_changes)

    def add_divert(self, divert: Divert) -> None:
        """Lets a divert take part in routing."""
        name = divert.settings.address
        diverts = self._diverts.setdefault(name, [])
        diverts.append(divert)
        address = self.addresses.get(name)
        if address is not None:
            address.diverts = diverts
            address.refresh()
            self._changed(address)

    # -- decisions; the caller closes the log --------------------------------------------------------------------

    def create_address(
        self, name: str, routing_types: set[int], *, auto_created: bool = False, owner: str = "", user: str = ""
    ) -> Address:
        """Creates an address, or widens an existing one.

        One that is auto-created is not recorded: it comes again with its next use, or with its durable queues.

        Args:
            owner: of a temporary destination: its connection.
            user: of the client that makes it, "" for none.

        Raises:
            LimitError: the disk has no room for what describes more addresses and queues, or there are as many as
                ``max-addresses`` and ``max-destinations`` say, or as large ones.
        """
        check_name("address", name)
        known = self.addresses.get(name)
        if known is None or not known.covers(routing_types, auto_created):
            self.checks.check_address(name, routing_types, auto_created=auto_created, owner=owner, user=user)
        return self._make_address(name, routing_types, auto_created=auto_created, owner=owner, user=user)

    def _make_address(
        self,
        name: str,
        routing_types: set[int],
        *,
        auto_created: bool,
        owner: str = "",
        user: str = "",
        by_broker: bool = False,
    ) -> Address:
        known = self.addresses.get(name)
        if known is not None and known.covers(routing_types, auto_created):
            return known
        # One that was made automatically is theirs who have it recorded.
        maker = known.made_by if known is not None and not known.auto_created else user
        address = self.add_address(name, routing_types, auto_created=auto_created, made_by=maker)
        if owner:
            address.owner = owner
            self.limits.count(name, -1)
        if not auto_created:
            self._record_address(address)
        self.keep_history(address, user)
        if known is None:
            self._events.address_created(name)
            if user and not by_broker:
                self._events.created_by_client("", name, user, not auto_created)
        return address

    def _record_address(self, address: Address) -> None:
        self._log.record_binding(encode_json(BINDING, {"address": address_as_json(address)}))

    def take_over_address(self, address: Address) -> None:
        """An address that an operator or broker.xml names counts to no user from now on, nor does what keeps messages
        for it."""
        if address.made_by:
            self._give_address(address, "")
            if not address.auto_created:
                self._record_address(address)
        for keeping in (address.history, address.retained):
            if keeping is not None:
                self.take_over_queue(keeping)

    def take_over_queue(self, queue: Queue) -> None:
        """A queue that broker.xml names counts to no user from now on."""
        if queue.made_by:
            self._give_queue(queue, "")
            self._record_queue(queue)

    def keep_history(self, address: Address, user: str) -> None:
        """Gives an address the queues that keep messages for queues to come, as its settings say. They count to
        ``user``: its client asks for what needs them, and may not have made the address."""
        if address.owner or MULTICAST not in address.routing_types:
            return
        for settings in keeping_queues(address.name, address.settings, auto_created=address.auto_created):
            known = self.queues.get(settings.name)
            if known is None:
                made = self._add(settings, user)
                if made is address.history and self.listener is not None:
                    self.listener.history_added(made)
            elif known.settings.ring_size != settings.ring_size:
                self.update_queue(known, settings)

    def drop_if_unused(self, address: Address) -> None:
        """Forgets an auto-created address once its last queue is gone; later, if its address-settings say so."""
        settings = address.settings
        if (
            address.auto_created
            and settings.auto_delete_addresses
            and settings.auto_delete_addresses_delay == 0
            and address.history is None
            and address.retained is None
            and self.is_unbound(address)
        ):
            self.drop_address(address.name)
            self._events.address_deleted(address.name)

    @staticmethod
    def is_unbound(address: Address) -> bool:
        """Whether nothing hangs on an address: no queue, divert or kept message, and no sender waits for its space."""
        return not (
            address.anycast
            or address.multicast
            or (address.history is not None and address.history.message_count)
            or (address.retained is not None and address.retained.message_count)
            or address.diverts
            or address.waiters
            or address.owner
        )

    def create_queue(
        self,
        settings: QueueSettings,
        *,
        temporary: bool = False,
        retroactive: bool = False,
        of_client: bool = False,
        user: str = "",
        by_broker: bool = False,
        checked: bool = False,
    ) -> Queue:
        """Creates a queue and, if need be, its address.

        Args:
            checked: `DestinationChecks.check_queue` has allowed it, before the queue that it replaces ended.
            retroactive: its subscriber asks for what the address keeps for those.
            of_client: the address is made automatically, whatever the queue is.
            user: of the client that makes it: it counts to that user; "" for none.
            by_broker: the broker makes it on account of what that user made; it is not refused for their number.

        Raises:
            MisuseError: the name is taken or a setting makes no sense.
            LimitError: as in `create_address`.
        """
        if not checked:
            self.checks.check_queue(settings, of_client=of_client, user=user, by_broker=by_broker)
        automatic = settings.auto_created or of_client
        self._make_address(
            settings.address, {settings.routing_type}, auto_created=automatic, user=user, by_broker=by_broker
        )
        queue = self._add(settings, user)
        queue.temporary = temporary
        self._events.queue_created(queue.name, settings.address)
        if user and not by_broker:
            self._events.created_by_client(queue.name, settings.address, user, settings.durable and not temporary)
        if self.listener is not None:
            self.listener.queue_added(queue, asked=retroactive)
        return queue

    def _add(self, settings: QueueSettings, made_by: str) -> Queue:
        queue = self.add_queue(QueueId(self._log.next_id()), settings, made_by)
        self._record_queue(queue)
        return queue

    def _record_queue(self, queue: Queue) -> None:
        if queue.settings.durable:
            self._log.record_binding(encode_json(BINDING, {"queue": queue_as_json(queue)}))

    def update_queue(self, queue: Queue, settings: QueueSettings) -> None:
        """Changes what may change while a queue lives. Removes nothing (RING-4).

        Raises:
            MisuseError: a value makes no sense, or a setting can't change; nothing has changed.
        """
        if not queue.internal:
            check_settings(settings)
            check_update(queue, settings, address_of(queue).routing_types)
            size = queue_state_bytes(settings, queue.made_by)
            self._log.ask_room(RECORD_BYTES + size, f"the new settings of '{queue.name}'")
        before = queue.settings
        self.change_queue(queue, settings, queue.made_by)
        self._record_queue(queue)
        if not queue.internal:
            self._tell_changes(queue, before)

    def _tell_changes(self, queue: Queue, before: QueueSettings) -> None:
        events = self._events
        events.queue_updated(queue.name)
        if before.paused != queue.settings.paused:
            if queue.settings.paused:
                events.queue_paused(queue.name)
            else:
                events.queue_resumed(queue.name)
        if before.enabled != queue.settings.enabled:
            if queue.settings.enabled:
                events.queue_enabled(queue.name)
            else:
                events.queue_disabled(queue.name)

    def record_drop(self, queue: Queue) -> None:
        """Records that a queue is gone."""
        if queue.settings.durable:
            self._log.record_binding(encode_json(BINDING, {"drop_queue": int(queue.id)}))

    def record_drop_address(self, address: Address) -> None:
        """Records that an address is gone."""
        if not address.auto_created:
            self._log.record_binding(encode_json(BINDING, {"drop_address": address.name}))

    # -- finding -------------------------------------------------------------------------------------------------

    def queue_named(self, name: str) -> Queue:
        """The queue.

        Raises:
            NotFoundError: there is none of that name.
        """
        queue = self.queues.get(name)
        if queue is None or queue.internal:
            raise NotFoundError("DMQ2103", f"there is no queue '{name}'; `delosmq queue stat` lists those that exist")
        return queue

    def address_named(self, name: str) -> Address:
        """The address.

        Raises:
            NotFoundError: there is none of that name.
        """
        address = self.addresses.get(name)
        if address is None:
            raise NotFoundError("DMQ2630", f"there is no address '{name}'; check the name, or create it first")
        return address

    def resolve_routing(self, address_name: str, routing: int) -> int:
        """The routing type a subscription or auto-creation uses when the client named none."""
        if routing != ANY_ROUTING:
            return routing
        address = self.addresses.get(address_name)
        if address is None:
            return self._table.resolve(address_name).default_address_routing_type
        return ANYCAST if ANYCAST in address.routing_types else MULTICAST

    def check_routing(self, address: Address, routing: int, user: str) -> None:
        """Adds a routing type that an address lacks when its settings create addresses, and refuses it otherwise.

        Args:
            user: of the client that asks for it: what is made counts to that user; "" for none.

        Source: Artemis ServerSessionImpl.checkAutoCreate.

        Raises:
            MisuseError: names the types it takes.
        """
        if routing != ANY_ROUTING and routing not in address.routing_types:
            if address.settings.auto_create_addresses and not address.owner:
                self.create_address(address.name, {routing}, auto_created=address.auto_created, user=user)
                return
            allowed = ", ".join(ROUTING_NAMES[kind] for kind in sorted(address.routing_types))
            raise MisuseError(
                "DMQ2104",
                f"address '{address.name}' takes {allowed}, not {ROUTING_NAMES[routing]}; send and subscribe with that"
                " routing type, or create the address with both",
            )
