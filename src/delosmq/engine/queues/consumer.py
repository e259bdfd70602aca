"""A consumer: receives from a queue."""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.base.slots import Slot
from delosmq.engine.queues.credit import Credit
from delosmq.engine.queues.in_delivery import Holder
from delosmq.engine.queues.loans import Loans
from delosmq.engine.queues.queue import Queue
from delosmq.model.errors import BrokerError
from delosmq.model.ids import ConsumerId
from delosmq.selectors.selector import Selector


@mypyc_attr(allow_interpreted_subclasses=True)
class ConsumerPort(ABC):
    """What a session offers the engine for one subscription."""

    @abstractmethod
    def deliver(self, slot: Slot) -> None:
        """Encodes the delivery into the outbox. Called during dispatch only; must not call the engine."""

    @abstractmethod
    def has_room(self) -> bool:
        """Whether the outbox takes one more delivery."""

    @abstractmethod
    def closed_by_broker(self, reason: BrokerError) -> None:
        """The queue is gone; the consumer is closed already."""

    def connection_name(self) -> str:
        """The id or address of its connection, "" when it is not known. Diagnostics only."""
        return ""

    def user_name(self) -> str:
        """The user of its connection, "" when it is not known. Diagnostics only."""
        return ""

    def pull_unanswered(self) -> None:  # noqa: B027 - few protocols pull
        """There is nothing, for now, for what was pulled. Called during dispatch only, once for each pull."""

    def browse_ended(self) -> None:  # noqa: B027 - most subscriptions are no browsers
        """A browser has seen all there is, and gets nothing more. Called during dispatch only, once."""


class ConsumerOptions:
    """What a subscriber asks of dispatch.

    Attributes:
        priority: higher ones are served first while they have room; at most 127.
        exclusive: gets everything once it is the owner of the queue; the other exclusive ones stand by.
        selector: gets only messages that match; None gets all.
        no_local: a connection id: gets nothing that this connection sent; "" gets all.
        browser: sees what is there, in order, and consumes nothing.
        client_counts: its client counts deliveries and says itself which message is poison.
    """

    def __init__(
        self,
        *,
        priority: int = 0,
        exclusive: bool = False,
        selector: Selector | None = None,
        no_local: str = "",
        browser: bool = False,
        client_counts: bool = False,
    ) -> None:
        self.priority = priority
        self.exclusive = exclusive
        self.selector = selector
        self.no_local = no_local
        self.browser = browser
        self.client_counts = client_counts
        self.selector_characters: int = 0 if selector is None else len(selector.text)
        self.plain: bool = priority == 0 and not exclusive and selector is None and no_local == "" and not browser


PLAIN: Final = ConsumerOptions()


class ConsumerState:
    """What dispatch remembers of consumers that take the same messages. Nothing but dispatch looks inside."""


class RotationEntry:
    """Where a consumer stands in a rotation; None once it has left: the entry is found and dropped later."""

    def __init__(self, consumer: "Consumer") -> None:
        self.consumer: Consumer | None = consumer


class Consumer(Holder):
    """One subscription of one session.

    Attributes:
        queue: where it is subscribed.
        selector_user: to whom its selector counts, "" for none.
        turn: who of several consumers with room comes first; grows with each delivery.
        selector_group: which messages it takes, where its queue looks at that; None on a plain queue.
        entry: in the rotation of those who may have room; None on a plain queue, or while it is full.
        owned_groups: message groups that only this one gets.
        first_of_group: the message being delivered is the first that it gets of its group, or of an exclusive queue.
        loans: what is lent to a consumer that reads without taking (a browser, a non-destructive queue); None for one
            that takes.
    """

    def __init__(
        self, consumer_id: ConsumerId, port: ConsumerPort, credit: Credit, options: ConsumerOptions = PLAIN
    ) -> None:
        super().__init__(credit, is_consumer=True, client_counts=options.client_counts)
        self.id = consumer_id
        self.port = port
        self.options = options
        self.queue: Queue | None = None
        self.selector_user: str = ""
        self.turn: int = 0
        self.selector_group: ConsumerState | None = None
        self.entry: RotationEntry | None = None
        self.owned_groups: int = 0
        self.first_of_group: bool = False
        self.loans: Loans | None = None

    def holds(self, sequence: int) -> bool:
        """Whether a message is in delivery to it, acknowledged in an open transaction or not."""
        return self.slot_of(sequence) is not None or (self.loans is not None and self.loans.holds(sequence))

    def called(self) -> str:
        return str(self.id)

    def user_name(self) -> str:
        return self.port.user_name()

    def has_room(self) -> bool:
        """Whether dispatch may deliver one more."""
        return self.credit.has_room() and self.port.has_room()


def consumers_of(queue: Queue) -> list[Consumer]:
    """The consumers of a queue, in the order of their arrival, without its lease groups."""
    return [holder for holder in queue.holders if isinstance(holder, Consumer)]
