"""Long work of an operation: a slice in each tick of the broker, so that others are served in between."""

from collections.abc import Callable, Generator
from typing import Any

from delosmq.engine.api import EngineBroker
from delosmq.manage.messages.declarations import Work


def run_in_slices(
    broker: EngineBroker, work: Work, *, ended: Callable[[Any], None], failed: Callable[[Exception], None]
) -> None:
    """Does the first slice at once; the others come by themselves.

    Args:
        ended: is given the result, failed: what the work raised; one of them is called, once.
    """
    phases = _to_its_end(work, ended, failed)
    for _ in phases:
        broker.jobs.add_phases(phases)
        return


def _to_its_end(
    work: Work, ended: Callable[[Any], None], failed: Callable[[Exception], None]
) -> Generator[int, None, None]:
    try:
        result = yield from work
    except Exception as error:
        failed(error)
    else:
        ended(result)
