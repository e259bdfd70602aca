"""What a thread has done in its session, told to the loop in order, and together what happens at one time."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from delosmq.client.threads.loop_thread import LoopThread
from delosmq.client.threads.wake_up import WakeUp

NOT_YET: Final = object()
"""What a function returns that wants to be called again, before those that are given later."""


class OrderedCalls:
    """What one thread has the loop call and does not wait for: in the order given, and before anything that it asks
    the loop for later."""

    def __init__(self, thread: LoopThread) -> None:
        self._functions: deque[Callable[[], object]] = deque()
        self._early: list[Callable[[], object]] = []
        self._working = False
        self._wake_up = WakeUp(thread.soon, self.work_off)
        self.put: Callable[[Callable[[], object]], None] = self._functions.append
        self.ask = self._wake_up.ask

    def __len__(self) -> int:
        """How many the loop has not done; one that waits for its turn is counted at any moment."""
        return len(self._functions) + len(self._early)

    def add(self, function: Callable[[], object]) -> None:
        self._functions.append(function)
        self._wake_up.ask()

    def work_off(self) -> None:
        """In the loop. One that fails leaves the others their turn: what is asked for later counts on them."""
        functions, early = self._functions, self._early
        if self._working:
            return  # one of them has led here
        self._working = True
        for _ in range(len(functions)):
            try:
                if functions[0]() is NOT_YET:
                    early.append(functions[0])
            except Exception as error:
                told = {"message": "what a thread has done in its session failed in the loop", "exception": error}
                asyncio.get_running_loop().call_exception_handler(told)
            functions.popleft()
        functions.extendleft(reversed(early))
        early.clear()
        self._working = False
        if functions:
            self._wake_up.ask()
