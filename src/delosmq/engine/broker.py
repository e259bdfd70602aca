"""The front of the engine: makes its parts, and goes on with what is under way in each tick.

What sessions and management ask of it they ask of a part. Each such call is one decision, closed as one batch.
"""

from delosmq.engine.base.events import EngineEvents, events_for
from delosmq.engine.compaction.compactor import Compactor, LivePlace, Restoration
from delosmq.engine.compaction.live_duplicate_ids import LiveDuplicateIds
from delosmq.engine.compaction.live_messages import LiveMessages
from delosmq.engine.compaction.live_transactions import LiveTransactions
from delosmq.engine.consumers import EngineConsumers
from delosmq.engine.delivery.acknowledgements import Acknowledgements
from delosmq.engine.delivery.expiry import Expiry, ExpiryScan
from delosmq.engine.event_records import EventRecords
from delosmq.engine.inspect import Inspector
from delosmq.engine.kept_entries import KeptEntries, drop_kept
from delosmq.engine.leases.lease_group import LeaseGroups
from delosmq.engine.leases.leases import Leases
from delosmq.engine.lifecycle.deletion import Deletion
from delosmq.engine.lifecycle.required_permissions import RequiredPermissions
from delosmq.engine.log.log import Store
from delosmq.engine.recovery.replay import EngineReplay, EngineState
from delosmq.engine.recovery.replay_leases import LeaseReplay
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
from delosmq.engine.transactions.staged_parts import Staging
from delosmq.engine.transactions.transactions import EngineTransactions
from delosmq.engine.transactions.xa import Branches
from delosmq.model.conversion import Conversions
from delosmq.model.ids import MonotonicNs, Position
from delosmq.model.ports import Clock, Random
from delosmq.model.settings import BrokerSettings


class EngineBroker:
    """One broker's state. All calls come from one thread.

    Attributes:
        addresses, queues: by name.
        producers: send; blocked_producers: wait for room after a send.
        consumers: subscribe, acknowledge, reject, close.
        resources: create, change and delete addresses and queues.
        transactions: begin, send, commit, roll back; branches: those of distributed transactions.
        staging: what sinks stage and publish.
        lease_groups: open and release lease groups; leases: what their readers ask for.
        required_permissions: what a command would create.
        duplicate_ids: that addresses have seen.
        client_limits: how many addresses and queues the clients of each user have made, and may make.
        expiry_scan, timers: when messages expire, and calls in a later tick. jobs: long work, a slice in each tick.
        inspector: where messages stand. It changes nothing.
        event_records: what `delosmq.events` tells.
    """

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
        self.event_records = EventRecords(settings.delosmq_events)
        events = events_for([events, self.event_records]) if settings.delosmq_events else events
        known = conversions if conversions is not None else Conversions({})
        parts = EngineParts(settings, store, clock=clock, random=random, events=events, conversions=known)
        self._parts = parts
        self.log = parts.log
        self.bindings = parts.bindings
        self.addresses = parts.bindings.addresses
        self.queues = parts.bindings.queues
        self.client_limits = parts.bindings.client_limits
        self.duplicate_ids = parts.duplicates
        self.dropped = parts.dropped
        self.blocked_producers = parts.blocked_producers
        self._dispatcher = parts.dispatcher
        self.jobs = parts.jobs
        self.timers = parts.timers
        copies = MovedCopies(parts)
        self._held = HeldMessages(parts)
        expiry = Expiry(parts, copies, self._held)
        parts.dispatcher.before = expiry
        parts.dispatcher.evictions = parts.evictions
        self.expiry_scan = ExpiryScan(parts, expiry, settings.message_expiry_scan_period_ms)
        dead_letters = DeadLetters(parts, copies, self._held)
        acks = Acknowledgements(parts, dead_letters, expiry)
        self.leases = Leases(
            parts.log,
            acks,
            parts.removals,
            dispatcher=parts.dispatcher,
            jobs=parts.jobs,
            clock=clock,
            random=random,
            events=events,
            ordinary_message_bytes=parts.ordinary_message_bytes,
            client_limits=parts.bindings.client_limits,
            settings=settings,
        )
        self.producers = EngineProducers(parts, dead_letters)
        deadlocks = Deadlocks(parts.bindings, parts.memory, parts.jobs, parts.blocked_producers)
        commit_steps = CommitSteps(parts, self.producers)
        rollback_steps = RollbackSteps(parts, acks)
        self.transactions = EngineTransactions(parts, self.producers, commit_steps, rollback_steps, deadlocks)
        self.branches = Branches(parts, self.transactions)
        self.staging = Staging(parts, self.transactions, commit_steps.batch_bytes)
        self.state = EngineState(parts.bindings, parts.log, self.leases, self.branches, self.staging)
        deletion = self._deletion = Deletion(parts)
        self.consumers = EngineConsumers(parts, acks, deletion, self.transactions)
        self.resources = EngineResources(parts, self.consumers, deletion, self.leases)
        self.lease_groups = LeaseGroups(parts, self.leases, deletion, self.transactions.newest_sequence)
        self.required_permissions = RequiredPermissions(parts)
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
            LiveDuplicateIds(parts.duplicates, restoration),
            LiveTransactions(transactions, live_messages, restoration),
        ]
        return Compactor(self._store, parts.jobs, places, restoration)

    @property
    def used_bytes(self) -> int:
        """What all messages in memory count together."""
        return self._parts.memory.used_bytes

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
            staging=self.staging,
        )
        replay = EngineReplay(
            parts.bindings,
            parts.log,
            parts.memory,
            schedule=parts.schedule,
            stored=stored,
            transactions=transactions,
            leases=LeaseReplay(self.leases, parts.events),
        )
        position = self._store.recover(replay)
        self.log.position = position
        self.log.synced = position
        replay.finish(self._store)
        self.log.reserve_ids()
        self.log.close()
        replay.purge_dropped()
        self.event_records.begin(parts, self.producers)
        self.resources.configure()
        self._held.begin()
        parts.bindings.limits.in_force = True
        parts.schedule.run()
        self.expiry_scan.start()
        return self.log.position

    def kept_entries(self, name: str) -> KeptEntries:
        """What a part of the broker keeps beyond its life; once for each name."""
        return KeptEntries(self._parts, name)

    def drop_kept_entries(self, wanted: list[str]) -> None:
        """Forgets what is kept under other names."""
        drop_kept(self._parts, self._deletion, wanted)

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
        if self.timers.next_at:
            self.timers.run(self.clock.monotonic_ns())
        self._compactor.look(self.clock.wall_ms())
        self.jobs.run()
        self.blocked_producers.wake()
        more = self._dispatcher.run()
        self.leases.wake()
        # What those who were woken began counts as well.
        return more or self.jobs.waiting

    @property
    def next_timer_at(self) -> MonotonicNs:
        """When to call `tick` at the latest even if nothing happens; 0 for no time in particular."""
        return self.timers.next_at

    def reload(self, settings: BrokerSettings) -> list[str]:
        """See `EngineResources.reload`."""
        self.settings = settings
        return self.resources.reload(settings)
