"""Retroactive addresses: a new subscription starts with the last messages of its address.

They wait in an internal queue whose ring is ``retroactive-message-count``; a new queue gets references to them, the
same messages at the same places. Source: Artemis manual, "Retroactive Addresses".
"""

from typing import Final

from delosmq.engine.bindings import QueueListener
from delosmq.engine.core import Core
from delosmq.engine.filters import Conditions
from delosmq.engine.jobs import Job
from delosmq.engine.queue import Queue
from delosmq.engine.slots import Slot
from delosmq.model.message import MULTICAST
from delosmq.model.settings import UNLIMITED

MESSAGES_PER_SLICE: Final = 500


class Retroactive(QueueListener):
    """Fills new multicast queues."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._conditions = Conditions(core.conversions)

    def queue_added(self, queue: Queue) -> None:
        history = queue.address.history
        if history is None or queue.settings.routing_type != MULTICAST or history.pending.count == 0:
            return
        work = _Fill(self, queue, history)
        if not work.step():
            self._core.dispatcher.hold(queue)
            work.holds_dispatch = True
            self._core.jobs.add(work)

    def refer(self, queue: Queue, slots: list[Slot]) -> None:
        """Gives a queue references to messages that the history of its address holds."""
        core = self._core
        for held in slots:
            message = held.message
            self._conditions.look_at(message)
            if queue.settings.filter and not self._conditions.match(queue.settings.filter):
                continue
            recorded = held.recorded and queue.settings.durable
            if recorded:
                core.router.store_reference(message, queue.id)
            message.references += 1
            slot = Slot(message, recorded)
            queue.link(slot)
            if queue.last_values is not None and not core.last_value_rule.returned(queue, slot):
                continue  # a newer one of its key came while the queue was filled
            if queue.ring.size != UNLIMITED:
                pushed_out = queue.ring.pushed_out(queue.pending)
                if pushed_out is not None:
                    core.router.replace(queue, pushed_out)

    def filled(self, queue: Queue, held_dispatch: bool) -> None:
        """All is there."""
        if held_dispatch:
            self._core.dispatcher.let_go_on(queue)

    def close(self) -> None:
        """Ends the decision under way."""
        self._core.log.close()


class _Fill(Job):
    """Refers to what was there when the queue was made. What the ring pushes out before its turn is no longer among
    the last messages, and left out."""

    def __init__(self, retroactive: Retroactive, queue: Queue, history: Queue) -> None:
        self._retroactive = retroactive
        self._queue = queue
        self._history = history
        self._slots: list[Slot] = history.pending.in_order()
        self._at: int = 0
        self.holds_dispatch: bool = False

    def step(self) -> bool:
        stop = min(len(self._slots), self._at + MESSAGES_PER_SLICE)
        if not self._queue.deleted:
            pending = self._history.pending
            self._retroactive.refer(self._queue, [slot for slot in self._slots[self._at : stop] if pending.holds(slot)])
        self._at = stop
        done = stop == len(self._slots) or self._queue.deleted
        if self.holds_dispatch:
            self._retroactive.close()
        if done:
            self._retroactive.filled(self._queue, self.holds_dispatch)
        return done
