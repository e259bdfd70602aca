"""The segment journal: the durable store of a broker that needs no database.

Append frames into memory, flush writes once, the syncer makes it durable. Format and crash arguments:
docs/storage-format.md. What the parts do: `OpenSegment` takes batches and writes them, `GroupCommit` has them synced,
`SegmentChain` rolls to the next segment and frees old ones, `Reserve` says which batch has room, `StoredBodies` reads.
"""

import logging
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from mypy_extensions import mypyc_attr

from delosmq.engine.log.log import Batch
from delosmq.engine.log.ports import Replay, StateSource, StoreEvents
from delosmq.model.errors import MisuseError, StorageError
from delosmq.model.ids import MonotonicNs, Position
from delosmq.model.message import Home
from delosmq.model.settings import LEAST_SEGMENT_BYTES, MOST_SEGMENT_BYTES, JournalSettings
from delosmq.storage.journal.bodies import StoredBodies
from delosmq.storage.journal.files import Files
from delosmq.storage.journal.footers import FooterWriter
from delosmq.storage.journal.group_commit import GroupCommit
from delosmq.storage.journal.manifest_changes import ManifestChanges
from delosmq.storage.journal.open_segment import OpenSegment
from delosmq.storage.journal.records import seed_of
from delosmq.storage.journal.recovery.recovery import Recovery
from delosmq.storage.journal.recovery.scan import Part
from delosmq.storage.journal.reserve import Reserve
from delosmq.storage.journal.segment_chain import SegmentChain
from delosmq.storage.journal.segments import Ledger, Segment
from delosmq.storage.journal.spares import Spares
from delosmq.storage.journal.sync.syncer import Prepared, Replaced, Report, Synced, Syncer
from delosmq.storage.lock import DirectoryLock
from delosmq.storage.port import ServedStore


