"""The thread in which all blocking connections of a process have their event loop; there is one while there are any."""

import asyncio
import os
import selectors
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from delosmq.client.errors import in_the_loop
from delosmq.sessions.openwire.client.errors import closed

T = TypeVar("T")


class IdleSelector(selectors.DefaultSelector):
    """The system's best selector.

    Attributes:
        busy: is held by the loop's thread, but for when it waits for sockets.
    """

    def __init__(self) -> None:
        super().__init__()
        self.busy = threading.Lock()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.busy.release()
        try:
            return super().select(timeout)
        finally:
            self.busy.acquire()


class LoopThread:
    """An event loop in a thread of its own, which ends when the last user has left."""

    def __init__(self) -> None:
        selector = IdleSelector()
        self._busy = selector.busy
        self.loop: asyncio.AbstractEventLoop = asyncio.SelectorEventLoop(selector)
        self.users = 0
        self._ended = False
        # Held while something is given to the loop. The collector may have a connection closed meanwhile, hence the R.
        self._giving = threading.RLock()
        self.process = os.getpid()
        self._kept: set[asyncio.Future[None]] = set()
        self._thread = threading.Thread(target=self._run, name="delosmq-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._busy:
            self._run_loop()

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            self.loop.close()

    def end(self) -> None:
        with self._giving:
            self._ended = True
            self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine returns; it is cancelled when the caller is interrupted.

        Raises:
            IllegalStateError: DMQ9001, all connections are closed; DMQ9065, the caller is in this very loop.
        """
        try:
            with self._giving:
                self._check()
                future = asyncio.run_coroutine_threadsafe(work, self.loop)
        except BaseException:
            work.close()
            raise
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], T]) -> T:
        """What a function returns that is called in the loop.

        Raises:
            IllegalStateError: as `run`.
        """
        future: Future[T] = Future()
        with self._giving:
            self._check()
            self.loop.call_soon_threadsafe(_fulfil, future, function)
        return future.result()

    def take(self, function: Callable[[], T | None]) -> T | None:
        """What a function gives that is called here and now, in the place of the loop; None when the loop does
        something.

        It may touch what belongs to the loop's thread, and neither waits nor has anything called in the loop.
        """
        if self._busy.locked():
            return None
        with self._busy:
            return function()

    def _check(self) -> None:
        if self._ended:
            raise closed("connection")
        if threading.current_thread() is self._thread:
            raise in_the_loop()

    def soon(self, function: Callable[[], object]) -> None:
        """Has a function called in the loop, after all that this thread has asked for before; not when it has ended."""
        with self._giving:
            if not self._ended:
                self.loop.call_soon_threadsafe(function)

    def keep(self, task: asyncio.Future[None]) -> None:
        """Holds what runs in the loop and would be forgotten."""
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)


def _fulfil(future: Future[T], function: Callable[[], T]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:
        future.set_exception(error)


_lock: Final = threading.Lock()
_shared: list[LoopThread] = []


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
