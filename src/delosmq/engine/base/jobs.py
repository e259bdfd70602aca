"""Work too long for one tick, cut into slices (docs/decisions/0013: nothing runs long)."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.base.timers import Timer, Timers
from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Clock

SLICES_PER_TICK: Final = 4
"""However many jobs there are, those that connections bring about by closing included, a tick stays below 10 ms."""
FULL_NAP_NS: Final = 1_000_000_000
"""For work that waits on a full disk."""
LOOK_AGAIN_NS: Final = 10_000_000
"""For work that waits for the store's next file, which takes about as long."""
NEXT_TICK: Final = 0
OTHERS_FIRST: Final = -1
"""What a job of several phases yields after a slice: it goes on in the next tick, or looks then whether other work is
done that it waits for. Or the time in nanoseconds for which it sleeps."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Job(ABC):
    """A resumable piece of work."""

    @abstractmethod
    def step(self) -> bool:
        """Does at most a slice. True when all is done."""


@mypyc_attr(allow_interpreted_subclasses=True)
class JobWaiter(ABC):
    """Waits for the end of something that goes on in slices: a commit, a prepare, a cumulative acknowledgement."""

    @abstractmethod
    def on_ended(self, error: BrokerError | None) -> None:
        """It is done, and its confirmation waits for the log's position; or it was rolled back because of ``error``.

        Called from `EngineBroker.tick`; must not call the engine.
        """


class Jobs:
    """Runs a few slices per tick, of one job after the other."""

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self._jobs: deque[Job] = deque()

    def add(self, job: Job) -> None:
        """Queues a job; it starts with the next tick."""
        self._jobs.append(job)

    def add_phases(self, phases: Iterator[int]) -> None:
        """Queues work written as a generator; see `PhasedJob`."""
        self.add(PhasedJob(self, phases))

    def add_later(self, nap_ns: int, job: Job) -> None:
        """Queues a job that waits for room, when it has slept."""
        self._timers.at(self._clock.monotonic_ns() + nap_ns, _Wake(self, job))

    @property
    def waiting(self) -> bool:
        return len(self._jobs) > 0

    def run(self) -> bool:
        """A slice of each job, or of those next in turn. True while any is left. A job that raises is dropped; what it
        raised goes to the caller, and the others have their turn in the next tick."""
        for _ in range(min(len(self._jobs), SLICES_PER_TICK)):
            job = self._jobs.popleft()
            if not job.step():
                self._jobs.append(job)
        return len(self._jobs) > 0


class PhasedJob(Job):
    """Work of several phases, written as a generator: it yields after each slice, and calls a plain function for it."""

    def __init__(self, jobs: Jobs, phases: Iterator[int]) -> None:
        """``phases``: yields NEXT_TICK, OTHERS_FIRST or how long to sleep."""
        self._jobs = jobs
        self._phases: Iterator[int] | None = phases

    @property
    def over(self) -> bool:
        """Nothing is left to do, or a slice has raised: a generator ends with its first exception."""
        return self._phases is None

    def step(self) -> bool:
        """See `Job.step`; True as well when it sleeps, and comes back by itself."""
        phases = self._phases
        if phases is None:
            return True
        more = False
        try:
            for nap_ns in phases:
                more = True
                if nap_ns > 0:
                    self._jobs.add_later(nap_ns, self)
                return nap_ns > 0
        finally:
            if not more:
                self._phases = None  # frees what it worked on, even if its end is asked for later
        return True


class _Wake(Timer):
    """Takes up work that slept."""

    def __init__(self, jobs: Jobs, job: Job) -> None:
        self._jobs = jobs
        self._job = job

    def on_timer(self, now: MonotonicNs) -> None:
        self._jobs.add(self._job)
