"""Messages that are too old: found when their turn comes, and by a scan when it doesn't come.

The scan walks the queues with a cursor each, a slice at a time, and only those that may hold something expired: a heap
of times would have to keep an entry for each message with an expiry until that time, long after it was consumed. Small
queues of a small broker are walked when their first message expires (`ExpiryTimes`), all others every
``message-expiry-scan-period`` and when an operator looks at them.

Only pending messages expire. Source: Artemis QueueImpl.expire, ExpiryScanner.
"""

from collections.abc import Iterator
from typing import Final

from delosmq.engine.base.jobs import LOOK_AGAIN_NS, NEXT_TICK, PhasedJob
from delosmq.engine.base.slots import Slot
from delosmq.engine.base.timers import NS_PER_MS, Timer
from delosmq.engine.delivery.redelivery import record_counts
from delosmq.engine.dispatch.dispatcher import Dispatcher
from delosmq.engine.dispatch.ports import ENDED, ROOM_TO_COME, STAYS, BeforeDelivery
from delosmq.engine.log.batch_limits import FITS, NO_ROOM, WAITS
from delosmq.engine.log.origin import ORIGINAL_QUEUE
from delosmq.engine.log.records import EXPIRED
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.copies import MovedCopies, as_classic
from delosmq.engine.routing.dropped import EXPIRY_ADDRESS
from delosmq.engine.routing.expiry_times import FAR
from delosmq.engine.routing.held_messages import EXPIRED as HELD_EXPIRED
from delosmq.engine.routing.held_messages import HeldMessages, held_count
from delosmq.engine.routing.parts import EngineParts
from delosmq.model.ids import MonotonicNs
from delosmq.model.message import Message
from delosmq.model.settings import DispatchProfile

ACTUAL_EXPIRY: Final = "_AMQ_ACTUAL_EXPIRY"
_EXPIRED_CAUSE: Final = "java.lang.Throwable: Message Expired. Expiration:"
"""As ActiveMQ Classic has it."""

SLICE_COST: Final = 500
EXPIRE_COST: Final = 10
"""Ending a durable message without a copy, in messages looked at; measured in pure Python: 3 us and 0.3 us."""
COPY_COST: Final = 40
"""The same with a copy: 15 us."""
SMALL_QUEUE: Final = 1_000
"""Pending messages up to which a queue is walked when its first message expires: 0.3 ms."""
SMALL_BROKER: Final = 1_000
"""Queues up to which it is looked which of them is due."""
EARLY_SLOTS: Final = 10_000
"""Messages looked at in one early walk; what is left is due again at once."""
UNKNOWN_AGAIN_MS: Final = 1_000
"""When to look again at a queue with messages in delivery: the walk did not see when those expire."""


