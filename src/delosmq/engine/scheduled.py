"""What a queue holds that is not due yet: a list of slots for each due time."""

from delosmq.engine.slots import Slot, SlotList


class ScheduledSlots:
    """The slots of one queue by their due time. Adding and taking out, anywhere, are constant time.

    Attributes:
        count: slots in it; bytes: of their encoded messages; ``durable_*``: of those the store holds.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, SlotList] = {}
        self.count: int = 0
        self.bytes: int = 0
        self.durable_count: int = 0
        self.durable_bytes: int = 0

    def add(self, slot: Slot, due_at_ms: int) -> bool:
        """Takes in a slot that is in no list. True when it is the first for that time."""
        slot.due_at_ms = due_at_ms
        bucket = self._buckets.get(due_at_ms)
        first = bucket is None
        if bucket is None:
            bucket = SlotList()
            self._buckets[due_at_ms] = bucket
        bucket.insert(slot)
        size = slot.message.encoded_size_bytes
        self.count += 1
        self.bytes += size
        if slot.recorded:
            self.durable_count += 1
            self.durable_bytes += size
        return first

    def remove(self, slot: Slot) -> None:
        """Takes a slot out; it is in no list then, and due at no time."""
        bucket = self._buckets[slot.due_at_ms]
        bucket.unlink(slot)
        if bucket.count == 0:
            del self._buckets[slot.due_at_ms]
        slot.due_at_ms = 0
        size = slot.message.encoded_size_bytes
        self.count -= 1
        self.bytes -= size
        if slot.recorded:
            self.durable_count -= 1
            self.durable_bytes -= size

    def holds(self, slot: Slot) -> bool:
        """Whether the slot is one of these."""
        return slot.due_at_ms != 0 and slot.in_list is self._buckets.get(slot.due_at_ms)

    def due_at(self, due_at_ms: int) -> SlotList | None:
        """The slots due exactly then, by their place in the queue."""
        return self._buckets.get(due_at_ms)

    def times(self) -> list[int]:
        """All due times, in no order. Linear."""
        return list(self._buckets)

    def any(self) -> Slot | None:
        """Some slot, for emptying it one by one."""
        if not self._buckets:
            return None
        # The last one: searching the first would pass all that were taken out before it.
        due_at_ms, bucket = self._buckets.popitem()
        self._buckets[due_at_ms] = bucket
        return bucket.head

    def in_order(self) -> list[Slot]:
        """All slots, the one due first first. Linear: for listings and tests."""
        found: list[Slot] = []
        for due_at_ms in sorted(self._buckets):
            slot = self._buckets[due_at_ms].head
            while slot is not None:
                found.append(slot)
                slot = slot.next
        return found
