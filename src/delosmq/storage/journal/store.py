"""The segment journal: the durable store of a broker that needs no database.

Append frames into memory, flush writes once, the syncer makes it durable; at most one sync is under way, the next one
covers everything that came meanwhile (group commit). Format and crash arguments: docs/storage-format.md.

What is here: the start, what the engine and the loop call, and the end. `RoomRules` decides what goes into the open
segment, `RollingSegments` writes it.
"""

import logging
import os
import time
from collections.abc import Callable
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.log.log import NO_BODY, Batch, Replay, StateSource, StoreEvents
from delosmq.model.errors import InvariantError, MisuseError, StorageError
from delosmq.model.ids import MonotonicNs, Position
from delosmq.model.message import Home
from delosmq.model.settings import JournalSettings
from delosmq.storage.journal import records
from delosmq.storage.journal.files import Files
from delosmq.storage.journal.manifest import MANIFEST_NAME, Manifest, ManifestWriter, Sealed, put_in_place, set_aside
from delosmq.storage.journal.reading import Part
from delosmq.storage.journal.recovery import Recovery
from delosmq.storage.journal.rolling import sealed
from delosmq.storage.journal.room import RoomRules
from delosmq.storage.journal.segments import Ledger, Segment
from delosmq.storage.journal.spares import LARGEST_FILE_BYTES, NO_SPACE, Spares, slot_of
from delosmq.storage.journal.syncer import Prepared, Replaced, Report, Synced, Syncer
from delosmq.storage.lock import DirectoryLock

