"""What dispatch asks before it hands out a message that has an expiry."""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.base.slots import Slot
from delosmq.engine.queues.queue import Queue

STAYS: Final = 0
ENDED: Final = 1
ROOM_TO_COME: Final = 2
"""What becomes of a message: it is handed out; it was too old; it is, and its queue stops until its copy has room."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ExpiryGate(ABC):
    """Ends what is too old."""

    @abstractmethod
    def now_ms(self) -> int:
        """The wall clock, to be asked once for a batch of messages."""

    @abstractmethod
    def take_expired(self, queue: Queue, slot: Slot, now_ms: int) -> int:
        """Ends a pending slot if its time has come, as a decision of its own: STAYS, ENDED or ROOM_TO_COME."""

    @abstractmethod
    def put_off(self, queue: Queue) -> None:
        """After ROOM_TO_COME: the queue hands out nothing for a moment."""

    @abstractmethod
    def cost(self, queue: Queue) -> int:
        """Of ending one message of this queue, in messages handed out."""
