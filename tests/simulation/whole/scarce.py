"""A journal whose disk is full now and then, with nothing left of what it keeps for removals."""

from random import Random
from typing import Any

from delosmq.engine.log.batch_limits import NO_ROOM
from delosmq.engine.log.log import Batch
from delosmq.storage.journal.records import Frame
from delosmq.storage.journal.reserve import Reserve
from delosmq.storage.journal.store import JournalParts, JournalStore

QUIET_FLUSHES = 5


class ScarceReserve(Reserve):
    """While it is scarce there is no room for anything.

    Attributes:
        owed_count: so many batches had to wait, of all that there were.
    """

    scarce = False
    owed_count = 0

    def become(self, *, scarce: bool) -> None:
        self.scarce = scarce
        if not scarce:
            self._spares.short = False
        self.keep_room()

    def takes(self, size_bytes: int) -> bool:
        return not self.scarce and super().takes(size_bytes)

    def ask_large(self, size_bytes: int) -> int:
        return NO_ROOM if self.scarce else super().ask_large(size_bytes)

    def admit(self, batch: Batch, frame: Frame) -> Frame | None:
        return None if self.scarce else super().admit(batch, frame)

    def owe(self, batch: Batch) -> None:
        super().owe(batch)
        ScarceReserve.owed_count += 1

    def pay(self) -> bool:
        return not self.scarce and super().pay()

    def keep_room(self) -> None:
        if not self.scarce:
            super().keep_room()
        elif self._opened.status.failure is None:
            self._spares.short = True
            self._tell_space(True)

    def free_early(self) -> None:
        if not self.scarce:
            super().free_early()


class ScarceStore(JournalStore):
    """Begins and ends to be full at flushes; what must not be refused then has to wait."""

    flushes = 0
    appended = 0

    def __init__(self, *positional: Any, **named: Any) -> None:
        def reserve(*given: Any, **others: Any) -> Reserve:
            self.scarce_reserve = ScarceReserve(*given, **others)
            return self.scarce_reserve

        super().__init__(*positional, parts=JournalParts(reserve=reserve), **named)  # type: ignore[arg-type]

    def append(self, batch: Batch) -> None:
        self.appended = batch.position
        super().append(batch)

    def flush(self) -> None:
        self.flushes += 1
        chance = Random(self.flushes * 1_000_003 + self.appended).random()
        if self.flushes > QUIET_FLUSHES and chance < 0.08:
            self.scarce_reserve.become(scarce=not self.scarce_reserve.scarce)
        super().flush()
