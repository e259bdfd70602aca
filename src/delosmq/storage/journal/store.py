"""The segment journal: the durable store of a broker that needs no database.

Append frames into memory, flush writes once, the syncer makes it durable; at most one sync is under way, the next one
covers everything that came meanwhile (group commit). Format and crash arguments: docs/storage-format.md.
"""

import gc
import logging
import os
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.log import NO_BODY, Batch, Replay, StateSource, StoreEvents
from delosmq.model.errors import InvariantError, MisuseError, StorageError
from delosmq.model.ids import MonotonicNs, Position
from delosmq.model.message import Home
from delosmq.model.settings import JournalSettings
from delosmq.storage.journal import records
from delosmq.storage.journal.files import Files, write_all
from delosmq.storage.journal.footers import FooterWriter
from delosmq.storage.journal.records import BATCH, LIVE, STATE, Frame, frame_batch
from delosmq.storage.journal.recovery import Part, Recovery
from delosmq.storage.journal.segments import CLOSED, Ledger, Segment
from delosmq.storage.journal.spares import Spare, Spares
from delosmq.storage.journal.syncer import Prepared, Report, Synced, Syncer
from delosmq.storage.port import ServedStore

SMALLEST_FILE_BYTES: Final = 64 * 1024
LARGEST_FILE_BYTES: Final = 2**32 - 1
"""Offsets in footers have 32 bits."""
ROOM_SHARE: Final = 4
"""A segment with less room than 1 / this of its file is rolled right after the batch that left it so: then the engine's
state is exactly that of the last batch."""
BATCH_SHARE: Final = 2
"""A batch takes at most 1 / this of a file, footer included. One that finds too little room is preceded by a roll that
repeats the state of the segment before, since the engine's own is that of the batch in hand already."""
PAID_AT_ONCE: Final = 500
"""Of the batches that waited for room, about 2 ms in pure Python; the rest follows with the sync of these."""


