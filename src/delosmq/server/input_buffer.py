"""Input buffers: what the connections of a broker hold together of frames that are not complete.

A frame may be large and a connection may leave it half sent, so the limits of one connection bound the memory of one
only. Together they may hold so much; beyond it the frame that was begun first goes, as those that come whole come soon.
"""

from abc import ABC, abstractmethod
from typing import Final, Generic, TypeVar

from delosmq.model.errors import PeerError

UNCOUNTED_BYTES: Final = 256 * 1024
"""What is not counted: one read of a connection, half a frame or frames that wait to be decoded."""
_WITHOUT_BOUND_BYTES: Final = 1 << 30
"""For brokers without a bound for all messages together."""


Member = TypeVar("Member")


class Receiver(ABC):
    """A connection, for those that share the room with it."""

    @abstractmethod
    def give_up(self, reason: PeerError) -> None:
        """Closes it and frees what it holds."""


class SharedLimit(ABC, Generic[Member]):
    """What connections may hold together; beyond it the one goes that has held something for longest.

    Attributes:
        most_bytes: of all connections together; one that holds something alone may hold more.
        used_bytes: what is counted now.
    """

    def __init__(self, global_max_bytes: int) -> None:
        """
        Args:
            global_max_bytes: ``global-max-size``; -1 for no bound.
        """
        self.most_bytes = 0
        self.bound(global_max_bytes)
        self.used_bytes = 0
        self._sizes: dict[Member, int] = {}  # in the order in which they began to hold something

    def bound(self, global_max_bytes: int) -> None:
        """Takes over ``global-max-size``; what is held already is looked at when something is counted next."""
        self.most_bytes = global_max_bytes if global_max_bytes > 0 else _WITHOUT_BOUND_BYTES

    def count(self, member: Member, size_bytes: int) -> None:
        """Of a connection that holds something, whenever that may have changed."""
        sizes = self._sizes
        self.used_bytes += size_bytes - sizes.get(member, 0)
        sizes[member] = size_bytes
        while self.used_bytes > self.most_bytes and len(sizes) > 1:
            oldest = next(iter(sizes))
            if not self.may_end(oldest):
                return
            reason = self.reason(sizes[oldest])
            self.remove(oldest)
            self.end(oldest, reason)

    def remove(self, member: Member) -> None:
        """Of one that holds nothing any more, or is gone. Does nothing for one that was not counted."""
        self.used_bytes -= self._sizes.pop(member, 0)

    def may_end(self, member: Member) -> bool:
        """Whether the one that has held something for longest has to go. When it may stay, all may."""
        return True

    @abstractmethod
    def reason(self, size_bytes: int) -> PeerError:
        """Why one that holds so much has to go."""

    @abstractmethod
    def end(self, member: Member, reason: PeerError) -> None:
        """Closes it and frees what it holds."""


class IncompleteFrames(SharedLimit[Receiver]):
    """The room for frames that are not complete. Counted are those that hold more than `UNCOUNTED_BYTES`."""

    def reason(self, size_bytes: int) -> PeerError:
        reason = PeerError(
            "DMQ6712",
            f"this frame of {size_bytes} bytes so far is not complete, and frames that are not complete"
            f" hold {self.used_bytes} bytes together, more than the {self.most_bytes} of global-max-size; it was"
            " begun before the others. Connect again and send it without a pause, or let the administrator raise"
            " global-max-size or lower connectionsAllowed.",
        )
        reason.unread_bytes = self.most_bytes  # how much is to come is not known
        return reason

    def end(self, member: Receiver, reason: PeerError) -> None:
        member.give_up(reason)
