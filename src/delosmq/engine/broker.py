"""The front of the engine: the commands sessions and management use. Each is one decision, closed as one batch.

It only says where each command lives; what happens is in `sending`, `consuming`, `administration`, `leasing`.
"""

from delosmq.engine.acks import NONE_UNSEEN, Acknowledgements
from delosmq.engine.address import Address, SpaceWaiter
from delosmq.engine.administration import Administration
from delosmq.engine.consumer import Consumer, ConsumerPort
from delosmq.engine.consuming import Consuming
from delosmq.engine.core import Core
from delosmq.engine.credit import Credit
from delosmq.engine.dead_letters import DeadLetters
from delosmq.engine.dropping import Dropping
from delosmq.engine.events import EngineEvents
from delosmq.engine.foresight import Creation, Foresight
from delosmq.engine.leases import LeaseGroup, Leases
from delosmq.engine.leasing import Leasing
from delosmq.engine.log import Store
from delosmq.engine.queue import Queue
from delosmq.engine.replay import EngineReplay, EngineState
from delosmq.engine.sending import Sending
from delosmq.model.conversion import Conversions
from delosmq.model.ids import MonotonicNs, Position
from delosmq.model.message import ANY_ROUTING, Message
from delosmq.model.ports import Clock, Random
from delosmq.model.settings import BrokerSettings, QueueSettings


