"""Consumers before dispatch: a queue begins with its first consumer, or later, so that several share from the start.

Source: activemq-broker Queue.addSubscription and iterate; Artemis QueueImpl.canDispatch.
"""

from typing import Final

from delosmq.engine.base.timers import NS_PER_MS, Timer, Timers
from delosmq.engine.queues.queue import Queue
from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import DispatchProfile

CLASSIC_WAIT_MS: Final = 1_000
"""How long Classic waits for consumers when no time is set."""


class DispatchStart(Timer):
    """Holds up the dispatch of one queue.

    Attributes:
        waiting: nothing is delivered yet.
        draining: nothing is delivered before all that is in delivery is answered.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._timers: Timers | None = None
        self._deadline: int = 0
        self._appointment: int = 0
        self.waiting: bool = False
        self.draining: bool = False

    def consumer_came(self, now: MonotonicNs, timers: Timers) -> None:
        """A consumer joined: the first one begins the wait, enough of them end it."""
        queue = self._queue
        needed = queue.in_force.consumers_before_dispatch
        if queue.consumer_count == 1:
            self._begin(now, timers)
        if self.waiting and 0 < needed <= queue.consumer_count:
            self.waiting = False

    def _begin(self, now: MonotonicNs, timers: Timers) -> None:
        queue = self._queue
        settings = queue.address.settings
        needed = queue.in_force.consumers_before_dispatch
        wait_ms = queue.in_force.delay_before_dispatch
        if settings.dispatch_profile == DispatchProfile.CLASSIC:
            wait_ms = settings.time_before_dispatch_starts
            if wait_ms <= 0 and needed > 0:
                wait_ms = CLASSIC_WAIT_MS
            self.waiting = wait_ms > 0
        else:
            self.waiting = needed > 1
        self._deadline = 0
        if self.waiting and wait_ms >= 0:
            self._deadline = now + wait_ms * NS_PER_MS
            self._timers = timers
            self._appointment = timers.at(self._deadline, self)

    def consumers_gone(self) -> None:
        """The last consumer has left: the next one begins a wait of its own."""
        if self._timers is not None and self._appointment:
            self._timers.cancel(self._appointment)
            self._appointment = 0

    def is_open(self) -> bool:
        """Whether messages may be delivered."""
        if self.waiting:
            return False
        if self.draining:
            for holder in self._queue.holders:
                if holder.held_count and not holder.closed:
                    return False
            self.draining = False
        return True

    def on_timer(self, now: MonotonicNs) -> None:
        self._appointment = 0
        if self.waiting and self._deadline and now >= self._deadline:
            self.waiting = False
            self._queue.ask_dispatch()
