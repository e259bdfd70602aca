"""The transactions of a broker: begin, send, acknowledge, commit, roll back. See `transaction` for a single one."""

from collections.abc import Iterator
from typing import Final

from delosmq.engine.addresses.binding_codec import branch_state_bytes
from delosmq.engine.base.jobs import NEXT_TICK, JobWaiter, PhasedJob
from delosmq.engine.base.slots import Slot
from delosmq.engine.dispatch.browse_cursor import settle_loans
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts
from delosmq.engine.routing.send import EngineProducers
from delosmq.engine.routing.send_result import BLOCKED, DUPLICATE, ROUTED
from delosmq.engine.transactions.bulk_ack import TAKEN_PER_SLICE, TransactionAck
from delosmq.engine.transactions.commit import Commit
from delosmq.engine.transactions.commit_steps import SMALL_OPERATIONS, CommitSteps, duplicate_error, routing_error
from delosmq.engine.transactions.deadlocks import Deadlocks
from delosmq.engine.transactions.rollback import RollbackSteps
from delosmq.engine.transactions.transaction import (
    ACTIVE,
    PREPARED,
    PREPARING,
    ROLLBACK_ONLY,
    EndlessWaitError,
    Promised,
    StagedPart,
    Transaction,
    TransactionError,
)
from delosmq.model.errors import BrokerError, LimitError, MisuseError
from delosmq.model.message import ANY_ROUTING, Message

OPEN_PER_OWNER: Final = 100
ACKNOWLEDGED_AT_ONCE: Final = 1_000
"""A cumulative acknowledgement of more goes on in slices: one batch must fit into half of the smallest segment
(64 KiB)."""


