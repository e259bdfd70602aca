"""The parts of one broker's engine, for the objects that share them."""

from collections.abc import Callable

from delosmq.engine.addresses.bindings import Bindings
from delosmq.engine.addresses.duplicate_ids import Duplicates
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import Jobs
from delosmq.engine.base.timers import Timers
from delosmq.engine.dispatch.dispatcher import Dispatcher
from delosmq.engine.dispatch.schedule import Schedule
from delosmq.engine.log.batch_limits import largest_batch_bytes, ordinary_batch_bytes
from delosmq.engine.log.log import Log, Store
from delosmq.engine.queues.eviction import Evictions
from delosmq.engine.queues.last_value import LastValueRule
from delosmq.engine.queues.memory_limits import MemoryLimits
from delosmq.engine.queues.removal import Removals
from delosmq.engine.routing.blocked_producers import BlockedProducers
from delosmq.engine.routing.dropped import DroppedMessages
from delosmq.engine.routing.enqueue import Enqueuer
from delosmq.engine.routing.expiry_times import ExpiryTimes
from delosmq.engine.routing.route import Routes
from delosmq.model.conversion import Conversions
from delosmq.model.ports import Clock, Random
from delosmq.model.settings import BrokerSettings, JournalSettings
from delosmq.model.wildcard import AddressSettingsTable

RECORD_ROOM_BYTES = 8 * 1024
"""Kept free in a batch for what a record holds beside the encoded message."""
IDS_SHARE = 192
"""And a part of the file for the ids of the queues that keep it, 8 bytes each. Where there are more queues the store
has larger files, and more room for them."""
MAX_MESSAGE_BYTES = 1 << 31


class EngineParts:
    """The innermost parts, made in the order in which they need each other.

    Attributes:
        settings, clock, random, events, conversions: as given to the broker.
        log: records of the decision under way. What begins a decision closes it.
        largest_message_bytes: no message is larger.
        ordinary_message_bytes: a larger one asks for its place first (`Log.ask_large`).
    """

    def __init__(
        self,
        settings: BrokerSettings,
        store: Store,
        *,
        clock: Clock,
        random: Random,
        events: EngineEvents,
        conversions: Conversions,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.random = random
        self.events = events
        self.conversions = conversions
        self.log: Log = Log(store)
        self.memory: MemoryLimits = MemoryLimits(settings.global_max_size_bytes)
        self.dropped: DroppedMessages = DroppedMessages()
        self.timers: Timers = Timers()
        self.jobs: Jobs = Jobs(clock, self.timers)
        self.bindings: Bindings = Bindings(
            self.log,
            AddressSettingsTable(settings.address_settings, settings.wildcards),
            events,
            clock=clock,
            settings=settings,
        )
        self.duplicates: Duplicates = Duplicates(self.log, self.bindings, events, settings=settings)
        self.dispatcher: Dispatcher = Dispatcher(
            self.bindings.ready_queues, clock, self.timers, conversions, jobs=self.jobs, events=events
        )
        self.removals: Removals = Removals(self.log, self.memory)
        self.evictions: Evictions = Evictions(self.removals, events, log=self.log, jobs=self.jobs)
        self.last_value_rule: LastValueRule = LastValueRule(self.evictions, conversions)
        self.expiry_times: ExpiryTimes = ExpiryTimes(clock, self.timers)
        self.schedule: Schedule = Schedule(
            self.log,
            self.timers,
            self.jobs,
            clock=clock,
            dispatcher=self.dispatcher,
            evictions=self.evictions,
            last_value_rule=self.last_value_rule,
        )
        self.enqueuer: Enqueuer = Enqueuer(
            self.log,
            self.memory,
            removals=self.removals,
            evictions=self.evictions,
            schedule=self.schedule,
            last_value_rule=self.last_value_rule,
            expiry_times=self.expiry_times,
            events=events,
        )
        # Non-durable ones too: a lease stores what it holds.
        self.largest_message_bytes: int = _message_bytes(settings.journal, largest_batch_bytes)
        self.ordinary_message_bytes: int = _message_bytes(settings.journal, ordinary_batch_bytes)
        self.routes: Routes = Routes(
            self.bindings, self.memory, events=events, conversions=conversions, batch_bytes=self.ordinary_message_bytes
        )
        self.blocked_producers: BlockedProducers = BlockedProducers(
            self.bindings, self.memory, events, ordinary_message_bytes=self.ordinary_message_bytes
        )


def _message_bytes(journal: JournalSettings, most: Callable[[int], int]) -> int:
    """The largest message that a batch of ``most`` bytes holds."""
    return most(journal.file_size_bytes) - record_room_bytes(journal) if journal.directory else MAX_MESSAGE_BYTES


def record_room_bytes(journal: JournalSettings) -> int:
    """What the largest record holds beside its message, and rather more."""
    return RECORD_ROOM_BYTES + journal.file_size_bytes // IDS_SHARE
