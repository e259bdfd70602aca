"""What a thread has done in its session, told to the loop in order, and together what happens at one time."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from delosmq.client.threads.loop_thread import LoopThread
from delosmq.client.threads.wake_up import WakeUp

T = TypeVar("T")

NOT_YET: Final = object()
"""What a function returns that wants to be called again, before those that are given later."""
_AGAIN_S: Final = 0.005
"""Until then the loop lets the thread go on that has not decided yet."""


class OrderedCalls:
    """What one thread has the loop call and does not wait for: in the order given, and before anything that it asks
    the loop for later, be it in another session."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._functions: deque[Callable[[], object]] = deque()
        self._undecided: list[Callable[[], object]] = []
        self._working = False
        self._again: asyncio.TimerHandle | None = None
        self._wake_up = WakeUp(thread.soon, self.work_off)
        self._look_again: Callable[[], None] = self.work_off  # one object, as the key that it is
        self.put: Callable[[Callable[[], object]], None] = self._functions.append
        self.ask = self._wake_up.ask

    def __len__(self) -> int:
        """How many the loop has not done; one that is not decided yet is counted at any moment."""
        return len(self._functions) + len(self._undecided)

    def add(self, function: Callable[[], object]) -> None:
        self._functions.append(function)
        self._wake_up.ask()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine returns that runs after these; as `LoopThread.run`."""
        if len(self):
            self.ask()  # for what was put by a caller that was interrupted before it asked
        return self._thread.run(work)

    def call(self, function: Callable[[], T]) -> T:
        """What a function returns; as `run`."""

        async def called() -> T:
            return function()

        return self.run(called())

    def work_off(self) -> None:
        """In the loop. One that fails leaves the others their turn: what is asked for later counts on them."""
        functions, undecided = self._functions, self._undecided
        if self._working:
            return  # one of them has led here
        self._working = True
        for _ in range(len(functions)):
            try:
                if functions[0]() is NOT_YET:
                    undecided.append(functions[0])
            except Exception as error:
                told = {"message": "what a thread has done in its session failed in the loop", "exception": error}
                asyncio.get_running_loop().call_exception_handler(told)
            functions.popleft()
        if functions:
            self._wake_up.ask()
        self._thread.undecided.pop(self._look_again, None)
        if undecided:
            functions.extendleft(reversed(undecided))
            undecided.clear()
            self._thread.undecided[self._look_again] = None
            if self._again is None:
                self._again = asyncio.get_running_loop().call_later(_AGAIN_S, self._work_off_again)
        self._working = False

    def _work_off_again(self) -> None:
        self._again = None
        self.work_off()
