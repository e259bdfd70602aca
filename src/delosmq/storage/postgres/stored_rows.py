"""Reading the tables: all records at start, in order, and the bodies of what lives."""

import struct
from typing import Final

from delosmq.engine.log.log import NO_BODY
from delosmq.engine.log.ports import Replay
from delosmq.model.errors import StorageError
from delosmq.model.ids import Position
from delosmq.model.message import Home
from delosmq.model.settings import DatabaseStoreSettings
from delosmq.storage.journal.records import ACCOUNT_SIZE, CRC_SIZE, DATA_START, replay_rows, seed_of, unpack_accounts
from delosmq.storage.journal.segments import Ledger, Segment
from delosmq.storage.postgres.commit_group import BODIES_START, body_of, checked_records
from delosmq.storage.postgres.connection import DatabaseConnection, DatabaseError, Row, whole
from delosmq.storage.postgres.failures import where
from delosmq.storage.postgres.tables import Tables

ROWS_AT_ONCE: Final = 64
"""Of records, at recovery: of commits with some hundred batches less than a MiB."""
READ_AHEAD_BYTES: Final = 1024 * 1024
RECORDS_PER_TURN: Final = 4_096
"""Some milliseconds of compiled code. One commit of a flood of small messages has hundreds of thousands."""


class StoredRows:
    """A connection of its own, opened when something is to be read: what commits is not held up.

    Not to be used before the tables are held.
    """

    def __init__(self, settings: DatabaseStoreSettings) -> None:
        self._settings = settings
        self._tables = Tables(settings)
        self._connection: DatabaseConnection | None = None

    def close(self) -> None:
        """Ends the connection; the next read opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def replay(self, replay: Replay, ledger: Ledger) -> None:
        """Replays the state and all records, and fills the ledger.

        Raises:
            StorageError: a row is damaged, or the database does not answer.
        """
        try:
            self._replay(replay, ledger)
        except DatabaseError as error:
            raise self._unreadable(error) from error

    def read(self, homes: list[Home]) -> list[bytes]:
        """The bodies at ``homes``, which are in the order of the store.

        Raises:
            StorageError: one is damaged or missing, or the database does not answer.
        """
        bodies: list[bytes] = []
        content = b""
        segment = start = 0
        try:
            for home in homes:
                size = home.size_bytes
                if size == 0:
                    bodies.append(NO_BODY)
                    continue
                front = home.offset - CRC_SIZE
                if segment != home.segment or front < start or home.offset + size > start + len(content):
                    segment = home.segment
                    ahead = 0 if home is homes[-1] else READ_AHEAD_BYTES
                    start, content = self._stream(segment, front, max(home.offset + size, front + ahead))
                body = body_of(content, home.offset - start, size, segment)
                if body is None:
                    raise StorageError(
                        "DMQ3074",
                        f"{where(self._settings)}, table '{self._tables.names['bodies']}': segment {segment}, offset "
                        f"{home.offset}: a body of {size} bytes is damaged or missing; restore the database from a "
                        "backup",
                    )
                bodies.append(body)
        except DatabaseError as error:
            raise self._unreadable(error) from error
        return bodies

    def _stream(self, segment: int, front: int, end: int) -> tuple[int, bytes]:
        """A part of a segment's stream of bodies and where it begins; without what is missing."""
        rows = self._open().run(self._tables.bodies, segment, front, end)
        if not rows:
            return front, b""
        start = expected = whole(rows[0][0])
        parts: list[bytes] = []
        for place, content in rows:
            if whole(place) != expected:
                break
            parts.append(content or b"")
            expected += len(parts[-1])
        return start, b"".join(parts)

    def _replay(self, replay: Replay, ledger: Ledger) -> None:
        connection = self._open()
        for base, state in connection.run(self._tables.state):
            if state is not None:
                replay.replay_state(Position(whole(base)), state)
        segments: dict[int, Segment] = {}
        for number, base in connection.run(self._tables.segments):
            value = whole(number)
            segments[value] = Segment(
                f"segment {value}", value, mark=0, seed=seed_of(value), size_bytes=0, base=whole(base)
            )
        segment_number = first_batch = 0
        while rows := connection.run(self._tables.records, segment_number, first_batch, ROWS_AT_ONCE):
            for row in rows:
                segment_number, first_batch = whole(row[0]), whole(row[1])
                self._replay_row(replay, segments[segment_number], row)
        for segment in segments.values():
            segment.live = segment.row_count = segment.stored
            segment.sealed(0, segment.row_count)
            ledger.add(segment)
        for segment in segments.values():
            ledger.release(segment.accounts)

    def _replay_row(self, replay: Replay, segment: Segment, row: Row) -> None:
        _, first_batch, last_batch, stored, body_end, accounts, column = row
        records = checked_records(column or b"", segment.number)
        if records is None:
            raise self._damaged(segment, first_batch, last_batch)
        segment.position = whole(last_batch)
        segment.stored += whole(stored)
        # Every row says where its bodies end; what the segment takes is counted anew with each.
        segment.taken += len(records)
        segment.end = DATA_START + segment.taken + whole(body_end) - BODIES_START
        self._account(segment, accounts or b"")
        try:
            at = 0
            while at < len(records):  # each turn of this loop lets the thread that renews the lease run
                at = replay_rows(replay, records, segment.number, at, RECORDS_PER_TURN)
        except struct.error as error:
            raise self._damaged(segment, first_batch, last_batch) from error

    def _damaged(self, segment: Segment, first_batch: bytes | None, last_batch: bytes | None) -> StorageError:
        return StorageError(
            "DMQ3075",
            f"{where(self._settings)}, table '{self._tables.names['messages']}': the row of segment {segment.number} "
            f"with batches {whole(first_batch)} to {whole(last_batch)} is damaged; restore the database from a backup",
        )

    def _account(self, segment: Segment, accounts: bytes) -> None:
        own = segment.accounts
        for number, released in unpack_accounts(accounts, 0, len(accounts) // ACCOUNT_SIZE).items():
            own[number] = own.get(number, 0) + released

    def _open(self) -> DatabaseConnection:
        if self._connection is None:
            self._connection = DatabaseConnection(self._settings)
        return self._connection

    def _unreadable(self, error: DatabaseError) -> StorageError:
        self.close()
        return StorageError(
            "DMQ3076", f"{where(self._settings)} can't be read ({error.sentence}); see that it runs, then start again"
        )
