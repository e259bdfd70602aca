"""The thread in which all blocking connections of a process have their event loop; there is one while there are any."""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Generic, TypeVar

from delosmq.client.errors import in_the_loop
from delosmq.client.threads.borrowed_loop import BorrowedLoop
from delosmq.sessions.openwire.client.errors import closed

T = TypeVar("T")


class LoopCall(Generic[T]):
    """A coroutine that a thread waits for.

    That thread takes the first step itself, up to where the coroutine waits; the loop's thread takes the others.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.ended = False
        self._work = work
        self._awaited: asyncio.Future[object] | None = None
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._cancelled = False
        self._waits = threading.Lock()
        self._waits.acquire()

    def step(self, _awaited: object = None) -> None:
        """Goes on up to the next wait."""
        try:
            while (awaited := self._advance()) is None:
                pass  # others in the loop have their turn while nothing has borrowed it
        except StopIteration as end:
            self._result.append(end.value)
            self._end()
        except BaseException as error:
            self._error = error
            self._end()
        else:
            self._awaited = awaited
            awaited.add_done_callback(self.step)

    def _advance(self) -> "asyncio.Future[object] | None":
        awaited: asyncio.Future[object] | None
        if self._cancelled:
            self._cancelled = False
            awaited = self._work.throw(asyncio.CancelledError())
        else:
            awaited = self._work.send(None)
        return awaited

    def _end(self) -> None:
        self.ended = True
        self._waits.release()

    def cancel(self) -> None:
        """Where it waits."""
        if not self.ended and self._awaited is not None:
            self._cancelled = True
            self._awaited.cancel()

    def wait(self) -> None:
        self._waits.acquire()

    def result(self) -> T:
        error, self._error = self._error, None
        if error is None:
            return self._result.pop()
        try:
            raise error
        finally:
            del error  # else it would hold itself by its traceback


class LoopThread:
    """An event loop in a thread of its own, which ends when the last user has left."""

    def __init__(self) -> None:
        self.loop = BorrowedLoop()
        self.users = 0
        self._ended = False
        # Held while something is given to the loop. The collector may have a connection closed meanwhile, hence the R.
        self._giving = threading.RLock()
        self.process = os.getpid()
        self._kept: set[asyncio.Future[None]] = set()
        self._calls: set[LoopCall[Any]] = set()
        self._posted: deque[Callable[[], object]] = deque()
        self._woken = False
        self._thread = threading.Thread(
            target=self.loop.run_until_stopped, args=(self._finish,), name="delosmq-client", daemon=True
        )
        self._thread.start()

    def _finish(self) -> None:
        for call in list(self._calls):
            call.cancel()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())

    def end(self) -> None:
        with self._giving:
            self._ended = True
            self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine returns; it is cancelled when the caller is interrupted. It is a task of the loop.

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

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """As `run`, for a coroutine that needs no task of its own, as timeouts do: what needs not wait is done at once.

        Raises:
            IllegalStateError: as `run`.
        """
        call = LoopCall(work)
        try:
            self._borrow(partial(self._start, call))
        except BaseException:
            work.close()
            raise
        if call in self._calls:
            try:
                call.wait()
            except BaseException:
                self.soon(call.cancel)
                raise
            finally:
                self._calls.discard(call)
        return call.result()

    def _start(self, call: LoopCall[Any]) -> None:
        call.step()
        if not call.ended:
            self._calls.add(call)

    def call(self, function: Callable[[], T]) -> T:
        """What a function returns that is called in the loop; it waits for nothing.

        Raises:
            IllegalStateError: as `run`.
        """
        results: list[T] = []
        self._borrow(lambda: results.append(function()))
        return results[0]

    def _borrow(self, function: Callable[[], object]) -> None:
        def work() -> None:
            if self._posted:
                self._do_posted()
            function()

        self._check()
        if not self.loop.borrow(work):
            raise closed("connection")

    def take(self, function: Callable[[], T | None]) -> T | None:
        """What a function gives that is called here and now, in the place of the loop.

        It may touch what belongs to the loop's thread, and neither waits nor has anything called in the loop.

        Raises:
            IllegalStateError: as `run`.
        """
        self._check()
        return self.loop.take(function)

    def _check(self) -> None:
        if self._ended:
            raise closed("connection")
        if asyncio._get_running_loop() is self.loop:
            raise in_the_loop()

    def soon(self, function: Callable[[], object]) -> None:
        """Has a function called in the loop, wherever this is called, before all that is asked for later; not when it
        has ended."""
        with self._giving:
            if self._ended:
                return
            self._posted.append(function)
            if not self._woken:
                self._woken = True
                self.loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._woken = False
        self._do_posted()

    def _do_posted(self) -> None:
        while self._posted:
            try:
                self._posted.popleft()()
            except Exception as error:
                self.loop.call_exception_handler({"message": "the client's loop goes on", "exception": error})

    def keep(self, task: asyncio.Future[None]) -> None:
        """Holds what runs in the loop and would be forgotten."""
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)


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
