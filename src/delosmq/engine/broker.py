"""The front of the engine: the commands sessions and management use. Each is one decision, closed as one batch."""

from typing import Final

from delosmq.engine.acks import NONE_UNSEEN, Acknowledgements
from delosmq.engine.address import Address, SpaceWaiter
from delosmq.engine.bindings import Bindings
from delosmq.engine.consumer import Consumer, ConsumerPort
from delosmq.engine.credit import Credit
from delosmq.engine.dead_letters import DeadLetters
from delosmq.engine.dispatch import Dispatcher
from delosmq.engine.events import EngineEvents
from delosmq.engine.identifiers import Identifiers
from delosmq.engine.jobs import Jobs
from delosmq.engine.leases import LeaseGroup, Leases
from delosmq.engine.log import Log, Store
from delosmq.engine.memory import MemoryLimits
from delosmq.engine.outcome import BLOCKED, DROPPED, NO_ROUTE, ROUTED
from delosmq.engine.purge import Purge
from delosmq.engine.queue import Queue
from delosmq.engine.removals import Removals
from delosmq.engine.replay import EngineReplay, EngineState
from delosmq.engine.routing import Router
from delosmq.model.errors import LimitError, MisuseError, NotFoundError
from delosmq.model.ids import ConsumerId, Position
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST, Message
from delosmq.model.ports import Clock, Random
from delosmq.model.settings import UNLIMITED, AddressFullPolicy, BrokerSettings, QueueSettings
from delosmq.model.wildcard import AddressSettingsTable

Creation = tuple[str, str]

RECORD_ROOM_BYTES: Final = 8 * 1024
"""Kept free in the largest batch (half a segment) for what a record holds beside the encoded message."""
MAX_MESSAGE_BYTES: Final = 1 << 31
STATE_SHARE: Final = 12
"""Part of a segment that addresses and queues may take; the store's limit for the whole state is an eighth."""