class JournalParts(NamedTuple):
    """What a journal is composed of, where another class may take the place of ours: the simulation puts in such as
    break a promise, and must notice."""

    ledger: Callable[[], Ledger] = Ledger
    spares: type[Spares] = Spares
    changes: type[ManifestChanges] = ManifestChanges
    chain: type[SegmentChain] = SegmentChain
    reserve: type[Reserve] = Reserve
    recovery: type[Recovery] = Recovery
    seed_of: Callable[[int], int] = seed_of


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
        entropy: Callable[[int], bytes] = os.urandom,
        lock: DirectoryLock | None = None,
        accept_loss: bool = False,
        logger: logging.Logger | None = None,
        parts: JournalParts | None = None,
        epoch: int = 0,
    ) -> None:
        size = settings.file_size_bytes
        if not LEAST_SEGMENT_BYTES <= size <= MOST_SEGMENT_BYTES:
            raise StorageError(
                "DMQ3013",
                f"journal-file-size is {size}; it must lie between {LEAST_SEGMENT_BYTES} and {MOST_SEGMENT_BYTES}",
            )
        self._files = files
        self._settings = settings
        self.node_id = node_id
        self._syncer = syncer
        self._lock = lock
        self._accept_loss = accept_loss
        self._epoch = epoch
        self._logger = logger or logging.getLogger("delosmq.storage.journal")
        self._parts = parts = parts or JournalParts()
        self._ledger = parts.ledger()
        self._spares = parts.spares(
            files,
            syncer,
            wanted=max(1, settings.spare_files),
            size_bytes=size,
            node_id=node_id,
            entropy=entropy,
            epoch=epoch,
        )
        self._footers = FooterWriter(files)
        self._opened = opened = OpenSegment(files, self._ledger)
        self._status = opened.status
        self._bodies = StoredBodies(files, opened)
        self._changes = parts.changes(files, self._spares, opened)
        self._commit = GroupCommit(syncer, opened, self._spares, self._footers, self._changes)
        self._chain = parts.chain(opened, self._spares, self._footers, self._changes, parts.seed_of)
        self._reserve = parts.reserve(
            opened, self._chain, self._spares, self._commit, size_bytes=size, logger=self._logger
        )
        self._attached = False
        self._recovered = False
        self._closed = False

    # Start

    def attach(self, events: StoreEvents, state: StateSource) -> None:
        self._status.events = events
        self._chain.attach(state)
        self._attached = True

    def recover(self, replay: Replay) -> Position:
        if self._recovered or not self._attached:
            raise MisuseError("DMQ3014", "a journal is recovered once, after attach")
        try:
            recovery = self._parts.recovery(
                self._files, self.node_id, self._parts.seed_of, self._logger, accept_loss=self._accept_loss
            )
            recovery.read()
            recovery.settle()
            recovery.replay(replay)
            self._begin(recovery)
        except OSError as error:
            raise StorageError(
                "DMQ3015", f"{self._files.path('')}: the journal can't be read or begun: {error}; check disk and rights"
            ) from error
        self._recovered = self._status.open = True
        return self._opened.last

    def _begin(self, recovery: Recovery) -> None:
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
        for segment in self._ledger.all():
            self._ledger.release(segment.accounts)
        opened = self._opened
        opened.last = opened.written = opened.synced = Position(recovery.position)
        self._commit.begin()
        self._spares.begin(recovery.names, recovery.highest_number)
        self._changes.begin(recovery, self._ledger.all(), self.node_id, anew=self._epoch > 0)
        # The tail of another epoch stays as it is: the broker that wrote it may still do so.
        self._chain.begin(recovery, None if self._epoch else old)
        if self._status.failure is not None:
            raise self._status.failure
        self._opened.handles.sync_now()
        self._changes.write_now()
        self._spares.reuse([])

    def _adopt(self, part: Part) -> Segment:
        header = part.header
        number = header.number
        segment = Segment(
            part.name,
            number,
            mark=header.mark,
            seed=self._parts.seed_of(number),
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

    # Running

    def append(self, batch: Batch) -> None:
        if not self._status.open:
            raise self._status.refusal()
        opened = self._opened
        reserve = self._reserve
        if batch.position != opened.last + 1:
            reserve.owe(batch)
            return
        frame = opened.frame(batch)
        if reserve.low or frame.cost > reserve.large:
            admitted = reserve.admit(batch, frame)
            if admitted is None:
                reserve.owe(batch)
                return
            frame = admitted
        opened.take(batch, frame)
        if opened.segment.room < reserve.watched_room:
            reserve.keep_room()

    def flush(self) -> None:
        if not self._status.open:
            return
        reserve = self._reserve
        if self._chain.state_is_old and not reserve.owed:
            self._chain.renew_state(reserve.least_room)
            reserve.watch_room()
        if reserve.low:
            reserve.free_early()
        self._opened.write()
        if self._footers.waiting:
            self._chain.write_footers()
        self._commit.ask_if_wanted()

    def takes(self, size_bytes: int) -> bool:
        return self._reserve.takes(size_bytes)

    def takes_state(self, size_bytes: int, reserve_bytes: int = 0) -> bool:
        return self._reserve.takes_state(size_bytes, reserve_bytes)

    def ask_large(self, size_bytes: int) -> int:
        return self._reserve.ask_large(size_bytes)

    def read(self, home: Home) -> bytes:
        return self._bodies.read([home])[0]

    def read_in_order(self, homes: list[Home]) -> list[bytes]:
        return self._bodies.read(homes)

    def compaction_victim(self) -> int:
        settings = self._settings
        if not self._status.open or not 0 < settings.compact_min_files <= len(self._ledger):
            return 0
        most_bytes = self._reserve.room_to_move()
        if most_bytes == 0:
            return 0
        return self._ledger.victim(self._opened.segment, settings.compact_percentage, most_bytes)

    def put_off(self) -> Position:
        return self._commit.put_off()

    def catch_up(self, position: Position) -> None:
        self._commit.insist(position)
        self._commit.ask_if_wanted()

    def tick(self, now: MonotonicNs) -> None:
        if self._status.open:
            self._changes.retry()
            self._chain.drop_lost_state(self._settings.file_size_bytes)
            self._spares.retry()

    def wait_synced(self, position: Position, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        self._commit.insist(position)
        self.flush()
        while self._opened.synced < position:
            if not self._status.open:
                raise self._status.refusal()
            left = deadline - time.monotonic()
            reports = self._syncer.wait(left)
            for report in reports:
                self._take(report)
            if left <= 0 and not reports:
                raise StorageError(
                    "DMQ3017",
                    f"{self._opened.path}: no sync within {timeout_s:g} s, batch {position} may be "
                    "lost in a power cut; check the disk",
                )

    # What the background has done

    def fileno(self) -> int:
        return self._syncer.fileno()

    def on_readable(self) -> None:
        if self._closed:
            return
        for report in self._syncer.collect():
            self._take(report)

    def _take(self, report: Report) -> None:
        if self._status.failure is not None:
            return
        if isinstance(report, Prepared):
            self._on_prepared(report)
        elif isinstance(report, Synced):
            self._on_synced(report)
        elif isinstance(report, Replaced):
            self._commit.on_replaced(report)
        else:
            self._opened.fail(report.error)

    def _on_synced(self, report: Synced) -> None:
        advanced = self._commit.on_synced(report)
        if report.error is not None:
            return
        if self._reserve.owed:
            self._reserve.keep_room()
        self._commit.ask_if_wanted()
        events = self._status.events
        if advanced and events is not None:
            events.on_synced(self._opened.synced)

    def _on_prepared(self, report: Prepared) -> None:
        crowded = self._spares.crowded
        first = self._spares.on_prepared(report)
        if self._spares.crowded and not crowded:
            self._logger.warning(
                f"DMQ3035: {self._files.path(report.name)}: no journal file large enough for many more durable "
                f"queues can be made ({report.error}); free some space, tried again every second"
            )
        if first:
            self._logger.warning(
                f"DMQ3018: {self._files.path(report.name)}: no further journal file can be made ({report.error}); "
                "free some space, tried again every second"
            )
        self._reserve.keep_room()

    # The end

    def close(self, timeout_s: float) -> None:
        if self._closed:
            return
        opened = self._opened
        try:
            if self._status.open:
                self._close_well(timeout_s)
                if self._reserve.owed:
                    raise StorageError(
                        "DMQ3023",
                        f"{opened.path}: the disk is full, the last {self._reserve.owed}"
                        " acknowledgements are not on it; their messages are delivered again: free some space",
                    )
            elif self._status.failure is not None and opened.synced < opened.last:
                raise self._status.failure
        finally:
            self._closed = True
            self._status.open = False
            self._syncer.close()
            self._commit.close()
            for segment in self._ledger.all():
                self._opened.handles.close(segment)
            if self._lock is not None:
                self._lock.release()

    def _close_well(self, timeout_s: float) -> None:
        self._chain.write_footers(all_of_them=True)
        while self._reserve.owed and self._spares.ready:
            self._reserve.pay()
        self.wait_synced(self._opened.last, timeout_s)
        deadline = time.monotonic() + timeout_s
        commit = self._commit
        while commit.under_way and self._status.open and time.monotonic() <= deadline:
            for report in self._syncer.wait(deadline - time.monotonic()):
                self._take(report)
        if commit.under_way or not self._status.open:
            return  # all batches are synced; only the footnote isn't
        # Says on the disk that the last batch is synced: damage to it is then no torn tail.
        try:
            self._opened.handles.sync_now()
            self._changes.write_now()
        except OSError as error:
            self._opened.fail(error)