class Expiry(BeforeDelivery):
    """Ends expired messages: to the expiry address, or for good where there is none."""

    def __init__(self, parts: EngineParts, copies: MovedCopies, held: HeldMessages) -> None:
        self._held = held
        held.movers[HELD_EXPIRED] = (self.may_expire, self.expire_held)
        self._log = parts.log
        self._clock = parts.clock
        self._timers = parts.timers
        self._dispatcher = parts.dispatcher
        self._removals = parts.removals
        self._events = parts.events
        self._dropped = parts.dropped
        self._copies = copies

    def take_expired(self, queue: Queue, slot: Slot, now_ms: int) -> int:
        expires_at_ms = slot.message.expires_at_ms
        if expires_at_ms == 0 or expires_at_ms > now_ms:
            return STAYS
        room = self._room_for(queue, slot)
        if room == WAITS:
            return ROOM_TO_COME
        if room == NO_ROOM:
            return STAYS  # it is delivered late rather than lost
        queue.pending.remove(slot)
        self.expire(queue, slot)
        self._log.close()
        return ENDED

    def record_delivery(self, queue: Queue, slot: Slot) -> None:
        # On a full disk nothing is recorded: consumers go on then, as they make room.
        record_counts(self._log, queue, [slot])
        # What leaves waits at the gate until this is synced.
        slot.message.position = self._log.close()

    def put_off(self, queue: Queue) -> None:
        self._dispatcher.suspend(queue)
        self._timers.at(self._clock.monotonic_ns() + LOOK_AGAIN_NS, _Resume(self._dispatcher, queue))

    def has_room(self, queue: Queue, slot: Slot) -> bool:
        """Whether the store has room for the copy that an expiry address gets."""
        return self._room_for(queue, slot) == FITS

    def _room_for(self, queue: Queue, slot: Slot) -> int:
        return self._copies.room_for(slot, "" if queue.internal else queue.address.settings.expiry_address)

    def cost(self, queue: Queue) -> int:
        """Of ending one message of this queue."""
        return COPY_COST if queue.address.settings.expiry_address else EXPIRE_COST

    def expire(self, queue: Queue, slot: Slot) -> None:
        """Ends a slot that is in no list, as part of the decision under way. When no queue of the expiry address takes
        it, it stays in its queue, held: it is never delivered."""
        moved_to = self._copy(queue, slot.message)
        if moved_to is None:
            self._held.hold(queue, slot, HELD_EXPIRED)
            self._dropped.tell_held(queue.name, EXPIRY_ADDRESS, queue.address.settings.expiry_address)
        else:
            self._end(queue, slot, moved_to)

    def may_expire(self, queue: Queue) -> bool:
        """Whether what is held may end now."""
        settings = queue.address.settings
        name = settings.expiry_address
        return not name or settings.auto_create_expiry_resources or self._copies.may_deliver(settings, name)

    def expire_held(self, queue: Queue, slot: Slot) -> bool:
        """Ends a slot that is held, as a decision of its own; False when that can't be yet."""
        if not self.has_room(queue, slot):
            return False
        moved_to = self._copy(queue, slot.message)
        if moved_to is not None:
            queue.scheduled.remove(slot)
            self._end(queue, slot, moved_to)
        self._log.close()
        return moved_to is not None

    def _copy(self, queue: Queue, message: Message) -> str | None:
        """Puts a copy where expired messages go: gives the address, "" when none is wanted; None when no queue takes
        it."""
        settings = queue.address.settings
        # What is kept for queues to come is no loss: the message itself was in other queues.
        name = "" if queue.internal else settings.expiry_address
        wanted = settings.dead_letter_non_durable or message.durable
        wanted = wanted and self._copies.is_first(settings, message)
        if not name or not wanted or _was_moved_here(queue, message, name):
            return ""
        taker: Queue | None = None
        if settings.auto_create_expiry_resources:
            taker = self._copies.make_resources(
                name,
                message.address,
                message.user,
                prefix=settings.expiry_queue_prefix,
                suffix=settings.expiry_queue_suffix,
            )
        copy = self._copies.of(queue, message, name)
        annotations = copy.annotations
        assert annotations is not None  # a copy is stamped
        annotations[ACTUAL_EXPIRY] = str(self._clock.wall_ms())
        classic = settings.dispatch_profile is DispatchProfile.CLASSIC
        if classic:
            copy = as_classic(copy, message, f"{_EXPIRED_CAUSE}{message.expires_at_ms}")
        if not self._copies.deliver(copy, taker, always=classic):
            return None
        self._copies.remember(settings, message)
        return copy.address

    def _end(self, queue: Queue, slot: Slot, moved_to: str) -> None:
        queue.counters.expired += 1
        self._removals.remove_one(queue, slot, EXPIRED)
        self._events.message_expired(queue.name, slot, moved_to)


def _was_moved_here(queue: Queue, message: Message, expiry_address: str) -> bool:
    """Whether the life of a dead letter (``dead-letter-expiry-delay``) ends where it would be moved to."""
    annotations = message.annotations
    return expiry_address == queue.address.name and annotations is not None and ORIGINAL_QUEUE in annotations


class _Resume(Timer):
    """By now the store may have room for the copy of what expired."""

    def __init__(self, dispatcher: Dispatcher, queue: Queue) -> None:
        self._dispatcher = dispatcher
        self._queue = queue

    def on_timer(self, now: MonotonicNs) -> None:
        self._dispatcher.resume(self._queue)


