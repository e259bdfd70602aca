"""What the application has done, told to the loop in order, and together what happens at one time."""

from collections import deque
from collections.abc import Callable

from delosmq.client.threads.loop_thread import LoopThread


class OrderedCalls:
    """What one thread has the loop call, in the order given, and before anything that it asks the loop for later.

    Args:
        then: is called after them.
    """

    def __init__(self, thread: LoopThread, then: Callable[[], None]) -> None:
        self._thread = thread
        self._then = then
        self._functions: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def add(self, function: Callable[[], None]) -> None:
        self._functions.append(function)
        if not self._scheduled:
            self._scheduled = True
            self._thread.soon(self._call)

    def _call(self) -> None:
        self._scheduled = False
        while self._functions:
            self._functions.popleft()()
        self._then()

    def forget(self) -> None:
        """In the loop, after those that were scheduled: `add` was interrupted."""
        self._scheduled = False
        self._functions.clear()
