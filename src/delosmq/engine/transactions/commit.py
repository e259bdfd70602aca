"""The long ways to the end of a transaction, a slice at a time: a large commit, a prepare. Back: `rollback`."""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.base.jobs import Job
from delosmq.engine.transactions.commit_steps import PLANNED_PER_SLICE, CommitSteps, routing_error
from delosmq.engine.transactions.transaction import (
    NOT_ROUTED,
    PREPARED,
    PREPARING,
    ROLLBACK_ONLY,
    ROLLED_BACK,
    Transaction,
    TransactionError,
)
from delosmq.model.errors import BrokerError

TAKING: Final = 0
"""Not all that it acknowledges is collected yet."""
PLANNING: Final = 1
WRITING: Final = 2
WRITING_ACKS: Final = 3
WRITING_IDS: Final = 4
DECIDING: Final = 5
LINKING: Final = 6
ENDING: Final = 7
ENDING_IDS: Final = 8
DONE: Final = 9


@mypyc_attr(allow_interpreted_subclasses=True)
class CommitListener(ABC):
    """Who is told how it went."""

    @abstractmethod
    def on_done(self, transaction: Transaction, error: BrokerError | None) -> None:
        """It is committed or prepared; or nothing has happened, because of ``error``, and it has to be rolled back."""


class Commit(Job):
    """Takes a transaction through all steps of a large commit, or of a prepare."""

    def __init__(
        self,
        commit_steps: CommitSteps,
        transaction: Transaction,
        listener: CommitListener,
        *,
        phase: int,
        prepare_at_ms: int = 0,
        heuristic: bool = False,
    ) -> None:
        self._commit_steps = commit_steps
        self._transaction = transaction
        self._listener = listener
        self._phase = phase
        self._prepare_at_ms = prepare_at_ms
        self._heuristic = heuristic
        self._at = 0
        self.failure: BrokerError | None = None

    def step(self) -> bool:
        if PLANNING < self._phase < DECIDING and self._waits_for_room():
            self._commit_steps.go_on_later(self)
            return True
        if self._phase < DECIDING:
            self._try_before()
        elif self._phase == DECIDING:
            if self._is_early():
                if not self._commit_steps.waits():
                    return False
                self._commit_steps.go_on_later(self)
                return True
            if self._phase == DECIDING:
                self._decide()
        else:
            self._after()
        if self._phase != DONE:
            return False
        self._listener.on_done(self._transaction, self.failure)
        return True

    def _is_early(self) -> bool:
        """Whether an acknowledgement must wait for one that it includes; it comes to nothing when that one did."""
        after = self._transaction.after
        if after is None:
            return False
        if after.state == PREPARING:
            return True
        self._transaction.after = None
        if after.state in (ROLLBACK_ONLY, ROLLED_BACK):
            self.failure = TransactionError(
                "DMQ2680",
                NOT_ROUTED,
                "nothing of this acknowledgement was recorded, as an earlier one of the same consumer was not;"
                " acknowledge again",
            )
            self._phase = DONE
        return False

    def _try_before(self) -> None:
        try:
            self._before()
        except TransactionError as refusal:
            self.failure = refusal
        except BrokerError as error:
            self.failure = routing_error(self._transaction, error)
        if self.failure is None:
            return
        if self._phase == PLANNING:
            self._commit_steps.unplan(self._transaction)
        self._phase = DONE

    @property
    def waits(self) -> bool:
        """Whether it can't go on before other commits are through, or the store has another file ready."""
        if self._phase == LINKING:
            return not self._commit_steps.is_turn(self._transaction)
        return self._phase < DECIDING and self._waits_for_room()

    def _waits_for_room(self) -> bool:
        commit_steps = self._commit_steps
        return commit_steps.waits() or (
            self._phase == WRITING and commit_steps.waits_for_place(self._transaction, self._at)
        )

    def _next(self, at: int, count: int) -> None:
        self._at = at
        if at >= count:
            self._at = 0
            self._phase += 1

    def _before(self) -> None:
        transaction = self._transaction
        commit_steps = self._commit_steps
        if self._phase == TAKING:
            if not transaction.taking:
                self._phase = PLANNING
        elif self._phase == PLANNING:
            stop = min(len(transaction.sends), self._at + PLANNED_PER_SLICE)
            commit_steps.plan(transaction, self._at, stop)
            self._next(stop, len(transaction.sends))
        elif self._phase == WRITING:
            if self._prepare_at_ms and self._at == 0:
                commit_steps.ask_room(transaction)
            self._next(commit_steps.write_sends(transaction, self._at), len(transaction.planned))
        elif self._phase == WRITING_ACKS:
            if self._at == 0:
                # Or promises that come to nothing would use up the room that acknowledgements have on a full disk.
                commit_steps.check_ids(transaction)
            self._next(commit_steps.write_acks(transaction, self._at), len(transaction.acks))
        else:
            self._next(commit_steps.write_ids(transaction, self._at), len(transaction.notes))

    def _decide(self) -> None:
        transaction = self._transaction
        if transaction.state != PREPARED:
            try:
                self._commit_steps.check_ids(transaction)
            except TransactionError as refusal:
                self.failure = refusal
                self._phase = DONE
                return
        if self._prepare_at_ms:
            self._commit_steps.record_prepared(transaction, self._prepare_at_ms)
            self._phase = DONE
            return
        self._commit_steps.record_commit(transaction, self._heuristic)
        self._phase = LINKING

    def _after(self) -> None:
        transaction = self._transaction
        commit_steps = self._commit_steps
        if self._phase == LINKING:
            if not commit_steps.is_turn(transaction):
                return
            self._next(commit_steps.link(transaction, self._at), len(transaction.planned))
            if self._phase != LINKING:
                commit_steps.all_linked(transaction)
        elif self._phase == ENDING:
            self._next(commit_steps.end_acks(transaction, self._at), len(transaction.acks))
        else:
            self._next(commit_steps.end_ids(transaction, self._at), len(transaction.notes))
            if self._phase == DONE:
                commit_steps.committed(transaction)
