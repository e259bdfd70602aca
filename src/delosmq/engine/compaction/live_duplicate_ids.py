"""Duplicate ids as a compaction finds them: each is a record of its own, stored again like a message."""

from typing import Final

from delosmq.engine.addresses.duplicate_ids import Duplicates, KnownId
from delosmq.engine.base.slots import Slot
from delosmq.engine.compaction.compactor import Living
from delosmq.engine.log.log import NO_BODY, Log
from delosmq.engine.log.records import encode_duplicate
from delosmq.engine.queues.queue import Queue
from delosmq.model.message import Home

STORED_PER_SLICE: Final = 250


class _Moved:
    def __init__(self, entry: KnownId, old: Home, new: Home) -> None:
        self.entry = entry
        self.old = old
        self.new = new


class IdLiving(Living):
    """The caches of all addresses."""

    def __init__(self, duplicates: Duplicates, log: Log) -> None:
        self._duplicates = duplicates
        self._log = log
        self._waiting: list[str] | None = None
        self._address: str = ""
        self._entries: list[KnownId] = []

    def records(self, queue: Queue, slot: Slot) -> list[bytes] | None:
        return None

    def restore_next(self, segment: int, limit: int) -> bool:
        if self._waiting is None:
            self._waiting = list(self._duplicates.addresses)
        moved: list[_Moved] = []
        through = False
        while limit > 0 and len(moved) < STORED_PER_SLICE:
            limit -= 1
            if not self._entries:
                if not self._waiting:
                    self._waiting = None
                    through = True
                    break
                self._address = self._waiting.pop()
                known = self._duplicates.addresses.get(self._address)
                self._entries = [] if known is None else list(known.order)
                continue
            entry = self._entries.pop()
            home = entry.home
            if home is not None and home.segment == segment and self._duplicates.holds(self._address, entry):
                moved.append(_Moved(entry, home, self._store_again(entry, home)))
        self._close(moved)
        return through

    def _store_again(self, entry: KnownId, home: Home) -> Home:
        new = Home()
        entry.home = new
        batch = self._log.batch()
        batch.stored.append((len(batch.metas), new))
        batch.metas.append(encode_duplicate(self._address, entry.duplicate_id, entry.number, 0, 0))
        batch.bodies.append(NO_BODY)
        batch.targets.append(home)
        batch.released.append(home)
        return new

    def _close(self, moved: list[_Moved]) -> None:
        try:
            self._log.close()
        finally:
            for item in moved:
                if item.new.segment == 0:
                    item.entry.home = item.old