class Broker:
    """One broker's state. All calls come from one thread."""

    def __init__(
        self, settings: BrokerSettings, store: Store, *, clock: Clock, random: Random, events: EngineEvents
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.log = Log(store)
        self._store = store
        self._random = random
        self._events = events
        self._ids = Identifiers(self.log)
        self._memory = MemoryLimits(settings.global_max_size_bytes)
        journal = settings.journal
        self._bindings = Bindings(
            self.log,
            self._ids,
            AddressSettingsTable(settings.address_settings),
            events,
            state_limit_bytes=journal.file_size_bytes // STATE_SHARE,
        )
        self._dispatcher = Dispatcher()
        self._jobs = Jobs()
        self._removals = Removals(self.log, self._memory)
        self._router = Router(
            self.log,
            self._ids,
            self._memory,
            removals=self._removals,
            dispatcher=self._dispatcher,
            events=events,
        )
        dead_letters = DeadLetters(self._bindings.addresses, self._router, self._removals, clock=clock, events=events)
        self._acks = Acknowledgements(
            self.log,
            self._removals,
            dead_letters,
            router=self._router,
            dispatcher=self._dispatcher,
            events=events,
        )
        self.leases = Leases(
            self.log,
            self._acks,
            self._removals,
            router=self._router,
            dispatcher=self._dispatcher,
            jobs=self._jobs,
            clock=clock,
            random=random,
            events=events,
        )
        self.state = EngineState(self._bindings, self._ids, self.leases)
        self._next_consumer_id: int = 1
        # Non-durable ones too: a lease stores what it holds.
        self._largest_message_bytes: int = (
            journal.file_size_bytes // 2 - RECORD_ROOM_BYTES if journal.directory else MAX_MESSAGE_BYTES
        )
        self._blocked: list[Address] = []

    # -- life ----------------------------------------------------------------------------------------------------

    @property
    def addresses(self) -> dict[str, Address]:
        """Addresses by name."""
        return self._bindings.addresses

    @property
    def queues(self) -> dict[str, Queue]:
        """Queues by name."""
        return self._bindings.queues

    @property
    def used_bytes(self) -> int:
        """What all messages in memory count together."""
        return self._memory.used_bytes

    def start(self) -> Position:
        """Replays the store and creates what the configuration names. Returns the position that must be synced before
        the first client is served.

        Raises:
            StorageError: the store is damaged or foreign.
        """
        replay = EngineReplay(self._bindings, self._ids, self.leases, self._memory)
        position = self._store.recover(replay)
        self.log.position = position
        self.log.synced = position
        replay.finish(self._store)
        self._ids.reserve()
        self.log.close()
        replay.purge_dropped(self.log)
        for address in self.settings.addresses:
            self._bindings.create_address(address.name, set(address.routing_types))
        for settings in self.settings.queues:
            self._configure_queue(settings)
        self.log.close()
        for queue in self.queues.values():
            self._trim(queue)
        return self.log.position

    def _configure_queue(self, settings: QueueSettings) -> None:
        known = self.queues.get(settings.name)
        if known is None:
            self._bindings.create_queue(settings)
        elif (known.settings.address, known.settings.routing_type) != (settings.address, settings.routing_type):
            raise MisuseError(
                "DMQ2106",
                f"broker.xml puts queue '{settings.name}' on address '{settings.address}', the journal holds it on"
                f" '{known.settings.address}'; delete the stored queue first or give the new one another name",
            )
        elif (settings.ring_size is not None and settings.ring_size != known.settings.ring_size) or (
            settings.max_consumers is not None and settings.max_consumers != known.settings.max_consumers
        ):
            self._bindings.update_queue(known, _merged(known.settings, settings))

    def _trim(self, queue: Queue) -> None:
        # While reloading a queue is cut down to its ring (ring-queues: after a restart).
        while True:
            slot = queue.ring.pushed_out(queue.pending)
            if slot is None:
                break
            self._router.replace(queue, slot)
            self.log.close()

    @property
    def storage_low(self) -> bool:
        """Whether the store can take no more durable messages for now."""
        return self.log.storage_low

    def set_storage_low(self, low: bool) -> None:
        """The store is nearly full, or has room again."""
        self.log.storage_low = low
        if not low:
            self._memory.released = True

    def tick(self) -> bool:
        """Dispatches, wakes waiters and goes on with long work, all bounded. True when more is left to do now."""
        more = self._jobs.run()
        if self._memory.released:
            self._memory.released = False
            if self._blocked:
                self._wake_blocked()
        self.leases.wake()
        return self._dispatcher.run() or more

    # -- sending -------------------------------------------------------------------------------------------------

    def send(self, message: Message, *, queue_name: str = "", routing: int = ANY_ROUTING) -> int:
        """Routes a message to the queues of its address, or to exactly the queue named.

        Returns:
            ROUTED, NO_ROUTE, DROPPED or BLOCKED (see `delosmq.engine.outcome`). A confirmation must wait for
            ``log.position``.

        Raises:
            LimitError: the address is full and its policy is FAIL, or the message is larger than the journal takes.
            NotFoundError: there is no such address or queue, and it may not be created.
            MisuseError: the address does not take this routing type.
        """
        if message.encoded_size_bytes > self._largest_message_bytes:
            raise LimitError(
                "DMQ2203",
                f"a message of {message.encoded_size_bytes} bytes to '{message.address}' is larger than the journal"
                f" takes ({self._largest_message_bytes}); set a larger journal-file-size or send less at once",
            )
        address = self.addresses.get(message.address)
        if address is None or queue_name or (routing == ANYCAST and not address.anycast):
            address = self._prepare_send(message.address, queue_name, routing)
        elif routing != ANY_ROUTING and routing not in address.routing_types:
            self._bindings.check_routing(address, routing)
        if self._memory.is_full(address) or (self.log.storage_low and message.durable):
            refused = self._refuse(address, message)
            if refused:
                return refused
        queues = [self._bindings.queue_named(queue_name)] if queue_name else address.route(routing)
        if not queues:
            address.unrouted_messages += 1
            self.log.close()
            return NO_ROUTE
        self._router.put(message, queues)
        self.log.close()
        return ROUTED

    def _prepare_send(self, name: str, queue_name: str, routing: int) -> Address:
        """Creates what a send needs and may create; finds the address."""
        settings = self._bindings.settings_of(name)
        address = self.addresses.get(name)
        kind = self._bindings.resolve_routing(name, routing)
        if address is not None:
            self._bindings.check_routing(address, routing)
        elif not settings.auto_create_addresses:
            raise NotFoundError(
                "DMQ2107",
                f"there is no address '{name}' and its address-settings don't auto-create it; create it in broker.xml",
            )
        if queue_name:
            queue = self.queues.get(queue_name)
            if queue is None or queue.address.name != name:
                raise NotFoundError("DMQ2108", f"address '{name}' has no queue '{queue_name}'; create it first")
        if address is None:
            address = self._bindings.create_address(name, {kind}, auto_created=True)
        if (
            kind == ANYCAST
            and not queue_name
            and not address.anycast
            and settings.auto_create_queues
            and name not in self.queues
        ):
            self._bindings.create_queue(QueueSettings(name, name, ANYCAST, durable=True, auto_created=True))
        # A decision of its own, whatever becomes of the message.
        self.log.close()
        return address

    def _refuse(self, address: Address, message: Message) -> int:
        """What the full policy says; 0 lets the message in after all."""
        policy = address.settings.address_full_policy
        if policy is AddressFullPolicy.FAIL:
            what = "the store has no room for durable messages" if self.storage_low else "the address is full"
            raise LimitError(
                "DMQ2201", f"{what}: '{address.name}' refuses the message (address-full-policy FAIL); try again later"
            )
        # A full disk must not make durable messages vanish: DROP is about memory.
        if policy is AddressFullPolicy.DROP and self._memory.is_full(address):
            self._events.message_dropped(message)
            return DROPPED
        return BLOCKED

    def wait_for_space(self, address: str, waiter: SpaceWaiter) -> None:
        """Registers for one `SpaceWaiter.on_space` after a send was BLOCKED."""
        target = self.addresses[address]
        if not target.waiters:
            self._blocked.append(target)
            self._events.address_blocked(address)
        target.waiters.append(waiter)

    def cancel_wait(self, address: str, waiter: SpaceWaiter) -> None:
        """Takes a registration back; harmless when it is gone."""
        target = self.addresses.get(address)
        if target is not None and waiter in target.waiters:
            target.waiters.remove(waiter)

    def _wake_blocked(self) -> None:
        blocked = self._blocked
        self._blocked = []
        for address in blocked:
            if self._memory.is_full(address):
                self._blocked.append(address)
                continue
            waiters = address.waiters
            address.waiters = []
            self._events.address_unblocked(address.name)
            for waiter in waiters:
                waiter.on_space()

    # -- creating ------------------------------------------------------------------------------------------------

    def needs_creation(self, address: str, queue_name: str, routing: int, *, for_subscription: bool) -> list[Creation]:
        """The creations the next send or subscription would cause, as ``(permission, address)``; [] normally."""
        needed: list[Creation] = []
        known = self.addresses.get(address)
        if known is None:
            needed.append(("createAddress", address))
        kind = self._bindings.resolve_routing(address, routing)
        if queue_name:
            if for_subscription and queue_name not in self.queues:
                needed.append(("createDurableQueue", address))
        elif kind == ANYCAST:
            if address not in self.queues and (known is None or not known.anycast or for_subscription):
                needed.append(("createDurableQueue", address))
        elif for_subscription and not self._is_queue(address, routing):
            needed.append(("createNonDurableQueue", address))
        return needed

    def _is_queue(self, name: str, routing: int) -> bool:
        return routing != MULTICAST and name in self.queues

    def address_of(self, address: str, queue_name: str, routing: int) -> str:
        """The address whose permissions decide about a subscription: that of the queue it would read."""
        queue = self.queues.get(queue_name or address) if queue_name or routing != MULTICAST else None
        return queue.address.name if queue is not None else address

    def create_address(self, name: str, routing_types: set[int]) -> Address:
        """Creates an address, or adds routing types to an existing one."""
        address = self._bindings.create_address(name, routing_types)
        self.log.close()
        return address

    def create_queue(self, settings: QueueSettings) -> Queue:
        """Creates a queue and, if need be, its address.

        Raises:
            MisuseError: the name is taken or a setting makes no sense.
        """
        queue = self._bindings.create_queue(settings)
        self.log.close()
        return queue

    def update_queue(self, name: str, *, ring_size: int | None, max_consumers: int | None) -> Queue:
        """Changes a queue while it runs; None goes back to the default of its address. Shrinking removes nothing."""
        queue = self._bindings.queue_named(name)
        old = queue.settings
        settings = QueueSettings(
            old.name,
            old.address,
            old.routing_type,
            old.durable,
            ring_size,
            max_consumers=max_consumers,
            auto_created=old.auto_created,
        )
        self._bindings.update_queue(queue, settings)
        self.log.close()
        return queue

    def delete_queue(self, name: str) -> None:
        """Deletes a queue with everything in it; its consumers are closed, its lease groups lost."""
        queue = self._bindings.queue_named(name)
        for group in [g for g in self.leases.groups.values() if g.queue is queue]:
            self.leases.release(group.name)
        for consumer in list(queue.consumers):
            self._leave(queue, consumer, NONE_UNSEEN)
            consumer.port.closed_by_broker(
                NotFoundError("DMQ2109", f"queue '{name}' was deleted; subscribe to another queue or create it again")
            )
        self._drop(queue)

    def _drop(self, queue: Queue) -> None:
        self._bindings.drop_queue(queue)
        self._bindings.record_drop(queue)
        self._bindings.drop_if_unused(queue.address)
        self.log.close()
        if queue.pending.count:
            self._jobs.add(Purge(queue, self._removals, self.log))
        self._events.queue_deleted(queue.name)

    # -- consuming -----------------------------------------------------------------------------------------------

    def subscribe(
        self,
        address: str,
        port: ConsumerPort,
        credit: Credit,
        *,
        queue_name: str = "",
        routing: int = ANY_ROUTING,
    ) -> Consumer:
        """Attaches a consumer.

        Multicast makes a queue of its own that goes with the consumer; anycast reads the queue named like the address;
        ``queue_name`` reads exactly that queue.

        Raises:
            NotFoundError: there is no such address or queue, and it may not be created.
            LimitError: the queue has as many consumers as it may have.
        """
        queue = self._queue_for(address, queue_name, routing)
        if queue.max_consumers != UNLIMITED and len(queue.consumers) >= queue.max_consumers:
            self.log.close()
            raise LimitError(
                "DMQ2202", f"queue '{queue.name}' has its {queue.max_consumers} consumers already (max-consumers)"
            )
        consumer = Consumer(ConsumerId(self._next_consumer_id), port, credit)
        consumer.queue = queue
        self._next_consumer_id += 1
        queue.join(consumer)
        self._dispatcher.mark(queue)
        self.log.close()
        self._events.consumer_created(queue.name, consumer.id)
        return consumer

    def _queue_for(self, address: str, queue_name: str, routing: int) -> Queue:
        settings = self._bindings.settings_of(address)
        name = queue_name or address
        known = self.queues.get(name) if queue_name or routing != MULTICAST else None
        if known is not None:
            if queue_name and known.address.name != address:
                raise NotFoundError("DMQ2110", f"queue '{queue_name}' is not on address '{address}'; check the name")
            return known
        kind = self._bindings.resolve_routing(address, routing)
        target = self.addresses.get(address)
        if target is not None:
            self._bindings.check_routing(target, routing)
        elif not settings.auto_create_addresses:
            raise NotFoundError(
                "DMQ2111",
                f"there is no address '{address}' and its address-settings don't auto-create it; create it in"
                " broker.xml",
            )
        if kind == MULTICAST and not queue_name:
            own = f"{address}.{self._random.token(12)}"
            return self._bindings.create_queue(
                QueueSettings(own, address, MULTICAST, durable=False, auto_created=True), temporary=True
            )
        if not settings.auto_create_queues:
            raise NotFoundError(
                "DMQ2112",
                f"there is no queue '{name}' and its address-settings don't auto-create it; create it in broker.xml",
            )
        return self._bindings.create_queue(QueueSettings(name, address, kind, durable=True, auto_created=True))

    def credit_changed(self, consumer: Consumer) -> None:
        """The outbox of a consumer has room again: it takes part in dispatch."""
        queue = consumer.queue
        if queue is not None:
            if consumer.parked and not consumer.closed:
                queue.unpark(consumer)
            self._dispatcher.mark(queue)

    def acknowledge(self, consumer: Consumer, sequence: int) -> bool:
        """Ends one delivery. False when the consumer doesn't hold that message."""
        done = self._acks.acknowledge(self._queue_of(consumer), consumer, sequence)
        self.log.close()
        return done

    def acknowledge_through(self, consumer: Consumer, sequence: int) -> bool:
        """Ends all deliveries up to this one. False when the consumer doesn't hold that message."""
        done = self._acks.acknowledge_through(self._queue_of(consumer), consumer, sequence)
        self.log.close()
        return done

    def reject(self, consumer: Consumer, sequence: int) -> bool:
        """Returns one message after a failed delivery: redelivered, or dead-lettered when its attempts are used up."""
        done = self._acks.reject(self._queue_of(consumer), consumer, sequence)
        self.log.close()
        return done

    def reject_through(self, consumer: Consumer, sequence: int) -> bool:
        """`reject` for all messages up to this one."""
        done = self._acks.reject_through(self._queue_of(consumer), consumer, sequence)
        self.log.close()
        return done

    def close_consumer(self, consumer: Consumer, unseen: set[int] | frozenset[int] = NONE_UNSEEN) -> None:
        """Detaches a consumer; what it holds returns in order.

        Args:
            unseen: sequences that never reached the peer; their delivery does not count.
        """
        if consumer.closed:
            return
        queue = self._queue_of(consumer)
        self._leave(queue, consumer, unseen)
        if queue.temporary and not queue.consumers and not queue.deleted:
            self._drop(queue)

    def _leave(self, queue: Queue, consumer: Consumer, unseen: set[int] | frozenset[int]) -> None:
        returning = consumer.held_newest_first()
        queue.leave(consumer)
        self._acks.give_back(queue, consumer, returning, unseen)
        self.log.close()
        self._events.consumer_closed(queue.name, consumer.id)

    @staticmethod
    def _queue_of(consumer: Consumer) -> Queue:
        queue = consumer.queue
        if queue is None:
            raise MisuseError("DMQ2113", f"consumer {consumer.id} was never subscribed")
        return queue

    # -- leasing -------------------------------------------------------------------------------------------------

    def open_lease(self, group: str, *, queue: str, topic: str, run: str, incarnation: str | None) -> LeaseGroup:
        """Opens a lease group on a queue, or on a topic as a durable subscription named like the group.

        Raises:
            LeaseError: see `Leases.open`.
            NotFoundError: there is no such queue, or no such address.
        """
        known = self.leases.groups.get(group)
        if known is not None and topic and known.queue.address.name == topic:
            return self.leases.open(group, known.queue, run, incarnation)
        if not topic:
            return self.leases.open(group, self._bindings.queue_named(queue), run, incarnation)
        if group not in self.queues:
            if topic not in self.addresses:
                raise NotFoundError("DMQ2114", f"there is no address '{topic}' to subscribe to; create it first")
            self._bindings.check_routing(self.addresses[topic], MULTICAST)
            made = self._bindings.create_queue(QueueSettings(group, topic, MULTICAST, durable=True))
            return self.leases.open(group, made, run, incarnation, owns_queue=True)
        return self.leases.open(group, self.queues[group], run, incarnation)

    def release_lease(self, group: str) -> int:
        """Ends a lease group, and with it the subscription that was made for it, unless others read that too.

        Raises:
            LeaseError: there is no such group.
        """
        ended = self.leases.find(group)
        queue = ended.queue
        count = self.leases.release(group)
        if ended.owns_queue and not queue.consumers:
            self._drop(queue)  # nobody would ever empty it
        return count

    def end_overdue_leases(self) -> list[str]:
        """Releases the groups that nobody asks for any more; gives their names. Called now and then by a timer."""
        overdue = self.leases.overdue()
        for name in overdue:
            self.release_lease(name)
        return overdue


def _merged(stored: QueueSettings, configured: QueueSettings) -> QueueSettings:
    """What broker.xml says; what it leaves open stays as it was set at run time."""
    return QueueSettings(
        stored.name,
        stored.address,
        stored.routing_type,
        stored.durable,
        stored.ring_size if configured.ring_size is None else configured.ring_size,
        max_consumers=stored.max_consumers if configured.max_consumers is None else configured.max_consumers,
        auto_created=stored.auto_created,
    )
