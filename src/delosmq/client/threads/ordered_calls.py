"""What a thread has done in its session, told to the loop in order, and together what happens at one time."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from delosmq.client.threads.loop_thread import LoopThread
from delosmq.client.threads.wake_up import WakeUp


class OrderedCalls:
    """What one thread has the loop call and does not wait for: in the order given, and before anything that it asks
    the loop for later."""

    def __init__(self, thread: LoopThread) -> None:
        self._functions: deque[Callable[[], None]] = deque()
        self._wake_up = WakeUp(thread.soon, self.work_off)
        self.put: Callable[[Callable[[], None]], None] = self._functions.append
        self.ask = self._wake_up.ask

    def __len__(self) -> int:
        """How many the loop has not begun."""
        return len(self._functions)

    def add(self, function: Callable[[], None]) -> None:
        self._functions.append(function)
        self._wake_up.ask()

    def work_off(self) -> None:
        """In the loop. One that fails leaves the others their turn: what is asked for later counts on them."""
        functions = self._functions
        for _ in range(len(functions)):
            try:
                functions.popleft()()
            except Exception as error:
                told = {"message": "what a thread has done in its session failed in the loop", "exception": error}
                asyncio.get_running_loop().call_exception_handler(told)
        if functions:
            self._wake_up.ask()

    def withdraw(self, function: Callable[[], None]) -> None:
        """Not to be called, unless it was."""
        with suppress(ValueError):
            self._functions.remove(function)