class ExpiryScan(Timer):
    """Starts a walk through all queues now and then, and through small ones when something in them expires.

    Args:
        period_ms: ``message-expiry-scan-period``; 0 or less: never.
    """

    def __init__(self, parts: EngineParts, expiry: Expiry, period_ms: int) -> None:
        self._timers = parts.timers
        self._clock = parts.clock
        self._jobs = parts.jobs
        self._bindings = parts.bindings
        self._times = parts.expiry_times
        self._expiry = expiry
        self._period_ms = period_ms
        self._walk: PhasedJob | None = None
        self._early: PhasedJob | None = None

    def start(self) -> None:
        """Makes the first appointments."""
        if self._period_ms > 0:
            self._timers.at(self._clock.monotonic_ns() + self._period_ms * NS_PER_MS, self)
            self._times.when_due = self.due
            self._plan()

    def on_timer(self, now: MonotonicNs) -> None:
        self._timers.at(self._clock.monotonic_ns() + self._period_ms * NS_PER_MS, self)
        if self._walk is None or self._walk.over:
            self._walk = PhasedJob(self._jobs, self._look_at(list(self._bindings.queues.values())))
            self._jobs.add(self._walk)

    def due(self) -> None:
        """Something has expired, unless it is gone by now."""
        queues = self._bindings.queues
        if len(queues) > SMALL_BROKER or (self._early is not None and not self._early.over):
            return
        now_ms = self._clock.wall_ms()
        room = EARLY_SLOTS
        chosen: list[Queue] = []
        for queue in queues.values():
            count = queue.pending.count
            if queue.expiring_count and queue.next_expiry_ms <= now_ms and count <= SMALL_QUEUE and room > 0:
                chosen.append(queue)
                room -= count
        self._early = PhasedJob(self._jobs, self._look_early(chosen))
        self._jobs.add(self._early)

    def _look_early(self, queues: list[Queue]) -> Iterator[int]:
        yield from self._look_at(queues)
        self._plan()

    def look(self, queue: Queue) -> None:
        """An operator looks at a queue: what is expired is gone, or goes now where that takes a while."""
        if queue.expiring_count == 0 or queue.next_expiry_ms > self._clock.wall_ms():
            return
        walk = PhasedJob(self._jobs, self._look_at([queue]))
        if not walk.step():
            self._jobs.add(walk)

    def _look_at(self, queues: list[Queue]) -> Iterator[int]:
        """One look at some queues: what is too old ends."""
        room = SLICE_COST
        now_ms = self._clock.wall_ms()
        while queues:
            if room <= 0:
                yield NEXT_TICK
                room = SLICE_COST
                now_ms = self._clock.wall_ms()
            queue = queues.pop()
            room -= 1
            if queue.expiring_count == 0 or queue.next_expiry_ms > now_ms:
                continue
            queue.next_expiry_ms = FAR
            earliest_ms = FAR
            cost = self._expiry.cost(queue)
            cursor = queue.pending.cursor()
            while True:
                if room <= 0:
                    yield NEXT_TICK
                    room = SLICE_COST
                    now_ms = self._clock.wall_ms()
                slot = cursor.peek()
                if slot is None or queue.deleted:
                    break
                cursor.advance(slot)
                room -= 1
                expires_at_ms = slot.message.expires_at_ms
                if expires_at_ms == 0:
                    continue
                if self._expiry.take_expired(queue, slot, now_ms) == ENDED:
                    room -= cost
                else:
                    earliest_ms = min(earliest_ms, expires_at_ms)
            queue.pending.drop(cursor)
            _leave_hint(queue, earliest_ms)

    def _plan(self) -> None:
        """Makes the appointment for what expires next in the small queues."""
        queues = self._bindings.queues
        if len(queues) > SMALL_BROKER:
            return
        now_ms = self._clock.wall_ms()
        earliest_ms = FAR
        for queue in queues.values():
            if queue.expiring_count and queue.pending.count <= SMALL_QUEUE:
                at_ms = queue.next_expiry_ms
                earliest_ms = min(earliest_ms, at_ms if at_ms else now_ms + UNKNOWN_AGAIN_MS)
        self._times.note(earliest_ms)


def _leave_hint(queue: Queue, earliest_ms: int) -> None:
    """Notes before when a queue need not be looked at again; ``earliest_ms``: of what was seen there."""
    # What is held comes back at no time.
    if queue.delivering.count or queue.scheduled.count > held_count(queue):
        queue.next_expiry_ms = 0  # what comes back may be older than all that was seen
    else:
        queue.next_expiry_ms = min(queue.next_expiry_ms, earliest_ms)
