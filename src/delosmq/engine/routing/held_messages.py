"""Dead letters and expired messages that no queue takes: they stay in their queue, held, and are moved once one does.

They are beside the queue, among what is not due (`scheduled_slots`), with a due time that never comes and says
why they are held. It is recorded, so that they are held after a restart too.
"""

from collections.abc import Callable, Iterator
from typing import Final

from delosmq.engine.base.jobs import NEXT_TICK, PhasedJob
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


MayMove = Callable[[Queue], bool]
"""Whether there may be a queue now for what this one holds: False saves a look at each message."""
Move = Callable[[Queue, Slot], bool]
"""Moves a held slot, as a decision of its own. False when it can't be moved yet: nothing has changed then."""


class HeldMessages(Timer):
    """What all queues hold, and when to look again.

    Attributes:
        movers: for DEAD and EXPIRED.
    """

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._queues: dict[int, Queue] = {}
        self._waits: bool = False
        self.movers: dict[int, tuple[MayMove, Move]] = {}

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
        self._parts.jobs.add(PhasedJob(self._parts.jobs, self._move(list(queues.values()))))

    def _move(self, queues: list[Queue]) -> Iterator[int]:
        """Moves what can be moved by now; what is left is looked at again later."""
        room = MOVES_PER_SLICE
        while queues:
            if room <= 0:
                yield NEXT_TICK
                room = MOVES_PER_SLICE
            queue = queues.pop()
            room -= 1
            for due_at_ms in (EXPIRED, DEAD):
                _, move = self.movers[due_at_ms]
                last: Slot | None = None
                slot = self._next_of(queue, due_at_ms, last)
                while slot is not None:
                    if room <= 0:
                        yield NEXT_TICK
                        room = MOVES_PER_SLICE
                        slot = self._next_of(queue, due_at_ms, last)
                        continue
                    room -= 1
                    after = slot.next
                    if not move(queue, slot):
                        last = slot
                    slot = after
            if held_count(queue) and not queue.deleted:
                self._remember(queue)

    def _next_of(self, queue: Queue, due_at_ms: int, last: Slot | None) -> Slot | None:
        """The slot behind the last one that stayed. When that is gone, the rest has its turn at the next look."""
        bucket = queue.scheduled.due_at(due_at_ms)
        may_move, _ = self.movers[due_at_ms]
        if bucket is None or queue.deleted or not may_move(queue):
            return None
        if last is None:
            return bucket.head
        return last.next if last.in_list is bucket else None


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
