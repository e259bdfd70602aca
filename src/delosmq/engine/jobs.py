"""Work too long for one tick, cut into slices (docs/decisions/0013: nothing runs long)."""

from abc import ABC, abstractmethod
from collections import deque

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Job(ABC):
    """A resumable piece of work."""

    @abstractmethod
    def step(self) -> bool:
        """Does at most a slice. True when all is done."""


class Jobs:
    """Runs one slice of each job per tick."""

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()

    def add(self, job: Job) -> None:
        """Queues a job; it starts with the next tick."""
        self._jobs.append(job)

    def run(self) -> bool:
        """One slice of each. True while any is left."""
        for _ in range(len(self._jobs)):
            job = self._jobs.popleft()
            if not job.step():
                self._jobs.append(job)
        return len(self._jobs) > 0
