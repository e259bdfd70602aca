"""A session is used by one thread or task at a time, as JMS has it: who uses it while another one does is told.

Listeners are not counted: whatever they do with their session is in turn with what it delivers.
"""

import asyncio
from contextvars import ContextVar
from typing import Final

from delosmq.client.errors import used_by_two

by_listener: Final[ContextVar[bool]] = ContextVar("by_listener", default=False)
"""Set where a listener or an ``on_completion`` of asyncio is called, and so in what they begin."""


def is_cancelled() -> bool:
    """Whether this task is, and not something that a listener has waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class OneCaller:
    """What a session of asyncio knows of those that use it.

    Attributes:
        counts_callers: False where many may use it at once, or its owner counts them.
        waits: a call is under way that waits for something.
    """

    def __init__(self) -> None:
        self.counts_callers: bool = True
        self.waits: bool = False

    def check_caller(self) -> None:
        """
        Raises:
            IllegalStateError: DMQ9081, another task is at work in it.
        """
        if self.waits and not by_listener.get():
            raise used_by_two("task")

    def begin_to_wait(self) -> None:
        """A call waits from now on; `end_to_wait` follows."""
        if self.counts_callers and not by_listener.get():
            self.waits = True

    def end_to_wait(self) -> None:
        if not by_listener.get():
            self.waits = False
