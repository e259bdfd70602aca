"""The thread in which all blocking connections of a process have their event loop; there is one while there are any."""

import asyncio
import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from delosmq.client.errors import forked, in_the_loop
from delosmq.client.threads.wake_up import WakeUp
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client.errors import closed

T = TypeVar("T")
_TURNS_TO_THE_SOCKETS: Final = 4
"""Of the loop: what was done in a session, its messages, their frames, and one more."""


_this_thread: Final = threading.local()


def _mark_worker() -> None:
    """An exception listener runs in it, and may close the last connection: the loop then waits for this thread."""
    _this_thread.works = True


class LoopCall(Generic[T]):
    """A coroutine that one thread waits for, while the loop runs it as a task.

    Nothing of it is touched outside of the loop before it has ended, and no lock of it is taken in the loop: so the
    caller may be interrupted anywhere, and a signal handler that runs in its thread may use the client.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self._cancelled = False
        self._unclaimed = [None]  # popped by what starts it, or withdraws it
        # Released at the end. A Future's condition would not do: a signal handler that waits for the loop, and is
        # called while its own thread holds that, would have the loop wait for it.
        self._ended = threading.Lock()
        self._ended.acquire()

    def start(self) -> None:
        """In the loop."""
        try:
            self._unclaimed.pop()
        except IndexError:
            return
        if self._cancelled:
            self._work.close()
            return
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(lambda _: self._ended.release())

    def cancel(self) -> None:
        """In the loop."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()

    def withdraw(self) -> bool:
        """Whether the loop has not started it, and never will."""
        try:
            self._unclaimed.pop()
        except IndexError:
            return False
        self._work.close()
        return True

    def wait(self) -> T:
        """What the coroutine returns.

        Raises:
            IllegalStateError: DMQ9001, the loop ended first.
        """
        self._ended.acquire()
        task, self._task = self._task, None
        assert task is not None  # it has ended
        if task.cancelled():
            raise closed("connection")
        return task.result()


class LoopThread:
    """An event loop in a thread of its own, which ends when the last user has left.

    The loop and all that belongs to it are touched in this thread alone. Other threads have it do things, and wait
    where they want to know what came of it. They never hold the loop themselves, nor any lock: signal handlers and
    KeyboardInterrupt come in the midst of whatever a thread does, the first may use the client, and the second may
    leave nothing half done that others share.

    Attributes:
        forked: this process is the child of the one in which the thread runs, and has no such thread.
        undecided: called before what threads ask for next. Touched in the loop alone.
    """

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop = asyncio.SelectorEventLoop()
        self.loop.set_default_executor(
            ThreadPoolExecutor(thread_name_prefix="delosmq-worker", initializer=_mark_worker)
        )
        self.users = 0
        self.forked = False
        self.undecided: dict[Callable[[], None], None] = {}
        self._ended = False
        self._given: deque[Callable[[], object]] = deque()
        self._wake_up = WakeUp(self._schedule, self._work_off)
        self.process = os.getpid()
        self._kept: set[asyncio.Future[None]] = set()
        self._thread = threading.Thread(target=self._run, name="delosmq-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.call_soon(self._work_off)  # what was given before it ended
            self.loop.run_until_complete(asyncio.sleep(0))
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            self.loop.close()

    def _work_off(self) -> None:
        given = self._given
        try:
            for look_again in tuple(self.undecided):
                look_again()
            for _ in range(len(given)):  # what comes meanwhile has its turn after the sockets
                given.popleft()()
        finally:
            if given:
                self._wake_up.ask()

    def _schedule(self, function: Callable[[], None]) -> None:
        try:
            self.loop.call_soon_threadsafe(function)
        except RuntimeError:  # it has been closed just now
            if not self._ended:
                raise

    def end(self) -> None:
        self._ended = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.current_thread() is not self._thread and not getattr(_this_thread, "works", False):
            self._thread.join()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine returns; it is cancelled when the caller is interrupted.

        Raises:
            IllegalStateError: DMQ9001, all connections are closed; DMQ9065, the caller is in this very loop; DMQ9084,
                the process was forked since.
        """
        if self.forked:
            work.close()
            raise forked()
        if threading.current_thread() is self._thread:
            work.close()
            raise in_the_loop()
        call = LoopCall(work)
        try:
            self._give(call.start)
            if self._ended and call.withdraw():
                raise closed("connection")
            return call.wait()
        except BaseException:
            self._give(call.cancel)
            raise

    def call(self, function: Callable[[], T]) -> T:
        """What a function returns that is called in the loop; it waits for nothing.

        Raises:
            IllegalStateError: as `run`.
        """

        async def called() -> T:
            return function()

        return self.run(called())

    def soon(self, function: Callable[[], object]) -> None:
        """Has a function called in the loop, wherever this is called, before all that is asked for later; not when it
        has ended."""
        self._give(function)

    def _give(self, function: Callable[[], object]) -> None:
        if not self._ended and not self.forked:
            self._given.append(function)
            self._wake_up.ask()

    def drain(self) -> None:
        """Waits until what was given is with the sockets."""

        async def turns() -> None:
            for _ in range(_TURNS_TO_THE_SOCKETS):
                await asyncio.sleep(0)

        with suppress(ClientError):
            self.run(turns())

    def keep(self, task: asyncio.Future[None]) -> None:
        """Holds what runs in the loop and would be forgotten."""
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)


_lock: Final = threading.Lock()
_shared: list[LoopThread] = []


def _drain_at_exit() -> None:
    """A program that ends without a close has sent what it sent, as far as the sockets take it."""
    for thread in list(_shared):
        if thread.process == os.getpid():
            thread.drain()


atexit.register(_drain_at_exit)


def _note_fork() -> None:
    for thread in _shared:
        thread.forked = True


os.register_at_fork(after_in_child=_note_fork)


def enter() -> LoopThread:
    """The thread of this process; `leave` follows. After a fork the child has one of its own."""
    with _lock:
        if not _shared or _shared[0].process != os.getpid():
            _shared[:] = [LoopThread()]
        _shared[0].users += 1
        return _shared[0]


def leave(thread: LoopThread) -> None:
    with _lock:
        thread.users -= 1
        ends = thread.users == 0
        if ends and thread in _shared:
            _shared.remove(thread)
    if ends and thread.process == os.getpid():
        thread.end()