class Broker:
    """One broker's state. All calls come from one thread."""

    def __init__(
        self,
        settings: BrokerSettings,
        store: Store,
        *,
        clock: Clock,
        random: Random,
        events: EngineEvents,
        conversions: Conversions | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self._store = store
        core = Core(
            settings,
            store,
            clock=clock,
            random=random,
            events=events,
            conversions=conversions if conversions is not None else Conversions({}),
        )
        self._core = core
        self.log = core.log
        self._dispatcher = core.dispatcher
        self._jobs = core.jobs
        self._timers = core.timers
        dead_letters = DeadLetters(core.bindings.addresses, core.router, core.removals, clock=clock, events=events)
        acks = Acknowledgements(
            core.log,
            core.removals,
            dead_letters,
            router=core.router,
            dispatcher=core.dispatcher,
            events=events,
        )
        self.leases = Leases(
            core.log,
            acks,
            core.removals,
            router=core.router,
            dispatcher=core.dispatcher,
            jobs=core.jobs,
            clock=clock,
            random=random,
            events=events,
        )
        self.state = EngineState(core.bindings, core.ids, self.leases)
        dropping = Dropping(core)
        self._sending = Sending(core)
        self._consuming = Consuming(core, acks, dropping)
        self._administration = Administration(core, self._consuming, dropping, self.leases)
        self._leasing = Leasing(core, self.leases, dropping)
        self._foresight = Foresight(core)

    # -- life ----------------------------------------------------------------------------------------------------

    @property
    def addresses(self) -> dict[str, Address]:
        """Addresses by name."""
        return self._core.bindings.addresses

    @property
    def queues(self) -> dict[str, Queue]:
        """Queues by name."""
        return self._core.bindings.queues

    @property
    def used_bytes(self) -> int:
        """What all messages in memory count together."""
        return self._core.memory.used_bytes

    def start(self) -> Position:
        """Replays the store and creates what the configuration names. Returns the position that must be synced before
        the first client is served.

        Raises:
            StorageError: the store is damaged or foreign.
        """
        core = self._core
        replay = EngineReplay(core.bindings, core.ids, self.leases, core.memory)
        position = self._store.recover(replay)
        self.log.position = position
        self.log.synced = position
        replay.finish(self._store)
        core.ids.reserve()
        self.log.close()
        replay.purge_dropped(self.log)
        self._administration.configure()
        return self.log.position

    @property
    def storage_low(self) -> bool:
        """Whether the store can take no more durable messages for now."""
        return self.log.storage_low

    def set_storage_low(self, low: bool) -> None:
        """The store is nearly full, or has room again."""
        self.log.storage_low = low
        if not low:
            self._core.memory.released = True

    def tick(self) -> bool:
        """Keeps appointments, goes on with long work, wakes waiters and dispatches, all bounded. True when more is left
        to do now."""
        if self._timers.next_at:
            self._timers.run(self.clock.monotonic_ns())
        more = self._jobs.run()
        self._sending.wake()
        self.leases.wake()
        return self._dispatcher.run() or more

    @property
    def next_timer_at(self) -> MonotonicNs:
        """When to call `tick` at the latest even if nothing happens; 0 for no time in particular."""
        return self._timers.next_at

    # -- sending -------------------------------------------------------------------------------------------------

    def send(self, message: Message, *, queue_name: str = "", routing: int = ANY_ROUTING) -> int:
        """See `Sending.send`."""
        return self._sending.send(message, queue_name, routing)

    def wait_for_space(self, address: str, waiter: SpaceWaiter) -> None:
        """See `Sending.wait_for_space`."""
        self._sending.wait_for_space(address, waiter)

    def cancel_wait(self, address: str, waiter: SpaceWaiter) -> None:
        """See `Sending.cancel_wait`."""
        self._sending.cancel_wait(address, waiter)

    # -- creating ------------------------------------------------------------------------------------------------

    def needs_creation(self, address: str, queue_name: str, routing: int, *, for_subscription: bool) -> list[Creation]:
        """See `Foresight.needs_creation`."""
        return self._foresight.needs_creation(address, queue_name, routing, for_subscription=for_subscription)

    def address_of(self, address: str, queue_name: str, routing: int) -> str:
        """See `Foresight.address_of`."""
        return self._foresight.address_of(address, queue_name, routing)

    def create_address(self, name: str, routing_types: set[int]) -> Address:
        """See `Administration.create_address`."""
        return self._administration.create_address(name, routing_types)

    def create_queue(self, settings: QueueSettings) -> Queue:
        """See `Administration.create_queue`."""
        return self._administration.create_queue(settings)

    def update_queue(self, name: str, **changes: object) -> Queue:
        """See `Administration.update_queue`."""
        return self._administration.update_queue(name, **changes)

    def delete_queue(self, name: str) -> None:
        """See `Administration.delete_queue`."""
        self._administration.delete_queue(name)

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
        """See `Consuming.subscribe`."""
        return self._consuming.subscribe(address, port, credit, queue_name=queue_name, routing=routing)

    def credit_changed(self, consumer: Consumer) -> None:
        """See `Consuming.credit_changed`."""
        self._consuming.credit_changed(consumer)

    def acknowledge(self, consumer: Consumer, sequence: int) -> bool:
        """See `Consuming.acknowledge`."""
        return self._consuming.acknowledge(consumer, sequence)

    def acknowledge_through(self, consumer: Consumer, sequence: int) -> bool:
        """See `Consuming.acknowledge_through`."""
        return self._consuming.acknowledge_through(consumer, sequence)

    def reject(self, consumer: Consumer, sequence: int) -> bool:
        """See `Consuming.reject`."""
        return self._consuming.reject(consumer, sequence)

    def reject_through(self, consumer: Consumer, sequence: int) -> bool:
        """See `Consuming.reject_through`."""
        return self._consuming.reject_through(consumer, sequence)

    def close_consumer(self, consumer: Consumer, unseen: set[int] | frozenset[int] = NONE_UNSEEN) -> None:
        """See `Consuming.close_consumer`."""
        self._consuming.close_consumer(consumer, unseen)

    # -- leasing -------------------------------------------------------------------------------------------------

    def open_lease(self, group: str, *, queue: str, topic: str, run: str, incarnation: str | None) -> LeaseGroup:
        """See `Leasing.open`."""
        return self._leasing.open(group, queue=queue, topic=topic, run=run, incarnation=incarnation)

    def release_lease(self, group: str) -> int:
        """See `Leasing.release`."""
        return self._leasing.release(group)

    def end_overdue_leases(self) -> list[str]:
        """See `Leasing.end_overdue`."""
        return self._leasing.end_overdue()
