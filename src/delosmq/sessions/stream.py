"""The streams of an outbox: sequences of frames and deliveries, each of which keeps its order."""

from abc import abstractmethod
from collections import deque
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.api import ConsumerPort, Slot

NO_SEQUENCE: Final = 0
"""Marks an entry that is no delivery; sequences of messages begin at 1."""

ENTRY_BYTES: Final = 256
"""What an entry takes beside its frame: its tuple, its share of lists, and the slot that a browser borrows."""

FrameParts = tuple[bytes, bytes, bytes]
"""A frame: what stands before the body, the body, what stands behind it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DeliveryPort(ConsumerPort):
    """A consumer; its deliveries wait in an outbox."""

    @abstractmethod
    def encode(self, slot: Slot, delivery_count: int) -> FrameParts:
        """The frame of a delivery that leaves now.

        Args:
            delivery_count: of this delivery; the slot may have been delivered again since.
        """


# What waits: a frame, or a delivery to encode. Frame (empty for a delivery), its slot, the sequence (of a frame) or the
# delivery count (of a slot), stream, who encodes.
Entry = tuple[bytes, Slot | None, int, "Stream", DeliveryPort | None]


class Stream:
    """Writes that keep their order.

    Attributes:
        written: sequence of the newest delivery that is in the peer's socket; `NO_SEQUENCE` before the first.
        reports: whether deliveries of this stream show up in `Outbox.take_written`.
        replies: what is put there counts as replies do: it is bounded by not reading.
        closed: nothing more is taken or sent.
        unseen: sequences of the deliveries that closing dropped.
        owner_id: the consumer's, for readers of `Outbox.take_written`.
    """

    def __init__(self, reports: bool = False, behind: "Stream | None" = None, *, replies: bool = False) -> None:
        """
        Args:
            behind: a stream whose order this one shares: what is added to either comes after all of both.
        """
        self.reports = reports
        self.replies = replies
        self.written: int = NO_SEQUENCE
        self.closed: bool = False
        self.noted: bool = False
        self.owner_id: int = 0
        self.unseen: set[int] = set()
        self.unsynced: deque[tuple[int, Entry]] = deque() if behind is None else behind.unsynced


def size_of(entry: Entry) -> int:
    """What an entry counts while it waits."""
    slot = entry[1]
    return ENTRY_BYTES + (len(entry[0]) if slot is None else slot.message.encoded_size_bytes)


def kept_of(entry: Entry) -> int:
    """What would be free if an entry went."""
    slot = entry[1]
    if slot is None:
        return ENTRY_BYTES + len(entry[0])
    message = slot.message
    return ENTRY_BYTES if message.account is not None else ENTRY_BYTES + message.encoded_size_bytes
