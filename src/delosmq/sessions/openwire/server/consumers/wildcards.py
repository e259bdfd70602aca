"""Wildcards of consumers: a consumer reads each queue that its wildcard matches, those made later as well.

Source: AbstractRegion.addSubscriptionsForDestination of ActiveMQ Classic.
"""

from abc import ABC, abstractmethod
from collections import deque
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.api import EngineBroker, Queue
from delosmq.model.errors import PermissionDeniedError
from delosmq.model.wildcard import WildcardPattern
from delosmq.selectors.selector import Selector
from delosmq.sessions.host import SessionHost
from delosmq.sessions.openwire.server.consumers.subscription import OpenWireSubscription
from delosmq.sessions.openwire.server.destinations import OpenWireTarget, target_of_queue

NAMES_COMPARED: Final = 1_000
"""Names that are compared with wildcards in one turn: under 2 ms in pure Python."""
READ_AT_ONCE: Final = 20
"""Queues that become a consumer's in one turn, about 2 ms."""


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueWatcher(ABC):
    """Is told of new queues."""

    @abstractmethod
    def queue_created(self, queue: str) -> None:
        """There is one more. Called while the engine tells; must not call it."""


class QueueWatchers:
    def __init__(self) -> None:
        self._watchers: list[QueueWatcher] = []

    def add(self, watcher: QueueWatcher) -> None:
        """A consumer watches from now on."""
        self._watchers.append(watcher)

    def remove(self, watcher: QueueWatcher) -> None:
        """A consumer stops watching; harmless when it didn't watch."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def queue_created(self, queue: str) -> None:
        for watcher in self._watchers:
            watcher.queue_created(queue)


class WildcardSubscription:
    """A wildcard in a subscription.

    Attributes:
        ended: with its subscription.
        waits: queues that were there before it are still to be looked at.
        left_out, refused: how many of them its user may not read, and why not the last one.
    """

    def __init__(
        self,
        subscription: OpenWireSubscription,
        target: OpenWireTarget,
        selector: Selector | None,
        pattern: WildcardPattern,
    ) -> None:
        self.subscription = subscription
        self.target = target
        self.selector = selector
        self.pattern = pattern
        self.ended: bool = False
        self.waits: bool = False
        self.left_out: int = 0
        self.refused: PermissionDeniedError | None = None


Found = tuple[WildcardSubscription, OpenWireTarget]


class _NameWalk:
    """Names of queues to match with wildcards; ``at`` counts the comparisons done."""

    def __init__(self, wildcards: list[WildcardSubscription], names: list[str]) -> None:
        self.wildcards = wildcards
        self.names = names
        self.at: int = 0


class WildcardSubscriptions(QueueWatcher):
    """The wildcards of one connection. Matches new queues in bounded slices, a few in each turn.

    Attributes:
        finished: wildcards that don't wait any more; a look clears it.
    """

    def __init__(self, broker: EngineBroker, host: SessionHost, watchers: QueueWatchers) -> None:
        self._broker = broker
        self._host = host
        self._watchers = watchers
        self._wildcards: list[WildcardSubscription] = []
        self._walks: deque[_NameWalk] = deque()
        self._new: list[str] = []
        self._woken: bool = False
        self.finished: list[WildcardSubscription] = []
        self._looks: int = NAMES_COMPARED
        self._places: int = READ_AT_ONCE

    def add(self, wildcard: WildcardSubscription) -> list[Found]:
        """Adds a wildcard; gives queues that it matches, all unless it `waits`."""
        if not self._wildcards:
            self._watchers.add(self)
        self._wildcards.append(wildcard)
        walk = _NameWalk([wildcard], list(self._broker.queues))
        found: list[Found] = []
        if not self._look(walk, found):
            wildcard.waits = True
            self._walks.append(walk)
        self._wake()  # if only for the room that this turn has left
        return found

    def remove(self, subscription: OpenWireSubscription) -> None:
        if not self._wildcards:
            return
        left: list[WildcardSubscription] = []
        for wildcard in self._wildcards:
            if wildcard.subscription is subscription:
                wildcard.ended = True
            else:
                left.append(wildcard)
        self._wildcards = left
        if not left:
            self._watchers.remove(self)
            self._new.clear()
            self._walks.clear()

    def stands_for(self, subscription: OpenWireSubscription, queue: str) -> bool:
        return any(one.subscription is subscription and one.pattern.matches(queue) for one in self._wildcards)

    def queue_created(self, queue: str) -> None:
        self._new.append(queue)
        self._wake()

    def take(self) -> list[Found]:
        """Some queues, each with a wildcard that matches it. A new turn begins."""
        self._woken = False
        self._looks = NAMES_COMPARED
        self._places = READ_AT_ONCE
        found: list[Found] = []
        if self._new:
            self._walks.append(_NameWalk(self._wildcards.copy(), self._new))
            self._new = []
        while self._walks and self._has_room():
            if not self._look(self._walks[0], found):
                break
            for wildcard in self._walks.popleft().wildcards:
                if wildcard.waits:
                    wildcard.waits = False
                    self.finished.append(wildcard)
        if self._walks:
            self._wake()
        return found

    def _has_room(self) -> bool:
        return self._looks > 0 and self._places > 0

    def _look(self, walk: _NameWalk, found: list[Found]) -> bool:
        """Matches as many names as this turn has room for. True when these were all."""
        queues = self._broker.queues
        count = len(walk.wildcards)
        end = count * len(walk.names)
        at = walk.at
        while at < end and self._has_room():
            wildcard = walk.wildcards[at % count]
            name = walk.names[at // count]
            at += 1
            self._looks -= 1
            queue = queues.get(name)
            if (
                queue is None
                or wildcard.ended
                or reads(wildcard.subscription, queue)
                or not wildcard.pattern.matches(name)
            ):
                continue
            target = target_of_queue(queue)
            if target is not None:
                self._places -= 1
                found.append((wildcard, target))
        walk.at = at
        return at == end

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            self._host.wake_soon()


def reads(subscription: OpenWireSubscription, queue: Queue | None) -> bool:
    """Whether a subscription has a queue already, by another of its names."""
    return queue is not None and queue.name in subscription.queue_names
