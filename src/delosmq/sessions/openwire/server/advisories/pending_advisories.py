"""Pending advisories: published later, as the engine is not re-entrant, and long lists go a slice at a time."""

from abc import ABC, abstractmethod
from collections import deque
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.sessions.host import SessionHost
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.advisories.publisher import AdvisoryListener, AdvisoryPublisher, Properties
from delosmq.wire.openwire.structures import Structure

NOTICES_AT_MOST: Final = 10_000
"""They keep what they are about; what happens meanwhile is lost, and the log says so."""
TOLD_AT_ONCE: Final = 50
"""About 3 ms in pure Python."""
TOLD_IN_LINE: Final = 100
"""Told in one turn by what happens in it, whatever that is; the rest follows."""


@mypyc_attr(allow_interpreted_subclasses=True)
class PendingAdvisory(ABC):
    """Something to tell."""

    @abstractmethod
    def tell(self, room: int) -> int:
        """Tells up to ``room`` advisories. Gives the room that is left, 0 only when there is more to tell."""


@mypyc_attr(allow_interpreted_subclasses=True)
class PresentObjects(ABC):
    """Knows what is there when a listener begins."""

    @abstractmethod
    def keys(self, kind: int) -> list[str]:
        """All that is there of a kind."""

    @abstractmethod
    def present(self, kind: int, key: str, listener: AdvisoryListener) -> PendingAdvisory | None:
        """Tells that listener of one thing, if it is still there, or gives what tells it."""


class SingleAdvisory(PendingAdvisory):
    """One advisory."""

    def __init__(
        self,
        publisher: AdvisoryPublisher,
        topic: str,
        told: Structure,
        *,
        properties: Properties,
        only: AdvisoryListener | None = None,
    ) -> None:
        self._publisher = publisher
        self._topic = topic
        self._told = told
        self._properties = properties
        self._only = only

    def tell(self, room: int) -> int:
        count = self._publisher.tell(self._topic, self._told, self._properties, self._only)
        return max(room - count, 1)


class AdvisoryBatch(PendingAdvisory):
    """Some of them."""

    def __init__(self, notices: list[SingleAdvisory]) -> None:
        self._notices = notices
        self._at: int = 0

    def tell(self, room: int) -> int:
        notices = self._notices
        while self._at < len(notices) and room > 0:
            room = min(notices[self._at].tell(room), room - 1)
            self._at += 1
        return 0 if self._at < len(notices) else max(room, 1)


class PresentAdvisories(PendingAdvisory):
    """What is there of a kind when a listener begins, or rather when its turn comes: nothing is kept before, so
    that what comes between may be told twice."""

    def __init__(self, present: PresentObjects, listener: AdvisoryListener, kind: int) -> None:
        self._present = present
        self._listener = listener
        self._kind = kind
        self._keys: list[str] | None = None
        self._at: int = 0
        self._longer: PendingAdvisory | None = None

    def tell(self, room: int) -> int:
        listener = self._listener
        if listener.consumer.closed:
            return room
        keys = self._keys
        if keys is None:
            keys = self._keys = self._present.keys(self._kind)
        while room > 0:
            if self._longer is not None:
                room = self._longer.tell(room)
                if room == 0:
                    return 0
                self._longer = None
            elif self._at == len(keys):
                return room
            else:
                self._longer = self._present.present(self._kind, keys[self._at], listener)
                self._at += 1
                room -= 1
        return 0 if self._longer is not None or self._at < len(keys) else 1


class PendingAdvisories:
    """The advisories that wait, in order."""

    def __init__(self, publisher: AdvisoryPublisher) -> None:
        self._publisher = publisher
        self._waiting: deque[PendingAdvisory] = deque()
        self._overrun: bool = False
        self._room: int = TOLD_IN_LINE
        self._woken: SessionHost | None = None

    def tell(self, notice: PendingAdvisory, *, needed: bool = False) -> None:
        """Tells it at once as far as this turn has room, whatever comes in it, and the rest soon. What is ``needed``
        goes before what waits."""
        if self._room > 0 and (needed or not self._waiting):
            left = notice.tell(self._room)
            self._room = min(left, self._room - 1)
            if left > 0:
                self._wake()  # a new turn has room again
                return
            self._room = 0
        self.add(notice, needed=needed)

    def add(self, notice: PendingAdvisory, *, needed: bool = False) -> None:
        """To be told soon, a ``needed`` one however many wait; may be called while the engine tells."""
        listener = self._publisher.any_listener()
        if listener is None:
            return
        if len(self._waiting) >= NOTICES_AT_MOST and not needed:
            if not self._overrun:
                self._overrun = True
                listener.host.report(errors.advisories_lost(NOTICES_AT_MOST))
            return
        self._waiting.append(notice)
        self._wake()

    def wake(self) -> None:
        """A listener left, perhaps the one that was to go on."""
        if self._waiting or self._woken is not None:
            self._wake()

    def _wake(self) -> None:
        listener = self._publisher.any_listener()
        if listener is None:
            self._waiting.clear()
            self._overrun = False
            self._woken = None
            self._room = TOLD_IN_LINE
        elif listener.host is not self._woken:
            self._woken = listener.host
            listener.host.wake_soon()

    def go_on(self) -> None:
        """Tells some of them. Called whenever a connection is woken."""
        waiting = self._waiting
        self._woken = None
        self._room = TOLD_IN_LINE
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
            self._wake()
        else:
            self._overrun = False
