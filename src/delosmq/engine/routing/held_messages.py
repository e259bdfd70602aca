"""Dead letters and expired messages that no queue takes: they stay in their queue, held, and are moved once one does.

They are beside the queue, among what is not due (`scheduled_slots`), with a due time that never comes and says
why they are held. It is recorded, so that they are held after a restart too.
"""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.base.jobs import Job
from delosmq.engine.base.slots import Slot
from delosmq.engine.base.timers import NS_PER_MS, Timer
from delosmq.engine.log.records import encode_scheduled
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts
from delosmq.model.ids import MonotonicNs

DEAD: Final = 253_402_300_798_000
EXPIRED: Final = 253_402_300_799_000
"""Due times, the last seconds of the year 9999: of what a dead-letter address should take, and an expiry address. What
clients schedule is never due so late (`LATEST_DUE_MS`)."""
LOOK_AGAIN_MS: Final = 5_000
"""Between two looks whether there is a queue now."""
MOVES_PER_SLICE: Final = 20
"""A copy takes 40 us in pure Python, and as long as that to find that there is no queue for it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Mover(ABC):
    """Moves what was held."""

    @abstractmethod
    def may_move(self, queue: Queue) -> bool:
        """Whether there may be a queue now for what this one holds: False saves a look at each message."""

    @abstractmethod
    def move(self, queue: Queue, slot: Slot) -> bool:
        """Moves a held slot, as a decision of its own. False when it can't be moved yet: nothing has changed then."""


class HeldMessages(Timer):
    """What all queues hold, and when to look again."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._queues: dict[int, Queue] = {}
        self._waits: bool = False
        self.movers: dict[int, Mover] = {}

    def begin(self) -> None:
        """Finds what was held before the restart."""
        for queue in self._parts.bindings.queues.values():
            if held_count(queue):
                self._remember(queue)

    def hold(self, queue: Queue, slot: Slot, due_at_ms: int) -> None:
        """Keeps a slot that is in no list, for DEAD or EXPIRED, as part of the decision under way."""
        parts = self._parts
        parts.schedule.add_marked(queue, slot, due_at_ms)
        home = slot.message.home
        # On a full disk it is delivered or found too old once more after a crash, and held again.
        if home is not None and slot.recorded and not parts.log.storage_full:
            parts.log.record(encode_scheduled(queue.id, [slot]))
            parts.log.batch().targets.append(home)
        self._remember(queue)

    def _remember(self, queue: Queue) -> None:
        self._queues[queue.id] = queue
        if not self._waits:
            self._waits = True
            parts = self._parts
            parts.timers.at(parts.clock.monotonic_ns() + LOOK_AGAIN_MS * NS_PER_MS, self)

    def on_timer(self, now: MonotonicNs) -> None:
        self._waits = False
        queues = self._queues
        self._queues = {}
        self._parts.jobs.add(_Look(self, list(queues.values())))

    def looked_at(self, queue: Queue) -> None:
        """What is left of a queue is looked at again later."""
        if held_count(queue) and not queue.deleted:
            self._remember(queue)


def held_count(queue: Queue) -> int:
    return dead_count(queue) + expired_count(queue)


def dead_count(queue: Queue) -> int:
    """Those that a dead-letter address should take."""
    return _count(queue, DEAD)


def expired_count(queue: Queue) -> int:
    """Those that an expiry address should take."""
    return _count(queue, EXPIRED)


def is_held(slot: Slot) -> bool:
    return slot.due_at_ms == DEAD or slot.due_at_ms == EXPIRED


def _count(queue: Queue, due_at_ms: int) -> int:
    bucket = queue.scheduled.due_at(due_at_ms)
    return 0 if bucket is None else bucket.count


class _Look(Job):
    def __init__(self, held: HeldMessages, queues: list[Queue]) -> None:
        self._held = held
        self._queues = queues
        self._kinds: list[int] = [DEAD, EXPIRED]
        self._last: Slot | None = None

    def step(self) -> bool:
        room = MOVES_PER_SLICE
        while self._queues and room > 0:
            queue = self._queues[-1]
            if not self._kinds:
                self._kinds = [DEAD, EXPIRED]
                self._queues.pop()
                self._held.looked_at(queue)
                room -= 1
                continue
            room = self._look(queue, self._kinds[-1], room)
            if room > 0:
                self._kinds.pop()
                self._last = None
        return not self._queues

    def _look(self, queue: Queue, kind: int, room: int) -> int:
        """Goes on through what is held for one reason; gives the room that is left, none when there is more."""
        bucket = queue.scheduled.due_at(kind)
        mover = self._held.movers[kind]
        if bucket is None or queue.deleted or not mover.may_move(queue):
            return room
        last = self._last
        # When the slot looked at last is gone meanwhile, the rest has its turn at the next look.
        slot = bucket.head if last is None else last.next if last.in_list is bucket else None
        while slot is not None:
            if room <= 0:
                return 0
            room -= 1
            after = slot.next
            if not mover.move(queue, slot):
                self._last = slot
            slot = after
        return max(room, 1)