SMALLEST_FILE_BYTES: Final = 64 * 1024
READ_AHEAD_BYTES: Final = 128 * 1024
"""In one call, where more bodies are asked for than the next: of small ones hundreds lie in it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class JournalStore(RoomRules):
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
        lock: DirectoryLock | None = None,
        accept_loss: bool = False,
        ledger: Ledger | None = None,
        logger: logging.Logger | None = None,
    ) -> None:
        size = settings.file_size_bytes
        if not SMALLEST_FILE_BYTES <= size <= LARGEST_FILE_BYTES:
            raise StorageError(
                "DMQ3013",
                f"journal-file-size is {size}; it must lie between {SMALLEST_FILE_BYTES} and {LARGEST_FILE_BYTES}",
            )
        spares = Spares(
            files,
            syncer,
            wanted=max(1, settings.spare_files),
            size_bytes=size,
            node_id=node_id,
            entropy=entropy,
        )
        super().__init__(
            files,
            syncer,
            spares,
            size_bytes=size,
            logger=logger or logging.getLogger("delosmq.storage.journal"),
        )
        if ledger is not None:
            self._ledger = ledger
        self._events = events
        self._state = state
        self._node_id = node_id
        self._lock = lock
        self._accept_loss = accept_loss
        self._compact_min_files = settings.compact_min_files
        self._compact_percentage = settings.compact_percentage
        self._old_tail: Segment | None = None
        self._recovered = False
        self._closed = False

    # Start

    def recover(self, replay: Replay) -> Position:
        if self._recovered or self._state is None or self._events is None:
            raise MisuseError("DMQ3014", "a journal is recovered once, after attach")
        recovery = self._recovery()
        try:
            recovery.read()
            self._settle(recovery)
            recovery.replay(replay)
            self._build(recovery)
        except OSError as error:
            raise StorageError(
                "DMQ3015", f"{self._files.path('')}: the journal can't be read or begun: {error}; check disk and rights"
            ) from error
        self._recovered = True
        return self._last

    def _recovery(self) -> Recovery:
        return Recovery(self._files, self._node_id, self._seed_of, self._logger, accept_loss=self._accept_loss)

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
        self._last = Position(recovery.position)
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
            if self._state_bytes is not None:
                self._spares.size_for(records.STATE_BLOCK_SIZE + len(self._state_bytes))
        self._begin_manifest(recovery)
        previous = 0 if recovery.tail is None else recovery.tail.header.number
        self._open_segment(self._spares.make_now(unused), self._state_bytes, previous)
        self._write()
        if self._failure is not None:
            raise self._failure
        self._files.fdatasync(self._open.handle)
        self._dirty.clear()
        self._tell_manifest()
        # From here on the new state block is what counts.
        self._renew = True
        self._old_tail = old
        self._spares.give_back([])

    def _begin_manifest(self, recovery: Recovery) -> None:
        """Sees to it that there is a manifest before there is any file that needs it, with room for what comes next."""
        segments = self._ledger.all()
        manifest = recovery.manifest or Manifest(self._node_id, 0)
        self._manifest = manifest
        if recovery.lossy:
            tail = recovery.tail
            number = 0 if tail is None else tail.header.number
            opened = None if tail is None else Sealed(number, slot_of(tail.name), 0, tail.base)
            manifest.correct([sealed(segment) for segment in segments if segment.number != number], opened)
        known = manifest.sealed
        self._unlisted = [segment for segment in segments if segment.number not in known]
        needed = recovery.manifest is None or recovery.lossy or manifest.has_no_room_for(len(self._unlisted))
        if not needed and not manifest.crowded:
            return
        unchanged = True
        try:
            set_aside(self._files, manifest.rewritten(self._spares.mark(), len(self._unlisted)))
            unchanged = False
            put_in_place(self._files)
        except OSError as error:
            if unchanged and not needed and error.errno in NO_SPACE:
                return
            raise StorageError(
                "DMQ3034",
                f"{self._files.path(MANIFEST_NAME)}: can't be made ({error.strerror or error}); free some space on "
                "this disk, or let the broker's user write there",
            ) from error
        manifest.on_rewritten()

    def _tell_manifest(self) -> None:
        """Writes down, synced, what is open and sealed now and that everything up to the last batch is synced."""
        edit = self._edit_manifest(always=self._manifest.synced != self._written)
        if edit is not None:
            writer = ManifestWriter(self._files)
            try:
                writer.append(edit)
            finally:
                writer.close()

    def _renew_state(self) -> None:
        """The first flush: the engine stands, its own state takes over and what it covers may be freed."""
        self._renew = False
        state = self._engine_state()
        size = records.STATE_BLOCK_SIZE + len(state)
        self._fit_spares(state)
        self._watch_room()
        # What does not fit here waits for the next roll.
        if self._open.room - size < self._due or not self._spares.suits():
            return
        self._state_position = self._last
        self._state_bytes = state
        freed = self._ledger.free(self._open, self._last)
        self._append_state(state)
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
        if not self._under_way and self._is_wanted():
            self._ask()

    def read(self, home: Home) -> bytes:
        return self.read_in_order([home])[0]

    def read_in_order(self, homes: list[Home]) -> list[bytes]:
        bodies: list[bytes] = []
        segment: Segment | None = None
        window = b""
        start = end = 0
        for home in homes:
            size = home.size_bytes
            if size == 0:
                bodies.append(NO_BODY)
                continue
            front = home.offset - records.CRC_SIZE
            if segment is None or segment.number != home.segment or front < start or home.offset + size > end:
                segment = self._segment_of(home)
                start = front
                # What is asked for alone is read alone.
                ahead = 0 if home is homes[-1] else READ_AHEAD_BYTES
                window = self._pread(segment, start, max(size + records.CRC_SIZE, ahead))
                end = start + len(window)
            body = records.checked_body(window, front - start, size, segment.seed)
            if body is None:
                raise StorageError(
                    "DMQ3040",
                    f"{self._files.path(segment.name)}: offset {home.offset}: damaged body of {size} bytes; "
                    "restore the journal directory from a backup",
                )
            bodies.append(body)
        return bodies

    def _segment_of(self, home: Home) -> Segment:
        segment = self._ledger.find(home.segment)
        if segment is None:
            raise InvariantError(
                "DMQ3021", f"segment {home.segment} is no longer there, its body at {home.offset} asked"
            )
        return segment

    def _pread(self, segment: Segment, offset: int, size_bytes: int) -> bytes:
        if segment is self._open and offset + size_bytes > self._written_end:
            self._write()
        try:
            return self._files.pread(self._reader(segment), size_bytes, offset)
        except OSError as error:
            raise StorageError(
                "DMQ3016", f"{self._files.path(segment.name)}: offset {offset}: can't be read: {error}"
            ) from error

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

    def fileno(self) -> int:
        return self._syncer.fileno()

    def on_readable(self) -> None:
        if self._closed:
            return
        for report in self._syncer.collect():
            self._take(report)

    def tick(self, now: MonotonicNs) -> None:
        if self._failure is None and not self._closed:
            self._no_rewriting = False
            self._forget_lost_state()
            self._spares.retry()

    def _forget_lost_state(self) -> None:
        """While the disk is full: smaller files suffice once queues were deleted."""
        spares = self._spares
        if (spares.short or spares.crowded) and spares.size_bytes > self._size_bytes:
            self._fit_spares(self._engine_state())

    def wait_synced(self, position: Position, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        self._overdue = max(self._overdue, position)
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

    # What the background has done

    def _take(self, report: Report) -> None:
        if self._failure is not None:
            return
        if isinstance(report, Prepared):
            self._on_prepared(report)
        elif isinstance(report, Synced):
            self._on_answer(report)
        elif isinstance(report, Replaced):
            self._on_rewritten(report)
        else:
            self._fail(report.error)

    def _on_rewritten(self, report: Replaced) -> None:
        self._under_way = False
        error = report.error
        if error is None:
            self._manifest.on_rewritten()
        elif report.unchanged and error.errno in NO_SPACE:
            self._no_rewriting = True  # until the next tick: it still takes what there is to say
        else:
            self._fail(error)
            return
        self._ask()

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
        if self._is_wanted():
            self._ask()
        if advanced and self._events is not None:
            self._events.on_synced(self._synced)

    def _recycle(self, freed: list[Segment]) -> None:
        """The list without them is on the disk: no recovery will ever ask for these again."""
        for segment in freed:
            self._close_handle(segment)
        self._spares.give_back([segment.name for segment in freed])

    def _on_prepared(self, report: Prepared) -> None:
        crowded = self._spares.crowded
        first = self._spares.on_prepared(report)
        if self._spares.crowded and not crowded:
            self._logger.warning(
                "DMQ3035: %s: no journal file large enough for many more durable queues can be made (%s); free some"
                " space, tried again every second",
                self._files.path(report.name),
                report.error,
            )
        if first:
            self._logger.warning(
                "DMQ3018: %s: no further journal file can be made (%s); free some space, tried again every second",
                self._files.path(report.name),
                report.error,
            )
        self._keep_room()

    # The end

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
            if self._lock is not None:
                self._lock.release()

    def _close_well(self, timeout_s: float) -> None:
        try:
            while self._footers.waiting:
                self._trickle()
        except OSError as error:
            self._fail(error)
        while self._owed and self._spares.ready:
            self._pay()
        self.wait_synced(self._last, timeout_s)
        deadline = time.monotonic() + timeout_s
        while self._under_way and self._failure is None and time.monotonic() <= deadline:
            for report in self._syncer.wait(deadline - time.monotonic()):
                self._take(report)
        if self._under_way or self._failure is not None:
            return  # all batches are synced; only the footnote isn't
        # Says on the disk that the last batch is synced: damage to it is then no torn tail.
        try:
            for handle in self._dirty:
                self._files.fdatasync(handle)
            self._tell_manifest()
        except OSError as error:
            self._fail(error)

    def _refusal(self) -> StorageError:
        return self._failure or StorageError("DMQ3024", "the journal is not open")
