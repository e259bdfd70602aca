"""Duplicate ids as a compaction finds them: each is a record of its own, stored again like a message."""

from typing import Final

from delosmq.engine.addresses.duplicate_ids import DuplicateId, Duplicates
from delosmq.engine.base.slots import Slot
from delosmq.engine.compaction.compactor import LivePlace
from delosmq.engine.log.log import Log
from delosmq.engine.queues.queue import Queue
from delosmq.model.message import Home

STORED_PER_SLICE: Final = 250


class LiveDuplicateIds(LivePlace):
    """The caches of all addresses."""

    def __init__(self, duplicates: Duplicates, log: Log) -> None:
        self._duplicates = duplicates
        self._log = log
        self._waiting: list[str] | None = None
        self._entries: list[DuplicateId] = []

    def records(self, queue: Queue, slot: Slot) -> list[bytes] | None:
        return None

    def restore_next(self, segment: int, limit: int) -> bool:
        if self._waiting is None:
            self._waiting = list(self._duplicates.addresses)
        moved: list[tuple[DuplicateId, Home]] = []
        through = False
        while limit > 0 and len(moved) < STORED_PER_SLICE:
            limit -= 1
            if not self._entries:
                if not self._waiting:
                    self._waiting = None
                    through = True
                    break
                known = self._duplicates.addresses.get(self._waiting.pop())
                self._entries = [] if known is None else list(known.order)
                continue
            entry = self._entries.pop()
            home = entry.home
            if home is not None and home.segment == segment and self._duplicates.holds(entry):
                entry.store_again(self._log)
                moved.append((entry, home))
        self._close(moved)
        return through

    def _close(self, moved: list[tuple[DuplicateId, Home]]) -> None:
        try:
            self._log.close()
        finally:
            for entry, old in moved:
                if entry.home is not None and entry.home.segment == 0:
                    entry.home = old
