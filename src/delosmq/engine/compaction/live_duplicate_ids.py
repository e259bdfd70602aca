"""Duplicate ids as a compaction finds them: each is a record of its own, stored again like a message."""

from collections.abc import Generator

from delosmq.engine.addresses.duplicate_ids import Duplicates
from delosmq.engine.base.slots import Slot
from delosmq.engine.compaction.compactor import LivePlace, Restoration
from delosmq.engine.queues.queue import Queue


class LiveDuplicateIds(LivePlace):
    """The caches of all addresses."""

    def __init__(self, duplicates: Duplicates, restoration: Restoration) -> None:
        self._duplicates = duplicates
        self._restoration = restoration

    def records(self, queue: Queue, slot: Slot) -> list[bytes] | None:
        return None

    def restore(self, segment: int) -> Generator[None, None, None]:
        waiting = list(self._duplicates.addresses)
        while waiting:
            known = self._duplicates.addresses.get(waiting.pop())
            entries = [] if known is None else list(known.order)
            while entries:
                entry = entries.pop()
                if entry.home is not None and entry.home.segment == segment and self._duplicates.holds(entry):
                    self._restoration.move_id(entry, None)
                yield
            yield
