"""The store port on PostgreSQL (docs/decisions/0006): batches become rows of four tables, one commit for all that came
while the one before was under way.

What the parts do: `OpenGroup` takes batches, `CommitThread` holds the lease and commits, `EpochLease` says what a
holder may believe, `StoredRows` reads.
"""

import logging
import time
import uuid
from typing import Final

from delosmq.engine.log.batch_limits import FITS, NO_ROOM, WAITS
from delosmq.engine.log.log import Batch
from delosmq.engine.log.ports import Replay, StateSource, StoreEvents
from delosmq.model.errors import BrokerError, MisuseError, StorageError
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs, Position
from delosmq.model.message import Home
from delosmq.model.settings import DatabaseStoreSettings, JournalSettings
from delosmq.storage.journal.sync.syncer import wait_readable
from delosmq.storage.port import ServedStore
from delosmq.storage.postgres.commit_group import CommitGroup
from delosmq.storage.postgres.commit_thread import Away, Back, Committed, CommitThread, Failed, Held, Report
from delosmq.storage.postgres.failures import where
from delosmq.storage.postgres.open_group import OpenGroup
from delosmq.storage.postgres.stored_rows import StoredRows
from delosmq.storage.postgres.takeover import Takeover

MOST_SEGMENT_BYTES: Final = 16 * 1024 * 1024
"""Of rows that are deleted together. The journal's segments are larger, as each is a file to make."""
LOW_AT_BYTES: Final = 32 * 1024 * 1024
"""Waiting for a commit: from here on no message is taken, until half of it is committed."""
MOST_WAITING_BYTES: Final = 512 * 1024 * 1024
"""The most that PostgreSQL takes of one commit is 1 GiB, and a group waits while another is under way."""
WAIT_FOR_START_S: Final = 10.0


