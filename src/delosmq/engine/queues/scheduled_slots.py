"""The scheduled slots of a queue: a list for each due time.

A time is a number: positive for one of the wall clock, negative for the end of a delay, which no setting of that clock
moves (`schedule`).
"""

from delosmq.engine.base.slots import Slot, SlotList, SlotTotals


class DueSlots(SlotList):
    """The slots due at one time, by their place in the queue.

    Attributes:
        time: which one; see above.
        before, after: the buckets made before and after it; one that is gone still leads on to those after it.
    """

    def __init__(self, time: int) -> None:
        super().__init__()
        self.time = time
        self.before: DueSlots | None = None
        self.after: DueSlots | None = None


class ScheduledSlots(SlotTotals):
    """The slots of one queue by their due time. Adding and taking out, anywhere, are constant time.

    Attributes:
        first: where a walk through all buckets begins, in the order in which they were made.
    """

    def __init__(self) -> None:
        super().__init__()
        self._buckets: dict[int, DueSlots] = {}
        self.first: DueSlots | None = None
        self._last: DueSlots | None = None

    def add(self, slot: Slot, due_at_ms: int, time: int = 0) -> bool:
        """Takes in a slot that is in no list. True when it is the first for that time.

        Args:
            due_at_ms: wall clock, as people see it.
            time: the same unless it is the end of a delay.
        """
        slot.due_at_ms = due_at_ms
        time = time or due_at_ms
        bucket = self._buckets.get(time)
        first = bucket is None
        if bucket is None:
            bucket = DueSlots(time)
            self._buckets[time] = bucket
            last = self._last
            bucket.before = last
            if last is None:
                self.first = bucket
            else:
                last.after = bucket
            self._last = bucket
        bucket.insert(slot)
        self.count_in(slot)
        return first

    def remove(self, slot: Slot) -> None:
        """Takes a slot out; it is in no list then, and due at no time."""
        bucket = slot.in_list
        assert isinstance(bucket, DueSlots)
        bucket.unlink(slot)
        if bucket.count == 0:
            del self._buckets[bucket.time]
            self._unchain(bucket)
        slot.due_at_ms = 0
        self.count_out(slot)

    def _unchain(self, bucket: DueSlots) -> None:
        before = bucket.before
        after = bucket.after
        if before is None:
            self.first = after
        else:
            before.after = after
        if after is None:
            self._last = before
        else:
            after.before = before
        bucket.before = None

    def holds(self, slot: Slot) -> bool:
        bucket = slot.in_list
        return isinstance(bucket, DueSlots) and bucket is self._buckets.get(bucket.time)

    def due_at(self, time: int) -> SlotList | None:
        """The slots due exactly then, by their place in the queue."""
        return self._buckets.get(time)

    def times(self) -> list[int]:
        """All due times, in no order. Linear."""
        return list(self._buckets)

    def any(self) -> Slot | None:
        """Some slot, for emptying it one by one."""
        if not self._buckets:
            return None
        # The last one: searching the first would pass all that were taken out before it.
        time, bucket = self._buckets.popitem()
        self._buckets[time] = bucket
        return bucket.head

    def in_order(self) -> list[Slot]:
        """All slots, the one due first first. Linear: for listings and tests."""
        found: list[Slot] = []
        for bucket in sorted(self._buckets.values(), key=_shown_time):
            slot = bucket.head
            while slot is not None:
                found.append(slot)
                slot = slot.next
        return found


def _shown_time(bucket: DueSlots) -> int:
    return 0 if bucket.head is None else bucket.head.due_at_ms
