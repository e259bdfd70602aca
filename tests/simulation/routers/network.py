"""Targets of the simulation, and the network between them and a watch: what is asked is answered late, wrongly or
never."""

import heapq
from collections.abc import Callable
from itertools import count
from random import Random

from delosmq.model.declared.router import ConnectorSettings
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.ports import Clock
from delosmq.routers.target_watch import Action, Ask, Close, Open, TargetWatch

MS = 1_000_000
NONSENSE = [None, "", "x" * 201, [], {}, -1, 1.5, "true", True, 7]


class SimClock(Clock):
    """Time, and what is to happen when. It stands while something happens."""

    def __init__(self) -> None:
        self.now = MonotonicNs(1_000 * MS)
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()

    def wall_ms(self) -> WallMs:
        return WallMs(0)

    def monotonic_ns(self) -> MonotonicNs:
        return self.now

    def call_at(self, due: int, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (max(due, self.now), next(self._numbers), call))

    def happen_until(self, end: int) -> bool:
        """Lets the next thing happen that is due until then. Returns whether there was one."""
        if not self._due or self._due[0][0] > end:
            self.now = MonotonicNs(max(end, self.now))
            return False
        due, _, call = heapq.heappop(self._due)
        self.now = MonotonicNs(max(due, self.now))
        call()
        return True


class SimBroker:
    """A broker that may be a target.

    Attributes:
        up: False refuses connections; paused: True takes them, and answers nothing.
        babbles: answers anything.
        bad_since, good_since: since when it does (not) answer as it should, over a network that loses nothing.
    """

    def __init__(self, number: int, node_id: str, now: int) -> None:
        self.connector = ConnectorSettings(f"broker-{number}", f"10.0.0.{number}", 61616)
        self.node_id = node_id
        self.up = True
        self.paused = False
        self.babbles = False
        self.active = True
        self.connections = 0
        self.bad_since: int | None = None
        self.good_since: int | None = now
        self.lines: list[Line] = []

    @property
    def good(self) -> bool:
        return self.up and self.active and not self.paused and not self.babbles

    def changed(self, now: int) -> None:
        """Notes since when it is as it is."""
        if self.good and self.good_since is None:
            self.good_since, self.bad_since = now, None
        elif not self.good and self.bad_since is None:
            self.good_since, self.bad_since = None, now

    def disturb(self, now: int) -> None:
        """Something on the way to it was lost: it counts as good anew from now on."""
        if self.good:
            self.good_since = now


class Line:
    """A watch with its connection to a broker: does what the watch asks for, as the server does it."""

    def __init__(
        self, clock: SimClock, random: Random, broker: SimBroker, watch: TargetWatch, *, faults: float
    ) -> None:
        self._clock = clock
        self._random = random
        self._broker = broker
        self._watch = watch
        self._faults = faults
        self._call = 0  # answers to earlier calls come too late
        self._connected = False
        self._gone = False
        broker.lines.append(self)
        self._arm()

    def close(self) -> None:
        """The target is one no more."""
        self._gone = True
        self._call += 1
        self._broker.lines.remove(self)

    def cut(self) -> None:
        """The connection breaks."""
        if self._connected:
            self._broker.disturb(self._clock.now)
            self._step(self._watch.handle_failure("it has closed the connection", self._clock.now))

    def _arm(self) -> None:
        self._clock.call_at(self._watch.next_timer(), self._on_timer)

    def _on_timer(self) -> None:
        if self._gone or self._clock.now < self._watch.next_timer():
            return
        self._step(self._watch.handle_timer(self._clock.now))

    def _step(self, action: Action) -> None:
        self._call += 1
        match action:
            case Open():
                self._open()
            case Ask(attribute):
                self._ask(attribute)
            case Close():
                self._connected = False
            case None:
                pass
        self._arm()

    def _later(self, step: Callable[[], Action]) -> None:
        """An answer is on its way; it may be late, or lost."""
        call = self._call
        fate = self._random.random()
        if fate < self._faults:
            self._broker.disturb(self._clock.now)
            if fate < self._faults / 2:
                return
            delay = self._random.randrange(2_000, 9_000)
        else:
            delay = self._random.randrange(0, 200)

        def arrive() -> None:
            if self._call == call and not self._gone:
                self._step(step())

        self._clock.call_at(self._clock.now + delay * MS, arrive)

    def _open(self) -> None:
        if not self._broker.up:
            self._later(lambda: self._watch.handle_failure("refused", self._clock.now))
        elif not self._broker.paused:
            self._later(self._opened)

    def _opened(self) -> Action:
        if not self._broker.up:
            return self._watch.handle_failure("it went meanwhile", self._clock.now)
        self._connected = True
        return self._watch.handle_opened(self._clock.now)

    def _ask(self, attribute: str) -> None:
        broker = self._broker
        if broker.paused:
            return
        answers = {"NodeID": broker.node_id, "Active": broker.active, "ConnectionCount": broker.connections}
        answer: object = answers[attribute]
        if broker.babbles:
            # At least one answer of each check makes no sense; a name that does would stay with the connection.
            answer = (
                None if attribute == "Active" else self._random.choice(NONSENSE[: 3 if attribute == "NodeID" else None])
            )
        self._later(lambda: self._watch.handle_answer(answer, self._clock.now))
