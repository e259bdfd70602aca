"""Staging: what a sink writes exactly once. Tasks stage parts, which nobody sees; one call publishes all of a batch.

A part is a prepared transaction without a coordinator, so that it is durable, takes room of its addresses, and is
moved by compaction. Publishing writes one record: it commits all parts named and says which batch of the application
was published last. Another call for that batch, or an earlier one, learns that it is published already.
"""

from collections.abc import Iterator
from typing import Final

from delosmq.engine.addresses.binding_codec import part_state_bytes, published_state_bytes
from delosmq.engine.base.jobs import NEXT_TICK, JobWaiter
from delosmq.engine.base.timers import NS_PER_MS, Timer
from delosmq.engine.log.records import STAGING_VERSION, TRANSACTION, encode_json
from delosmq.engine.routing.parts import RECORD_ROOM_BYTES, EngineParts
from delosmq.engine.routing.send_result import BLOCKED, DUPLICATE, ROUTED
from delosmq.engine.transactions.transaction import (
    ACTIVE,
    PREPARED,
    EndlessWaitError,
    StagedPart,
    Transaction,
)
from delosmq.engine.transactions.transactions import EngineTransactions
from delosmq.model.errors import BrokerError, LimitError
from delosmq.model.ids import MonotonicNs
from delosmq.model.message import Account, Message

PART_LOST: Final = "PART_LOST"
PART_BUSY: Final = "PART_BUSY"
NOT_YOURS: Final = "NOT_YOURS"
NO_ROOM_NOW: Final = "NO_ROOM_NOW"

MOST_PARTS: Final = 10_000
"""All of them must fit into the state block of the store."""
MOST_APPLICATIONS: Final = 10_000
"""Likewise."""
PARTS_PER_BATCH: Final = 1_024
"""One record names all parts of a batch; to write it takes about 3 ms."""
NAMED_BYTES: Final = 48
"""What a part takes of that record."""
SCAN_PERIOD_MS: Final = 60_000
SURE_MS: Final = 24 * 3_600_000
"""A published batch is forgotten only by a broker that has run for so long without hearing of its application: a clock
that is set forward must not make a batch appear twice."""


class StagingError(BrokerError):
    """A sink can't stage or publish what it asks for.

    Attributes:
        condition: PART_LOST, PART_BUSY, NOT_YOURS, or NO_ROOM_NOW: nothing was staged, the same call may be repeated.
    """

    def __init__(self, code: str, condition: str, message: str) -> None:
        super().__init__(code, message)
        self.condition = condition


