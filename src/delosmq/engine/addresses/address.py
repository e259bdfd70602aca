"""An address: where messages are sent to, and how they find its queues."""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.addresses.divert import Divert
from delosmq.engine.addresses.expiry_delay import changes_expiry
from delosmq.engine.addresses.filter import Conditions
from delosmq.engine.queues.consumer import consumers_of
from delosmq.engine.queues.queue import Queue
from delosmq.engine.queues.queue_address import QueueAddress, Usage
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.names import INTERNAL_PREFIX
from delosmq.model.settings import AddressSettings

NO_QUEUES: Final[list[Queue]] = []
NO_ROUTES: Final = [NO_QUEUES] * 3
RETAINED_PREFIX: Final = INTERNAL_PREFIX + "retained."
KEPT_PREFIX: Final = INTERNAL_PREFIX + "kept."
"""Of queues that take no part in routing: see `kept_entries`."""
RETAIN: Final = "ActiveMQ.Retain"
"""A property that marks a message which late subscribers get. Source: ActiveMQMessage."""


def _priority(queue: Queue) -> int:
    consumers = consumers_of(queue)
    return consumers[0].options.priority if consumers else 0


def any_conditional(queues: list[Queue]) -> bool:
    """Whether one of them does not take everything."""
    return any(queue.traits.conditional for queue in queues)


@mypyc_attr(allow_interpreted_subclasses=True)
class SpaceWaiter(ABC):
    """The sender of a message that was BLOCKED."""

    @abstractmethod
    def on_space(self) -> None:
        """There may be room again: send once more, and register again when still BLOCKED. Called by `tick`."""


class Address(QueueAddress):
    """One address.

    Attributes:
        anycast, multicast: its own queues.
        wild: its name stands for others (``news.#``): what is sent to them reaches its queues too.
        links: the wildcard addresses that stand for this one; ``linked_at`` is the count of changes among them that
            they were found at.
        receivers: the multicast queues a send reaches, those of links included.
        diverts: its own.
        history: keeps the last messages for queues to come; None when there is no such queue.
        retained: likewise the last one that its sender marked.
        changes_expiry: its settings say when messages expire, or bound it.
        plain: every send reaches all receivers and one anycast queue, and nothing has to be asked.
        constant_routes: by routing type, the queues that every message reaches which is sent with it, while the address
            is plain; empty where that changes from message to message, or there is none. Don't change the lists.
        blocked: senders wait for room, or did so a moment ago.
        owner: of a temporary destination: its connection; "" for all others.
        unrouted_messages: since start, as ``routed_messages``.
        messages_at_scan: what was sent to it until the last scan.
        made_by: the user of the client that made it, "" for none.
        state_bytes: what it takes in a state block; 0 for one that is not recorded.
    """

    def __init__(
        self, name: str, routing_types: set[int], settings: AddressSettings, *, is_recorded: bool = False
    ) -> None:
        super().__init__(name, settings, is_recorded)
        self.routing_types = routing_types
        self.changes_expiry: bool = changes_expiry(settings)
        self.auto_created: bool = False
        self.anycast: list[Queue] = []
        self.multicast: list[Queue] = []
        self.wild: bool = False
        self.links: list[Address] = []
        self.linked_at: int = 0
        self.receivers: list[Queue] = self.multicast
        self.diverts: list[Divert] = []
        self.history: Queue | None = None
        self.retained: Queue | None = None
        self.plain: bool = True
        self.constant_routes: list[list[Queue]] = NO_ROUTES
        self.owner: str = ""
        self.unrouted_messages: int = 0
        self.waiters: list[SpaceWaiter] = []
        self.blocked: bool = False
        self.usage: Usage = Usage()
        self.messages_at_scan: int = 0
        self.made_by: str = ""
        self.state_bytes: int = 0
        self._anycast_turn: int = 0

    def covers(self, routing_types: set[int], auto_created: bool) -> bool:
        """Whether it is already as it is wanted."""
        return routing_types <= self.routing_types and (auto_created or not self.auto_created)

    def bind(self, queue: Queue) -> None:
        """Lets a queue take part in routing."""
        if not queue.internal:
            (self.anycast if queue.settings.routing_type == ANYCAST else self.multicast).append(queue)
        elif queue.name.startswith(RETAINED_PREFIX):
            self.retained = queue
        elif not queue.name.startswith(KEPT_PREFIX):
            self.history = queue
        self.refresh()

    def unbind(self, queue: Queue) -> None:
        """Ends the part a queue has in routing."""
        if not queue.internal:
            (self.anycast if queue.settings.routing_type == ANYCAST else self.multicast).remove(queue)
        elif queue is self.retained:
            self.retained = None
        elif queue is self.history:
            self.history = None
        self.refresh()

    def queues(self) -> list[Queue]:
        """All its queues but those the broker made for itself."""
        return self.anycast + self.multicast

    def link(self, wild: list["Address"], linked_at: int) -> None:
        """Notes the wildcard addresses that stand for it."""
        self.links = wild
        self.linked_at = linked_at
        self.refresh()

    def refresh(self) -> None:
        """Works out again what a send reaches, after a change of queues, settings, diverts or links."""
        receivers = self.multicast
        plain = self.is_unconditional()
        for wild in self.links:
            plain = plain and wild.is_unconditional() and not wild.anycast
            if wild.multicast:
                receivers = receivers + wild.multicast
        self.receivers = receivers
        self.plain = plain
        self.constant_routes = NO_ROUTES
        if plain and len(self.anycast) <= 1:
            both = self.anycast + receivers if self.anycast and receivers else self.anycast or receivers
            self.constant_routes = [both, self.anycast, receivers]
        self.changes_expiry = changes_expiry(self.settings)

    def is_unconditional(self) -> bool:
        """Whether its own queues take all there is, and nothing else happens to a message."""
        if self.diverts or self.history is not None or self.retained is not None:
            return False
        return not (any_conditional(self.anycast) or any_conditional(self.multicast))

    def route(self, routing: int, conditions: Conditions) -> list[Queue]:
        """The queues that take the message which ``conditions`` look at, sent with this routing type (`ANY_ROUTING`:
        both kinds): multicast queues, and one of the anycast queues in turn. Each wildcard address gives the message to
        one of its anycast queues as well.
        """
        found: list[Queue] = []
        if routing != MULTICAST:
            self._next_anycast(conditions, found)
            for wild in self.links:
                wild._next_anycast(conditions, found)
        if routing != ANYCAST:
            found += [queue for queue in self.receivers if conditions.admit(queue)]
            for wild in self.links:
                if wild.history is not None:
                    found.append(wild.history)
            if self.history is not None:
                found.append(self.history)
            if self.retained is not None and conditions.is_true(RETAIN):
                found.append(self.retained)
        return found

    def serve_by_priority(self) -> None:
        """From now on its own multicast queues get a message in the order of the priorities of their consumers."""
        self.multicast.sort(key=_priority, reverse=True)
        self.refresh()

    def _next_anycast(self, conditions: Conditions, found: list[Queue]) -> None:
        queues = self.anycast
        turn = self._anycast_turn
        for _ in range(len(queues)):
            turn = (turn + 1) % len(queues)
            if conditions.admit(queues[turn]):
                self._anycast_turn = turn
                found.append(queues[turn])
                return


def address_of(queue: Queue) -> Address:
    """The address of a queue, also of one that is deleted."""
    address = queue.address
    assert isinstance(address, Address)
    return address
