"""The order of a queue: ten priority levels of slots linked by sequence.

Taking the head, adding at the tail and removing from the middle are constant time. Returning a slot to its place walks
from the place of the last return, so a batch of returns in order costs one step each.
"""

from abc import ABC, abstractmethod
from heapq import heapify, heappop, heappush
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.model.ids import Sequence
from delosmq.model.message import HIGHEST_PRIORITY, Message

LEVELS: Final = HIGHEST_PRIORITY + 1

_GONE_AT_MOST: Final = 64
"""Places of slots that are gone, which a cursor keeps beside twice as many as are pending."""


class Slot:
    """One message in one queue.

    Attributes:
        delivery_count: deliveries so far, the one under way included.
        level: the priority it has in the queue: that of its message, or the same for all (``prioritized-messages``).
        order: its place among the slots of its level; the sequence, unless it took the place of another one.
        recorded: whether the store holds this reference (durable message on a durable queue, or leased).
        borrowed: lent to a reader that does not consume (a browser, a non-destructive queue): answering it changes
            nothing in the queue.
        transaction: of the acknowledgement that waits for its commit, 0 for none.
        due_at_ms: scheduled until then, 0 when it isn't.
        delivered_at_ms: wall clock of the last delivery.
        marks: cursors that stand on it or go back to it, and who remembers it.
        previous, next: neighbours in the one list the slot is in: pending in its queue, or held by a consumer.
        in_list: that list, None while the slot is in none.
    """

    __slots__ = (
        "borrowed",
        "delivered_at_ms",
        "delivery_count",
        "due_at_ms",
        "in_list",
        "level",
        "marks",
        "message",
        "next",
        "order",
        "previous",
        "recorded",
        "sequence",
        "transaction",
    )

    def __init__(self, message: Message, recorded: bool) -> None:
        self.message = message
        self.sequence: Sequence = message.sequence
        self.level: int = message.priority
        self.order: int = message.sequence
        self.delivery_count: int = 0
        self.recorded = recorded
        self.borrowed: bool = False
        self.transaction: int = 0
        self.due_at_ms: int = 0
        self.delivered_at_ms: int = 0
        self.marks: int = 0
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

    def insert(self, slot: Slot) -> int:
        """Puts a slot where its order belongs; the list must be ordered. Returns the steps walked."""
        steps = 0
        head = self.head
        tail = self.tail
        order = slot.order
        if head is None or tail is None or order < head.order:
            self._link_between(None, head, slot)
            return steps
        if order > tail.order:
            self._link_between(tail, None, slot)
            return steps
        at = self._nearest(order, head, tail)
        while at.order > order:
            steps += 1
            before = at.previous
            assert before is not None  # the head is smaller than the slot
            at = before
        while True:
            after = at.next
            if after is None or after.order > order:
                break
            steps += 1
            at = after
        self._link_between(at, at.next, slot)
        return steps

    def look_near(self, slot: Slot) -> None:
        """The next `insert` begins at a slot, if that is here."""
        if slot.in_list is self:
            self._finger = slot

    def _nearest(self, order: int, head: Slot, tail: Slot) -> Slot:
        # Returns come in runs: the neighbour of the last return is nearly always next to the place wanted.
        at = self._finger
        if at is None:
            at = head
        away = abs(at.order - order)
        if order - head.order < away:
            return head
        return tail if tail.order - order < away else at

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


class SlotTotals:
    """Slots that are somewhere, and the size of their encoded messages.

    Attributes:
        durable_count, durable_bytes: of those the store holds.
    """

    def __init__(self) -> None:
        self.count: int = 0
        self.bytes: int = 0
        self.durable_count: int = 0
        self.durable_bytes: int = 0

    def count_in(self, slot: Slot) -> None:
        """One more is there."""
        size = slot.message.encoded_size_bytes
        self.count += 1
        self.bytes += size
        if slot.recorded:
            self.durable_count += 1
            self.durable_bytes += size

    def count_out(self, slot: Slot) -> None:
        """One is not there any more."""
        size = slot.message.encoded_size_bytes
        self.count -= 1
        self.bytes -= size
        if slot.recorded:
            self.durable_count -= 1
            self.durable_bytes -= size