class EngineTransactions:
    """All open transactions of a broker.

    Attributes:
        branches: those that have an xid.
        open: all of them, by id; far: what large acknowledgements are under way in, which no client began.
        at_once: a cumulative acknowledgement of more messages goes on in slices; taken_per_slice: of so many.
    """

    def __init__(
        self,
        parts: EngineParts,
        producers: EngineProducers,
        commit_steps: CommitSteps,
        rollback_steps: RollbackSteps,
        deadlocks: Deadlocks,
    ) -> None:
        self._clock = parts.clock
        self._log = parts.log
        self._jobs = parts.jobs
        self._memory = parts.memory
        self._bindings = parts.bindings
        self._duplicates = parts.duplicates
        self._producers = producers
        self._commit_steps = commit_steps
        self._rollback_steps = rollback_steps
        self.deadlocks = deadlocks
        self.at_once: int = ACKNOWLEDGED_AT_ONCE
        self.taken_per_slice: int = TAKEN_PER_SLICE
        self._owned: dict[str, int] = {}
        self._waiters: dict[int, JobWaiter] = {}
        self.open: dict[int, Transaction] = {}
        self.far: dict[int, Transaction] = {}
        self.branches: dict[bytes, Transaction] = {}

    # -- begin ---------------------------------------------------------------------------------------------------

    def begin(self, owner: str, at_most: int = OPEN_PER_OWNER) -> Transaction:
        """Opens a local transaction.

        Raises:
            LimitError: ``owner`` has ``at_most`` open already.
        """
        count = self._owned.get(owner, 0)
        if count >= at_most:
            raise LimitError(
                "DMQ2662",
                f"'{owner}' has {count} transactions open, as many as it may have; commit or roll back one of them",
            )
        self._owned[owner] = count + 1
        return self._open(owner, None, "")

    def newest_sequence(self, queue: Queue) -> int:
        """Of the last message of a queue, with what is committed and still to come."""
        return self._commit_steps.newest_sequence(queue)

    def begin_branch(self, owner: str, xid: bytes, user: str) -> Transaction:
        """Opens a branch, which counts to ``user``.

        Raises:
            LimitError: the clients of this user have as many as they may.
        """
        self._bindings.checks.check_branch(xid, user)
        return self._open(owner, xid, user)

    def begin_part(self, part: StagedPart) -> Transaction:
        """Opens the transaction of a part that a sink stages; it counts to no owner."""
        transaction = self._open("", None, part.made_by)
        transaction.part = part
        return transaction

    def _open(self, owner: str, xid: bytes | None, user: str) -> Transaction:
        transaction = Transaction(int(self._log.next_id()), owner, xid)
        transaction.made_by = user
        transaction.began_ms = self._clock.wall_ms()
        transaction.began_ns = self._clock.monotonic_ns()
        self._log.close()
        self.adopt(transaction)
        return transaction

    def adopt(self, transaction: Transaction) -> None:
        """Makes a transaction known, one of before a restart too."""
        self.open[transaction.id] = transaction
        if transaction.xid is not None:
            self.branches[transaction.xid] = transaction
            self._count_branch(transaction.xid, transaction.made_by, 1)

    def drop_branch(self, branch: Transaction) -> None:
        """Its xid means nothing any more."""
        assert branch.xid is not None
        if self.branches.pop(branch.xid, None) is not None:
            self._count_branch(branch.xid, branch.made_by, -1)

    def _count_branch(self, xid: bytes, made_by: str, count: int) -> None:
        self._bindings.client_limits.change_branches(made_by, count, count * branch_state_bytes(xid, made_by))

    def _remove(self, transaction: Transaction) -> None:
        self.deadlocks.goes_on(transaction)
        if self.open.pop(transaction.id, None) is None:
            return
        if transaction.xid is not None:
            if not transaction.timed_out:
                self.drop_branch(transaction)
            return
        count = self._owned.get(transaction.owner, 0)
        if count > 1:
            self._owned[transaction.owner] = count - 1
        else:
            self._owned.pop(transaction.owner, None)

    @staticmethod
    def _check_active(transaction: Transaction) -> None:
        if transaction.state != ACTIVE:
            raise MisuseError(
                "DMQ2663", f"transaction {transaction.id} is {transaction.state}, it takes nothing more; begin another"
            )

    # -- work ----------------------------------------------------------------------------------------------------

    def send(
        self,
        transaction: Transaction,
        message: Message,
        queue_name: str = "",
        routing: int = ANY_ROUTING,
        *,
        granted: bool = False,
    ) -> int:
        """Checks a message as `EngineProducers.send` does and keeps it for the commit; it counts against the limits of
        its address from now on.

        Args:
            granted: as in `EngineProducers.send`.

        Returns:
            ROUTED, DROPPED, BLOCKED, or DUPLICATE: then the transaction can only be rolled back, as in Artemis.

        Raises:
            LimitError: as in `EngineProducers.send`, or the transaction would wait for ever.
        """
        self._check_active(transaction)
        self.deadlocks.goes_on(transaction)
        if message.duplicate_id and self._duplicates.seen(message):
            transaction.set_rollback_only(duplicate_error(message.address))
            return DUPLICATE
        outcome = self._producers.admit(message, queue_name, routing, granted=granted)
        if outcome != ROUTED:
            if outcome == BLOCKED:
                self._check_alone(transaction, message.address)
                self.deadlocks.waits(transaction, message.address)
            return outcome
        if transaction.cause is None:
            self._memory.charge(self._bindings.addresses[message.address].account, message)
            transaction.add_send(message, queue_name, routing)
        return ROUTED

    def _check_alone(self, transaction: Transaction, name: str) -> None:
        """Refuses to wait for room that only the end of the transaction itself would make."""
        own = transaction.charged.get(name)
        address = self._bindings.addresses.get(name)
        if own is not None and address is not None and own.reaches(address.account):
            raise EndlessWaitError(
                "DMQ2664",
                f"transaction {transaction.id} fills address '{name}' by itself ({own.used_messages} messages,"
                f" {own.used_bytes} bytes), waiting would not end; commit smaller ones, or raise max-size-bytes",
            )

    def acknowledge(self, transaction: Transaction, consumer: Consumer, sequence: int) -> bool:
        """Acknowledges a message with the commit; till then it stays with its consumer. False when the consumer doesn't
        hold it, or another transaction acknowledges it."""
        self._check_active(transaction)
        loans = consumer.loans
        if loans is not None:
            # Of borrowed messages nothing is left to commit.
            return self._answered(consumer, loans.answer(sequence))
        slot = consumer.held(sequence)
        if slot is None:
            return False
        self._promise(transaction, consumer, slot)
        return True

    def acknowledge_through(self, transaction: Transaction, consumer: Consumer, sequence: int) -> bool:
        """The same for all messages up to this one, in order of delivery. Very many are taken in slices, till then
        ``consumer.under_way`` says so; a commit waits for that."""
        self._check_active(transaction)
        loans = consumer.loans
        if loans is not None:
            done = loans.answer_through(sequence)
            queue = consumer.queue
            assert queue is not None  # it was lent something
            settle_loans(loans, queue, self._jobs)
            return self._answered(consumer, done)
        if consumer.reaches_far(sequence, self.at_once):
            return self._take(transaction, consumer, sequence) is not None
        slots = consumer.held_through(sequence)
        for slot in slots:
            self._promise(transaction, consumer, slot)
        return len(slots) > 0

    def acknowledge_far(self, consumer: Consumer, sequence: int) -> bool:
        """Acknowledges very many messages, all up to this one, as one decision that takes its time: a transaction of
        their own. ``consumer.under_way`` says whom to ask. False when others acknowledge all of them."""
        transaction = Transaction(int(self._log.next_id()), "", None)
        transaction.internal = True
        self._log.close()
        transaction.bulk_ack = self._take(transaction, consumer, sequence)
        if transaction.bulk_ack is None:
            return False
        for earlier in self.far.values():
            if earlier.bulk_ack is not None and earlier.bulk_ack.consumer is consumer:
                transaction.after = earlier
        self.far[transaction.id] = transaction
        self.carry_out(transaction)
        return True

    def _take(self, transaction: Transaction, consumer: Consumer, sequence: int) -> TransactionAck | None:
        queue = consumer.queue
        assert queue is not None
        taking = TransactionAck(transaction, queue, consumer, sequence)
        taking.per_slice = self.taken_per_slice
        return taking if taking.start(self._jobs) else None

    def _answered(self, consumer: Consumer, done: bool) -> bool:
        queue = consumer.queue
        if queue is not None:
            queue.ask_dispatch()
        return done

    def _promise(self, transaction: Transaction, consumer: Consumer, slot: Slot) -> None:
        queue = consumer.queue
        assert queue is not None
        consumer.promise(slot, transaction.id)
        transaction.acks.append(Promised(queue, consumer, slot))
        if consumer.full and not consumer.closed:
            queue.rejoin(consumer)
        queue.ask_dispatch()

    # -- ends ----------------------------------------------------------------------------------------------------

    def commit(self, transaction: Transaction, waiter: JobWaiter | None = None) -> bool:
        """Makes everything of a transaction happen, as one.

        Returns:
            True when all is done; a confirmation waits for ``log.position``. False when it goes on in slices: then
            ``waiter`` is told, once all messages are in their queues.

        Raises:
            TransactionError: it can't be committed; it was rolled back.
            MisuseError: it has ended, or ends just now.
        """
        self._check_active(transaction)
        self.raise_if_rollback_only(transaction)
        return self.carry_out(transaction, waiter)

    def raise_if_rollback_only(self, transaction: Transaction) -> None:
        """Rolls back a transaction that can only be rolled back.

        Raises:
            TransactionError: it was rolled back.
        """
        cause = transaction.cause
        if cause is None:
            return
        transaction.state = ROLLBACK_ONLY
        self.roll_back(transaction)
        raise cause

    def carry_out(self, transaction: Transaction, waiter: JobWaiter | None = None, prepare_at_ms: int = 0) -> bool:
        """Commits, or prepares when there is a time for that; as `commit`."""
        transaction.state = PREPARING
        self.deadlocks.goes_on(transaction)
        small = transaction.operations <= SMALL_OPERATIONS and not transaction.bulk_ack_count
        if small:
            self._plan_all(transaction)
            if not prepare_at_ms and self._commit_steps.is_small(transaction):
                self._commit_steps.commit_at_once(transaction)
                self._remove(transaction)
                return True
        work = Commit(self._commit_steps, transaction, prepare_at_ms=prepare_at_ms)
        phases = self._ended_by(work, work.whole(is_planned=small))
        return self._run(work, phases, waiter, small and self._commit_steps.is_small(transaction))

    def commit_prepared(self, transaction: Transaction, waiter: JobWaiter | None, *, heuristic: bool) -> bool:
        """Commits a prepared branch; as `commit`."""
        small = len(transaction.planned) + len(transaction.acks) <= SMALL_OPERATIONS
        work = Commit(self._commit_steps, transaction, heuristic=heuristic)
        phases = self._ended_by(work, work.decide())
        next(phases)  # the moment, at once
        return self._run(work, phases, waiter, small)

    def publish(self, value: dict[str, object], transactions: list[Transaction]) -> None:
        """Commits prepared parts as one; at once, though their messages enter the queues in slices.

        Args:
            value: what else the record says.
        """
        self._commit_steps.record_publication(value, transactions)
        self._jobs.add_phases(self._follow_publication(transactions))

    def _follow_publication(self, transactions: list[Transaction]) -> Iterator[int]:
        for transaction in transactions:
            yield from Commit(self._commit_steps, transaction).follow()
            self._remove(transaction)
            yield NEXT_TICK

    def _run(self, work: Commit, phases: Iterator[int], waiter: JobWaiter | None, small: bool) -> bool:
        if small:
            for nap_ns in phases:
                if nap_ns != NEXT_TICK:
                    break
            else:
                if work.failure is not None:
                    raise work.failure
                return True
        if waiter is not None:
            self._waiters[work.transaction.id] = waiter
        self._jobs.add(PhasedJob(self._jobs, phases))
        return False

    def _ended_by(self, work: Commit, phases: Iterator[int]) -> Iterator[int]:
        yield from phases
        self._on_done(work.transaction, work.failure)

    def _plan_all(self, transaction: Transaction) -> None:
        failure: TransactionError | None = None
        try:
            self._commit_steps.check_ids(transaction)
            self._commit_steps.plan(transaction, 0, len(transaction.sends))
        except TransactionError as refusal:
            failure = refusal
        except BrokerError as error:
            failure = routing_error(transaction, error)
        if failure is not None:
            self._commit_steps.unplan(transaction)
            self.roll_back(transaction)
            raise failure

    def _on_done(self, transaction: Transaction, error: BrokerError | None) -> None:
        if error is not None:
            self.roll_back(transaction, keep_delivered=transaction.internal)
        elif transaction.state != PREPARED:
            self._remove(transaction)
        bulk_ack = transaction.bulk_ack
        if bulk_ack is not None:
            self.far.pop(transaction.id, None)
            transaction.bulk_ack = None
            bulk_ack.tell(error)
        waiter = self._waiters.pop(transaction.id, None)
        if waiter is not None:
            waiter.on_ended(error)

    def rollback(self, transaction: Transaction, *, keep_delivered: bool = False) -> None:
        """Ends a transaction without anything of it happening. What it acknowledged returns to its queue, counted, in
        order, as when a consumer closes (RING-7).

        Args:
            keep_delivered: it stays in delivery to its consumer instead: the client delivers it again by itself.

        Raises:
            MisuseError: it has ended, or ends just now.
        """
        self._check_active(transaction)
        self.roll_back(transaction, keep_delivered=keep_delivered)

    def roll_back(
        self, transaction: Transaction, *, keep_delivered: bool = False, recorded: bool = False, heuristic: bool = False
    ) -> None:
        """`rollback` in whatever state. ``recorded``: it is prepared, so that a record has to say what became of it."""
        transaction.state = ROLLBACK_ONLY
        if recorded:
            self._rollback_steps.record_rollback(transaction, heuristic)
        self._remove(transaction)
        phases = self._rollback_steps.phases(transaction, keep_delivered=keep_delivered or transaction.keeps_delivered)
        job = PhasedJob(self._jobs, phases)
        small = transaction.operations + len(transaction.planned) <= SMALL_OPERATIONS and not transaction.bulk_ack_count
        while not job.step():
            if not small:
                self._jobs.add(job)
                return
