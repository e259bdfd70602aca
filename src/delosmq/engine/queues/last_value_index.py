"""Last-value queues: of the pending messages with the same key only the newest stays.

Source: Artemis manual, "Last-Value Queues"; LastValueQueue. The newest stands at its own place, at the tail, so that
the order after a restart is the order before.
"""

from delosmq.engine.base.slots import PendingSlots, Slot


class LastValues:
    """The newest pending slot of each key of one queue.

    An entry counts only while its slot is pending; it goes when that slot leaves the queue, or for a newer one.
    """

    def __init__(self) -> None:
        self._newest: dict[str, Slot] = {}
        self._keys: dict[int, str] = {}

    @property
    def entry_count(self) -> int:
        """Entries, those included that don't count just now."""
        return len(self._newest)

    def current(self, key: str, pending: PendingSlots) -> Slot | None:
        slot = self._newest.get(key)
        return slot if slot is not None and pending.holds(slot) else None

    def track(self, key: str, slot: Slot) -> None:
        """Makes a pending slot the newest of its key."""
        former = self._newest.get(key)
        if former is not None:
            self._keys.pop(former.sequence, None)
        self._newest[key] = slot
        self._keys[slot.sequence] = key

    def remove(self, slot: Slot) -> None:
        """A slot is gone from the queue for good."""
        key = self._keys.pop(slot.sequence, None)
        if key is not None:
            del self._newest[key]
