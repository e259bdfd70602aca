"""What the threads that use a session, and its listeners, have the loop do: one thread at a time, as in JMS."""

import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident
from typing import Any, Final, TypeVar

from delosmq.client.errors import forked, used_by_two
from delosmq.client.threads.loop_thread import LoopThread
from delosmq.client.threads.ordered_calls import OrderedCalls
from delosmq.sessions.client_errors import IllegalStateError

T = TypeVar("T")

LISTENER: Final = -1
"""The caller before a listener: it is not counted."""

_this_thread: Final = threading.local()


def in_listener() -> bool:
    """Whether the caller is a listener: it can't wait for its own end."""
    return getattr(_this_thread, "listens", False)


def _mark_listener() -> None:
    _this_thread.listens = True


class SessionCalls(OrderedCalls):
    """Counts the thread that is at work in a session; otherwise as `OrderedCalls`.

    Attributes:
        caller: that thread, 0 for none. It is set back without a call, which a signal handler could interrupt.
    """

    def __init__(self, thread: LoopThread) -> None:
        super().__init__(thread)
        self.caller = 0
        self._listeners: ThreadPoolExecutor | None = None

    def enter(self) -> int:
        """This thread is at work in the session, until `caller` is set back to what this returns, but for `LISTENER`.

        Raises:
            IllegalStateError: DMQ9081, another thread is; DMQ9084, this is a child of its process.
        """
        if in_listener():
            return LISTENER
        if self._thread.forked:
            raise forked()
        before = self.caller  # once: the other thread may leave meanwhile
        if before not in (0, get_ident()):  # a signal handler runs in the thread that it interrupts
            raise used_by_two("thread")
        self.caller = get_ident()
        return before

    def run_alone(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine of the session returns.

        Raises:
            IllegalStateError: as `LoopThread.run`, and `enter`.
        """
        try:
            before = self.enter()
        except IllegalStateError:
            work.close()
            raise
        try:
            return self.run(work)
        finally:
            if before != LISTENER:
                self.caller = before

    def call_alone(self, function: Callable[[], T]) -> T:
        """What a function returns; as `run_alone`."""

        async def called() -> T:
            return function()

        return self.run_alone(called())

    def listener_thread(self) -> ThreadPoolExecutor:
        """The one in which the session calls its listeners."""
        if self._listeners is None:
            self._listeners = ThreadPoolExecutor(1, "delosmq-listener", initializer=_mark_listener)
        return self._listeners

    def end_listeners(self) -> None:
        """Ends their thread, once the last one has returned."""
        if self._listeners is not None:
            self._listeners.shutdown(wait=not in_listener())
