"""An event loop that other threads borrow while its own thread waits for input.

What they do in it is done at once, without waking the loop's thread and waiting for it.
"""

import asyncio
import selectors
import threading
from collections.abc import Callable
from contextvars import Context
from typing import Final, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_NOTICING: Final = tuple(
    getattr(selectors, name) for name in ("EpollSelector", "KqueueSelector") if hasattr(selectors, name)
)


class YieldingSelector(selectors.DefaultSelector):
    """Lets the loop go while it waits.

    Attributes:
        lent: another thread has the loop.
        changed: that one has given the loop something to do, and it has to be woken.
        notices: what another thread registers is noticed while it waits.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lent = False
        self.changed = False
        self.notices = isinstance(self, _NOTICING)
        self.held: Final = threading.Lock()
        # Whoever wants the loop passes here, and its own thread waits here: otherwise threads that borrow it all the
        # time would keep it out.
        self.gate: Final = threading.Lock()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.held.release()
        try:
            return super().select(timeout)
        finally:
            with self.gate:
                self.held.acquire()


class BorrowedLoop(asyncio.SelectorEventLoop):
    """Its thread holds `YieldingSelector.held` whenever it does anything but wait."""

    def __init__(self) -> None:
        self._yielding: Final = YieldingSelector()
        super().__init__(self._yielding)
        self.set_debug(False)  # debugging refuses what other threads do

    def run_until_stopped(self, then: Callable[[], object]) -> None:
        """Runs until `stop`, then does what is left to be done, and closes the loop."""
        asyncio.set_event_loop(self)
        self._yielding.held.acquire()
        try:
            self.run_forever()
            then()
        finally:
            asyncio.set_event_loop(None)
            self.close()
            self._yielding.held.release()

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        selector = self._yielding
        selector.changed = selector.changed or selector.lent
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        selector = self._yielding
        selector.changed = selector.changed or selector.lent
        return super().call_at(when, callback, *args, context=context)

    def borrow(self, function: Callable[[], object]) -> bool:
        """Calls a function in the loop at once, in the calling thread; it must not wait. False: the loop is closed."""
        selector = self._yielding
        with selector.gate:
            pass
        with selector.held:
            if self.is_closed():
                return False
            outer = asyncio._get_running_loop()
            try:
                asyncio._set_running_loop(self)
                selector.lent = True
                function()
            finally:
                selector.lent = False
                asyncio._set_running_loop(outer)
        if selector.changed or not selector.notices:
            selector.changed = False
            self.call_soon_threadsafe(_wake)
        return True

    def take(self, function: Callable[[], T]) -> T:
        """What a function gives that only reads and takes what belongs to the loop: nothing is called in the loop."""
        with self._yielding.gate:
            pass
        with self._yielding.held:
            return function()


def _wake() -> None:
    """The loop looks at what there is to do."""
