"""Work too long for one tick, cut into slices (docs/decisions/0013: nothing runs long)."""

from abc import ABC, abstractmethod
from collections import deque
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.base.timers import Timer
from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs

SLICES_PER_TICK: Final = 4
"""However many jobs there are, those that connections bring about by closing included, a tick stays below 10 ms."""
FULL_NAP_NS: Final = 1_000_000_000
"""For work that waits on a full disk."""
LOOK_AGAIN_NS: Final = 10_000_000
"""For work that waits for the store's next file, which takes about as long."""


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

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()

    def add(self, job: Job) -> None:
        """Queues a job; it starts with the next tick."""
        self._jobs.append(job)

    @property
    def waiting(self) -> bool:
        return len(self._jobs) > 0

    def run(self) -> bool:
        """A slice of each job, or of those whose turn it is. True while any is left."""
        for _ in range(min(len(self._jobs), SLICES_PER_TICK)):
            job = self._jobs.popleft()
            if not job.step():
                self._jobs.append(job)
        return len(self._jobs) > 0


class GoOn(Timer):
    """Takes up work that had to wait."""

    def __init__(self, jobs: Jobs, work: Job) -> None:
        self._jobs = jobs
        self._work = work

    def on_timer(self, now: MonotonicNs) -> None:
        self._jobs.add(self._work)
