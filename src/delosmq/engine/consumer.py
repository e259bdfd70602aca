"""A consumer: who receives from a queue, and what it holds unacknowledged."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from delosmq.engine.credit import Credit
from delosmq.engine.slots import Slot, SlotList
from delosmq.model.errors import BrokerError
from delosmq.model.ids import ConsumerId

if TYPE_CHECKING:
    from delosmq.engine.queue import Queue


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


class Consumer:
    """One subscription of one session.

    Attributes:
        queue: where it is subscribed.
        in_delivery: what it holds, in the order of delivery.
        parked: found full by the last dispatch, and so out of the rotation until credit returns.
    """

    def __init__(self, consumer_id: ConsumerId, port: ConsumerPort, credit: Credit) -> None:
        self.id = consumer_id
        self.port = port
        self.credit = credit
        self.queue: Queue | None = None
        self.in_delivery: SlotList = SlotList()
        self.parked: bool = False
        self.closed: bool = False
        self._by_sequence: dict[int, Slot] = {}

    @property
    def held_count(self) -> int:
        """Messages in delivery to this consumer."""
        return self.in_delivery.count

    def held(self, sequence: int) -> Slot | None:
        """The slot in delivery under ``sequence``; None when it isn't (acknowledged, returned, never delivered)."""
        return self._by_sequence.get(sequence)

    def has_room(self) -> bool:
        """Whether dispatch may hand out one more."""
        return self.credit.has_room() and self.port.has_room()

    def hold(self, slot: Slot) -> None:
        """Takes a slot into delivery."""
        self.in_delivery.append(slot)
        self._by_sequence[slot.sequence] = slot
        self.credit.taken(slot.message.encoded_size_bytes)

    def let_go(self, slot: Slot) -> None:
        """Ends the delivery of a slot, whatever becomes of it."""
        self.in_delivery.unlink(slot)
        del self._by_sequence[slot.sequence]
        self.credit.settled(slot.message.encoded_size_bytes)

    def held_through(self, sequence: int) -> list[Slot]:
        """What it holds up to ``sequence`` (inclusive), in order of delivery; empty when it doesn't hold that one."""
        last = self._by_sequence.get(sequence)
        if last is None:
            return []
        found: list[Slot] = []
        slot = self.in_delivery.head
        while slot is not None:
            found.append(slot)
            if slot is last:
                break
            slot = slot.next
        return found

    def held_newest_first(self) -> list[Slot]:
        """Everything it holds, the last delivered first."""
        found: list[Slot] = []
        slot = self.in_delivery.tail
        while slot is not None:
            found.append(slot)
            slot = slot.previous
        return found
