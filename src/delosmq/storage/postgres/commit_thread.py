"""The thread that holds the lease and commits: takes groups from the loop, answers through a socket.

At most one commit is under way, and the next one has everything that came meanwhile (docs/decisions/0004). The thread
waits in the kernel without the interpreter lock; per commit it runs some lines of Python.
"""

import contextlib
import json
import socket
import threading
import time
from collections import deque
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final

from delosmq.model.errors import BrokerError, StorageError
from delosmq.model.settings import DatabaseStoreSettings
from delosmq.storage.activation import LeaseClock
from delosmq.storage.postgres.commit_group import CommitGroup
from delosmq.storage.postgres.connection import (
    DatabaseConnection,
    DatabaseError,
    Parameter,
    Row,
    StoppedError,
    contents,
    numbers,
    whole,
)
from delosmq.storage.postgres.epoch_lease import AGAIN, FENCED, EpochLease
from delosmq.storage.postgres.failures import (
    DISK_FULL,
    broken,
    fenced,
    in_use,
    passes,
    start_failure,
    where,
)
from delosmq.storage.postgres.schema import check_server, prepare
from delosmq.storage.postgres.tables import Tables
from delosmq.storage.postgres.takeover import Takeover, holder_name, take_over

PAUSE_S: Final = 0.1
_CLOCK: Final = LeaseClock()
"""Between attempts while the database is away; while its disk is full, ten times as much."""
LOOK_EVERY_S: Final = 0.1
"""How often one who waits for the lease asks for it."""

RENEWALS_OF_THE_DEAD: Final = 2
"""What a broker had sent when it was killed may still be committed, and renews its lease."""


@dataclass(frozen=True)
class Held:
    """The tables are this broker's: it may recover up to the last batch."""

    last_batch: int
    node_id: bytes
    epoch: int


@dataclass(frozen=True)
class Committed:
    """Everything up to the last batch survives a crash."""

    last_batch: int


@dataclass(frozen=True)
class Away:
    """The database does not commit for now; ``full``: for want of disk."""

    sentence: str
    full: bool


@dataclass(frozen=True)
class Back:
    """It does again."""


@dataclass(frozen=True)
class Renewed:
    """The lease had ended and holds again."""


@dataclass(frozen=True)
class Failed:
    """Nothing will be committed any more."""

    error: BrokerError


Report = Held | Committed | Away | Back | Renewed | Failed
_RELEASE: Final = None
Job = CommitGroup | None


