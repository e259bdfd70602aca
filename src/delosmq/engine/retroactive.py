"""Retroactive addresses: a new subscription starts with the last messages of its address.

They wait in an internal queue (`history`); a new queue gets references to them, the same messages at the same places.
Of a message that its sender marked to be retained it gets a copy, which says so.

Source: Artemis manual, "Retroactive Addresses"; activemq-broker, the SubscriptionRecoveryPolicy classes.
"""

from typing import Final

from delosmq.engine.address import RETAIN, Address
from delosmq.engine.bindings import QueueListener
from delosmq.engine.core import Core
from delosmq.engine.filters import Conditions
from delosmq.engine.history import Aging, HistoryRing
from delosmq.engine.jobs import Job
from delosmq.engine.queue import Queue
from delosmq.engine.slots import PendingSlots, Slot
from delosmq.model.ids import WallMs
from delosmq.model.message import MULTICAST, Message
from delosmq.model.settings import UNLIMITED

MESSAGES_PER_SLICE: Final = 500
RETAINED: Final = "ActiveMQ.Retained"
"""Marks what a late subscriber gets because its sender had it kept. Source: ActiveMQMessage."""


class Retroactive(QueueListener):
    """Fills new multicast queues."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._conditions = Conditions(core.conversions)

    def history_added(self, history: Queue) -> None:
        ring = history.ring
        if not isinstance(ring, HistoryRing) or history.address.settings.subscription_recovery_duration == 0:
            return
        core = self._core
        ring.aging = Aging(history, core.router, core.log, timers=core.timers, clock=core.clock)
        if history.pending.count:
            ring.aging.arm()

    def queue_added(self, queue: Queue, *, asked: bool) -> None:
        address = queue.address
        if queue.settings.routing_type != MULTICAST:
            return
        settings = address.settings
        all_of_it = asked or settings.always_retroactive is True
        sources = [address, *self._meant_by(address)] if all_of_it and address.wild else [address]
        histories = [source.history for source in sources if source.history is not None]
        if all_of_it:
            self._give_last(queue, histories, UNLIMITED)
        elif settings.always_retroactive is None:
            self._give_last(queue, histories, settings.retroactive_message_count)
        for source in sources:
            if source.retained is not None and all_of_it:
                self._give_retained(queue, source.retained)

    def _meant_by(self, wild: Address) -> list[Address]:
        """The addresses for which a wildcard stands and that keep messages."""
        bindings = self._core.bindings
        found: list[Address] = []
        for address in bindings.addresses.values():
            if address.wild or (address.history is None and address.retained is None):
                continue
            if address.linked_at != bindings.wild_changes:
                bindings.relink(address)
            if wild in address.links:
                found.append(address)
        return found

    def _give_last(self, queue: Queue, histories: list[Queue], count: int) -> None:
        held = _last_of(histories, count)
        if not held:
            return
        work = _Fill(self, queue, held)
        if not work.step():
            self._core.dispatcher.hold(queue)
            work.holds_dispatch = True
            self._core.jobs.add(work)

    def _give_retained(self, queue: Queue, retained: Queue) -> None:
        slot = retained.pending.head()
        if slot is None:
            return
        message = slot.message
        expired = 0 < message.expires_at_ms <= self._core.clock.wall_ms()
        # An empty one is sent to have nothing retained.
        if expired or not message.body:
            return
        self._conditions.look_at(message)
        if self._conditions.match(queue.settings.filter):
            if message.durable and queue.settings.durable:
                self._core.log.close()  # it may fill a batch of its own
            self._core.router.put(self._as_retained(message), [queue], queue.address)

    def _as_retained(self, message: Message) -> Message:
        annotations = dict(message.annotations) if message.annotations is not None else {}
        annotations.pop(RETAIN, None)
        annotations[RETAINED] = "true"
        return Message(
            message.address,
            message.protocol,
            self._core.conversions.rewritten_head(message, (RETAIN,), {}, (RETAINED,)),
            message.body,
            body_kind=message.body_kind,
            priority=message.priority,
            durable=message.durable,
            timestamp_ms=WallMs(message.timestamp_ms),
            expires_at_ms=message.expires_at_ms,
            user=message.user,
            annotations=annotations,
            group_id=message.group_id,
            group_sequence=message.group_sequence,
            connection_id=message.connection_id,
        )

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

    def __init__(self, retroactive: Retroactive, queue: Queue, held: list[tuple[PendingSlots, Slot]]) -> None:
        self._retroactive = retroactive
        self._queue = queue
        self._held = held
        self._at: int = 0
        self.holds_dispatch: bool = False

    def step(self) -> bool:
        stop = min(len(self._held), self._at + MESSAGES_PER_SLICE)
        if not self._queue.deleted:
            held = self._held[self._at : stop]
            self._retroactive.refer(self._queue, [slot for pending, slot in held if pending.holds(slot)])
        self._at = stop
        done = stop == len(self._held) or self._queue.deleted
        if self.holds_dispatch:
            self._retroactive.close()
        if done:
            self._retroactive.filled(self._queue, self.holds_dispatch)
        return done


def _last_of(histories: list[Queue], count: int) -> list[tuple[PendingSlots, Slot]]:
    """What they hold, each message once, in the order it came; the last ``count``, or all of it."""
    held = [(history.pending, slot) for history in histories for slot in history.pending.in_order()]
    if len(histories) > 1:
        by_sequence = {int(slot.sequence): (pending, slot) for pending, slot in held}
        held = [by_sequence[sequence] for sequence in sorted(by_sequence)]
    return held if count == UNLIMITED else held[max(0, len(held) - count) :]
