"""What the connections of a broker hold of frames that are not complete, all together.

A frame may be large and a connection may leave it half sent, so the limits of one connection bound the memory of one
only. Together they may hold so much; beyond it the frame that was begun first goes, as those that come whole come soon.
"""

from abc import ABC, abstractmethod
from typing import Final

from delosmq.model.errors import PeerError

FREE_BYTES: Final = 256 * 1024
"""What is not counted: one read of a connection, half a frame or frames that wait to be decoded."""
_WITHOUT_BOUND_BYTES: Final = 1 << 30
"""For brokers whose messages have no bound together."""


class Receiver(ABC):
    """A connection, for those that share the room with it."""

    @abstractmethod
    def give_up(self, reason: PeerError) -> None:
        """Closes it and frees what it holds."""


class Receiving:
    """The room for frames that are not complete.

    Attributes:
        most_bytes: of all connections together; one that holds something alone may hold more.
        held_bytes: what is counted now.
    """

    def __init__(self, global_max_bytes: int) -> None:
        """
        Args:
            global_max_bytes: ``global-max-size``; -1 for no bound.
        """
        self.most_bytes = global_max_bytes if global_max_bytes > 0 else _WITHOUT_BOUND_BYTES
        self.held_bytes = 0
        self._receivers: dict[Receiver, int] = {}  # in the order in which their frames began

    def count(self, receiver: Receiver, held_bytes: int) -> None:
        """Of a connection that holds more than is free, whenever that may have changed."""
        receivers = self._receivers
        self.held_bytes += held_bytes - receivers.get(receiver, 0)
        receivers[receiver] = held_bytes
        while self.held_bytes > self.most_bytes and len(receivers) > 1:
            oldest = next(iter(receivers))
            reason = PeerError(
                "DMQ6712",
                f"this frame of {receivers[oldest]} bytes so far is not complete, and frames that are not complete"
                f" hold {self.held_bytes} bytes together, more than the {self.most_bytes} of global-max-size; it was"
                " begun before the others. Connect again and send it without a pause, or let the administrator raise"
                " global-max-size or lower connectionsAllowed.",
            )
            reason.unread_bytes = self.most_bytes  # nobody knows how much is to come
            self.forget(oldest)
            oldest.give_up(reason)

    def forget(self, receiver: Receiver) -> None:
        """Its frame is complete, or it is gone; nothing, for one that held no more than is free."""
        self.held_bytes -= self._receivers.pop(receiver, 0)
