"""Rollback, in slices: what the transaction sent is given up, what it acknowledged goes back."""

from array import array
from typing import Final

from delosmq.engine.base.jobs import Job, Jobs
from delosmq.engine.base.slots import Slot
from delosmq.engine.delivery.acknowledgements import DELAYED, NONE_UNSEEN, Acknowledgements
from delosmq.engine.dispatch.dispatcher import Dispatcher
from delosmq.engine.log.records import PURGED, TRANSACTION, encode_discarded, encode_json
from delosmq.engine.queues.in_delivery import Holder
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts
from delosmq.engine.transactions.transaction import ROLLED_BACK, Transaction
from delosmq.model.message import Home

DISCARDED_PER_SLICE: Final = 200
LOOKED_AT_PER_SLICE: Final = 2_000
RETURNED_PER_SLICE: Final = 500
FREED_PER_SLICE: Final = 1_000


class RollbackSteps:
    """The steps, each of which leaves the engine whole."""

    def __init__(self, parts: EngineParts, acks: Acknowledgements) -> None:
        self._log = parts.log
        self._memory = parts.memory
        self._removals = parts.removals
        self._dispatcher = parts.dispatcher
        self._duplicates = parts.duplicates
        self._events = parts.events
        self._jobs = parts.jobs
        self._acks = acks

    def record_rollback(self, transaction: Transaction, heuristic: bool) -> None:
        """A prepared branch comes to nothing; all others do by themselves when nothing says that they are committed."""
        value: dict[str, object] = {"op": "rollback", "tx": transaction.id}
        if heuristic and transaction.xid is not None:
            value["heuristic"] = transaction.xid.hex()
        self._log.record(encode_json(TRANSACTION, value))
        self._log.close()

    def discard(self, transaction: Transaction, start: int) -> int:
        """Gives up some of the messages: their memory, and their places in the store."""
        if not transaction.planned:
            stop = min(len(transaction.sends), start + DISCARDED_PER_SLICE)
            for sent in transaction.sends[start:stop]:
                if sent.message.account is not None:
                    self._memory.release(sent.message)
            return stop
        stop = min(len(transaction.planned), start + DISCARDED_PER_SLICE)
        indexes: list[int] = []
        homes: list[Home] = []
        for at in range(start, stop):
            item = transaction.planned[at]
            message = item.message
            for queue in item.queues:
                queue.pending_commits -= 1
            if message.account is not None:
                self._memory.release(message)
            home = message.home
            if home is not None and home.segment:
                indexes.append(transaction.indexes[at] if transaction.indexes else at)
                homes.append(home)
                message.home = None
        if indexes:
            self._log.record(encode_discarded(transaction.id, indexes))
            batch = self._log.batch()
            batch.targets.extend(homes)
            batch.released.extend(homes)
            self._log.close()
        return stop

    def discard_ids(self, transaction: Transaction) -> None:
        """Gives up the records of its duplicate ids."""
        self._duplicates.release_records(transaction.notes)

    def give_back(self, transaction: Transaction, queue: Queue, consumer: Holder, held: "array[int]") -> int:
        """Returns some of what a consumer holds that the transaction acknowledged, newest first, as when the consumer
        closes (RING-7); gives how many.

        Args:
            held: the sequences to look at, in order of delivery; those that were are gone from there.
        """
        newest_first: list[Slot] = []
        looked_at = 0
        while held and looked_at < LOOKED_AT_PER_SLICE and len(newest_first) < RETURNED_PER_SLICE:
            slot = consumer.slot_of(held.pop())
            looked_at += 1
            if slot is not None and slot.transaction == transaction.id:
                consumer.keep(slot)
                newest_first.append(slot)
        if queue.deleted:
            for taken in newest_first:
                queue.settle(taken, consumer)
            self._removals.remove(queue, newest_first, PURGED)
        else:
            self._acks.give_back(queue, consumer, newest_first, NONE_UNSEEN, how=DELAYED)
        self._log.close()
        return len(newest_first)

    def rolled_back(self, transaction: Transaction) -> None:
        """Nothing of it is left."""
        for queue in transaction.queues.values():
            self._dispatcher.mark(queue)
        transaction.state = ROLLED_BACK
        if not transaction.internal:
            self._events.transaction_rolled_back(transaction.id, len(transaction.sends), len(transaction.acks))
        free_in_slices(transaction, self._jobs)