@mypyc_attr(allow_interpreted_subclasses=True)
class PendingObserver(ABC):
    """Remembers pending slots until they leave."""

    @abstractmethod
    def on_removed(self, slot: Slot) -> None:
        """A slot with marks is pending no more."""


class PendingSlots(SlotTotals):
    """The pending messages of a queue: highest priority first, then by order.

    Attributes:
        observers: told of slots that go, if they have marks: one for each that an observer remembers is its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.observers: list[PendingObserver] = []
        self._levels: list[SlotList] = [SlotList() for _ in range(LEVELS)]
        self._occupied: int = 0
        self._cursors: list[Cursor] = []
        self._first_order: int = 0

    def add(self, message: Message, recorded: bool, level: int) -> Slot:
        """Adds a newly routed message, behind all others of its level."""
        slot = Slot(message, recorded)
        slot.level = level
        self._levels[level].append(slot)
        self._occupied |= 1 << level
        self.count_in(slot)
        return slot

    def put_back(self, slot: Slot, near: Slot | None = None) -> int:
        """Returns a slot to its place by order within its priority; gives the steps walked.

        Args:
            near: where to begin to look, if it is still there: who returns many while others do too says which one it
                returned last.
        """
        priority = slot.level
        level = self._levels[priority]
        if near is not None:
            level.look_near(near)
        steps = level.insert(slot)
        self._occupied |= 1 << priority
        self.count_in(slot)
        for cursor in self._cursors:
            cursor.on_put_back(slot)
        return steps

    def put_first(self, slot: Slot) -> None:
        """Puts a slot before all others of its priority."""
        head = self._levels[slot.level].head
        if head is not None and head.order <= slot.order:
            # Before all sequences, and never the order of another slot, wherever that is just now.
            self._first_order -= 1
            slot.order = self._first_order
        self.put_back(slot)

    def head(self) -> Slot | None:
        """The oldest message of the highest priority."""
        if self._occupied == 0:
            return None
        return self._levels[self._occupied.bit_length() - 1].head

    def lowest(self) -> Slot | None:
        """The oldest message of the lowest priority."""
        if self._occupied == 0:
            return None
        return self._levels[(self._occupied & -self._occupied).bit_length() - 1].head

    def last(self, level: int) -> Slot | None:
        """The last one of a level."""
        return self._levels[level].tail

    def head_upto(self, sequence: int) -> Slot | None:
        """As `head`, among messages with at most this sequence."""
        for level in reversed(self._levels):
            slot = level.head
            if slot is not None and slot.sequence <= sequence:
                return slot
        return None

    def remove(self, slot: Slot) -> None:
        """Takes a slot out, wherever it is."""
        priority = slot.level
        if slot.marks:
            self._leave_marks(slot, priority)
        level = self._levels[priority]
        level.unlink(slot)
        if level.count == 0:
            self._occupied &= ~(1 << priority)
        self.count_out(slot)

    def holds(self, slot: Slot) -> bool:
        return slot.in_list is self._levels[slot.level]

    def _leave_marks(self, slot: Slot, priority: int) -> None:
        for cursor in self._cursors:
            cursor.on_removed(priority, slot)
        for observer in self.observers:
            observer.on_removed(slot)

    def cursor(self) -> "Cursor":
        """A cursor before everything that is pending. Give it back with `drop` when it is no longer needed."""
        cursor = Cursor(self)
        self._cursors.append(cursor)
        return cursor

    def drop(self, cursor: "Cursor") -> None:
        """Forgets a cursor."""
        self._cursors.remove(cursor)
        cursor.close()

    def next_of(self, priority: int, after: Slot | None) -> Slot | None:
        """The slot behind ``after`` in a level, the first one for None."""
        return self._levels[priority].head if after is None else after.next

    @property
    def occupied(self) -> int:
        """Bit set of the priorities that have messages."""
        return self._occupied

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


class Cursor:
    """A place in the pending slots of a queue: what lies before it was looked at and passed.

    It survives everything that happens to the queue: slots that go, new ones at any tail, slots that come back behind
    it (they are looked at next, in their order, and nothing else twice).

    Attributes:
        passed: per priority, the last slot passed that is still pending; None at the beginning.
    """

    def __init__(self, pending: PendingSlots) -> None:
        self._pending = pending
        self.passed: list[Slot | None] = [None] * LEVELS
        # Behind the cursor, to be looked at all the same: (-priority, order), and the slots by order. None when it is
        # gone: a reader without room looks at nothing for long, and would keep messages that have left their queues.
        self._returned: list[tuple[int, int]] = []
        self._slots: dict[int, Slot | None] = {}

    def peek(self) -> Slot | None:
        """The first slot, in the queue's order, that was not passed yet."""
        pending = self._pending
        occupied = pending.occupied
        found: Slot | None = None
        while occupied:
            priority = occupied.bit_length() - 1
            found = pending.next_of(priority, self.passed[priority])
            if found is not None:
                break
            occupied &= ~(1 << priority)
        returned = self._returned
        while returned:
            slot = self._slots[returned[0][1]]
            if slot is not None and self.has_passed(slot):
                if found is None or slot.level >= found.level:
                    return slot
                break
            self._drop_returned()
        return found

    def advance(self, slot: Slot) -> None:
        """Passes ``slot``, which `peek` gave."""
        returned = self._returned
        if returned and self._slots[returned[0][1]] is slot:
            self._drop_returned()
            return
        priority = slot.level
        before = self.passed[priority]
        if before is not None:
            before.marks -= 1
        self.passed[priority] = slot
        slot.marks += 1

    def has_passed(self, slot: Slot) -> bool:
        """Whether a slot lies before the cursor, looked at or not."""
        last = self.passed[slot.level]
        return last is not None and slot.order <= last.order

    def on_put_back(self, slot: Slot) -> None:
        """A slot is pending again: when that is behind the cursor, it is looked at once more."""
        if not self.has_passed(slot):
            return
        # Once is enough: an order is never that of two slots of a queue at a time.
        order = slot.order
        if order not in self._slots:
            if len(self._returned) > 2 * self._pending.count + _GONE_AT_MOST:
                self._sweep()
            heappush(self._returned, (-slot.level, order))
        elif self._slots[order] is not None:
            return
        self._slots[order] = slot
        slot.marks += 1

    def _sweep(self) -> None:
        """Forgets the places of what is gone."""
        self._slots = {order: slot for order, slot in self._slots.items() if slot is not None}
        self._returned = [entry for entry in self._returned if entry[1] in self._slots]
        heapify(self._returned)

    def _drop_returned(self) -> None:
        slot = self._slots.pop(heappop(self._returned)[1])
        if slot is not None:
            slot.marks -= 1

    def on_removed(self, priority: int, slot: Slot) -> None:
        """A slot with marks is pending no more."""
        if self.passed[priority] is slot:
            before = slot.previous
            slot.marks -= 1
            self.passed[priority] = before
            if before is not None:
                before.marks += 1
        if self._slots and self._slots.get(slot.order) is slot:
            self._slots[slot.order] = None
            slot.marks -= 1

    def close(self) -> None:
        """Takes back its marks, and is before everything again; nothing tells it of slots any more."""
        for slot in (*self.passed, *self._slots.values()):
            if slot is not None:
                slot.marks -= 1
        self.passed = [None] * LEVELS
        self._returned = []
        self._slots = {}
