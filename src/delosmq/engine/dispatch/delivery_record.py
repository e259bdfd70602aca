"""What dispatch tells before a message leaves whose deliveries are recorded first."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.engine.base.slots import Slot
from delosmq.engine.queues.queue import Queue


@mypyc_attr(allow_interpreted_subclasses=True)
class DeliveryRecord(ABC):
    """Notes deliveries."""

    @abstractmethod
    def delivering(self, queue: Queue, slot: Slot) -> None:
        """A slot that the store holds is about to leave, no decision being under way."""
