"""What is to be told later: the engine must not be called while it tells, and long lists go a slice at a time."""

from abc import ABC, abstractmethod
from collections import deque
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.sessions.openwire import failures
from delosmq.sessions.openwire.advisory_posting import Listener, Posting

NOTICES_AT_MOST: Final = 10_000
"""They keep what they are about; what happens meanwhile is lost, and the log says so."""
TOLD_AT_ONCE: Final = 100
"""About 2 ms in pure Python."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Notice(ABC):
    """Something to tell."""

    @abstractmethod
    def tell(self, room: int) -> int:
        """Tells up to ``room`` advisories. Gives the room that is left, 0 only when there is more to tell."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Present(ABC):
    """Knows what is there when somebody begins to listen."""

    @abstractmethod
    def present(self, kind: int, key: str, listener: Listener) -> None:
        """Tells that listener of one thing, if it is still there."""


class Known(Notice):
    """What is there when somebody begins to listen: kind and key of each thing."""

    def __init__(self, present: Present, listener: Listener, known: list[tuple[int, str]]) -> None:
        self._present = present
        self._listener = listener
        self._known = known
        self._known.reverse()

    def tell(self, room: int) -> int:
        known = self._known
        while known and room > 0:
            kind, key = known.pop()
            self._present.present(kind, key, self._listener)
            room -= 1
        return 0 if known else max(room, 1)


class Notices:
    """What waits to be told, in order."""

    def __init__(self, posting: Posting) -> None:
        self._posting = posting
        self._waiting: deque[Notice] = deque()
        self._overrun: bool = False

    def add(self, notice: Notice, *, needed: bool = False) -> None:
        """To be told soon, a ``needed`` one however many wait; may be called while the engine tells."""
        listener = self._posting.any_listener()
        if listener is None:
            return
        if len(self._waiting) >= NOTICES_AT_MOST and not needed:
            if not self._overrun:
                self._overrun = True
                listener.host.report(failures.advisories_lost(NOTICES_AT_MOST))
            return
        if not self._waiting:
            listener.host.wake_soon()
        self._waiting.append(notice)

    def wake(self) -> None:
        """Somebody left, perhaps the one that was to go on."""
        if not self._waiting:
            return
        listener = self._posting.any_listener()
        if listener is None:
            self._waiting.clear()
            self._overrun = False
        else:
            listener.host.wake_soon()

    def go_on(self) -> None:
        """Tells some of them. Called whenever a connection is woken."""
        waiting = self._waiting
        if not waiting:
            return
        room = TOLD_AT_ONCE
        while waiting and room > 0:
            left = waiting[0].tell(room)
            if left == 0:
                break
            waiting.popleft()
            room = min(left, room - 1)
        if waiting:
            self.wake()
        else:
            self._overrun = False
