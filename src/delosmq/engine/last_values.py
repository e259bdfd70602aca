"""Last-value queues: of the pending messages with the same key only the newest stays.

Source: Artemis manual, "Last-Value Queues"; LastValueQueue. The newest stands at its own place, at the tail, so that
the order after a restart is the order before.
"""

from collections import OrderedDict
from typing import Final

from delosmq.engine.slots import PendingSlots, Slot

LOOKED_AT_PER_ADD: Final = 2


class LastValues:
    """The newest pending slot of each key of one queue.

    It isn't told when a slot leaves the queue, as there are many ways: an entry counts only while its slot is pending,
    and each add looks whether the two oldest entries still do. So it never has many more entries than the queue.
    """

    def __init__(self) -> None:
        self._newest: OrderedDict[str, Slot] = OrderedDict()

    @property
    def entry_count(self) -> int:
        """Entries, those included that no longer count."""
        return len(self._newest)

    def current(self, key: str, pending: PendingSlots) -> Slot | None:
        """The newest pending slot of a key."""
        slot = self._newest.get(key)
        return slot if slot is not None and pending.holds(slot) else None

    def track(self, key: str, slot: Slot, pending: PendingSlots) -> None:
        """Makes a pending slot the newest of its key."""
        self._newest[key] = slot
        newest = self._newest
        for _ in range(LOOKED_AT_PER_ADD):
            oldest_key, oldest = newest.popitem(last=False)
            if pending.holds(oldest):
                newest[oldest_key] = oldest
            if not newest:
                break
