"""An address: where messages are sent to, and how they find its queues."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.engine.queue import Queue
from delosmq.model.message import ANYCAST, MULTICAST, Account
from delosmq.model.settings import AddressSettings


@mypyc_attr(allow_interpreted_subclasses=True)
class SpaceWaiter(ABC):
    """Somebody whose send was BLOCKED."""

    @abstractmethod
    def on_space(self) -> None:
        """There may be room again: send once more. Called from `Broker.tick`; register again when still BLOCKED."""


class Address:
    """One address.

    Attributes:
        account: what its messages count against its limits, each message once.
        routed_messages, unrouted_messages: since start.
    """

    def __init__(self, name: str, routing_types: set[int], settings: AddressSettings) -> None:
        self.name = name
        self.routing_types = routing_types
        self.settings = settings
        self.auto_created: bool = False
        self.anycast: list[Queue] = []
        self.multicast: list[Queue] = []
        self.account: Account = Account()
        self.routed_messages: int = 0
        self.unrouted_messages: int = 0
        self.waiters: list[SpaceWaiter] = []
        self._anycast_turn: int = 0

    def bind(self, queue: Queue) -> None:
        """Lets a queue take part in routing."""
        (self.anycast if queue.settings.routing_type == ANYCAST else self.multicast).append(queue)

    def unbind(self, queue: Queue) -> None:
        """Ends the part a queue has in routing."""
        (self.anycast if queue.settings.routing_type == ANYCAST else self.multicast).remove(queue)

    def queues(self) -> list[Queue]:
        """All its queues."""
        return self.anycast + self.multicast

    def route(self, routing: int) -> list[Queue]:
        """The queues that take a message sent with this routing type (`ANY_ROUTING`: both kinds).

        All multicast queues, and one of the anycast queues in turn. The list may be the address's own: don't change it.
        """
        anycast = self.anycast if routing != MULTICAST else []
        multicast = self.multicast if routing != ANYCAST else []
        if len(anycast) > 1:
            self._anycast_turn = (self._anycast_turn + 1) % len(anycast)
            anycast = [anycast[self._anycast_turn]]
        if not multicast:
            return anycast
        if not anycast:
            return multicast
        return anycast + multicast
