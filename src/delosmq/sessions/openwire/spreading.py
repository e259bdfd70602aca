"""Consumers of wildcards: queues that a wildcard stands for and that are made later are theirs as well.

Source: AbstractRegion.addSubscriptionsForDestination of ActiveMQ Classic.
"""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.broker import Broker
from delosmq.engine.queue import Queue
from delosmq.selectors.selector import Selector
from delosmq.sessions.openwire.destinations import Destinations, Target
from delosmq.sessions.openwire.subscription import Subscription
from delosmq.sessions.protocol import SessionHost

_LOOKED_AT: Final = 100
"""New queues in one turn."""


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueWatcher(ABC):
    """Somebody who wants to know of new queues."""

    @abstractmethod
    def queue_created(self, queue: str) -> None:
        """There is one more. Called while the engine tells; must not call it."""


class QueueWatchers:
    """All of them, of one broker."""

    def __init__(self) -> None:
        self._watchers: list[QueueWatcher] = []

    def add(self, watcher: QueueWatcher) -> None:
        """Somebody watches from now on."""
        self._watchers.append(watcher)

    def remove(self, watcher: QueueWatcher) -> None:
        """And no longer; harmless when it didn't."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def queue_created(self, queue: str) -> None:
        """Tells all of them."""
        for watcher in self._watchers:
            watcher.queue_created(queue)


class Spread:
    """A wildcard in a subscription."""

    def __init__(self, subscription: Subscription, wildcard: Target, selector: Selector | None) -> None:
        self.subscription = subscription
        self.wildcard = wildcard
        self.selector = selector


class Spreading(QueueWatcher):
    """The wildcards of one connection, and the new queues that it has not looked at yet."""

    def __init__(self, broker: Broker, destinations: Destinations, host: SessionHost, watchers: QueueWatchers) -> None:
        self._broker = broker
        self._destinations = destinations
        self._host = host
        self._watchers = watchers
        self._spreads: list[Spread] = []
        self._new: list[str] = []

    def add(self, spread: Spread) -> list[Target]:
        """One more wildcard; gives the queues that it stands for now."""
        if not self._spreads:
            self._watchers.add(self)
        self._spreads.append(spread)
        return self._destinations.queues_of(spread.wildcard, self._broker)

    def remove(self, subscription: Subscription) -> None:
        """A subscription ends."""
        if not self._spreads:
            return
        self._spreads = [spread for spread in self._spreads if spread.subscription is not subscription]
        if not self._spreads:
            self._watchers.remove(self)
            self._new.clear()

    def queue_created(self, queue: str) -> None:
        if not self._new:
            self._host.wake_soon()
        self._new.append(queue)

    def take(self) -> list[tuple[Spread, Target]]:
        """Some new queues, for each wildcard that stands for them."""
        if not self._new:
            return []
        names = self._new[:_LOOKED_AT]
        self._new = self._new[_LOOKED_AT:]
        if self._new:
            self._host.wake_soon()
        found: list[tuple[Spread, Target]] = []
        for name in names:
            for spread in self._spreads:
                target = self._destinations.queue_of(spread.wildcard, self._broker, name)
                if target is not None:
                    found.append((spread, target))
        return found


def reads(subscription: Subscription, queue: Queue | None) -> bool:
    """Whether a subscription has a queue already, by another of its names."""
    return queue is not None and queue.name in subscription.queue_names
