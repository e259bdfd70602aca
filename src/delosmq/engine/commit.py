"""The long ways of a transaction, a slice at a time: a large commit, a prepare, a rollback."""

from abc import ABC, abstractmethod
from array import array
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.committing import LOOKED_AT_PER_SLICE, PLANNED_PER_SLICE, Committing, routing_error
from delosmq.engine.consumer import Consumer
from delosmq.engine.dispatch import Dispatcher
from delosmq.engine.jobs import Job
from delosmq.engine.queue import Queue
from delosmq.engine.transactions import (
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
class Outcome(ABC):
    """Who is told how it went."""

    @abstractmethod
    def on_done(self, transaction: Transaction, error: BrokerError | None) -> None:
        """It is committed or prepared; or nothing has happened, because of ``error``, and it has to be rolled back."""


class Commit(Job):
    """Takes a transaction through all steps of a large commit, or of a prepare."""

    def __init__(
        self,
        committing: Committing,
        transaction: Transaction,
        outcome: Outcome,
        *,
        phase: int,
        prepare_at_ms: int = 0,
        heuristic: bool = False,
    ) -> None:
        self._committing = committing
        self._transaction = transaction
        self._outcome = outcome
        self._phase = phase
        self._prepare_at_ms = prepare_at_ms
        self._heuristic = heuristic
        self._at = 0
        self.failure: BrokerError | None = None

    def step(self) -> bool:
        if PLANNING < self._phase < DECIDING and self._waits_for_room():
            self._committing.go_on_later(self)
            return True
        if self._phase < DECIDING:
            self._try_before()
        elif self._phase == DECIDING:
            if self._is_early():
                if not self._committing.waits():
                    return False
                self._committing.go_on_later(self)
                return True
            if self._phase == DECIDING:
                self._decide()
        else:
            self._after()
        if self._phase != DONE:
            return False
        self._outcome.on_done(self._transaction, self.failure)
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
            self._committing.unplan(self._transaction)
        self._phase = DONE

    @property
    def waits(self) -> bool:
        """Whether it can't go on before other commits are through, or the store has another file ready."""
        if self._phase == LINKING:
            return not self._committing.is_turn(self._transaction)
        return self._phase < DECIDING and self._waits_for_room()

    def _waits_for_room(self) -> bool:
        committing = self._committing
        return committing.waits() or (
            self._phase == WRITING and committing.waits_for_place(self._transaction, self._at)
        )

    def _next(self, at: int, count: int) -> None:
        self._at = at
        if at >= count:
            self._at = 0
            self._phase += 1

    def _before(self) -> None:
        transaction = self._transaction
        committing = self._committing
        if self._phase == TAKING:
            if not transaction.taking:
                self._phase = PLANNING
        elif self._phase == PLANNING:
            stop = min(len(transaction.sends), self._at + PLANNED_PER_SLICE)
            committing.plan(transaction, self._at, stop)
            self._next(stop, len(transaction.sends))
        elif self._phase == WRITING:
            if self._prepare_at_ms and self._at == 0:
                committing.ask_room(transaction)
            self._next(committing.write_sends(transaction, self._at), len(transaction.planned))
        elif self._phase == WRITING_ACKS:
            if self._at == 0:
                # Or promises that come to nothing would use up the room that acknowledgements have on a full disk.
                committing.check_ids(transaction)
            self._next(committing.write_acks(transaction, self._at), len(transaction.acks))
        else:
            self._next(committing.write_ids(transaction, self._at), len(transaction.notes))

    def _decide(self) -> None:
        transaction = self._transaction
        if transaction.state != PREPARED:
            try:
                self._committing.check_ids(transaction)
            except TransactionError as refusal:
                self.failure = refusal
                self._phase = DONE
                return
        if self._prepare_at_ms:
            self._committing.record_prepared(transaction, self._prepare_at_ms)
            self._phase = DONE
            return
        self._committing.record_commit(transaction, self._heuristic)
        self._phase = LINKING

    def _after(self) -> None:
        transaction = self._transaction
        committing = self._committing
        if self._phase == LINKING:
            if not committing.is_turn(transaction):
                return
            self._next(committing.link(transaction, self._at), len(transaction.planned))
            if self._phase != LINKING:
                committing.all_linked(transaction)
        elif self._phase == ENDING:
            self._next(committing.end_acks(transaction, self._at), len(transaction.acks))
        else:
            self._next(committing.end_ids(transaction, self._at), len(transaction.notes))
            if self._phase == DONE:
                committing.committed(transaction)


class _Returning:
    """What one consumer gives back."""

    def __init__(self, queue: Queue, consumer: Consumer) -> None:
        self.queue = queue
        self.consumer = consumer
        self.count: int = 0
        # What it holds, once the rest was looked at; not looked at yet.
        self.held: array[int] | None = None


class Rollback(Job):
    """Gives up all a transaction did."""

    def __init__(
        self, committing: Committing, transaction: Transaction, dispatcher: Dispatcher, *, keep_delivered: bool = False
    ) -> None:
        self._committing = committing
        self._dispatcher = dispatcher
        self._transaction = transaction
        self._keep_delivered = keep_delivered
        self._looked_at = 0
        self._discarded = 0
        self._returning: dict[int, _Returning] = {}
        self._held: dict[int, Queue] = {}

    def step(self) -> bool:
        transaction = self._transaction
        committing = self._committing
        if transaction.taking:
            return False
        if self._looked_at < len(transaction.acks):
            self._look_at_acks()
            return False
        if self._returning:
            self._give_back()
            return False
        if self._held:
            for queue in self._held.values():
                self._dispatcher.let_go_on(queue)
            self._held = {}
        self._discarded = committing.discard(transaction, self._discarded)
        if self._discarded < len(transaction.planned or transaction.sends):
            return False
        committing.discard_ids(transaction)
        committing.rolled_back(transaction)
        return True

    def _look_at_acks(self) -> None:
        acks = self._transaction.acks
        stop = min(len(acks), self._looked_at + LOOKED_AT_PER_SLICE)
        for at in range(self._looked_at, stop):
            item = acks[at]
            queue = item.queue
            queue.rolled_back_count += 1
            if self._keep_delivered and not item.consumer.closed:
                item.consumer.keep(item.slot)
                continue
            returning = self._returning.get(id(item.consumer))
            if returning is None:
                returning = _Returning(queue, item.consumer)
                self._returning[id(item.consumer)] = returning
                if queue.id not in self._held:
                    self._held[queue.id] = queue
                    self._dispatcher.hold(queue)
            returning.count += 1
        self._looked_at = stop

    def _give_back(self) -> None:
        key = next(iter(self._returning))
        part = self._returning[key]
        held = part.held
        if held is None:
            held = part.consumer.all_held()
            part.held = held
        part.count -= self._committing.give_back(self._transaction, part.queue, part.consumer, held)
        if part.count == 0 or not held:
            del self._returning[key]
