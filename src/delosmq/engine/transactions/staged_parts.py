"""Staging: what a sink writes exactly once. Tasks stage parts, which nobody sees; one call publishes all of a batch.

A part is a prepared transaction without a coordinator, so that it is durable, takes room of its addresses, and is
moved by compaction. Publishing writes one record: it commits all parts named and says which batch of the application
was published last. Another call for that batch, or an earlier one, learns that it is published already.
"""

from collections.abc import Iterator
from typing import Final

from delosmq.engine.addresses.binding_codec import part_state_bytes
from delosmq.engine.base.jobs import NEXT_TICK, JobWaiter
from delosmq.engine.base.timers import NS_PER_MS, Timer
from delosmq.engine.routing.parts import RECORD_ROOM_BYTES, EngineParts
from delosmq.engine.routing.send_result import BLOCKED, DROPPED, DUPLICATE, ROUTED
from delosmq.engine.transactions.staging_batches import UnpublishedBatches
from delosmq.engine.transactions.staging_errors import FENCED, NO_ROOM_NOW, PART_BUSY, PART_LOST, StagingError
from delosmq.engine.transactions.staging_published import PublishedBatches
from delosmq.engine.transactions.transaction import (
    ACTIVE,
    PREPARED,
    ROLLBACK_ONLY,
    EndlessWaitError,
    StagedPart,
    Transaction,
)
from delosmq.engine.transactions.transactions import EngineTransactions
from delosmq.model.errors import BrokerError, DiskFullError, LimitError, StorageError
from delosmq.model.ids import MonotonicNs
from delosmq.model.message import Message
from delosmq.model.settings import AddressFullPolicy

MOST_PARTS: Final = 10_000
"""All of them must fit into the state block of the store."""
PARTS_PER_BATCH: Final = 1_024
"""One record names all parts of a batch; to write it takes about 3 ms."""
NAMED_BYTES: Final = 48
"""What a part takes of that record."""
SCAN_PERIOD_MS: Final = 60_000


class _Staged(JobWaiter):
    """Learns that a large part is prepared, or is not."""

    def __init__(self, staging: "Staging", transaction: Transaction, waiter: JobWaiter) -> None:
        self._staging = staging
        self._transaction = transaction
        self._waiter = waiter

    def on_ended(self, error: BrokerError | None) -> None:
        refusal = self._staging.prepared(self._transaction, error)
        self._waiter.on_ended(refusal)


