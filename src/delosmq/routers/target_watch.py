"""The watch over a target: when it is asked how it is, what counts as an answer, and when it is not ready.

Source: Artemis, TargetMonitor.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from delosmq.model.ids import MonotonicNs
from delosmq.routers.pool import TargetPool
from delosmq.routers.target import RouterTarget

CHECK_TIMEOUT_NS: Final = 3_000_000_000
"""For a connection with its login, and for each check."""
NODE_ID: Final = "NodeID"
ACTIVE: Final = "Active"
_LONGEST_NODE_ID: Final = 200
_MOST_COUNTED: Final = 2**31 - 1
"""Connections: the largest number of Java's int, which Artemis answers with. With larger ones no policy can reckon."""
_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True)
class Open:
    """Connect to the target and log in, then `TargetWatch.handle_opened`."""


@dataclass(frozen=True)
class Ask:
    """Ask for an attribute of its resource ``broker``, then `TargetWatch.handle_answer`."""

    attribute: str


@dataclass(frozen=True)
class Close:
    """Close the connection; what still comes from it counts for nothing."""


Action = Open | Ask | Close | None
"""What is to be done next; None for nothing before `TargetWatch.next_timer`."""


class _Step(Enum):
    RESTING = auto()
    """There is no connection."""
    OPENING = auto()
    ASKING = auto()
    CONNECTED = auto()
    """There is one, and nothing is asked."""


class TargetWatch:
    """Asks one target at once, and again every check-period. After each action comes the input that it names, or
    `handle_failure`, or `handle_timer` when its time is over.

    Args:
        probe: a further attribute to ask for, a whole number; "" for none.
    """

    def __init__(self, pool: TargetPool, target: RouterTarget, probe: str, now: MonotonicNs) -> None:
        self._pool = pool
        self._target = target
        self._probe = probe
        self._period_ns = pool.settings.check_period_ms * _NS_PER_MS
        self._step = _Step.RESTING
        self._due: int = now
        self._asked = ""
        self._node_id = ""
        self._active = False

    def next_timer(self) -> MonotonicNs:
        """When `handle_timer` has something to do: a check begins, or what was asked took too long."""
        return MonotonicNs(self._due)

    def handle_timer(self, now: MonotonicNs) -> Action:
        if now < self._due:
            return None
        if self._step is _Step.RESTING:
            self._step = _Step.OPENING
            self._due = now + CHECK_TIMEOUT_NS
            return Open()
        if self._step is _Step.CONNECTED:
            self._due = now + CHECK_TIMEOUT_NS
            return self._ask(ACTIVE)
        return self.handle_failure(f"no answer within {CHECK_TIMEOUT_NS // _NS_PER_S} s", now)

    def handle_opened(self, now: MonotonicNs) -> Action:
        """The target has let us in."""
        return self._ask(NODE_ID) if self._step is _Step.OPENING else None

    def handle_answer(self, answer: object, now: MonotonicNs) -> Action:
        """The target has answered what was asked; it may answer anything."""
        if self._step is not _Step.ASKING:
            return None
        if self._asked == NODE_ID:
            if not isinstance(answer, str) or not 0 < len(answer) <= _LONGEST_NODE_ID:
                return self.handle_failure("its NodeID is no text", now)
            self._node_id = answer
            self._due = now + CHECK_TIMEOUT_NS
            return self._ask(ACTIVE)
        if self._asked == ACTIVE:
            if not isinstance(answer, bool):
                return self.handle_failure("its Active is neither true nor false", now)
            self._active = answer
            return self._ask(self._probe) if self._probe else self._checked(None, now)
        if not isinstance(answer, int) or isinstance(answer, bool) or not 0 <= answer <= _MOST_COUNTED:
            return self.handle_failure(f"its {self._probe} is no whole number from 0 to {_MOST_COUNTED}", now)
        return self._checked(answer, now)

    def handle_failure(self, trouble: str, now: MonotonicNs) -> Action:
        """The connection is lost, or can't be had, or the target does not answer as it should."""
        if self._step is _Step.RESTING:
            return None
        self._step = _Step.RESTING
        self._due = now + self._period_ns
        self._pool.failed(self._target, trouble)
        return Close()

    def _ask(self, attribute: str) -> Action:
        self._step = _Step.ASKING
        self._asked = attribute
        return Ask(attribute)

    def _checked(self, count: int | None, now: MonotonicNs) -> Action:
        self._step = _Step.CONNECTED
        self._due = now + self._period_ns
        self._pool.checked(self._target, self._node_id, self._active, count)
        return None
