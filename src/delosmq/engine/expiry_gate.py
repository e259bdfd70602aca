"""What dispatch asks before it hands out a message that has an expiry."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.engine.queue import Queue
from delosmq.engine.slots import Slot


@mypyc_attr(allow_interpreted_subclasses=True)
class ExpiryGate(ABC):
    """Ends what is too old."""

    @abstractmethod
    def now_ms(self) -> int:
        """The wall clock, to be asked once for a batch of messages."""

    @abstractmethod
    def take_expired(self, queue: Queue, slot: Slot, now_ms: int) -> bool:
        """Ends a pending slot if its time has come, as a decision of its own. False leaves it where it is."""

    @abstractmethod
    def cost(self, queue: Queue) -> int:
        """Of ending one message of this queue, in messages handed out."""
