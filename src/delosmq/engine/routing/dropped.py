"""Messages that could not go where they should, as no queue there takes them: told once of each queue."""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.queues.queue import Queue

DEAD_LETTER_ADDRESS: Final = "dead-letter-address"
EXPIRY_ADDRESS: Final = "expiry-address"

QUEUES_REMEMBERED: Final = 1_000
"""Queues come and go by themselves: with more than these, telling begins anew."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DroppedListener(ABC):
    """Tells operators of dropped messages."""

    @abstractmethod
    def messages_held(self, queue: str, setting: str, address: str) -> None:
        """A message stays in its queue, held, as no queue of the address takes it; told once of each queue and
        setting."""

    @abstractmethod
    def messages_refused(self, queue: str) -> None:
        """A message found no queue but this disabled one and is gone, though its sender is told that it was sent; told
        once, and once more after the queue was enabled."""

    @abstractmethod
    def queue_moved_aside(self, queue: str, address: str, declared_on: str, renamed: str, *, messages: int) -> None:
        """A stored queue has another name now, as broker.xml puts a queue of its name on another address."""


class DroppedMessages:
    """Tells the first of each queue, since start.

    Attributes:
        listener: is told.
    """

    def __init__(self) -> None:
        self.listener: DroppedListener | None = None
        self._disabled: set[str] = set()
        self._told: dict[str, set[str]] = {DEAD_LETTER_ADDRESS: set(), EXPIRY_ADDRESS: set()}

    def tell_held(self, queue: str, setting: str, address: str) -> None:
        """One more message of a queue is held."""
        told = self._told[setting]
        if queue in told:
            return
        if len(told) >= QUEUES_REMEMBERED:
            told.clear()
        told.add(queue)
        if self.listener is not None:
            self.listener.messages_held(queue, setting, address)

    def tell_refused(self, queue: str) -> None:
        """A message found only a disabled queue."""
        if queue in self._disabled:
            return
        if len(self._disabled) >= QUEUES_REMEMBERED:
            self._disabled.clear()
        self._disabled.add(queue)
        if self.listener is not None:
            self.listener.messages_refused(queue)

    def tell_moved_aside(self, stored: Queue, renamed: str, declared_on: str) -> None:
        """A stored queue is about to be renamed for a declared one."""
        if self.listener is not None:
            self.listener.queue_moved_aside(
                stored.name, stored.settings.address, declared_on, renamed, messages=stored.message_count
            )

    def enabled(self, queue: str) -> None:
        """A queue takes messages again."""
        self._disabled.discard(queue)