class PostgresStore(ServedStore):
    """Batches in the tables of a database.

    Args:
        journal: sizes and the rules of compaction are the journal's.
        node_id: of the broker, for tables that are made now; None makes one.
        wait_for_start_s: how long a database that can't be reached is tried at first.
        takeover: that the broker's activation has brought about; without one the store takes the tables over.

    Attributes:
        node_id: as the tables have it, once they are held.
    """

    def __init__(
        self,
        settings: DatabaseStoreSettings,
        journal: JournalSettings,
        *,
        node_id: bytes | None = None,
        wait_for_start_s: float = WAIT_FOR_START_S,
        takeover: Takeover | None = None,
        logger: logging.Logger | None = None,
    ) -> None:
        self._settings = settings
        self._journal = journal
        self._logger = logger or logging.getLogger("delosmq.storage.postgres")
        self.node_id = node_id or uuid.uuid4().bytes
        self._opened = OpenGroup(min(journal.file_size_bytes, MOST_SEGMENT_BYTES))
        self._rows = StoredRows(settings)
        self._thread = CommitThread(
            settings, node_id=self.node_id, wait_for_start_s=wait_for_start_s, takeover=takeover
        )
        self._events: StoreEvents | None = None
        self._held: Held | None = None
        self._failure: BrokerError | None = None
        self._open = False
        self._closed = False
        self._under_way: CommitGroup | None = None
        self._asked = Position(0)
        self._overdue = Position(0)
        self._synced = Position(0)
        self._low = False
        self._full = False
        self._trouble = ""

    # Start

    def attach(self, events: StoreEvents, state: StateSource) -> None:
        self._events = events
        self._opened.attach(state)

    def recover(self, replay: Replay) -> Position:
        if self._open or self._events is None or self._closed:
            raise MisuseError("DMQ3077", "a store is recovered once, after attach")
        while self._held is None:
            if self._failure is not None:
                raise self._failure
            wait_readable(self._thread.fileno(), 1.0)
            self._collect()
        held = self._held
        self.node_id = held.node_id
        opened = self._opened
        self._rows.replay(replay, opened.ledger)
        opened.begin(Position(held.last_batch))
        self._asked = self._overdue = self._synced = opened.last
        self._open = True
        self._logger.info(f"DMQ3078: holds the tables in {where(self._settings)}, epoch {held.epoch}")
        return opened.last

    # Running

    def append(self, batch: Batch) -> None:
        if not self._open:
            raise self._refusal()
        opened = self._opened
        if batch.stored_count and opened.group.size_bytes > MOST_WAITING_BYTES:
            raise StorageError(
                "DMQ3079",
                f"{where(self._settings)} does not commit, and what waits for it takes as much memory as it may; see "
                "that the database runs, then send again",
            )
        opened.take(batch)
        if not self._low and self._waiting_bytes() > LOW_AT_BYTES:
            self._tell_space()

    def flush(self) -> None:
        if not self._open:
            return
        if self._opened.state_is_old:
            self._rows.close()  # recovery is over
            self._opened.renew_state()
        if self._under_way is None and self._is_wanted():
            self._commit()

    def read(self, home: Home) -> bytes:
        return self.read_in_order([home])[0]

    def read_in_order(self, homes: list[Home]) -> list[bytes]:
        waiting = [self._waiting_body(home) for home in homes]
        stored = iter(self._rows.read([home for home, body in zip(homes, waiting, strict=True) if body is None]))
        return [next(stored) if body is None else body for body in waiting]

    def takes(self, size_bytes: int) -> bool:
        return not self._low

    def ask_large(self, size_bytes: int) -> int:
        if self._full:
            return NO_ROOM
        return WAITS if self._low else FITS

    def give_turn(self) -> None:
        time.sleep(0)

    def compaction_victim(self) -> int:
        journal = self._journal
        if not self._open or self._low or not 0 < journal.compact_min_files <= len(self._opened.ledger):
            return 0
        return self._opened.victim(journal.compact_percentage)

    def put_off(self) -> Position:
        return self._opened.last if self._opened.last > self._asked else NOTHING_DURABLE

    def catch_up(self, position: Position) -> None:
        self._overdue = max(self._overdue, position)
        self.flush()

    def tick(self, now: MonotonicNs) -> None:
        """The thread tries by itself."""

    def may_leave(self) -> bool:
        return self._thread.may_leave()

    def trouble(self) -> str:
        return self._trouble

    def wait_synced(self, position: Position, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        self.catch_up(position)
        while self._synced < position:
            if not self._open:
                raise self._refusal()
            left = deadline - time.monotonic()
            wait_readable(self._thread.fileno(), max(0.0, left))
            if not self._collect() and left <= 0:
                raise StorageError(
                    "DMQ3080",
                    f"{where(self._settings)} has not committed batch {position} within {timeout_s:g} s; what was not "
                    "confirmed may be lost: see that the database runs",
                )

    # What the thread has done

    def fileno(self) -> int:
        return self._thread.fileno()

    def on_readable(self) -> None:
        if not self._closed:
            self._collect()

    def _collect(self) -> int:
        reports = self._thread.collect()
        for report in reports:
            self._take(report)
        return len(reports)

    def _take(self, report: Report) -> None:
        if isinstance(report, Committed):
            self._on_committed(Position(report.last_batch))
        elif isinstance(report, Held):
            self._held = report
        elif isinstance(report, Away):
            self._logger.warning(f"DMQ3081: {report.sentence}; nothing is confirmed meanwhile, and it is tried again")
            self._full = report.full
            self._trouble = report.sentence
            self._tell_space()
        elif isinstance(report, Back):
            self._logger.info(f"DMQ3082: {where(self._settings)} commits again")
            self._full = False
            self._trouble = ""
            self._tell_space()
        elif isinstance(report, Failed):
            self._fail(report)

    def _on_committed(self, position: Position) -> None:
        self._under_way = None
        self._synced = position
        if self._is_wanted():
            self._commit()
        if self._events is not None:
            self._events.on_synced(position)
        if self._low:
            self._tell_space()

    def _fail(self, report: Failed) -> None:
        self._failure = report.error
        if self._open:
            self._open = False
            if self._events is not None:
                self._events.on_failure(report.error)

    def _refusal(self) -> BrokerError:
        return self._failure or StorageError("DMQ3083", "the store is not open")

    def _is_wanted(self) -> bool:
        asked = self._asked
        if self._opened.last <= asked:
            return False
        return self._overdue > asked or self._events is None or self._events.awaited() > asked

    def _commit(self) -> None:
        group = self._under_way = self._opened.hand_over()
        self._asked = Position(group.last_batch)
        self._thread.commit(group)

    def _waiting_bytes(self) -> int:
        return self._opened.group.size_bytes + (0 if self._under_way is None else self._under_way.size_bytes)

    def _tell_space(self) -> None:
        """Reports whether there is room for messages, and why not, if that has changed."""
        limit = LOW_AT_BYTES // 2 if self._low else LOW_AT_BYTES
        low = self._full or self._waiting_bytes() > limit
        events = self._events
        if events is None:
            return
        if low != self._low:
            self._low = low
            events.on_space(low)
        if low:
            events.on_full(self._full)

    def _waiting_body(self, home: Home) -> bytes | None:
        for group in (self._under_way, self._opened.group):
            for part in () if group is None else group.parts:
                body = part.body(home.offset, home.size_bytes) if part.segment == home.segment else None
                if body is not None:
                    return body
        return None

    # The end

    def close(self, timeout_s: float) -> None:
        if self._closed:
            return
        try:
            if self._open:
                self.wait_synced(self._opened.last, timeout_s)
            elif self._failure is not None and self._synced < self._opened.last:
                raise self._failure
        finally:
            self._closed = True
            self._open = False
            self._thread.close(timeout_s)
            self._rows.close()
