"""Messages that were dropped because the address they should have gone to has no queue for them."""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.queue import Queue

DEAD_LETTER_ADDRESS: Final = "dead-letter-address"
EXPIRY_ADDRESS: Final = "expiry-address"

QUEUES_REMEMBERED: Final = 1_000
"""Queues come and go by themselves: with more than these, telling begins anew."""


@mypyc_attr(allow_interpreted_subclasses=True)
class LossListener(ABC):
    """Somebody who tells people of losses."""

    @abstractmethod
    def messages_lost(self, queue: str, setting: str, address: str) -> None:
        """A message of a queue was dropped, as no queue of the address took it; told once of each queue and setting."""

    @abstractmethod
    def messages_refused(self, queue: str) -> None:
        """A message found no queue but this disabled one and is gone, though its sender is told that it was sent; told
        once, and once more after the queue was enabled."""

    @abstractmethod
    def queue_moved_aside(self, queue: str, address: str, declared_on: str, renamed: str, *, messages: int) -> None:
        """A stored queue has another name now, as broker.xml puts a queue of its name on another address."""


class Losses:
    """Counts what was dropped by queue, since start.

    Attributes:
        listener: told of the first of each queue.
    """

    def __init__(self) -> None:
        self.listener: LossListener | None = None
        self._disabled: set[str] = set()
        self._counts: dict[str, dict[str, int]] = {DEAD_LETTER_ADDRESS: {}, EXPIRY_ADDRESS: {}}

    def add(self, queue: str, setting: str, address: str) -> None:
        """One more message of a queue."""
        counts = self._counts[setting]
        known = counts.get(queue, 0)
        if known == 0:
            if len(counts) >= QUEUES_REMEMBERED:
                counts.clear()
            if self.listener is not None:
                self.listener.messages_lost(queue, setting, address)
        counts[queue] = known + 1

    def refuse(self, queue: str) -> None:
        """A message found only a disabled queue."""
        if queue in self._disabled:
            return
        if len(self._disabled) >= QUEUES_REMEMBERED:
            self._disabled.clear()
        self._disabled.add(queue)
        if self.listener is not None:
            self.listener.messages_refused(queue)

    def moved_aside(self, stored: Queue, renamed: str, declared_on: str) -> None:
        """A stored queue is about to be renamed for a declared one."""
        if self.listener is not None:
            self.listener.queue_moved_aside(
                stored.name, stored.settings.address, declared_on, renamed, messages=stored.message_count
            )

    def enabled(self, queue: str) -> None:
        """A queue takes messages again."""
        self._disabled.discard(queue)

    def count(self, queue: str, setting: str) -> int:
        """Messages of a queue that were dropped."""
        return self._counts[setting].get(queue, 0)
