"""The pulse of a broker under test."""

import asyncio
from collections.abc import Callable

from delosmq.engine.api import EngineBroker
from delosmq.server.clock import ServerClock
from delosmq.server.ticker import Ticker
from delosmq.storage.port import ServedStore

Watchers = list[Callable[[], None]]
"""Called after each tick, hence after whatever has changed; they return at once."""


class WatchedTicker(Ticker):
    """Runs ticks that are looked at."""

    def __init__(
        self,
        watchers: Watchers,
        loop: asyncio.AbstractEventLoop,
        broker: EngineBroker,
        store: ServedStore,
        *,
        clock: ServerClock,
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        super().__init__(loop, broker, store, clock=clock, on_fatal=on_fatal)
        self._watchers = watchers

    def run(self) -> None:
        super().run()
        if self.running:
            for look in tuple(self._watchers):  # other threads add and remove
                look()
