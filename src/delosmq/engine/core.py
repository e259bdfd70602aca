"""What all parts of one broker's engine share."""

from delosmq.engine.bindings import Bindings
from delosmq.engine.dispatch import Dispatcher
from delosmq.engine.events import EngineEvents
from delosmq.engine.identifiers import Identifiers
from delosmq.engine.jobs import Jobs
from delosmq.engine.log import Log, Store
from delosmq.engine.memory import MemoryLimits
from delosmq.engine.removals import Removals
from delosmq.engine.routing import Router
from delosmq.engine.timers import Timers
from delosmq.model.conversion import Conversions
from delosmq.model.ports import Clock, Random
from delosmq.model.settings import BrokerSettings
from delosmq.model.wildcard import AddressSettingsTable

STATE_SHARE = 12
"""Part of a segment that addresses and queues may take; the store's limit for the whole state is an eighth."""


class Core:
    """The innermost parts, made in the order in which they need each other.

    Attributes:
        settings, clock, random, events, conversions: as given to the broker.
        log: records of the decision under way. Whoever begins a decision closes it.
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
        self.ids: Identifiers = Identifiers(self.log)
        self.memory: MemoryLimits = MemoryLimits(settings.global_max_size_bytes)
        self.jobs: Jobs = Jobs()
        self.timers: Timers = Timers()
        self.bindings: Bindings = Bindings(
            self.log,
            self.ids,
            AddressSettingsTable(settings.address_settings),
            events,
            state_limit_bytes=settings.journal.file_size_bytes // STATE_SHARE,
        )
        self.dispatcher: Dispatcher = Dispatcher()
        self.removals: Removals = Removals(self.log, self.memory)
        self.router: Router = Router(
            self.log,
            self.ids,
            self.memory,
            removals=self.removals,
            dispatcher=self.dispatcher,
            events=events,
        )
