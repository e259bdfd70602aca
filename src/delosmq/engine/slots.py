"""The order of a queue: ten priority levels of slots linked by sequence.

Taking the head, adding at the tail and removing from the middle are constant time. Returning a slot to its place walks
from the place of the last return, so a batch of returns in order costs one step each.
"""

from typing import Final

from delosmq.model.ids import Sequence
from delosmq.model.message import HIGHEST_PRIORITY, Message

LEVELS: Final = HIGHEST_PRIORITY + 1


class Slot:
    """One message in one queue.

    Attributes:
        delivery_count: deliveries so far, the one under way included.
        recorded: whether the store holds this reference (durable message on a durable queue, or leased).
        previous, next: neighbours in the one list the slot is in: pending in its queue, or held by a consumer.
        in_list: that list, None while the slot is in none.
    """

    def __init__(self, message: Message, recorded: bool) -> None:
        self.message = message
        self.sequence: Sequence = message.sequence
        self.delivery_count: int = 0
        self.recorded = recorded
        self.previous: Slot | None = None
        self.next: Slot | None = None
        self.in_list: SlotList | None = None


class SlotList:
    """A doubly linked list of slots; what order it has is up to the caller."""

    def __init__(self) -> None:
        self.head: Slot | None = None
        self.tail: Slot | None = None
        self.count: int = 0
        self._finger: Slot | None = None

    def append(self, slot: Slot) -> None:
        """Adds at the tail."""
        tail = self.tail
        slot.previous = tail
        slot.next = None
        slot.in_list = self
        if tail is None:
            self.head = slot
        else:
            tail.next = slot
        self.tail = slot
        self.count += 1

    def unlink(self, slot: Slot) -> None:
        """Takes a slot out, wherever it is in this list."""
        before = slot.previous
        after = slot.next
        if before is None:
            self.head = after
        else:
            before.next = after
        if after is None:
            self.tail = before
        else:
            after.previous = before
        if self._finger is slot:
            self._finger = after if after is not None else before
        slot.previous = None
        slot.next = None
        slot.in_list = None
        self.count -= 1

    def insert_by_sequence(self, slot: Slot) -> int:
        """Puts a slot back where its sequence belongs; the list must be ordered. Returns the steps walked."""
        steps = 0
        head = self.head
        if head is None or slot.sequence < head.sequence:
            self._link_between(None, head, slot)
            return steps
        # Returns come in runs: the neighbour of the last return is nearly always next to the place wanted.
        at = self._finger if self._finger is not None else head
        while at.sequence > slot.sequence:
            steps += 1
            before = at.previous
            assert before is not None  # the head is smaller than the slot
            at = before
        while True:
            after = at.next
            if after is None or after.sequence > slot.sequence:
                break
            steps += 1
            at = after
        self._link_between(at, at.next, slot)
        return steps

    def _link_between(self, before: Slot | None, after: Slot | None, slot: Slot) -> None:
        slot.previous = before
        slot.next = after
        slot.in_list = self
        if before is None:
            self.head = slot
        else:
            before.next = slot
        if after is None:
            self.tail = slot
        else:
            after.previous = slot
        self.count += 1
        self._finger = slot


class PendingSlots:
    """The pending messages of a queue: highest priority first, then by sequence."""

    def __init__(self) -> None:
        self._levels: list[SlotList] = [SlotList() for _ in range(LEVELS)]
        self._occupied: int = 0
        self.count: int = 0

    def add_tail(self, slot: Slot) -> None:
        """Adds a newly routed message."""
        priority = slot.message.priority
        self._levels[priority].append(slot)
        self._occupied |= 1 << priority
        self.count += 1

    def put_back(self, slot: Slot) -> int:
        """Returns a slot to its place by sequence within its priority; gives the steps walked."""
        priority = slot.message.priority
        steps = self._levels[priority].insert_by_sequence(slot)
        self._occupied |= 1 << priority
        self.count += 1
        return steps

    def head(self) -> Slot | None:
        """The oldest message of the highest priority."""
        if self._occupied == 0:
            return None
        return self._levels[self._occupied.bit_length() - 1].head

    def head_upto(self, sequence: int) -> Slot | None:
        """As `head`, among messages with at most this sequence."""
        for level in reversed(self._levels):
            slot = level.head
            if slot is not None and slot.sequence <= sequence:
                return slot
        return None

    def remove(self, slot: Slot) -> None:
        """Takes a slot out, wherever it is."""
        priority = slot.message.priority
        level = self._levels[priority]
        level.unlink(slot)
        if level.count == 0:
            self._occupied &= ~(1 << priority)
        self.count -= 1

    def levels(self) -> list[SlotList]:
        """The levels, the highest priority first."""
        return self._levels[::-1]

    def in_order(self) -> list[Slot]:
        """All slots, head first. Linear: for restart, deletion and tests."""
        found: list[Slot] = []
        for level in reversed(self._levels):
            slot = level.head
            while slot is not None:
                found.append(slot)
                slot = slot.next
        return found
