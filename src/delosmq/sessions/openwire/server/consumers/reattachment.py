"""Reattachment: a consumer that lost its queue reads the next queue of that name.

Source: AbstractRegion.removeDestination and addDestination of ActiveMQ Classic, which keeps the subscriptions of what
is deleted by force and gives them to a new destination.
"""

from delosmq.sessions.host import SessionHost
from delosmq.sessions.openwire.server.consumers.subscription import OpenWireSubscription
from delosmq.sessions.openwire.server.consumers.wildcards import QueueWatcher, QueueWatchers
from delosmq.sessions.openwire.server.destinations import OpenWireTarget


class LostQueue:
    """A queue that a consumer lost.

    Attributes:
        queue: its name; "" for the subscription of a topic, which only this makes again.
    """

    def __init__(self, subscription: OpenWireSubscription, target: OpenWireTarget, queue: str) -> None:
        self.subscription = subscription
        self.target = target
        self.queue = queue


class Reattachment(QueueWatcher):
    """The lost queues of the consumers of one connection. Costs nothing while there are none."""

    def __init__(self, host: SessionHost, watchers: QueueWatchers) -> None:
        self._host = host
        self._watchers = watchers
        self._awaited: dict[str, list[LostQueue]] = {}
        self._back: list[LostQueue] = []
        self._watching: bool = False

    def add(self, loss: LostQueue) -> None:
        """Adds a lost queue; those of topics are taken with the next turn."""
        if not loss.queue:
            self._back.append(loss)
            return
        if not self._watching:
            self._watching = True
            self._watchers.add(self)
        self._awaited.setdefault(loss.queue, []).append(loss)

    def queue_created(self, queue: str) -> None:
        back = self._awaited.pop(queue, None)
        if back is not None:
            self._back += back
            self._host.wake_soon()

    def take(self) -> list[LostQueue]:
        """Takes the lost queues that are there again."""
        if not self._back:
            return []
        back = self._back
        self._back = []
        self._stop_watching()
        return back

    def remove(self, subscription: OpenWireSubscription) -> None:
        if not self._awaited and not self._back:
            return
        self._back = [loss for loss in self._back if loss.subscription is not subscription]
        for queue, losses in list(self._awaited.items()):
            left = [loss for loss in losses if loss.subscription is not subscription]
            if left:
                self._awaited[queue] = left
            else:
                del self._awaited[queue]
        self._stop_watching()

    def _stop_watching(self) -> None:
        if self._watching and not self._awaited:
            self._watching = False
            self._watchers.remove(self)
