"""A journal whose disk is full now and then, with nothing left of what it keeps for removals."""

from random import Random

from delosmq.engine.log.log import NO_ROOM, Batch
from delosmq.storage.journal.records import Frame
from delosmq.storage.journal.store import JournalStore

QUIET_FLUSHES = 5


class ScarceStore(JournalStore):
    """Begins and ends to be full at flushes; what must not be refused then has to wait.

    Attributes:
        owed_count: so many batches had to, of all that there were.
    """

    scarce = False
    owed_count = 0
    flushes = 0

    def flush(self) -> None:
        self.flushes += 1
        chance = Random(self.flushes * 1_000_003 + self._last).random()
        if self._recovered and not self._closed and self.flushes > QUIET_FLUSHES:
            if self.scarce and chance < 0.08:
                self.scarce = self._spares.short = False
                self._keep_room()
            elif not self.scarce and chance < 0.08:
                self.scarce = True
                self._keep_room()
        super().flush()

    def takes(self, size_bytes: int) -> bool:
        return not self.scarce and super().takes(size_bytes)

    def ask_large(self, size_bytes: int) -> int:
        return NO_ROOM if self.scarce else super().ask_large(size_bytes)

    def _admit(self, batch: Batch, frame: Frame) -> Frame | None:
        return None if self.scarce else super()._admit(batch, frame)

    def _owe(self, batch: Batch) -> None:
        super()._owe(batch)
        ScarceStore.owed_count += 1

    def _pay(self) -> bool:
        return not self.scarce and super()._pay()

    def _keep_room(self) -> None:
        if not self.scarce:
            super()._keep_room()
        elif self._failure is None:
            self._spares.short = True
            self._tell_space(True)

    def _free_early(self) -> None:
        if not self.scarce:
            super()._free_early()