class PublishedBatch:
    """The last batch that an application published.

    Attributes:
        at_ms: wall clock; heard_ns: monotonic, of the last call that named it, or of the start.
    """

    def __init__(self, application: str, batch: int, at_ms: int, made_by: str) -> None:
        self.application = application
        self.batch = batch
        self.at_ms = at_ms
        self.made_by = made_by
        self.heard_ns: int = 0
        self.state_bytes: int = 0


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
        parts: their transactions, by uuid; published: by application.
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
        self._published_retention_ms: int = parts.settings.published_retention_ms
        self.most_parts_of_batch: int = max(1, min(PARTS_PER_BATCH, batch_bytes // NAMED_BYTES))
        self.parts: dict[str, Transaction] = {}
        self.published: dict[str, PublishedBatch] = {}
        self._armed: bool = False

    # -- staging -------------------------------------------------------------------------------------------------

    def is_published(self, application: str, batch: int) -> bool:
        """Whether that batch, or a later one, was published."""
        last = self.published.get(application)
        return last is not None and batch <= last.batch

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

    def begin(self, application: str, batch: int, uuid: str, user: str) -> Transaction:
        """Begins a part that is not there yet.

        Raises:
            StagingError: NOT_YOURS.
            LimitError: there are too many parts, or the disk is full.
        """
        self.check_owner(application, user)
        what = f"part '{uuid}' of batch {batch} of '{application}'"
        if len(self.parts) >= MOST_PARTS:
            raise LimitError(
                "DMQ2692",
                f"{what} is not staged: there are {MOST_PARTS} staged parts, as many as the broker keeps; publish or"
                " discard some (`delosmq staged list`), or stage fewer and larger ones",
            )
        size = part_state_bytes(application, uuid, user)
        self._bindings.checks.check_staged(what, size, user)
        part = StagedPart(application, batch, uuid, user)
        transaction = self._transactions.begin_part(part)
        self.adopt(transaction)
        return transaction

    def adopt(self, transaction: Transaction) -> None:
        """Makes a part known, one of before a restart too."""
        part = transaction.part
        assert part is not None
        self.parts[part.uuid] = transaction
        part.state_bytes = part_state_bytes(part.application, part.uuid, part.made_by)
        self._bindings.client_limits.change(part.made_by, 0, part.state_bytes)
        self._arm()

    def add(self, transaction: Transaction, message: Message, routing: int) -> int:
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
                return DUPLICATE
        try:
            outcome = self._transactions.send(transaction, message, "", routing)
        except EndlessWaitError as error:
            self._check_fits(part, message.address)
            # Others that stage or send hold the rest: one of them has to give way for now.
            raise StagingError("DMQ2694", NO_ROOM_NOW, _no_room(part.uuid, error.message)) from error
        if outcome == ROUTED:
            part.rows += 1
        elif outcome == BLOCKED:
            self._check_fits(part, message.address)
        return outcome

    def _check_fits(self, part: StagedPart, address: str) -> None:
        """Refuses to wait when nothing but this very batch fills its address: that would never end."""
        target = self._bindings.addresses[address]
        held = Account()
        for transaction in self.parts.values():
            other = transaction.part
            if other is None or other.application != part.application or other.batch != part.batch or other.is_ending:
                continue
            account = transaction.charged.get(address)
            if account is not None:
                held.used_bytes += account.used_bytes
                held.used_messages += account.used_messages
        if held.reaches(target.account):
            raise LimitError(
                "DMQ2693",
                f"batch {part.batch} of '{part.application}' is larger than address '{address}' takes:"
                f" {held.used_bytes} bytes of it are staged and fill the address; make smaller batches"
                " (maxOffsetsPerTrigger), or raise max-size-bytes",
            )

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
            if self._log.storage_low:
                return StagingError("DMQ2694", NO_ROOM_NOW, _no_room(part.uuid, error.message))
            return error
        if part.is_ending or self.is_published(part.application, part.batch):
            part.is_ending = False
            self._end_later([transaction])
            return self._lost(part.uuid, part.batch)
        part.is_staged = True
        return None

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
            self._bindings.client_limits.change(part.made_by, 0, -part.state_bytes)

    # -- publishing ----------------------------------------------------------------------------------------------

    def publish(self, application: str, batch: int, uuids: list[str], user: str) -> bool:
        """Publishes a batch: all of its parts at once, in this order. False when that batch, or a later one, was
        published already: parts named now are discarded. The answer must wait for the log's position.

        Raises:
            StagingError: NOT_YOURS; PART_LOST: one of the parts is not staged. Nothing was published.
            LimitError: there are too many parts or applications, or the disk is full.
        """
        self.check_owner(application, user)
        last = self.published.get(application)
        if last is not None:
            last.heard_ns = self._clock.monotonic_ns()
            if batch <= last.batch:
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
        self.note_published(application, batch, at_ms, user if last is None else last.made_by)
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
        if application not in self.published:
            if len(self.published) >= MOST_APPLICATIONS:
                raise LimitError(
                    "DMQ2697",
                    f"{what} is not published: the broker knows {MOST_APPLICATIONS} applications that publish, as many"
                    " as it keeps; forget some that are gone (`delosmq staged forget`)",
                )
            self._bindings.checks.check_staged(what, published_state_bytes(application, user), user)
        if not count:
            # What is prepared has its room already, so that a full disk keeps nothing from being published.
            self._log.ask_room(RECORD_ROOM_BYTES, what)

    def note_published(self, application: str, batch: int, at_ms: int, made_by: str) -> None:
        """That batch is the last one of its application; called live and by replay."""
        last = self.published.get(application)
        if last is None:
            last = PublishedBatch(application, batch, at_ms, made_by)
            last.state_bytes = published_state_bytes(application, made_by)
            self.published[application] = last
            self._bindings.client_limits.change(made_by, 0, last.state_bytes)
        last.batch = max(batch, last.batch)
        last.at_ms = at_ms
        last.heard_ns = self._clock.monotonic_ns()
        self._arm()

    def forget(self, application: str) -> bool:
        """Forgets which batch an application published last; called live and by replay. False when none is known."""
        last = self.published.pop(application, None)
        if last is None:
            return False
        self._bindings.client_limits.change(last.made_by, 0, -last.state_bytes)
        return True

    def record_forget(self, application: str) -> bool:
        """The same, for good."""
        if not self.forget(application):
            return False
        self._log.record(encode_json(TRANSACTION, {"op": "forget published", "app": application}, STAGING_VERSION))
        self._log.close()
        return True

    # -- discarding ----------------------------------------------------------------------------------------------

    def discard(self, application: str, batch: int, uuids: list[str], user: str) -> int:
        """Discards parts that were not published, in slices; gives how many. Others are left out.

        Raises:
            StagingError: NOT_YOURS.
        """
        self.check_owner(application, user)
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
            self._jobs.add_phases(self._end(ending))
        return count

    def _end(self, transactions: list[Transaction]) -> Iterator[int]:
        for transaction in transactions:
            self._end_one(transaction)
            yield NEXT_TICK

    def _end_one(self, transaction: Transaction) -> None:
        if transaction.state in (ACTIVE, PREPARED):
            self._drop(transaction)
            self._transactions.roll_back(transaction, recorded=transaction.state == PREPARED)

    # -- time ----------------------------------------------------------------------------------------------------

    def check_owner(self, application: str, user: str) -> None:
        """An application is the user's who staged or published for it.

        Raises:
            StagingError: NOT_YOURS.
        """
        last = self.published.get(application)
        if last is not None and last.made_by != user:
            raise StagingError(
                "DMQ2698",
                NOT_YOURS,
                f"application '{application}' publishes as another user; log in as that user, or let an operator forget"
                f" it (`delosmq staged forget {application}`) once its batches are all published",
            )

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
        for application, last in list(self.published.items()):
            sure = now - last.heard_ns >= min(SURE_MS, self._published_retention_ms) * NS_PER_MS
            if sure and wall_ms - last.at_ms >= self._published_retention_ms:
                self.record_forget(application)
        if self.parts or self.published:
            self._arm()

    def _is_over(self, transaction: Transaction, part: StagedPart, wall_ms: int) -> bool:
        published = self.is_published(part.application, part.batch)
        return published or wall_ms - transaction.prepared_ms >= self._retention_ms


def _no_room(uuid: str, why: str) -> str:
    return f"part '{uuid}' is not staged, as there is no room for it now: {why}; stage it again in a moment"


def _of(transaction: Transaction, application: str) -> bool:
    return transaction.part is not None and transaction.part.application == application
