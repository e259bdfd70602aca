"""The front of the engine: the commands sessions and management use. Each is one decision, closed as one batch.

It only says where each command lives; what happens is in `send`, `consumers`, `resources`, `lease_group`.
"""

from delosmq.engine.addresses.address import Address
from delosmq.engine.addresses.client_limits import ClientLimits
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import JobWaiter
from delosmq.engine.base.timers import Timer
from delosmq.engine.compaction.compactor import Compactor, LivePlace, Restoration
from delosmq.engine.compaction.live_duplicate_ids import LiveDuplicateIds
from delosmq.engine.compaction.live_messages import LiveMessages
from delosmq.engine.compaction.live_scheduled import LiveScheduled
from delosmq.engine.compaction.live_transactions import LiveTransactions
from delosmq.engine.consumers import EngineConsumers
from delosmq.engine.delivery.acknowledge import NONE_UNSEEN, Acknowledgements
from delosmq.engine.delivery.expiry import Expiry, ExpiryScan
from delosmq.engine.inspect import Inspector
from delosmq.engine.leases.lease import LeaseGroup
from delosmq.engine.leases.lease_group import LeaseGroups
from delosmq.engine.leases.leases import Leases
from delosmq.engine.lifecycle.deletion import Deletion
from delosmq.engine.lifecycle.purge import Purge
from delosmq.engine.lifecycle.required_permissions import Creation, RequiredPermissions
from delosmq.engine.lifecycle.subscriptions import NO_OPTIONS, SubscriptionOptions
from delosmq.engine.log.log import Store
from delosmq.engine.queues.consumer import PLAIN, Consumer, ConsumerOptions, ConsumerPort
from delosmq.engine.queues.credit import Credit
from delosmq.engine.queues.queue import Queue
from delosmq.engine.recovery.replay import EngineReplay, EngineState
from delosmq.engine.recovery.replay_transactions import TransactionReplay
from delosmq.engine.recovery.stored_messages import StoredMessages
from delosmq.engine.resources import EngineResources
from delosmq.engine.routing.copies import MovedCopies
from delosmq.engine.routing.dead_letters import DeadLetters
from delosmq.engine.routing.held_messages import HeldMessages
from delosmq.engine.routing.parts import EngineParts
from delosmq.engine.routing.send import EngineProducers
from delosmq.engine.transactions.commit_steps import CommitSteps
from delosmq.engine.transactions.deadlocks import Deadlocks
from delosmq.engine.transactions.rollback import RollbackSteps
from delosmq.engine.transactions.transaction import Transaction
from delosmq.engine.transactions.transactions import OPEN_PER_OWNER, EngineTransactions
from delosmq.engine.transactions.xa import TMNOFLAGS, TMSUCCESS, Branches, XaError
from delosmq.model.address_settings import AddressSettings
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
        parts = EngineParts(
            settings,
            store,
            clock=clock,
            random=random,
            events=events,
            conversions=conversions if conversions is not None else Conversions({}),
        )
        self._parts = parts
        self.log = parts.log
        self.dropped = parts.dropped
        self.blocked_producers = parts.blocked_producers
        self._dispatcher = parts.dispatcher
        self._jobs = parts.jobs
        self._timers = parts.timers
        copies = MovedCopies(parts)
        self._held = HeldMessages(parts)
        expiry = Expiry(parts, copies, self._held)
        parts.dispatcher.before = expiry
        parts.dispatcher.evictions = parts.evictions
        self._expiry_scan = ExpiryScan(parts, expiry, settings.message_expiry_scan_period_ms)
        dead_letters = DeadLetters(parts, copies, self._held)
        acks = Acknowledgements(parts, dead_letters, expiry)
        self.leases = Leases(
            parts.log,
            acks,
            parts.removals,
            enqueuer=parts.enqueuer,
            dispatcher=parts.dispatcher,
            jobs=parts.jobs,
            clock=clock,
            random=random,
            events=events,
            ordinary_message_bytes=parts.ordinary_message_bytes,
            client_limits=parts.bindings.client_limits,
        )
        self._producers = EngineProducers(parts, dead_letters)
        deadlocks = Deadlocks(parts.bindings, parts.memory, parts.jobs, parts.blocked_producers)
        commit_steps = CommitSteps(parts, self._producers)
        rollback_steps = RollbackSteps(parts, acks)
        self.transactions = EngineTransactions(parts, self._producers, commit_steps, rollback_steps, deadlocks)
        self.branches = Branches(parts, self.transactions)
        self.state = EngineState(parts.bindings, parts.ids, self.leases, self.branches)
        deletion = Deletion(parts)
        self._consumers = EngineConsumers(parts, acks, deletion, self.transactions)
        self._resources = EngineResources(parts, self._consumers, deletion, self.leases)
        self._lease_groups = LeaseGroups(parts, self.leases, deletion)
        self._required_permissions = RequiredPermissions(parts)
        self.inspector = Inspector(parts, self.leases, self.transactions)
        self._compactor = self._make_compactor()

    # -- life ----------------------------------------------------------------------------------------------------

    def _make_compactor(self) -> Compactor:
        parts = self._parts
        transactions = self.transactions.open
        file_size_bytes = self.settings.journal.file_size_bytes
        restoration = Restoration(parts.log, self._store, transactions, file_size_bytes=file_size_bytes)
        live_messages = LiveMessages(parts.bindings.queues, restoration)
        places: list[LivePlace] = [
            live_messages,
            LiveDuplicateIds(parts.duplicates, parts.log),
            LiveScheduled(parts.bindings.queues, restoration),
            LiveTransactions(transactions, live_messages, restoration, parts.log),
        ]
        return Compactor(self._store, parts.jobs, places, restoration)

    @property
    def addresses(self) -> dict[str, Address]:
        """Addresses by name."""
        return self._parts.bindings.addresses

    @property
    def queues(self) -> dict[str, Queue]:
        """Queues by name."""
        return self._parts.bindings.queues

    @property
    def used_bytes(self) -> int:
        """What all messages in memory count together."""
        return self._parts.memory.used_bytes

    @property
    def client_limits(self) -> ClientLimits:
        """How many addresses and queues the clients of each user have made, and may make."""
        return self._parts.bindings.client_limits

    def start(self) -> Position:
        """Replays the store and creates what the configuration names. Returns the position that must be synced before
        the first client is served.

        Raises:
            StorageError: the store is damaged or foreign.
        """
        parts = self._parts
        stored = StoredMessages()
        transactions = TransactionReplay(
            parts.bindings,
            parts.memory,
            parts.duplicates,
            stored=stored,
            transactions=self.transactions,
            branches=self.branches,
        )
        replay = EngineReplay(
            parts.bindings,
            parts.ids,
            self.leases,
            parts.memory,
            schedule=parts.schedule,
            stored=stored,
            transactions=transactions,
        )
        position = self._store.recover(replay)
        self.log.position = position
        self.log.synced = position
        replay.finish(self._store)
        parts.ids.reserve()
        self.log.close()
        replay.purge_dropped(self.log)
        self._resources.configure()
        self._held.begin()
        parts.bindings.limits.in_force = True
        parts.schedule.run()
        self._expiry_scan.start()
        return self.log.position

    @property
    def storage_low(self) -> bool:
        """Whether the store can take no more durable messages for now."""
        return self.log.storage_low

    @property
    def storage_full(self) -> bool:
        """Whether that is so because the disk gives no more, and not for a moment only."""
        return self.log.storage_full

    def set_storage_low(self, low: bool) -> None:
        """The store takes no more messages for now, or does again."""
        self.log.storage_low = low
        if not low:
            self.log.storage_full = False
            self._parts.memory.released = True

    def set_storage_full(self, full: bool) -> None:
        """The disk gives no more, or does again; while it gives nothing space is low, too."""
        self.log.storage_full = full
        if full:
            self.log.storage_low = True
            self._parts.memory.released = True  # some of those who wait are told no now

    def tick(self) -> bool:
        """Keeps appointments, goes on with long work, wakes waiters and dispatches, all bounded. True when more is left
        to do now."""
        if self._timers.next_at:
            self._timers.run(self.clock.monotonic_ns())
        self._compactor.look(self.clock.wall_ms())
        self._jobs.run()
        self.blocked_producers.wake()
        self.leases.wake()
        # What those who were woken began counts as well.
        return self._dispatcher.run() or self._jobs.waiting

    @property
    def next_timer_at(self) -> MonotonicNs:
        """When to call `tick` at the latest even if nothing happens; 0 for no time in particular."""
        return self._timers.next_at

    # -- sending -------------------------------------------------------------------------------------------------

    def send(
        self,
        message: Message,
        *,
        queue_name: str = "",
        routing: int = ANY_ROUTING,
        transaction: Transaction | None = None,
    ) -> int:
        """See `EngineProducers.send`, in a transaction `EngineTransactions.send`."""
        if transaction is not None:
            return self.transactions.send(transaction, message, queue_name, routing)
        return self._producers.send(message, queue_name, routing)

    def expire_due(self, queue: Queue) -> None:
        """See `ExpiryScan.look`."""
        self._expiry_scan.look(queue)

    def call_at(self, due: int, timer: Timer) -> None:
        """See `Timers.at`; in a tick."""
        self._timers.at(due, timer)

    # -- creating ------------------------------------------------------------------------------------------------

    def needs_creation(
        self,
        address: str,
        queue_name: str,
        routing: int,
        *,
        for_subscription: bool,
        subscription: SubscriptionOptions = NO_OPTIONS,
    ) -> list[Creation]:
        """See `RequiredPermissions.needs_creation`."""
        return self._required_permissions.needs_creation(
            address, queue_name, routing, for_subscription=for_subscription, subscription=subscription
        )

    def settings_of(self, address: str) -> AddressSettings:
        """What the address-settings say of an address, whether there is one or not."""
        return self._parts.bindings.settings_of(address)

    def reload(self, settings: BrokerSettings) -> list[str]:
        """See `EngineResources.reload`."""
        self.settings = settings
        return self._resources.reload(settings)

    def create_address(self, name: str, routing_types: set[int], user: str = "") -> Address:
        """See `EngineResources.create_address`."""
        return self._resources.create_address(name, routing_types, user)

    def create_queue(self, settings: QueueSettings, user: str = "") -> Queue:
        """See `EngineResources.create_queue`."""
        return self._resources.create_queue(settings, user)

    def update_queue(self, name: str, **changes: object) -> Queue:
        """See `EngineResources.update_queue`."""
        return self._resources.update_queue(name, **changes)

    def delete_queue(self, name: str, user: str = "") -> None:
        """See `EngineResources.delete_queue`."""
        self._resources.delete_queue(name, user)

    def delete_address(self, name: str, *, force: bool = False, user: str = "") -> None:
        """See `EngineResources.delete_address`."""
        self._resources.delete_address(name, force=force, user=user)

    def pause_queue(self, name: str) -> None:
        """See `EngineResources.update_queue`: it hands out nothing until it is resumed, over restarts too."""
        self._resources.update_queue(name, paused=True)

    def resume_queue(self, name: str) -> None:
        """Ends `pause_queue`."""
        self._resources.update_queue(name, paused=False)

    def disable_queue(self, name: str) -> None:
        """See `EngineResources.update_queue`: no message enters it until it is enabled, over restarts too."""
        self._resources.update_queue(name, enabled=False)

    def enable_queue(self, name: str) -> None:
        """Ends `disable_queue`."""
        self._resources.update_queue(name, enabled=True)

    def purge_queue(self, name: str) -> Purge:
        """See `EngineResources.purge_queue`."""
        return self._resources.purge_queue(name)

    def create_temporary_queue(self, name: str, routing: int, owner: str, user: str = "") -> Address:
        """See `EngineResources.create_temporary`."""
        return self._resources.create_temporary(name, routing, owner, user)

    def delete_temporary_queues(self, owner: str, name: str = "") -> int:
        """See `EngineResources.delete_temporary`."""
        return self._resources.delete_temporary(owner, name)

    def unsubscribe(self, queue_name: str, user: str = "") -> None:
        """See `EngineResources.unsubscribe`."""
        self._resources.unsubscribe(queue_name, user)

    # -- consuming -----------------------------------------------------------------------------------------------

    def subscribe(
        self,
        address: str,
        port: ConsumerPort,
        credit: Credit,
        *,
        queue_name: str = "",
        routing: int = ANY_ROUTING,
        options: ConsumerOptions = PLAIN,
        subscription: SubscriptionOptions | None = None,
    ) -> Consumer:
        """See `EngineConsumers.subscribe`."""
        return self._consumers.subscribe(
            address,
            port,
            credit,
            queue_name=queue_name,
            routing=routing,
            options=options,
            subscription=subscription,
        )

    def extend(self, consumer: Consumer, sequence: int, count: int) -> None:
        """See `EngineConsumers.extend`."""
        self._consumers.extend(consumer, sequence, count)

    def pull(self, consumer: Consumer, count: int) -> None:
        """See `EngineConsumers.pull`."""
        self._consumers.pull(consumer, count)

    def credit_changed(self, consumer: Consumer) -> None:
        """See `EngineConsumers.credit_changed`."""
        self._consumers.credit_changed(consumer)

    def acknowledge(self, consumer: Consumer, sequence: int, transaction: Transaction | None = None) -> bool:
        """See `EngineConsumers.acknowledge`, in a transaction `EngineTransactions.acknowledge`."""
        if transaction is not None:
            return self.transactions.acknowledge(transaction, consumer, sequence)
        return self._consumers.acknowledge(consumer, sequence)

    def acknowledge_through(self, consumer: Consumer, sequence: int, transaction: Transaction | None = None) -> bool:
        """See `EngineConsumers.acknowledge_through`, in a transaction `EngineTransactions.acknowledge_through`."""
        if transaction is not None:
            return self.transactions.acknowledge_through(transaction, consumer, sequence)
        return self._consumers.acknowledge_through(consumer, sequence)

    def reject(
        self,
        consumer: Consumer,
        sequence: int,
        *,
        poison: bool = False,
        count_delivery: bool = True,
        cause: str = "",
    ) -> bool:
        """See `EngineConsumers.reject`."""
        return self._consumers.reject(consumer, sequence, poison=poison, count_delivery=count_delivery, cause=cause)

    def reject_through(
        self, consumer: Consumer, sequence: int, *, poison: bool = False, count_delivery: bool = True
    ) -> bool:
        """See `EngineConsumers.reject_through`."""
        return self._consumers.reject_through(consumer, sequence, poison=poison, count_delivery=count_delivery)

    def expire_delivered(self, consumer: Consumer, sequence: int) -> bool:
        """See `EngineConsumers.expire_delivered`."""
        return self._consumers.expire_delivered(consumer, sequence)

    def close_consumer(self, consumer: Consumer, unseen: set[int] | frozenset[int] = NONE_UNSEEN) -> None:
        """See `EngineConsumers.close_consumer`."""
        self._consumers.close_consumer(consumer, unseen)

    # -- transactions --------------------------------------------------------------------------------------------

    def begin(self, owner: str, at_most: int = OPEN_PER_OWNER) -> Transaction:
        """See `EngineTransactions.begin`."""
        return self.transactions.begin(owner, at_most)

    def commit(self, transaction: Transaction, waiter: JobWaiter | None = None) -> bool:
        """See `EngineTransactions.commit`."""
        return self.transactions.commit(transaction, waiter)

    def rollback(self, transaction: Transaction, *, keep_delivered: bool = False) -> None:
        """See `EngineTransactions.rollback`."""
        self.transactions.rollback(transaction, keep_delivered=keep_delivered)

    def xa_start(self, xid: bytes, flags: int = TMNOFLAGS, owner: str = "") -> Transaction:
        """See `Branches.start`."""
        return self.branches.start(xid, flags, owner)

    def xa_end(self, xid: bytes, flags: int = TMSUCCESS) -> None:
        """See `Branches.end`."""
        self.branches.end(xid, flags)

    def xa_prepare(self, xid: bytes, waiter: JobWaiter | None = None) -> bool:
        """See `Branches.prepare`."""
        return self.branches.prepare(xid, waiter)

    def xa_commit(self, xid: bytes, one_phase: bool, waiter: JobWaiter | None = None) -> bool:
        """See `Branches.commit`."""
        return self.branches.commit(xid, one_phase, waiter)

    def xa_rollback(self, xid: bytes, *, keep_delivered: bool = False) -> None:
        """See `Branches.rollback`."""
        self.branches.rollback(xid, keep_delivered=keep_delivered)

    def xa_branch(self, xid: bytes) -> Transaction | None:
        """See `Branches.branch`."""
        return self.branches.branch(xid)

    def xa_unknown(self, xid: bytes) -> XaError:
        """See `Branches.unknown`."""
        return self.branches.unknown(xid)

    def xa_recover(self) -> list[bytes]:
        """See `Branches.recover`."""
        return self.branches.recover()

    def xa_forget(self, xid: bytes) -> None:
        """See `Branches.forget`."""
        self.branches.forget(xid)

    def xa_set_timeout(self, timeout_ms: int) -> None:
        """See `Branches.set_timeout`."""
        self.branches.set_timeout(timeout_ms)

    def heuristic_commit(self, xid: bytes, waiter: JobWaiter | None = None) -> bool:
        """See `Branches.heuristic_commit`."""
        return self.branches.heuristic_commit(xid, waiter)

    def heuristic_rollback(self, xid: bytes) -> None:
        """See `Branches.heuristic_rollback`."""
        self.branches.heuristic_rollback(xid)

    def prepared_branches(self) -> list[Transaction]:
        """See `Branches.prepared`."""
        return self.branches.prepared()

    def clear_duplicate_ids(self, address: str) -> int:
        """See `Duplicates.clear`."""
        return self._parts.duplicates.clear(address)

    def duplicate_id_count(self, address: str) -> int:
        """See `Duplicates.count`."""
        return self._parts.duplicates.count(address)

    # -- leasing -------------------------------------------------------------------------------------------------

    def open_lease(
        self, group: str, *, queue: str, topic: str, run: str, incarnation: str | None, user: str = ""
    ) -> LeaseGroup:
        """See `LeaseGroups.open`."""
        return self._lease_groups.open(group, queue=queue, topic=topic, run=run, incarnation=incarnation, user=user)

    def release_lease(self, group: str) -> int:
        """See `LeaseGroups.release`."""
        return self._lease_groups.release(group)

    def end_overdue_leases(self) -> list[str]:
        """See `LeaseGroups.end_overdue`."""
        return self._lease_groups.end_overdue()
