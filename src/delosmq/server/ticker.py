"""The broker's pulse: after a turn of the loop in which frames were handled, one tick does all that follows from them.

frames handled -> tick: dispatch and jobs -> flush the store -> write the outboxes -> (again if work is left)
store synced   -> gate opens -> write the outboxes
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from delosmq.engine.api import EngineBroker, StoreEvents
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs, Position
from delosmq.server.clock import Appointment, ServerClock
from delosmq.server.turn_loop import turn_of
from delosmq.sessions.outbox import Gate, SyncAsker
from delosmq.storage.port import NO_DESCRIPTOR, ServedStore

SYNC_WITHIN_S: Final = 0.020
"""What no client waits for is synced after this time, or in the same again when it came meanwhile: a crash of the
machine loses at most twice as much of it."""

# How often a store may retry what failed for want of space. Source: `ServedStore.tick`.
_STORE_TICK_S: Final = 1.0


class TickParticipant(ABC):
    """Something that writes at the end of a tick."""

    @abstractmethod
    def write_outbox(self) -> bool:
        """Writes what is ready. True when the engine has new work from it."""


class Ticker(SyncAsker):
    """Runs the ticks of one broker.

    Args:
        on_fatal: called once with what can't be survived: a failing store, a broken invariant.

    Attributes:
        scheduled: a tick is to come in this turn of the loop, or in the next.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        broker: EngineBroker,
        store: ServedStore,
        *,
        clock: ServerClock,
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        self._loop = loop
        self._broker = broker
        self._store = store
        self.clock = clock
        self._on_fatal = on_fatal
        self.scheduled = False
        self._stopped = False
        self._held_up = False
        self._writers: list[TickParticipant] = []
        self._next_writers: list[TickParticipant] = []
        self._store_timer: asyncio.TimerHandle | None = None
        self._engine_timer: Appointment | None = None
        self._engine_due: int = 0
        self._sync_timer: asyncio.TimerHandle | None = None
        self._put_off: Position = NOTHING_DURABLE
        self._turn = turn_of(loop)

    def start(self) -> None:
        """Begins to listen to the store."""
        descriptor = self._store.fileno()
        if descriptor != NO_DESCRIPTOR:
            self._loop.add_reader(descriptor, self._on_store_readable)
        self._store_timer = self._loop.call_later(_STORE_TICK_S, self._on_store_timer)
        self.schedule()

    def stop(self) -> None:
        """Ends everything this ticker scheduled; the store stays open."""
        self._stopped = True
        for timer in (self._store_timer, self._engine_timer, self._sync_timer):
            if timer is not None:
                timer.cancel()
        descriptor = self._store.fileno()
        if descriptor != NO_DESCRIPTOR:
            self._loop.remove_reader(descriptor)

    @property
    def running(self) -> bool:
        """False after `stop` or a fatal error: nothing will be written any more."""
        return not self._stopped

    def schedule(self) -> None:
        """Asks for a tick in this turn of the loop; one is enough for all who ask."""
        if not self.scheduled:
            self.scheduled = True
            self._loop.call_soon(self.run)

    def resume(self) -> None:
        """The store is this broker's for sure again: what was held up leaves."""
        if not self._stopped:
            self.schedule()

    def claim(self) -> bool:
        """True: nothing else has come in this turn of the loop, and no tick is asked for. Who claims it handles what
        came and calls `run`, which saves a turn."""
        if self.scheduled or self._turn is None or self._turn.ready != 1:
            return False
        self.scheduled = True
        return True

    def write_soon(self, writer: TickParticipant) -> None:
        """Has ``writer`` write at the end of the next tick."""
        self._writers.append(writer)
        self.schedule()

    def write_next_turn(self, writer: TickParticipant) -> None:
        """Has ``writer`` write on after what else has come was handled."""
        self._next_writers.append(writer)

    def fatal(self, error: BaseException) -> None:
        """Reports what the broker can't survive; nothing is confirmed any more."""
        if not self._stopped:
            self._stopped = True
            self._on_fatal(error)

    def run(self) -> None:
        """One tick: what `schedule` or `claim` stands for."""
        # Still counts as scheduled: what is asked for while a tick runs is served by it, or by the one `again` brings.
        if self._stopped:
            return
        try:
            again = self._broker.tick()
            self._store.flush()
            # The writers wait: the store tells when it is this broker's again, or fails.
            self._held_up = not self._store.may_leave()
            while self._writers and not self._held_up:
                writers = self._writers
                self._writers = []
                for writer in writers:
                    if not self.running:
                        return  # the store has failed within this tick
                    again = writer.write_outbox() or again
            if self._next_writers and not self._held_up:
                self._writers, self._next_writers = self._next_writers, []
                again = True
        except Exception as error:
            self.fatal(error)
            return
        self.scheduled = False
        if self._sync_timer is None:
            self._sync_later()
        if again:
            self.schedule()
        elif self._broker.next_timer_at != self._engine_due:
            self._arm(self._broker.next_timer_at)

    def _arm(self, due: MonotonicNs) -> None:
        """Has a tick run at the engine's next appointment."""
        self._engine_due = due
        if self._engine_timer is not None:
            self._engine_timer.cancel()
            self._engine_timer = None
        if due:
            self._engine_timer = self.clock.call_at(self._loop, due, self._on_engine_timer)

    def _on_engine_timer(self) -> None:
        self._engine_due = 0
        self._engine_timer = None
        self.schedule()

    def _sync_later(self) -> None:
        """Bounds how long a store may put off the sync of what no client waits for."""
        position = self._store.put_off()
        if position:
            self._put_off = position
            self._sync_timer = self._loop.call_later(SYNC_WITHIN_S, self._on_sync_timer)

    def _on_sync_timer(self) -> None:
        self._sync_timer = None
        try:
            self._store.catch_up(self._put_off)
        except Exception as error:
            self.fatal(error)
            return
        self._sync_later()

    def _on_store_readable(self) -> None:
        claimed = self.claim()
        try:
            self._store.on_readable()
        except Exception as error:
            self.fatal(error)
        if claimed:
            self.run()
            return
        if self._held_up:
            self.schedule()
        if self._sync_timer is None and not self._stopped:
            self._sync_later()  # what was owed is written by reports, too

    def _on_store_timer(self) -> None:
        try:
            self._store.tick(self.clock.monotonic_ns())
        except Exception as error:
            self.fatal(error)
            return
        self._store_timer = self._loop.call_later(_STORE_TICK_S, self._on_store_timer)
        # Jobs that are due (leases, waiting requests) need a tick even when no bytes come.
        self.schedule()


class GateEvents(StoreEvents):
    """Passes on what the store reports: to the log, the gate and the engine."""

    def __init__(self, broker: EngineBroker, gate: Gate) -> None:
        self._broker = broker
        self._gate = gate
        self._ticker: Ticker | None = None

    def attach(self, ticker: Ticker) -> None:
        """From now on a failure reaches the server, and space wakes it."""
        self._ticker = ticker
        self._gate.asker = ticker

    def on_synced(self, position: Position) -> None:
        self._broker.log.synced = position
        self._gate.on_synced(position)

    def on_space(self, low: bool) -> None:
        self._broker.set_storage_low(low)
        if self._ticker is not None:
            self._ticker.schedule()

    def on_full(self, full: bool) -> None:
        self._broker.set_storage_full(full)
        if self._ticker is not None:
            self._ticker.schedule()

    def on_failure(self, error: Exception) -> None:
        if self._ticker is None:
            raise error
        self._ticker.fatal(error)

    def awaited(self) -> Position:
        return self._gate.awaited