class CommitThread:
    """Runs until `close`.

    Args:
        node_id: of the broker, if the tables are new.
        wait_for_start_s: how long a database that can't be reached at first is tried.
        takeover: what `PostgresActivation` has brought about, and will give up; without one this takes the tables over,
            or refuses (DMQ3070) when another broker renews its lease.
    """

    def __init__(
        self,
        settings: DatabaseStoreSettings,
        *,
        node_id: bytes,
        wait_for_start_s: float,
        takeover: Takeover | None = None,
    ) -> None:
        self._settings = settings
        self._tables = Tables(settings)
        self._node_id = node_id
        self._wait_for_start_s = wait_for_start_s
        self._takeover = takeover
        self._lease_s = settings.lock_expiration_ms / 1000
        self._renew_ns = settings.lock_renew_period_ms * 1_000_000
        self._renew_at_ns = 0
        self._connection: DatabaseConnection | None = None
        self._lease: EpochLease | None = None
        self._away = False
        self._away_state = ""
        self._full = False
        self._garbage: deque[tuple[str, int]] = deque()
        self._stop = threading.Event()
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._reports: deque[Report] = deque()
        self._socket, self._bell = socket.socketpair()
        self._socket.setblocking(False)
        self._bell.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="delosmq commits", daemon=True)
        self._thread.start()

    # -- asked by the loop -----------------------------------------------------------------------------------------

    def fileno(self) -> int:
        return self._socket.fileno()

    def collect(self) -> list[Report]:
        """What has happened since the last call."""
        with contextlib.suppress(BlockingIOError):
            self._socket.recv(4096)
        reports: list[Report] = []
        while self._reports:
            reports.append(self._reports.popleft())
        return reports

    def commit(self, group: CommitGroup) -> None:
        """Answered by `Committed`; the one before has been."""
        self._jobs.put(group)

    def may_leave(self) -> bool:
        """Whether what needs no commit may leave the broker."""
        lease = self._lease
        return lease is not None and lease.may_leave(_CLOCK.monotonic_ns())

    def close(self, timeout_s: float) -> None:
        """Gives the lease up, so that the next broker need not wait for its end, and ends the thread."""
        self._jobs.put(_RELEASE)
        self._thread.join(timeout_s)
        self._stop.set()
        self._thread.join()
        self._socket.close()
        self._bell.close()

    # -- the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._begin()
            self._work()
        except StoppedError:
            pass
        except BrokerError as error:
            self._report(Failed(error))
        except Exception as error:
            self._report(Failed(StorageError("DMQ3073", f"the thread of commits failed: {error!r}; report this")))
        finally:
            self._disconnect()

    def _report(self, report: Report) -> None:
        self._reports.append(report)
        with contextlib.suppress(BlockingIOError):  # it is rung already
            self._bell.send(b"!")

    def _begin(self) -> None:
        deadline = time.monotonic() + self._wait_for_start_s
        while self._lease is None:
            try:
                connection = self._connection = DatabaseConnection(self._settings, self._stop)
                prepare(self._tables, connection, self._node_id)
                self._hold(connection, self._takeover or self._take_over(connection))
            except DatabaseError as error:
                self._disconnect()
                if not passes(error) or time.monotonic() > deadline:
                    raise start_failure(error, self._settings) from error
                else:
                    self._report_away(error)
                    self._pause(PAUSE_S)
        self._report_back()

    def _take_over(self, connection: DatabaseConnection) -> Takeover:
        seen: set[bytes | None] = set()
        record = json.dumps({"name": holder_name()})
        while True:
            takeover = take_over(connection, self._tables, self._settings, record)
            if takeover is not None:
                return takeover
            holder, left_ms, until = connection.run(self._tables.holder)[0]
            seen.add(until)
            if len(seen) > RENEWALS_OF_THE_DEAD + 1:
                raise in_use(self._settings, (holder or b"").decode("utf-8", "replace"))
            self._pause(min(LOOK_EVERY_S, whole(left_ms) / 1000 + 0.001))

    def _hold(self, connection: DatabaseConnection, takeover: Takeover) -> None:
        self._garbage = deque(self._stray(connection))
        lease = self._lease = takeover.lease
        self._report(Held(lease.last_batch, takeover.node_id, lease.epoch))

    def _stray(self, connection: DatabaseConnection) -> list[tuple[str, int]]:
        pairs = zip(self._tables.sweeps, self._tables.stray, strict=True)
        return [(sweep, whole(row[0])) for sweep, stray in pairs for row in connection.run(stray)]

    def _work(self) -> None:
        while True:
            wait_s = 0.0 if self._garbage else max(0.0, (self._renew_at_ns - _CLOCK.monotonic_ns()) / 1e9)
            try:
                group = self._jobs.get(timeout=wait_s) if wait_s else self._jobs.get_nowait()
            except Empty:
                if self._renew_if_due():
                    self._report_back()
                self._sweep()
                continue
            if group is _RELEASE:
                self._give_up()
                return
            self._commit(group)
            self._report(Committed(group.last_batch))
            self._sweep()
            self._renew_if_due()

    # -- commits ---------------------------------------------------------------------------------------------------

    def _commit(self, group: CommitGroup) -> None:
        lease = self._held()
        lease.send(group.last_batch)
        while True:
            asked = _CLOCK.monotonic_ns()
            pause_s = 0.0
            try:
                if whole(self._send(group)[0][0]):
                    lease.committed(asked)
                    self._renew_at_ns = asked + self._renew_ns
                    break
            except DatabaseError as error:
                pause_s = self._meet(error)
            lease.lose()
            if self._look() != AGAIN:
                break
            self._renew_if_due()
            if lease.last_batch == group.last_batch:
                break  # a renewal that was lost looked again, and the commit had come in late
            self._pause(pause_s)
        self._report_back()
        for number in group.garbage:
            self._garbage += [(sweep, number) for sweep in self._tables.sweeps]

    def _send(self, group: CommitGroup) -> list[Row]:
        lease = self._held()
        front: list[Parameter] = [self._lease_s, lease.epoch, lease.last_batch, group.last_batch]
        parts = group.parts
        connection = self._connected()
        if not group.changes_segments:
            part = parts[0]
            content = part.contents()
            start, bodies = content[0] if content else (None, b"")
            columns = (part.body_end, part.packed_accounts(), part.packed_records())
            return connection.run(
                self._tables.commit, *front, part.segment, part.first_batch, part.stored, *columns, start, bodies
            )
        bodies_of = [(part.segment, start, content) for part in parts for start, content in part.contents()]
        position, state = (None, None) if group.state is None else group.state
        return connection.run(
            self._tables.commit_with_segments,
            *front,
            numbers([part.segment for part in parts]),
            numbers([part.first_batch for part in parts]),
            numbers([part.last_batch for part in parts]),
            numbers([part.stored for part in parts]),
            numbers([part.body_end for part in parts]),
            contents([part.packed_accounts() for part in parts]),
            contents([part.packed_records() for part in parts]),
            numbers([segment for segment, _, _ in bodies_of]),
            numbers([start for _, start, _ in bodies_of]),
            contents([content for _, _, content in bodies_of]),
            numbers(list(group.begun)),
            numbers(list(group.begun.values())),
            numbers(group.freed),
            position,
            state,
        )

    def _look(self) -> str:
        """Reads the row, for as long as it takes; DONE or AGAIN.

        Raises:
            StorageError: it is another's.
        """
        lease = self._held()
        while True:
            asked = _CLOCK.monotonic_ns()
            try:
                rows = self._connected().run(self._tables.look)
            except DatabaseError as error:
                self._pause(max(PAUSE_S, self._meet(error)))
                continue
            if not rows:
                lease.end()
                raise fenced(self._settings)
            found = lease.find(whole(rows[0][0]), whole(rows[0][1]))
            if found == FENCED:
                raise fenced(self._settings)
            self._renew_at_ns = min(self._renew_at_ns, asked)
            return found

    def _renew_if_due(self) -> bool:
        """Whether it was, and the database has done it."""
        asked = _CLOCK.monotonic_ns()
        if asked < self._renew_at_ns:
            return False
        lease = self._held()
        try:
            rows = self._connected().run(self._tables.renew, self._lease_s, lease.epoch)
        except DatabaseError as error:
            pause_s = self._meet(error)
            lease.lose()
            self._look()
            self._pause(pause_s)
            return False
        if not rows:
            lease.end()
            raise fenced(self._settings)
        lapsed = not lease.may_leave(_CLOCK.monotonic_ns())
        lease.renewed(asked)
        self._renew_at_ns = asked + self._renew_ns
        if lapsed:
            self._report(Renewed())
        return True

    def _give_up(self) -> None:
        lease = self._held()
        if self._takeover is not None:
            return
        with contextlib.suppress(DatabaseError):  # it ends by itself
            self._connected().run(self._tables.give_up, lease.epoch, lease.last_batch)
        lease.end()

    def _sweep(self) -> None:
        """Deletes some garbage: nothing waits for it, and a crash may undo it."""
        if not self._garbage:
            return
        sweep, number = self._garbage[0]
        try:
            rows = self._connected().run_text(sweep.format(segment=number))
        except DatabaseError as error:
            self._meet(error)
            return
        if int(rows[0][0] or 0) == 0:
            self._garbage.popleft()

    # -- the database away -----------------------------------------------------------------------------------------

    def _held(self) -> EpochLease:
        assert self._lease is not None  # since _begin
        return self._lease

    def _connected(self) -> DatabaseConnection:
        connection = self._connection
        if connection is None:
            connection = self._connection = DatabaseConnection(self._settings, self._stop)
            check_server(connection)
        return connection

    def _meet(self, error: DatabaseError) -> float:
        """Gets over an error; how long to wait before the next attempt.

        Raises:
            StorageError: it does not pass.
        """
        if not passes(error):
            raise broken(error, self._settings) from error
        self._report_away(error)
        if error.state == DISK_FULL:
            return PAUSE_S * 10
        # Even where libpq would go on: a server that takes reads only now may have been demoted.
        self._disconnect()
        return PAUSE_S

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _pause(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise StoppedError

    def _report_away(self, error: DatabaseError) -> None:
        full = error.state == DISK_FULL
        if not self._away or error.state != self._away_state:
            self._away = True
            self._away_state = error.state
            self._full = full
            self._report(Away(f"{where(self._settings)} does not commit ({error.sentence})", full))

    def _report_back(self) -> None:
        if self._away:
            self._away = self._full = False
            self._report(Back())
