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
_ROUTE: Final = "where a key goes"
_LONGEST_NODE_ID: Final = 200
_MOST_COUNTED: Final = 2**31 - 1
"""Connections: the largest number of Java's int, which Artemis answers with. With larger ones no policy can reckon."""
_ASKED_IN_A_ROW: Final = 3
"""How often a target has to say the same of a key: one that takes turns says it now and then."""
MOST_HOPS: Final = 10
"""Brokers of a circle: what they say of each other has to come round by then."""
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
class AskRoute:
    """Ask its router of the same name where it would send a key, then `TargetWatch.handle_answer` with a tuple of node
    ids: of that broker, and of those that follow as far as it knows. Empty when it would keep or refuse the key, or
    does not tell."""

    key: str


@dataclass(frozen=True)
class Close:
    """Close the connection; what still comes from it counts for nothing."""


Action = Open | Ask | AskRoute | Close | None
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
        self._count: int | None = None
        self._keys: list[str] = []
        self._said: tuple[str, ...] = ()
        self._said_times = 0

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
            self._keys = self._target.suspected(now) if answer else []
            self._count = None
            return self._ask(self._probe) if self._probe else self._ask_route(now)
        if self._asked == _ROUTE:
            return self._handle_route(answer, now)
        if not isinstance(answer, int) or isinstance(answer, bool) or not 0 <= answer <= _MOST_COUNTED:
            return self.handle_failure(f"its {self._probe} is no whole number from 0 to {_MOST_COUNTED}", now)
        self._count = answer
        return self._ask_route(now)

    def _handle_route(self, answer: object, now: MonotonicNs) -> Action:
        key = self._keys[-1]
        onward = self._onward(answer)
        if onward and (onward == self._said or not self._said_times):
            self._said = onward
            self._said_times += 1
            if self._said_times < _ASKED_IN_A_ROW:
                return AskRoute(key)
            self._target.onward[key] = onward
        else:
            self._target.onward.pop(key, None)
        self._keys.pop()
        return self._ask_route(now)

    def _onward(self, answer: object) -> tuple[str, ...]:
        """The brokers that a key comes by behind the target, until it is back."""
        if not isinstance(answer, tuple):
            return ()
        onward: list[str] = []
        for node_id in answer[:MOST_HOPS]:
            if not isinstance(node_id, str) or len(node_id) > _LONGEST_NODE_ID:
                return ()
            onward.append(node_id)
            if node_id == self._pool.node_id:
                break
        return tuple(onward)

    def _ask_route(self, now: MonotonicNs) -> Action:
        """Asks for the next key that may go in a circle; the check is over when there is none."""
        self._said = ()
        self._said_times = 0
        if not self._keys:
            return self._checked(self._count, now)
        self._asked = _ROUTE
        return AskRoute(self._keys[-1])

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