class Staging(Timer):
    """All staged parts, and the last published batch of each application.

    Attributes:
        parts: their transactions, by uuid; batches: the same, by batch; published: by application.
    """

    def __init__(self, parts: EngineParts, transactions: EngineTransactions, batch_bytes: int) -> None:
        self._clock = parts.clock
        self._log = parts.log
        self._jobs = parts.jobs
        self._timers = parts.timers
        self._bindings = parts.bindings
        self._duplicates = parts.duplicates
        self._transactions = transactions
        self._retention_ms: int = parts.settings.staged_retention_ms
        self.most_parts_of_batch: int = max(1, min(PARTS_PER_BATCH, batch_bytes // NAMED_BYTES))
        self.parts: dict[str, Transaction] = {}
        self.batches = UnpublishedBatches(parts.bindings, parts.memory, parts.clock)
        self._ending_parts: int = 0
        self.published = PublishedBatches(parts.bindings, parts.log, parts.clock, parts.settings.published_retention_ms)
        self._armed: bool = False

    # -- staging -------------------------------------------------------------------------------------------------

    def staged(self, application: str, batch: int, uuid: str, user: str) -> StagedPart | None:
        """A part that was staged before; None when it has to be.

        Raises:
            StagingError: PART_BUSY: it is being staged, or another batch has that uuid.
        """
        transaction = self.parts.get(uuid)
        if transaction is None or transaction.part is None:
            return None
        part = transaction.part
        if part.application != application or part.batch != batch or part.made_by != user:
            raise StagingError(
                "DMQ2690", PART_BUSY, f"part '{uuid}' belongs to another batch; give each part a new uuid"
            )
        if part.is_ending or not part.is_staged:
            raise StagingError(
                "DMQ2691", PART_BUSY, f"part '{uuid}' is being staged by another call; wait for that, or use a new uuid"
            )
        return part

    def begin(
        self, application: str, batch: int, uuid: str, user: str, *, attempt: str = "", task: str = "", run: str = ""
    ) -> Transaction:
        """Begins a part that is not there yet. The first part of an attempt ends those of earlier attempts.

        Args:
            attempt: at the batch, any name that is never used again; task: of that attempt; run: of that task, named
                likewise. What earlier runs of a task have staged ends when their room is needed.

        Raises:
            StagingError: NOT_YOURS; FENCED: another attempt at the batch goes on instead; NO_ROOM_NOW, on a full disk.
            LimitError: there are too many parts.
        """
        self.published.check_owner(application, user)
        part = StagedPart(application, batch, uuid, user)
        part.attempt, part.task, part.run = attempt, task, run
        what = f"part '{part.uuid}' of batch {part.batch} of '{part.application}'"
        known = self.batches.of(part)
        if known is not None and attempt:
            if attempt in known.ended:
                raise StagingError(
                    "DMQ2665",
                    FENCED,
                    f"{what} is not staged: another attempt at the batch began after this one; end what still writes"
                    " for it, and look for a second query with a copy of the checkpoint",
                )
            self._end_later(known.begin_attempt(attempt))
            if run and run in known.ended_runs:
                raise _other_run(part)
        if len(self.parts) >= MOST_PARTS:
            raise LimitError(
                "DMQ2692",
                f"{what} is not staged: there are {MOST_PARTS} staged parts, as many as the broker keeps; publish or"
                " discard some (`delosmq staged list`), or stage fewer and larger ones",
            )
        size = part_state_bytes(part.application, part.names, part.made_by)
        self._bindings.checks.check_staged(what, size, part.made_by)
        transaction = self._transactions.begin_part(part)
        self.adopt(transaction)
        return transaction

    def adopt(self, transaction: Transaction) -> None:
        """Makes a part known, one of before a restart too."""
        part = transaction.part
        assert part is not None
        self.parts[part.uuid] = transaction
        self.batches.add(transaction)
        part.state_bytes = part_state_bytes(part.application, part.names, part.made_by)
        self._bindings.client_limits.change(part.made_by, 0, part.state_bytes)
        self._arm()

    def add(self, transaction: Transaction, message: Message, routing: int, queue_name: str = "") -> int:
        """Sends one message of a part. ROUTED; DUPLICATE or DROPPED: it is left out; BLOCKED: it has to wait.

        Raises:
            LimitError, NotFoundError, MisuseError: as in `EngineTransactions.send`; or the batch is larger than its
                address takes. The part has to be abandoned.
            StagingError: PART_LOST, it was discarded meanwhile.
        """
        part = transaction.part
        assert part is not None
        if transaction.state != ACTIVE:
            raise self._lost(part.uuid, part.batch)
        if message.duplicate_id:
            own = transaction.ids.get(message.address)
            if self._duplicates.seen(message) or (own is not None and message.duplicate_id in own):
                part.duplicates += 1
                return DUPLICATE
        try:
            outcome = self._transactions.send(transaction, message, queue_name, routing)
        except EndlessWaitError as error:
            return self._wait(part, transaction, message.address, error)
        except DiskFullError as full:
            raise StagingError("DMQ2694", NO_ROOM_NOW, _no_room(part.uuid, full.message)) from full
        except LimitError:
            # What an earlier run left fills it: that is no reason to refuse the next.
            if self._make_way(transaction):
                return BLOCKED
            raise
        if outcome == ROUTED:
            part.rows += 1
            if part.has_waited:
                self.batches.goes_on(part)
        elif outcome == BLOCKED:
            return self._wait(part, transaction, message.address, None)
        elif outcome == DROPPED:
            part.dropped += 1
        return outcome

    def _wait(self, part: StagedPart, transaction: Transaction, address: str, endless: EndlessWaitError | None) -> int:
        """BLOCKED, unless the part has to be refused. ``endless``: among open transactions it would wait for ever."""
        if self._make_way(transaction):
            return BLOCKED
        try:
            self.batches.waits(part, address)
        except EndlessWaitError as error:
            endless = error
        if endless is not None:
            # Others that stage or send hold the rest: one of them has to give way for now.
            raise StagingError("DMQ2694", NO_ROOM_NOW, _no_room(part.uuid, endless.message)) from endless
        return BLOCKED

    def _make_way(self, transaction: Transaction) -> bool:
        """Whether room is coming, as parts are being ended: those of earlier runs of the same task are, now that it is
        needed. Before, the driver may still choose them (speculation).

        Raises:
            StagingError: FENCED, there is a later run.
        """
        part = transaction.part
        batch = None if part is None else self.batches.of(part)
        assert part is not None
        assert batch is not None
        if self.batches.other_runs(transaction, later=True):
            raise _other_run(part)
        earlier = self.batches.other_runs(transaction, later=False)
        batch.end_runs(earlier)
        self._end_later(earlier)
        return self._ending_parts > 0

    def prepare(self, transaction: Transaction, waiter: JobWaiter) -> bool:
        """Makes a part durable. True when that is done but for the log's position; False: ``waiter`` is told.

        Raises:
            StagingError: NO_ROOM_NOW, the store has no room; PART_LOST, it was discarded meanwhile.
            BrokerError: it can't be staged. Nothing of it is left.
        """
        part = transaction.part
        assert part is not None
        if transaction.state != ACTIVE:
            raise self._lost(part.uuid, part.batch)
        transaction.keeps_delivered = False
        try:
            done = self._transactions.carry_out(
                transaction, _Staged(self, transaction, waiter), max(1, self._clock.wall_ms())
            )
        except BrokerError as error:
            refusal = self.prepared(transaction, error)
            raise error if refusal is None else refusal from error
        if done:
            refusal = self.prepared(transaction, None)
            if refusal is not None:
                raise refusal
        return done

    def prepared(self, transaction: Transaction, error: BrokerError | None) -> BrokerError | None:
        """A part is staged, or it is not because of ``error``. Gives why it is not."""
        part = transaction.part
        assert part is not None
        if error is not None:
            self._drop(transaction)
            # All else would be refused again, however often it is repeated.
            if self._waits_for_disk(transaction, error):
                return StagingError("DMQ2694", NO_ROOM_NOW, _no_room(part.uuid, error.message))
            return error
        if part.is_ending or self.published.holds(part.application, part.batch):
            part.is_ending = False
            self._end_later([transaction])
            return self._lost(part.uuid, part.batch)
        part.is_staged = True
        return None

    def _waits_for_disk(self, transaction: Transaction, error: BrokerError) -> bool:
        """Whether want of room on the disk is all that keeps a part from being staged, and its addresses wait then."""
        if isinstance(error, DiskFullError) or isinstance(error.__cause__, DiskFullError):
            for name in transaction.charged:
                address = self._bindings.addresses.get(name)
                if address is not None and address.settings.address_full_policy is AddressFullPolicy.FAIL:
                    return False
            return True
        is_refused = isinstance(error, StorageError) or isinstance(error.__cause__, StorageError)
        return is_refused and self._log.storage_low

    def abandon(self, transaction: Transaction) -> None:
        """The task went away before its part was staged; harmless when it has ended."""
        if transaction.state == ACTIVE:
            self._drop(transaction)
            self._transactions.roll_back(transaction)
        elif transaction.part is not None and not transaction.part.is_staged:
            transaction.part.is_ending = True

    def _drop(self, transaction: Transaction) -> None:
        part = transaction.part
        assert part is not None
        if self.parts.pop(part.uuid, None) is not None:
            self.batches.remove(transaction)
            self._bindings.client_limits.change(part.made_by, 0, -part.state_bytes)

    # -- publishing ----------------------------------------------------------------------------------------------

    def publish(self, application: str, batch: int, uuids: list[str], user: str, *, attempt: str = "") -> bool:
        """Publishes a batch: all of its parts at once, in this order. False when that batch, or a later one, was
        published already: parts named now are discarded. The answer must wait for the log's position.

        Args:
            attempt: of one query from its start on; another that publishes meanwhile is noticed.

        Raises:
            StagingError: NOT_YOURS; PART_LOST: one of the parts is not staged; FENCED: another attempt has published
                since. Nothing was published.
            LimitError: there are too many parts or applications, or the disk is full.
        """
        self.published.check_owner(application, user)
        last = self.published.by_name.get(application)
        if last is not None:
            last.heard_ns = self._clock.monotonic_ns()
            last.check_attempt(attempt, batch)
            if batch <= last.batch:
                last.note_attempt(attempt, batch)
                self.discard(application, batch, uuids, user)
                return False
        transactions = self._named(application, batch, uuids, user)
        self._check_publication(application, batch, len(transactions), user)
        at_ms = self._clock.wall_ms()
        value: dict[str, object] = {"app": application, "batch": batch, "at": at_ms}
        if user:
            value["made_by"] = user
        # First the state, then the record: the store may ask for the whole state as it takes the batch.
        for transaction in transactions:
            self._drop(transaction)
        self.note_published(application, batch, at_ms, user if last is None else last.made_by, attempt)
        self._transactions.publish(value, transactions)
        self._end_later(self._earlier(application, batch))
        return True

    def _named(self, application: str, batch: int, uuids: list[str], user: str) -> list[Transaction]:
        """Their parts, ready to be published."""
        transactions: list[Transaction] = []
        for uuid in dict.fromkeys(uuids):
            transaction = self._find(application, batch, uuid, user)
            if transaction is None or transaction.part is None or not transaction.part.is_staged:
                raise self._lost(uuid, batch)
            transactions.append(transaction)
        return transactions

    def _find(self, application: str, batch: int, uuid: str, user: str) -> Transaction | None:
        """A part of that batch that this user staged."""
        transaction = self.parts.get(uuid)
        part = None if transaction is None else transaction.part
        if part is None or part.is_ending or part.made_by != user:
            return None
        return transaction if part.application == application and part.batch == batch else None

    def _lost(self, uuid: str, batch: int) -> StagingError:
        return StagingError(
            "DMQ2695",
            PART_LOST,
            f"part '{uuid}' of batch {batch} is not staged: it never was, it was discarded, or it waited for longer"
            f" than {self._retention_ms} ms (staged-retention). Nothing of the batch was published; run it again",
        )

    def _check_publication(self, application: str, batch: int, count: int, user: str) -> None:
        if count > self.most_parts_of_batch:
            raise LimitError(
                "DMQ2696",
                f"batch {batch} of '{application}' has {count} parts, and {self.most_parts_of_batch} can be published"
                " at once; write with fewer partitions (coalesce), or with larger parts",
            )
        what = f"batch {batch} of '{application}'"
        self.published.check_another(application, what, user)
        if not count:
            # What is prepared has its room already, so that a full disk keeps nothing from being published.
            try:
                self._log.ask_room(RECORD_ROOM_BYTES, what)
            except DiskFullError as error:
                raise StagingError("DMQ2694", NO_ROOM_NOW, error.message) from error

    def note_published(self, application: str, batch: int, at_ms: int, made_by: str, attempt: str = "") -> None:
        """That batch is the last one of its application; called live and by replay."""
        self.published.note(application, batch, at_ms, made_by).note_attempt(attempt, batch)
        self._arm()

    # -- discarding ----------------------------------------------------------------------------------------------

    def discard(self, application: str, batch: int, uuids: list[str], user: str) -> int:
        """Discards parts that were not published, in slices; gives how many. Others are left out.

        Raises:
            StagingError: NOT_YOURS.
        """
        self.published.check_owner(application, user)
        found: list[Transaction] = []
        for uuid in dict.fromkeys(uuids):
            transaction = self._find(application, batch, uuid, user)
            if transaction is not None:
                found.append(transaction)
        return self._end_later(found)

    def discard_all(self, application: str, made_by: str) -> int:
        """Discards all parts that a user staged for an application, in slices; gives how many. For an operator."""
        found: list[Transaction] = []
        for transaction in self.parts.values():
            part = transaction.part
            if part is not None and part.made_by == made_by and part.application == application:
                found.append(transaction)
        return self._end_later(found)

    def _earlier(self, application: str, batch: int) -> list[Transaction]:
        """What is left of attempts that did not come to be published."""
        found: list[Transaction] = []
        for transaction in self.parts.values():
            if transaction.part is not None and _of(transaction, application) and transaction.part.batch <= batch:
                found.append(transaction)
        return found

    def _end_later(self, transactions: list[Transaction]) -> int:
        count = 0
        ending: list[Transaction] = []
        for transaction in transactions:
            part = transaction.part
            if part is None or part.is_ending:
                continue
            part.is_ending = True
            count += 1
            if transaction.state in (ACTIVE, PREPARED):
                ending.append(transaction)
            # What is being prepared is ended when that is done.
        if ending:
            self._ending_parts += len(ending)
            self._jobs.add_phases(self._end(ending))
        return count

    def _end(self, transactions: list[Transaction]) -> Iterator[int]:
        # A crash before this is through brings the rest back as staged, though the answer was that it is discarded.
        # That does no harm: only who names a part publishes it, and its batch as a whole; nobody who discards does.
        # It ends with the next attempt at the batch, with the next batch, or after its retention.
        left = len(transactions)
        try:
            for transaction in transactions:
                self._end_one(transaction)
                while transaction.state == ROLLBACK_ONLY:
                    yield NEXT_TICK
                left -= 1
                self._ending_parts -= 1
                yield NEXT_TICK
        finally:
            self._ending_parts -= left

    def _end_one(self, transaction: Transaction) -> None:
        if transaction.state in (ACTIVE, PREPARED):
            self._drop(transaction)
            self._transactions.roll_back(transaction, recorded=transaction.state == PREPARED)

    # -- time ----------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._timers.at(self._clock.monotonic_ns() + SCAN_PERIOD_MS * NS_PER_MS, self)

    def on_timer(self, now: MonotonicNs) -> None:
        self._armed = False
        wall_ms = self._clock.wall_ms()
        overdue: list[Transaction] = []
        for transaction in self.parts.values():
            part = transaction.part
            if part is not None and part.is_staged and self._is_over(transaction, part, wall_ms):
                overdue.append(transaction)
        self._end_later(overdue)
        self.published.forget_overdue(now, wall_ms)
        if self.parts or self.published.by_name:
            self._arm()

    def _is_over(self, transaction: Transaction, part: StagedPart, wall_ms: int) -> bool:
        published = self.published.holds(part.application, part.batch)
        return published or wall_ms - transaction.prepared_ms >= self._retention_ms


def _no_room(uuid: str, why: str) -> str:
    return f"part '{uuid}' is not staged, as there is no room for it now: {why}; stage it again in a moment"


def _other_run(part: StagedPart) -> StagingError:
    return StagingError(
        "DMQ2666",
        FENCED,
        f"part '{part.uuid}' is not staged: a later run of task '{part.task}' needs the room; end this one",
    )


def _of(transaction: Transaction, application: str) -> bool:
    return transaction.part is not None and transaction.part.application == application
