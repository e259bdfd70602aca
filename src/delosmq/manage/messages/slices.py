"""Long work of an operation: a slice in each tick of the broker, so that others are served in between."""

from collections.abc import Callable
from typing import Any

from delosmq.engine.api import EngineBroker, Timer
from delosmq.manage.messages.declarations import Work
from delosmq.model.ids import MonotonicNs


class SlicedWork(Timer):
    """Runs one generator to its end.

    Args:
        ended: is given its result, and called at most once.
        failed: is given what it raised, likewise.
    """

    def __init__(
        self,
        broker: EngineBroker,
        work: Work,
        *,
        ended: Callable[[Any], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._broker = broker
        self._work = work
        self._ended = ended
        self._failed = failed

    def step(self) -> None:
        """One slice; the next one comes by itself."""
        try:
            rest_ns = next(self._work)
        except StopIteration as over:
            self._ended(over.value)
        except Exception as error:
            self._failed(error)
        else:
            self._broker.timers.at(self._broker.clock.monotonic_ns() + rest_ns, self)

    def on_timer(self, now: MonotonicNs) -> None:
        self.step()
