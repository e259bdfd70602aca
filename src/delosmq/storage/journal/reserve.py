"""The reserve of the journal: what of the open segment and of the files that are ready is kept for removals.

The rules stand in docs/decisions/0027 (what is kept for removals) and 0047 (large batches).
"""

import logging
from collections import deque
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.log.batch_limits import FITS, NO_ROOM, WAITS, largest_batch_bytes, ordinary_batch_bytes
from delosmq.engine.log.log import Batch
from delosmq.model.errors import InvariantError, StorageError
from delosmq.storage.journal.group_commit import GroupCommit
from delosmq.storage.journal.open_segment import OpenSegment
from delosmq.storage.journal.records import Frame
from delosmq.storage.journal.segment_chain import SegmentChain
from delosmq.storage.journal.spares import Spares

ROOM_SHARE: Final = 4
"""A segment with less room than 1 / this of its file is rolled right after the batch that left it so: then the engine's
state is exactly that of the last batch. One that finds too little room is preceded by a roll that repeats the state of
the segment before, since the engine's own is that of the batch in hand already."""
SPARES_FOR_LARGE: Final = 2
"""A batch that is larger than ordinary is followed by a roll at once, and may need one before."""
IDS_SHARE: Final = 16
"""Of the state: so much a message may take for the ids of the queues that keep it, 8 bytes each; in the state a queue
takes over 128. The files are larger by more than that when the state is."""
PAID_AT_ONCE: Final = 500
"""Of the batches that waited for room, about 2 ms in pure Python; the rest follows with the sync of these."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Reserve:
    """Decides which batch goes in, which waits, and when the journal rolls; says when room is short.

    Attributes:
        least_room: of the open segment; with less the journal rolls.
        large: a batch that takes more has to be admitted.
        watched_room: with less than that `keep_room` has something to do.
        low: no messages may come for now: each batch has to be admitted.
    """

    def __init__(
        self,
        opened: OpenSegment,
        chain: SegmentChain,
        spares: Spares,
        commit: GroupCommit,
        *,
        size_bytes: int,
        logger: logging.Logger,
    ) -> None:
        self._opened = opened
        self._chain = chain
        self._spares = spares
        self._commit = commit
        self._size_bytes = size_bytes
        self._logger = logger
        self._ordinary = ordinary_batch_bytes(size_bytes)
        self._largest = largest_batch_bytes(size_bytes)
        # Removals that found no room, in order. Till they are written no state of the engine may be: it has them.
        self._owed: deque[Batch] = deque()
        self._full = False
        self._awaited = False  # that there are files for a large batch
        self.least_room = size_bytes // ROOM_SHARE
        self.large = self.least_room // 2
        self.watched_room = self.least_room + self._ordinary
        self.low = False

    @property
    def owed(self) -> int:
        """How many batches wait for room."""
        return len(self._owed)

    def takes(self, size_bytes: int) -> bool:
        if size_bytes > self._ordinary:
            return self._has_place(size_bytes)
        ready = len(self._spares.ready) > 0
        return not self._owed and (ready or self._opened.segment.room - size_bytes >= self.least_room)

    def takes_state(self, size_bytes: int, reserve_bytes: int) -> bool:
        takes = self._spares.takes_state(size_bytes, reserve_bytes)
        self.watch_room()
        return takes

    def ask_large(self, size_bytes: int) -> int:
        if self._has_place(size_bytes) or self._opened.status.failure is not None:
            return FITS
        if self._spares.short:
            return NO_ROOM
        self._await_files()
        return WAITS

    def room_to_move(self) -> int:
        """How much a compaction may store again now; 0 for nothing."""
        if self._owed:
            return 0
        if self.low:
            # What is freed soon may cost a part of what is left, but never of what is kept for removals.
            return max(0, (self._opened.segment.room - self.least_room) // 2)
        if len(self._spares.ready) < self._spares.wanted:
            return 0  # so that no send waits for a roll on the way
        return self._size_bytes

    def keep_room(self) -> None:
        """Rolls when that is due and possible, and tells when space gets short or is back."""
        if self._owed and not self.pay():
            if self._opened.status.failure is None:
                self._tell_space(True)
            return
        spares = self._spares
        low = self.low and not spares.ready
        room = self._opened.segment.room
        if room < self.least_room:
            if spares.ready:
                self._roll()
            low = not spares.ready
        elif not spares.ready and room < self.least_room + self._ordinary:
            # Right after the start no file may be ready yet: an ordinary batch must still find room.
            low = True
        if self._awaited:
            self._awaited = len(spares.ready) < SPARES_FOR_LARGE and not spares.short
            low = low or self._awaited
        self.watch_room()
        if self._opened.status.failure is None:
            self._tell_space(low)

    def watch_room(self) -> None:
        """From where on `keep_room` looks: without another file ready an ordinary batch must find room, or wait."""
        ids = self._spares.state_bytes // IDS_SHARE
        self._ordinary = ordinary_batch_bytes(self._size_bytes) + ids
        self._largest = largest_batch_bytes(self._size_bytes) + ids
        self.watched_room = self.least_room if self._spares.ready else self.least_room + self._ordinary

    def free_early(self) -> None:
        """While files are short, frees without a roll what nothing needs any more."""
        self._chain.free()

    def _roll(self, *, repeat_state: bool = False) -> None:
        self._chain.roll(repeat_state=repeat_state)
        self.watch_room()

    def _tell_space(self, low: bool) -> None:
        events = self._opened.status.events
        if low != self.low:
            self.low = low
            if events is not None:
                events.on_space(low)
        # Short for a moment only, or because the disk gives no more?
        full = low and self._spares.short
        if full != self._full:
            self._full = full
            if events is not None:
                events.on_full(full)

    def admit(self, batch: Batch, frame: Frame) -> Frame | None:
        """How a large batch, or one while space is short, goes into the open segment; None when it has to wait for
        room. Raises when it can't be taken."""
        cost = frame.cost
        if cost > self._largest:
            for _, home in batch.stored:
                home.segment = 0
            raise StorageError(
                "DMQ3003",
                f"{self._opened.path}: a batch of {cost} bytes is larger than a journal file takes "
                f"({self._largest}); send less at once or set a journal-file-size larger than {self._size_bytes}",
            )
        large = cost > self._ordinary and batch.stored_count > 0
        if large and not self._has_place(cost):
            self._await_files()
            return None
        ready = len(self._spares.ready)
        # Messages leave room for removals unless a file is ready to roll to.
        kept_free = self.least_room if batch.stored_count and not ready else 0
        if self._opened.segment.room - cost >= kept_free:
            return frame
        if not ready or (self.low and not self._awaited):
            return None
        self._roll(repeat_state=True)
        if self._opened.status.failure is not None:
            raise self._opened.status.failure
        return self._opened.frame(batch)

    def _has_place(self, cost: int) -> bool:
        """Whether a large batch leaves removals as much as an ordinary one does: what is left of the segment it goes
        into, or the file that is rolled to right after it."""
        room = self._opened.segment.room - cost
        ready = len(self._spares.ready)
        if self._owed or ready >= SPARES_FOR_LARGE:
            return not self._owed
        return room >= (0 if ready else self.least_room)

    def _await_files(self) -> None:
        """Producers wait till there is a file for a large batch and one behind it, or the disk gives no more."""
        if self._spares.short:
            return
        self._awaited = True
        self._spares.want(SPARES_FOR_LARGE)
        self._tell_space(True)

    def owe(self, batch: Batch) -> None:
        """Keeps a batch in memory that finds no room, or comes behind such: nothing that ends a message is refused, or
        what the engine did would part from what is stored. It is not synced before it is written, so no client is told.

        Raises:
            StorageError: it stores messages.
        """
        if batch.position != self._opened.last + 1 + len(self._owed):
            raise InvariantError(
                "DMQ3001", f"batch {batch.position} does not follow batch {self._opened.last + len(self._owed)}"
            )
        path = self._opened.path
        if batch.stored_count:
            for _, home in batch.stored:
                home.segment = 0
            raise StorageError(
                "DMQ3004",
                f"{path}: no room for messages until another file is ready; free some disk space if this lasts",
            )
        if not self._owed:
            self._logger.warning(
                f"DMQ3026: {path}: the reserve for acknowledgements is used up; they are confirmed once another file "
                "is ready: free some space if this lasts"
            )
        self._owed.append(batch.copy())
        self._tell_space(True)

    def pay(self) -> bool:
        """Writes some of what waits for room, as far as there is; whether that was all."""
        for _ in range(min(len(self._owed), PAID_AT_ONCE)):
            batch = self._owed[0]
            frame = self._opened.frame(batch)
            if self._opened.segment.room < frame.cost:
                if not self._spares.ready:
                    break
                self._roll(repeat_state=True)
                if self._opened.status.failure is not None:
                    return False
                frame = self._opened.frame(batch)
            self._owed.popleft()
            self._opened.take(batch, frame)
        self._opened.write()
        self._commit.ask_for_written()
        return not self._owed
