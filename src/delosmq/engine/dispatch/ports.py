"""Ports of dispatch: what has to happen before a message leaves, and the list of ready queues."""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.base.slots import Slot
from delosmq.engine.queues.queue import Queue

STAYS: Final = 0
ENDED: Final = 1
ROOM_TO_COME: Final = 2
"""What becomes of a message: it is delivered; it was too old; it is, and its queue stops until its copy has room."""


@mypyc_attr(allow_interpreted_subclasses=True)
class BeforeDelivery(ABC):
    """Ends what is too old, and records deliveries of queues that want it. Called by dispatch for a pending slot that
    is about to be delivered, while no decision is under way; must not block."""

    @abstractmethod
    def take_expired(self, queue: Queue, slot: Slot, now_ms: int) -> int:
        """Ends a slot if its time has come, as a decision of its own: STAYS, ENDED or ROOM_TO_COME. Asked only while
        the queue holds messages with an expiry.

        Args:
            now_ms: the wall clock, read once for a batch of messages.
        """

    @abstractmethod
    def put_off(self, queue: Queue) -> None:
        """After ROOM_TO_COME: the queue delivers nothing for a moment."""

    @abstractmethod
    def cost(self, queue: Queue) -> int:
        """Of ending one message of this queue, in messages delivered."""

    @abstractmethod
    def record_delivery(self, queue: Queue, slot: Slot) -> None:
        """Records the delivery of a slot that the store holds. Once for each, where
        ``persist-delivery-count-before-delivery`` is set."""