class _Returning:
    """What one consumer gives back."""

    def __init__(self, queue: Queue, consumer: Holder) -> None:
        self.queue = queue
        self.consumer = consumer
        self.count: int = 0
        # What it holds, once the rest was looked at; not looked at yet.
        self.held: array[int] | None = None


class Rollback(Job):
    """Gives up all a transaction did."""

    def __init__(
        self,
        rollback_steps: RollbackSteps,
        transaction: Transaction,
        dispatcher: Dispatcher,
        *,
        keep_delivered: bool = False,
    ) -> None:
        self._rollback_steps = rollback_steps
        self._dispatcher = dispatcher
        self._transaction = transaction
        self._keep_delivered = keep_delivered
        self._looked_at = 0
        self._discarded = 0
        self._returning: dict[int, _Returning] = {}
        self._held: dict[int, Queue] = {}

    def step(self) -> bool:
        transaction = self._transaction
        rollback_steps = self._rollback_steps
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
                self._dispatcher.resume(queue)
            self._held = {}
        self._discarded = rollback_steps.discard(transaction, self._discarded)
        if self._discarded < len(transaction.planned or transaction.sends):
            return False
        rollback_steps.discard_ids(transaction)
        rollback_steps.rolled_back(transaction)
        return True

    def _look_at_acks(self) -> None:
        acks = self._transaction.acks
        stop = min(len(acks), self._looked_at + LOOKED_AT_PER_SLICE)
        for at in range(self._looked_at, stop):
            item = acks[at]
            queue = item.queue
            queue.counters.rolled_back += 1
            if self._keep_delivered and not item.consumer.closed:
                item.consumer.keep(item.slot)
                continue
            returning = self._returning.get(id(item.consumer))
            if returning is None:
                returning = _Returning(queue, item.consumer)
                self._returning[id(item.consumer)] = returning
                if queue.id not in self._held:
                    self._held[queue.id] = queue
                    self._dispatcher.suspend(queue)
            returning.count += 1
        self._looked_at = stop

    def _give_back(self) -> None:
        key = next(iter(self._returning))
        part = self._returning[key]
        held = part.held
        if held is None:
            held = part.consumer.all_held()
            part.held = held
        part.count -= self._rollback_steps.give_back(self._transaction, part.queue, part.consumer, held)
        if part.count == 0 or not held:
            del self._returning[key]


class _Free(Job):
    """Frees a finished transaction in slices: a million objects freed at once take 200 ms. Only what it collected is
    freed; what became of it stays."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def step(self) -> bool:
        transaction = self._transaction
        del transaction.sends[-FREED_PER_SLICE:]
        del transaction.planned[-FREED_PER_SLICE:]
        del transaction.acks[-FREED_PER_SLICE:]
        del transaction.notes[-FREED_PER_SLICE:]
        del transaction.indexes[-FREED_PER_SLICE:]
        more = transaction.sends or transaction.planned or transaction.acks or transaction.notes
        for ids in transaction.ids.values():
            for _ in range(min(len(ids), FREED_PER_SLICE)):
                ids.pop()
            if ids:
                return False
        return not more and not transaction.indexes


def free_in_slices(transaction: Transaction, jobs: Jobs) -> None:
    """Frees what a finished transaction collected; a small one is freed at once, by itself."""
    if transaction.operations + len(transaction.planned) > FREED_PER_SLICE:
        jobs.add(_Free(transaction))
