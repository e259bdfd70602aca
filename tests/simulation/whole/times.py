"""When what waits is due, by which clock: worked out anew from what was seen to wait.

A time of day, and when a message expires, go by the wall clock. A delay goes by the monotonic one as long as the broker
runs, however the wall clock is set meanwhile. The rules stand in docs/decisions/0041.
"""

from typing import NamedTuple

from delosmq.engine.base.slots import Slot
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.held_messages import is_held
from delosmq.model.ids import WallMs
from tests.engine.support import ManualClock

DAYS_400_MS = 400 * 86_400_000
NAP_MS = 1_000
"""That the wall clock was set is noticed within that."""
DRIFT_MS = 20
"""Clocks that are so far apart may go on as they are."""


class SetClock(ManualClock):
    """A wall clock that is set now and then, and a monotonic one that nobody sets.

    Attributes:
        set_at_ms: when it was set last, by the monotonic clock.
        latest_by_ms, earliest_by_ms: how far ahead it ever was, and how far behind (negative).
    """

    def __init__(self) -> None:
        super().__init__()
        self.set_at_ms = 0
        self.latest_by_ms = 0
        self.earliest_by_ms = 0

    def set(self, by_ms: int) -> None:
        """Sets the wall clock so much ahead of the monotonic one."""
        self.set_by_ms = by_ms
        self.set_at_ms = self.now_ms
        self.latest_by_ms = max(self.latest_by_ms, by_ms)
        self.earliest_by_ms = min(self.earliest_by_ms, by_ms)

    def true_wall_ms(self) -> int:
        """What the wall clock shows; a broker that is wrong about it looks at `wall_ms`."""
        return self.now_ms + self.set_by_ms

    def latest_wall_ms(self) -> int:
        """The latest time it may have shown."""
        return self.now_ms + self.latest_by_ms

    def cut_short(self, due_at_ms: int, longest_ms: int) -> bool:
        """Whether an earlier start may have cut that end of a delay short, as the clock showed less then than now."""
        return self.earliest_by_ms < self.set_by_ms and due_at_ms <= self.now_ms + self.earliest_by_ms + longest_ms


class MeasuresDelaysByTheWall(SetClock):
    """A canary: setting the wall clock ends delays, or makes them longer."""

    def monotonic_ns(self) -> int:  # type: ignore[override]
        return self.true_wall_ms() * 1_000_000


class NeverHearsOfASetting(SetClock):
    """A canary: what expires, and what is to come at a time of day, goes by the monotonic clock."""

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)


class Wait(NamedTuple):
    """A message that is not due.

    Attributes:
        due_at_ms: by the wall clock.
        ends_at_ms: of a delay, by the monotonic one; 0 when it is none.
    """

    slot: Slot
    due_at_ms: int
    ends_at_ms: int


class Times:
    """What waits in the queues of one life of a broker."""

    def __init__(self, clock: SetClock) -> None:
        self.clock = clock
        self._waits: dict[int, Wait] = {}
        # Too old already, or dead, and where they should go is no queue.
        self._held: dict[int, Slot] = {}

    def note(self, queues: dict[str, Queue]) -> None:
        """Looks at what waits. Comes before each setting of the clock."""
        known, self._waits, self._held = self._waits, {}, {}
        for queue in queues.values():
            for slot in queue.scheduled.in_order():
                wait = known.get(id(slot))
                if wait is None or wait.due_at_ms != slot.due_at_ms:
                    wait = Wait(slot, slot.due_at_ms, self._ends_at_ms(slot))
                if is_held(slot):
                    self._held[id(slot)] = slot
                else:
                    self._waits[id(slot)] = wait

    def _ends_at_ms(self, slot: Slot) -> int:
        message = slot.message
        # One that was delivered at its time of day waits for that again after a restart with the clock set back.
        delayed = message.delay_ms > 0 or slot.due_at_ms != message.due_at_ms
        ends_at_ms = slot.due_at_ms - self.clock.set_by_ms if delayed else 0
        if message.delay_ms and not slot.delivery_count and not is_held(slot):
            # Whatever the clock showed before a restart.
            left_ms = ends_at_ms - self.clock.now_ms
            assert left_ms <= message.delay_ms + DRIFT_MS, f"{slot.sequence} waits {left_ms} ms of {message.delay_ms}"
        return ends_at_ms

    def check(self, queues: dict[str, Queue]) -> None:
        """Nothing waits longer than it should."""
        self.note(queues)
        clock = self.clock
        now_ms = clock.now_ms
        for slot, due_at_ms, ends_at_ms in self._waits.values():
            if ends_at_ms:
                late = now_ms > ends_at_ms + DRIFT_MS
            else:
                late = clock.true_wall_ms() > due_at_ms and now_ms > clock.set_at_ms + NAP_MS
            assert not late, f"{slot.sequence} still waits, which was due at {due_at_ms}"

    def came_due(self, slot: Slot) -> None:
        """The broker says that a message has waited long enough."""
        wait = self._waits.pop(id(slot), None)
        if wait is None:
            return
        clock = self.clock
        if wait.ends_at_ms:
            early = clock.now_ms + DRIFT_MS < wait.ends_at_ms
        else:
            early = clock.true_wall_ms() < wait.due_at_ms
        assert not early, f"{slot.sequence} is due before {wait.due_at_ms}, or before its delay is over"

    def expired(self, slot: Slot) -> None:
        """The broker says that a message is too old."""
        if id(slot) in self._held:
            return
        expires_at_ms = slot.message.expires_at_ms
        assert self.clock.true_wall_ms() >= expires_at_ms, f"{slot.sequence} expires before {expires_at_ms}"