@mypyc_attr(allow_interpreted_subclasses=True)
class JournalStore(ServedStore):
    """The store port on segment files."""

    def __init__(
        self,
        files: Files,
        settings: JournalSettings,
        *,
        node_id: bytes,
        syncer: Syncer,
        events: StoreEvents | None = None,
        state: StateSource | None = None,
        entropy: Callable[[int], bytes] = os.urandom,
        logger: logging.Logger | None = None,
    ) -> None:
        size = settings.file_size_bytes
        if not SMALLEST_FILE_BYTES <= size <= LARGEST_FILE_BYTES:
            raise StorageError(
                "DMQ3013",
                f"journal-file-size is {size}; it must lie between {SMALLEST_FILE_BYTES} and {LARGEST_FILE_BYTES}",
            )
        self._files = files
        self._syncer = syncer
        self._node_id = node_id
        self._size_bytes = size
        self._largest = size // BATCH_SHARE
        self._due = size // ROOM_SHARE
        self._large = self._due // 2
        self._watch = self._due + self._largest
        self._compact_min_files = settings.compact_min_files
        self._compact_percentage = settings.compact_percentage
        self._events = events
        self._state = state
        self._logger = logger or logging.getLogger("delosmq.storage.journal")
        spares = max(1, settings.spare_files)
        self._spares = Spares(files, syncer, wanted=spares, size_bytes=size, node_id=node_id, entropy=entropy)
        self._ledger = Ledger()
        self._footers = FooterWriter(files)
        self._open = Segment("", 0, mark=0, seed=0, size_bytes=size, base=0)
        self._parts: list[bytes] = []
        self._written_end = 0
        self._last = Position(0)
        self._written = Position(0)
        self._asked = Position(0)
        self._synced = Position(0)
        self._ticket = 0
        self._under_way = False
        # Removals that found no room, in order. Till they are written no state of the engine may be: it has them.
        self._owed: deque[Batch] = deque()
        self._dirty: dict[int, None] = {}
        self._freed: list[Segment] = []
        self._freed_asked: list[Segment] = []
        self._finished_asked: list[Segment] = []
        self._reading: Segment | None = None
        self._low = False
        self._full = False
        self._state_bytes: bytes | None = None
        self._state_position = Position(0)
        self._renew = False
        self._old_tail: Segment | None = None
        self._failure: StorageError | None = None
        self._recovered = False
        self._closed = False

    def attach(self, events: StoreEvents, state: StateSource) -> None:
        self._events = events
        self._state = state

    # Start

    def recover(self, replay: Replay) -> Position:
        if self._recovered or self._state is None or self._events is None:
            raise MisuseError("DMQ3014", "a journal is recovered once, after attach")
        recovery = Recovery(self._files, self._node_id, self._seed_of, self._logger)
        # Millions of new objects and not one cycle: collecting would double the time.
        collecting = gc.isenabled()
        gc.disable()
        try:
            recovery.read()
            self._settle(recovery)
            recovery.replay(replay)
            self._build(recovery)
        except OSError as error:
            raise StorageError(
                "DMQ3015", f"{self._files.path('')}: the journal can't be read or begun: {error}; check disk and rights"
            ) from error
        finally:
            if collecting:
                gc.enable()
        self._recovered = True
        return self._last

    def _settle(self, recovery: Recovery) -> None:
        recovery.settle()

    def _build(self, recovery: Recovery) -> None:
        """Turns what was read into the running journal, which always goes on in a segment of its own."""
        for part in recovery.parts:
            self._adopt(part)
        tail = recovery.tail
        old: Segment | None = None
        if tail is not None:
            part = Part(tail.header, tail.name, tail.end, tail.position)
            part.stored = tail.stored
            part.accounts = tail.accounts
            part.rows_size = sum(map(len, tail.rows))
            part.row_count = tail.row_count
            old = self._adopt(part)
            old.rows = bytearray().join(tail.rows)
            old.row_count = tail.row_count
            self._last = Position(tail.position)
        for segment in self._ledger.all():
            self._ledger.release(segment.accounts)
        self._begin_after(recovery, old)

    def _adopt(self, part: Part) -> Segment:
        header = part.header
        number = header.number
        segment = Segment(
            part.name,
            number,
            mark=header.mark,
            seed=self._seed_of(number),
            size_bytes=header.size_bytes,
            base=part.position,
        )
        segment.end = part.end
        segment.position = part.position
        segment.stored = segment.live = part.stored
        segment.accounts = part.accounts
        segment.sealed(part.rows_size, part.row_count)
        self._ledger.add(segment)
        return segment

    def _begin_after(self, recovery: Recovery, old: Segment | None) -> None:
        needed = {segment.name for segment in self._ledger.all()}
        unused = [name for name in recovery.names if name not in needed]
        self._spares.begin(recovery.names, recovery.highest_number)
        self._synced = self._written = self._asked = self._last
        if recovery.tail is not None:
            # The engine isn't ready to give its state: the old block goes on to count, and with it what came after.
            self._state_bytes = recovery.tail.state
            self._state_position = Position(recovery.tail.state_position)
        self._open_segment(self._spares.make_now(unused), self._state_bytes)
        self._write()
        if self._failure is not None:
            raise self._failure
        self._files.fdatasync(self._open.handle)
        self._dirty.clear()
        # From here on the new state block is what counts.
        self._renew = True
        self._old_tail = old
        self._spares.give_back([])

    def _renew_state(self) -> None:
        """The first flush: the engine stands, its own state takes over and what it covers may be freed."""
        self._renew = False
        state = self._engine_state()
        # What does not fit here waits for the next roll.
        if self._open.room - len(state) - self._list_cost() < self._due:
            return
        self._state_position = self._last
        self._state_bytes = state
        freed = self._ledger.free(self._open, self._last)
        self._append_block(STATE, state)
        self._let_go(freed)
        old = self._old_tail
        self._old_tail = None
        if old is not None and old not in freed:
            old.handle = self._files.open(old.name)
            self._footers.finish_short(old, self._open.number, self._last)
            self._close_handle(old)

    # Running

    def append(self, batch: Batch) -> None:
        if self._failure is not None or self._closed or not self._recovered:
            raise self._refusal()
        position = batch.position
        if position != self._last + 1:
            self._owe(batch)
            return
        segment = self._open
        frame = self._frame(batch, segment)
        if self._low or frame.cost > self._large:
            admitted = self._admit(batch, frame)
            if admitted is None:
                self._owe(batch)
                return
            segment = self._open
            frame = admitted
        stored = batch.stored_count
        if stored:
            records.fill_homes(batch, frame.rows, segment.number)
            self._ledger.store(segment, stored)
        if frame.accounts:
            self._ledger.account(segment, frame.accounts)
        segment.take_batch(frame, position, batch.record_count)
        self._parts += frame.parts
        self._last = position
        if segment.room < self._watch:
            self._keep_room()

    def flush(self) -> None:
        if self._failure is not None or self._closed:
            return
        if self._renew and not self._owed:
            self._renew_state()
        if self._low and self._ledger.changed:
            self._free_early()
        if self._parts:
            self._write()
        if self._footers.waiting:
            self._trickle()
        if not self._under_way and (self._written > self._asked or self._freed):
            self._ask()

    def read(self, home: Home) -> bytes:
        if home.size_bytes == 0:
            return NO_BODY
        segment = self._ledger.find(home.segment)
        if segment is None:
            raise InvariantError(
                "DMQ3021", f"segment {home.segment} is no longer there, its body at {home.offset} asked"
            )
        if segment is self._open and home.offset + home.size_bytes > self._written_end:
            self._write()
        try:
            content = self._files.pread(self._reader(segment), home.size_bytes + 4, home.offset - 4)
        except OSError as error:
            raise StorageError(
                "DMQ3016", f"{self._files.path(segment.name)}: offset {home.offset}: can't be read: {error}"
            ) from error
        body = records.checked_body(content, segment.seed)
        if body is None or len(body) != home.size_bytes:
            raise StorageError(
                "DMQ3040",
                f"{self._files.path(segment.name)}: offset {home.offset}: damaged body of {home.size_bytes} bytes; "
                "restore the journal directory from a backup",
            )
        return body

    def compaction_victim(self) -> int:
        if self._failure is not None or self._closed or not 0 < self._compact_min_files <= len(self._ledger):
            return 0
        if self._owed:
            return 0
        most_bytes = self._size_bytes
        if self._low:
            # What is freed soon may cost a part of what is left, but never of what is kept for removals.
            most_bytes = (self._open.room - self._due) // 2
        elif len(self._spares.ready) < self._spares.wanted:
            return 0  # so that a roll on the way makes nobody wait
        return self._ledger.victim(self._open, self._compact_percentage, most_bytes)

    def takes(self, size_bytes: int) -> bool:
        return not self._owed and (len(self._spares.ready) > 0 or self._open.room - size_bytes >= self._due)

    def fileno(self) -> int:
        return self._syncer.fileno()

    def on_readable(self) -> None:
        if self._closed:
            return
        for report in self._syncer.collect():
            self._take(report)

    def tick(self, now: MonotonicNs) -> None:
        if self._failure is None and not self._closed:
            self._spares.retry()

    def wait_synced(self, position: Position, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        self.flush()
        while self._synced < position:
            if self._failure is not None or self._closed:
                raise self._refusal()
            left = deadline - time.monotonic()
            reports = self._syncer.wait(left)
            for report in reports:
                self._take(report)
            if left <= 0 and not reports:
                raise StorageError(
                    "DMQ3017",
                    f"{self._files.path(self._open.name)}: no sync within {timeout_s:g} s, batch {position} may be "
                    "lost in a power cut; check the disk",
                )

    def close(self, timeout_s: float) -> None:
        if self._closed:
            return
        try:
            if self._recovered and self._failure is None:
                self._close_well(timeout_s)
                if self._owed:
                    raise StorageError(
                        "DMQ3023",
                        f"{self._files.path(self._open.name)}: the disk is full, the last {len(self._owed)}"
                        " acknowledgements are not on it; their messages are delivered again: free some space",
                    )
            elif self._failure is not None and self._synced < self._last:
                raise self._failure
        finally:
            self._closed = True
            self._syncer.close()
            for segment in [*self._ledger.all(), *self._freed, *self._freed_asked]:
                self._close_handle(segment)

    def _close_well(self, timeout_s: float) -> None:
        try:
            while self._footers.waiting:
                self._trickle()
        except OSError as error:
            self._fail(error)
        while self._owed and self._spares.ready:
            self._pay()
        self.wait_synced(self._last, timeout_s)
        if self._open.position == self._open.base:
            return
        # Says on the disk that the last batch is synced: damage to it is then no torn tail.
        self._append_block(LIVE, None)
        self._write()
        if self._under_way or self._failure is not None:
            return  # all batches are synced; only the footnote isn't
        try:
            self._files.fdatasync(self._open.handle)
        except OSError as error:
            self._fail(error)

    # Writing and syncing

    def _write(self) -> None:
        """Hands everything appended to the operating system."""
        parts = self._parts
        if not parts or self._failure is not None:
            return
        segment = self._open
        try:
            write_all(self._files, segment.handle, parts, self._written_end)
        except OSError as error:
            self._fail(error)
            return
        self._parts = []
        self._written_end = segment.end
        self._written = self._last
        self._dirty[segment.handle] = None

    def _trickle(self) -> None:
        try:
            handle = self._footers.trickle(self._synced)
        except OSError as error:
            self._fail(error)
            return
        if handle != CLOSED:
            self._dirty[handle] = None

    def _ask(self) -> None:
        if self._failure is not None:
            return
        self._ticket += 1
        self._under_way = True
        self._asked = self._written
        self._freed_asked = self._freed
        self._freed = []
        self._finished_asked = self._footers.take_finished()
        handles = list(self._dirty)
        self._dirty.clear()
        self._syncer.sync(self._ticket, handles)

    def _take(self, report: Report) -> None:
        if self._failure is not None:
            return
        if isinstance(report, Prepared):
            self._on_prepared(report)
        elif isinstance(report, Synced):
            self._on_answer(report)
        else:
            self._fail(report.error)

    def _on_answer(self, report: Synced) -> None:
        if report.error is not None:
            self._fail(report.error)
            return
        self._under_way = False
        advanced = self._asked > self._synced
        self._synced = self._asked
        for segment in self._finished_asked:
            self._close_handle(segment)
        self._finished_asked = []
        freed = self._freed_asked
        self._freed_asked = []
        if freed:
            self._recycle(freed)
        if self._owed:
            self._keep_room()
        if self._written > self._asked or self._freed:
            self._ask()
        if advanced and self._events is not None:
            self._events.on_synced(self._synced)

    def _recycle(self, freed: list[Segment]) -> None:
        """The list without them is on the disk: no recovery will ever ask for these again."""
        for segment in freed:
            self._close_handle(segment)
        self._spares.give_back([segment.name for segment in freed])

    def _on_prepared(self, report: Prepared) -> None:
        if self._spares.on_prepared(report):
            self._logger.warning(
                "DMQ3018: %s: no further journal file can be made (%s); free some space, tried again every second",
                self._files.path(report.name),
                report.error,
            )
        self._keep_room()

    def _fail(self, error: OSError | StorageError) -> None:
        if self._failure is not None:
            return
        if isinstance(error, StorageError):
            self._failure = error
        else:
            self._failure = StorageError(
                "DMQ3019",
                f"{self._files.path(self._open.name)}: writing or syncing failed ({error}); nothing more is confirmed, "
                "the broker must be restarted once the disk works",
            )
        if self._events is not None:
            self._events.on_failure(self._failure)

    # Segments and space

    def _keep_room(self) -> None:
        """Rolls when that is due and possible, and tells when space gets short or is back."""
        if self._owed and not self._pay():
            if self._failure is None:
                self._tell_space(True)
            return
        low = self._low and not self._spares.ready
        if self._open.room < self._due:
            low = len(self._spares.ready) <= 1
            if self._spares.ready:
                self._roll()
        elif not self._spares.ready and self._open.room < self._due + self._largest:
            # Right after the start no file may be ready yet: the largest batch must still find room.
            low = True
        self._watch_room()
        if self._failure is None:
            self._tell_space(low)

    def _watch_room(self) -> None:
        """From where on `_keep_room` looks: without another file ready the largest batch must find room, or wait."""
        self._watch = self._due if self._spares.ready else self._due + self._largest

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

    def _roll(self, *, repeat_state: bool = False) -> None:
        self._write()
        if self._failure is not None:
            return
        if not repeat_state:
            self._state_bytes = self._engine_state()
            self._state_position = self._last
        self._renew = repeat_state
        old = self._open
        spare = self._spares.take()
        old.sealed(len(old.rows), old.row_count)
        self._footers.add(old, spare.number)
        self._let_go(self._ledger.free(None, self._state_position))
        try:
            self._open_segment(spare, self._state_bytes)
        except OSError as error:
            self._fail(error)
            return
        self._spares.order()
        self._watch_room()

    def _engine_state(self) -> bytes:
        if self._state is None:
            raise MisuseError("DMQ3014", "a journal is recovered once, after attach")
        return self._state.state()

    def _open_segment(self, spare: Spare, state: bytes | None) -> None:
        """Begins a segment with its state block, which lists the segments that count."""
        segment = Segment(
            spare.name,
            spare.number,
            mark=spare.mark,
            seed=self._seed_of(spare.number),
            size_bytes=self._size_bytes,
            base=self._last,
        )
        segment.handle = self._files.open(spare.name)
        self._open = segment
        self._written_end = segment.end
        self._ledger.add(segment)
        self._append_block(STATE, state)
        self._write()

    def _free_early(self) -> None:
        """Frees without a roll when files are short: a list block is enough, the state block before it still holds."""
        if self._open.room < self._list_cost():
            return
        freed = self._ledger.free(self._open, self._state_position)
        if freed:
            self._let_go(freed)
            self._append_block(LIVE, None)

    def _append_block(self, kind: int, state: bytes | None) -> None:
        segment = self._open
        block = Batch()
        block.position = self._last
        listed = self._ledger.listed(segment)
        if kind == STATE:
            block.metas = [records.encode_state_head(self._state_position, listed)]
        else:
            block.metas = [records.encode_list(listed)]
        if state is not None:
            block.metas.append(state)
        block.bodies = [NO_BODY] * len(block.metas)
        frame = frame_batch(block, kind, segment.end, synced=self._synced, mark=segment.mark, seed=segment.seed)
        if segment.room - frame.length < 0 or (segment.end == records.DATA_START and frame.length > self._due // 2):
            self._fail(
                StorageError(
                    "DMQ3022",
                    f"{self._files.path(segment.name)}: the broker's state takes {frame.length} bytes of a journal "
                    f"file of {self._size_bytes} bytes; set a larger journal-file-size",
                )
            )
            return
        segment.end += frame.length
        segment.room -= frame.length
        self._parts += frame.parts

    def _let_go(self, freed: list[Segment]) -> None:
        self._freed += freed
        self._footers.forget(freed)

    def _admit(self, batch: Batch, frame: Frame) -> Frame | None:
        """How a large batch, or one while space is short, goes into the open segment; None when it has to wait for
        room. Raises when it can't be taken."""
        segment = self._open
        cost = frame.cost
        # Messages leave room for removals unless a file is ready to roll to.
        kept_free = self._due if batch.stored and (self._low or not self._spares.ready) else 2 * self._list_cost()
        short = segment.room - cost < kept_free
        if short and not self._low and cost <= self._largest and self._spares.ready:
            self._roll(repeat_state=True)
            if self._failure is not None:
                raise self._failure
            return self._frame(batch, self._open)
        if cost > self._largest:
            for _, home in batch.stored:
                home.segment = 0
            raise StorageError(
                "DMQ3003",
                f"{self._files.path(segment.name)}: a batch of {cost} bytes is larger than half of journal-file-size "
                f"({self._size_bytes}); send less at once or set a larger journal-file-size",
            )
        return None if short else frame

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
            if self._open.room - frame.cost < 2 * self._list_cost():
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

    def _frame(self, batch: Batch, segment: Segment) -> Frame:
        if not batch.sole and batch.stored and batch.released:
            for _, home in batch.stored:
                home.segment = segment.number  # it may be released by the same batch
        return frame_batch(batch, BATCH, segment.end, synced=self._synced, mark=segment.mark, seed=segment.seed)

    def _list_cost(self) -> int:
        return records.BLOCK_SIZE + records.LENGTHS_SIZE + records.LISTED_SIZE * len(self._ledger)

    def _reader(self, segment: Segment) -> int:
        """A handle for reading; of the segments no longer written one stays open, the last one read."""
        if segment.handle == CLOSED:
            if self._reading is not None and self._reading is not segment:
                self._close_handle(self._reading)
            segment.handle = self._files.open(segment.name)
            self._reading = segment
        return segment.handle

    def _close_handle(self, segment: Segment) -> None:
        if segment.handle != CLOSED:
            self._dirty.pop(segment.handle, None)
            self._files.close(segment.handle)
            segment.handle = CLOSED
        if self._reading is segment:
            self._reading = None

    def _refusal(self) -> StorageError:
        return self._failure or StorageError("DMQ3024", "the journal is not open")

    @staticmethod
    def _seed_of(number: int) -> int:
        return records.seed_of(number)
