"""The long ways to the end of a transaction, a slice at a time: a large commit, a prepare. Back: `rollback`."""

from collections.abc import Iterator

from delosmq.engine.base.jobs import LOOK_AGAIN_NS, NEXT_TICK, OTHERS_FIRST
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


class Commit:
    """Takes a transaction through all steps of a large commit, or of a prepare.

    Attributes:
        failure: why nothing of it has happened: it has to be rolled back.
    """

    def __init__(
        self, commit_steps: CommitSteps, transaction: Transaction, *, prepare_at_ms: int = 0, heuristic: bool = False
    ) -> None:
        self._commit_steps = commit_steps
        self.transaction = transaction
        self._prepare_at_ms = prepare_at_ms
        self._heuristic = heuristic
        self.failure: BrokerError | None = None

    def whole(self, *, is_planned: bool) -> Iterator[int]:
        """All phases, but for planning when that is done."""
        try:
            if not is_planned:
                yield from self._plan()
            yield from self._write()
        except TransactionError as refusal:
            self.failure = refusal
        except BrokerError as error:
            self.failure = routing_error(self.transaction, error)
        if self.failure is None:
            yield from self.decide()

    def _plan(self) -> Iterator[int]:
        transaction = self.transaction
        while transaction.bulk_ack_count:
            yield NEXT_TICK
        try:
            for start in range(0, len(transaction.sends), PLANNED_PER_SLICE):
                stop = min(len(transaction.sends), start + PLANNED_PER_SLICE)
                self._commit_steps.plan(transaction, start, stop)
                yield NEXT_TICK
        except BrokerError:
            self._commit_steps.unplan(transaction)
            raise

    def _write(self) -> Iterator[int]:
        """Prepares the commit; nothing of it counts before its record."""
        transaction = self.transaction
        commit_steps = self._commit_steps
        end = len(transaction.planned)
        at = 0
        yield from self._room(at)
        if self._prepare_at_ms:
            commit_steps.ask_room(transaction)
        while at < end:
            yield from self._room(at)
            at = commit_steps.write_sends(transaction, at)
            yield NEXT_TICK
        yield from self._room(end)
        # Or promises that come to nothing would use up the room that acknowledgements have on a full disk.
        commit_steps.check_ids(transaction)
        at = 0
        while at < len(transaction.acks):
            yield from self._room(end)
            at = commit_steps.write_acks(transaction, at)
            yield NEXT_TICK
        at = 0
        while at < len(transaction.duplicate_ids):
            yield from self._room(end)
            at = commit_steps.write_ids(transaction, at)
            yield NEXT_TICK

    def _room(self, at: int) -> Iterator[int]:
        """Sleeps until the store has another file ready, and room for the message ``at`` if that is a large one."""
        while self._commit_steps.waits() or self._commit_steps.waits_for_place(self.transaction, at):
            yield LOOK_AGAIN_NS

    def decide(self) -> Iterator[int]:
        """The moment, at once unless another has to come first; and what follows it."""
        transaction = self.transaction
        commit_steps = self._commit_steps
        after = transaction.after
        while after is not None and after.state == PREPARING:
            yield LOOK_AGAIN_NS if commit_steps.waits() else NEXT_TICK
        transaction.after = None
        self.failure = self._refusal(after)
        if self.failure is not None:
            return
        if self._prepare_at_ms:
            commit_steps.record_prepared(transaction, self._prepare_at_ms)
            return
        commit_steps.record_commit(transaction, self._heuristic)
        yield NEXT_TICK
        yield from self.follow()

    def follow(self) -> Iterator[int]:
        """What follows the moment."""
        transaction = self.transaction
        commit_steps = self._commit_steps
        while not commit_steps.is_turn(transaction):
            yield OTHERS_FIRST
        at = commit_steps.link(transaction, 0)
        while at < len(transaction.planned):
            yield NEXT_TICK
            at = commit_steps.link(transaction, at)
        commit_steps.all_linked(transaction)
        at = 0
        while at < len(transaction.acks):
            yield NEXT_TICK
            at = commit_steps.end_acks(transaction, at)
        at = 0
        while at < len(transaction.duplicate_ids):
            yield NEXT_TICK
            at = commit_steps.end_ids(transaction, at)
        commit_steps.committed(transaction)

    def _refusal(self, after: Transaction | None) -> BrokerError | None:
        """Why it can't happen: an acknowledgement comes to nothing when one that it includes did; or a duplicate id of
        it was seen meanwhile."""
        if after is not None and after.state in (ROLLBACK_ONLY, ROLLED_BACK):
            return TransactionError(
                "DMQ2680",
                NOT_ROUTED,
                "nothing of this acknowledgement was recorded, as an earlier one of the same consumer was not;"
                " acknowledge again",
            )
        if self.transaction.state != PREPARED:
            try:
                self._commit_steps.check_ids(self.transaction)
            except TransactionError as refusal:
                return refusal
        return None
