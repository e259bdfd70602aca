"""Who gets the room of the open segment: messages, removals, and batches that take most of a file.

The rules stand in docs/decisions/0027 (what is kept for removals) and 0047 (large batches).
"""

import logging
from collections import deque
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.log.log import (
    FITS,
    NO_ROOM,
    WAITS,
    Batch,
    largest_batch_bytes,
    ordinary_batch_bytes,
)
from delosmq.model.errors import InvariantError, StorageError
from delosmq.storage.journal.files import Files
from delosmq.storage.journal.records import Frame
from delosmq.storage.journal.rolling import RollingSegments
from delosmq.storage.journal.spares import Spares
from delosmq.storage.journal.syncer import Syncer

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
class RoomRules(RollingSegments):
    """Decides which batch goes in, which waits, and when the journal rolls; says when room is short."""

    def __init__(
        self, files: Files, syncer: Syncer, spares: Spares, *, size_bytes: int, logger: logging.Logger
    ) -> None:
        super().__init__(files, syncer, spares, size_bytes=size_bytes, logger=logger)
        self._ordinary = ordinary_batch_bytes(size_bytes)
        self._largest = largest_batch_bytes(size_bytes)
        self._due = size_bytes // ROOM_SHARE
        self._large = self._due // 2
        self._watch = self._due + self._ordinary
        # Removals that found no room, in order. Till they are written no state of the engine may be: it has them.
        self._owed: deque[Batch] = deque()
        self._low = False
        self._full = False
        self._awaited = False  # that there are files for a large batch

    def takes(self, size_bytes: int) -> bool:
        if size_bytes > self._ordinary:
            return self._has_place(size_bytes)
        return not self._owed and (len(self._spares.ready) > 0 or self._open.room - size_bytes >= self._due)

    def takes_state(self, size_bytes: int, reserve_bytes: int = 0) -> bool:
        takes = self._spares.takes_state(size_bytes, reserve_bytes)
        self._watch_room()
        return takes

    def ask_large(self, size_bytes: int) -> int:
        if self._has_place(size_bytes) or self._failure is not None:
            return FITS
        if self._spares.short:
            return NO_ROOM
        self._await_files()
        return WAITS

    def _keep_room(self) -> None:
        """Rolls when that is due and possible, and tells when space gets short or is back."""
        if self._owed and not self._pay():
            if self._failure is None:
                self._tell_space(True)
            return
        low = self._low and not self._spares.ready
        if self._open.room < self._due:
            if self._spares.ready:
                self._roll()
            low = not self._spares.ready
        elif not self._spares.ready and self._open.room < self._due + self._ordinary:
            # Right after the start no file may be ready yet: an ordinary batch must still find room.
            low = True
        if self._awaited:
            self._awaited = len(self._spares.ready) < SPARES_FOR_LARGE and not self._spares.short
            low = low or self._awaited
        self._watch_room()
        if self._failure is None:
            self._tell_space(low)

    def _roll(self, *, repeat_state: bool = False) -> None:
        """Without ``repeat_state`` only if a file is ready that holds the engine's state."""
        super()._roll(repeat_state=repeat_state)
        self._watch_room()

    def _watch_room(self) -> None:
        """From where on `_keep_room` looks: without another file ready an ordinary batch must find room, or wait."""
        ids = self._spares.state_bytes // IDS_SHARE
        self._ordinary = ordinary_batch_bytes(self._size_bytes) + ids
        self._largest = largest_batch_bytes(self._size_bytes) + ids
        self._watch = self._due if self._spares.ready else self._due + self._ordinary

    def _tell_space(self, low: bool) -> None:
        events = self._events
        if low != self._low:
            self._low = low
            if events is not None:
                events.on_space(low)
        # Short for a moment only, or because the disk gives no more?
        full = low and self._spares.short
        if full != self._full:
            self._full = full
            if events is not None:
                events.on_full(full)

    def _free_early(self) -> None:
        """Frees without a roll when files are short: the manifest says so, the state block there is still holds."""
        self._let_go(self._ledger.free(self._open, self._state_position))

    def _admit(self, batch: Batch, frame: Frame) -> Frame | None:
        """How a large batch, or one while space is short, goes into the open segment; None when it has to wait for
        room. Raises when it can't be taken."""
        cost = frame.cost
        if cost > self._largest:
            for _, home in batch.stored:
                home.segment = 0
            raise StorageError(
                "DMQ3003",
                f"{self._files.path(self._open.name)}: a batch of {cost} bytes is larger than a journal file takes "
                f"({self._largest}); send less at once or set a journal-file-size larger than {self._size_bytes}",
            )
        large = cost > self._ordinary and batch.stored_count > 0
        if large and not self._has_place(cost):
            self._await_files()
            return None
        ready = len(self._spares.ready)
        # Messages leave room for removals unless a file is ready to roll to.
        kept_free = self._due if batch.stored_count and not ready else 0
        if self._open.room - cost >= kept_free:
            return frame
        if not ready or (self._low and not self._awaited):
            return None
        self._roll(repeat_state=True)
        if self._failure is not None:
            raise self._failure
        return self._frame(batch, self._open)

    def _has_place(self, cost: int) -> bool:
        """Whether a large batch leaves removals as much as an ordinary one does: what is left of the segment it goes
        into, or the file that is rolled to right after it."""
        room = self._open.room - cost
        ready = len(self._spares.ready)
        if self._owed or ready >= SPARES_FOR_LARGE:
            return not self._owed
        return room >= (0 if ready else self._due)

    def _await_files(self) -> None:
        """Producers wait till there is a file for a large batch and one behind it, or the disk gives no more."""
        if self._spares.short:
            return
        self._awaited = True
        self._spares.want(SPARES_FOR_LARGE)
        self._tell_space(True)

    def _owe(self, batch: Batch) -> None:
        """Keeps a batch in memory that finds no room, or comes behind such: nothing that ends a message is refused, or
        what the engine did would part from what is stored. It is not synced before it is written, so nobody is told.

        Raises:
            StorageError: it stores messages.
        """
        if batch.position != self._last + 1 + len(self._owed):
            raise InvariantError(
                "DMQ3001", f"batch {batch.position} does not follow batch {self._last + len(self._owed)}"
            )
        name = self._files.path(self._open.name)
        if batch.stored_count:
            for _, home in batch.stored:
                home.segment = 0
            raise StorageError(
                "DMQ3004",
                f"{name}: no room for messages until another file is ready; free some disk space if this lasts",
            )
        if not self._owed:
            self._logger.warning(
                "DMQ3026: %s: the reserve for acknowledgements is used up; they are confirmed once another file is "
                "ready: free some space if this lasts",
                name,
            )
        self._owed.append(batch.copy())
        self._tell_space(True)

    def _pay(self) -> bool:
        """Writes some of what waits for room, as far as there is; whether that was all."""
        for _ in range(min(len(self._owed), PAID_AT_ONCE)):
            batch = self._owed[0]
            frame = self._frame(batch, self._open)
            if self._open.room < frame.cost:
                if not self._spares.ready:
                    break
                self._roll(repeat_state=True)
                if self._failure is not None:
                    return False
                frame = self._frame(batch, self._open)
            self._owed.popleft()
            segment = self._open
            if frame.accounts:
                self._ledger.account(segment, frame.accounts)
            segment.take_batch(frame, batch.position, batch.record_count)
            self._parts += frame.parts
            self._last = batch.position
        self._write()
        if not self._under_way and self._written > self._asked:
            self._ask()
        return not self._owed
