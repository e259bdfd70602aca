"""Rollback, in slices: what the transaction sent is given up, what it acknowledged goes back."""

from array import array
from collections.abc import Iterator
from typing import Final

from delosmq.engine.base.jobs import NEXT_TICK, Job, Jobs
from delosmq.engine.base.slots import Slot
from delosmq.engine.delivery.acknowledgements import DELAYED, Acknowledgements
from delosmq.engine.log.records import PURGED, TRANSACTION, encode_discarded, encode_json
from delosmq.engine.queues.in_delivery import Holder
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts
from delosmq.engine.transactions.transaction import ROLLED_BACK, Promised, Transaction
from delosmq.model.message import Home

DISCARDED_PER_SLICE: Final = 200
LOOKED_AT_PER_SLICE: Final = 2_000
RETURNED_PER_SLICE: Final = 500
FREED_PER_SLICE: Final = 1_000


class _GiveBack:
    """What one consumer gives back, and how many messages that are."""

    def __init__(self, queue: Queue, consumer: Holder) -> None:
        self.queue = queue
        self.consumer = consumer
        self.count: int = 0


class RollbackSteps:
    """Gives up all that a transaction did, in steps each of which leaves the engine whole."""

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

    def phases(self, transaction: Transaction, *, keep_delivered: bool) -> Iterator[int]:
        """Gives up all of it; what it acknowledged goes back, or stays with consumers that are there."""
        while transaction.bulk_ack_count:
            yield NEXT_TICK
        give_backs: dict[int, _GiveBack] = {}
        suspended: dict[int, Queue] = {}
        for start in range(0, len(transaction.acks), LOOKED_AT_PER_SLICE):
            self._look_at_acks(
                transaction.acks[start : start + LOOKED_AT_PER_SLICE], keep_delivered, give_backs, suspended
            )
            yield NEXT_TICK
        for part in give_backs.values():
            sequences = part.consumer.all_held()
            while True:
                part.count -= self.give_back(transaction, part.queue, part.consumer, sequences)
                yield NEXT_TICK
                if part.count == 0 or not sequences:
                    break
        for queue in suspended.values():
            self._dispatcher.resume(queue)
        at = self.discard(transaction, 0)
        while at < len(transaction.planned or transaction.sends):
            yield NEXT_TICK
            at = self.discard(transaction, at)
        self._duplicates.release_records(transaction.duplicate_ids)
        self.rolled_back(transaction)

    def _look_at_acks(
        self,
        promised: list[Promised],
        keep_delivered: bool,
        give_backs: dict[int, _GiveBack],
        suspended: dict[int, Queue],
    ) -> None:
        """Finds the consumers that give messages back, and suspends their queues meanwhile."""
        for item in promised:
            queue = item.queue
            queue.counters.rolled_back += 1
            if keep_delivered and not item.consumer.closed:
                item.consumer.keep(item.slot)
                continue
            part = give_backs.get(id(item.consumer))
            if part is None:
                part = _GiveBack(queue, item.consumer)
                give_backs[id(item.consumer)] = part
                if queue.id not in suspended:
                    suspended[queue.id] = queue
                    self._dispatcher.suspend(queue)
            part.count += 1

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

    def give_back(self, transaction: Transaction, queue: Queue, consumer: Holder, sequences: "array[int]") -> int:
        """Returns some of what a consumer holds that the transaction acknowledged, newest first, as when the consumer
        closes (RING-7); gives how many.

        Args:
            sequences: to look at, in order of delivery; those that were are gone from there.
        """
        newest_first: list[Slot] = []
        looked_at = 0
        while sequences and looked_at < LOOKED_AT_PER_SLICE and len(newest_first) < RETURNED_PER_SLICE:
            slot = consumer.slot_of(sequences.pop())
            looked_at += 1
            if slot is not None and slot.transaction == transaction.id:
                consumer.keep(slot)
                newest_first.append(slot)
        if queue.deleted:
            for taken in newest_first:
                queue.settle(taken, consumer)
            self._removals.remove(queue, newest_first, PURGED)
        else:
            self._acks.give_back(queue, consumer, newest_first, how=DELAYED)
        self._log.close()
        return len(newest_first)

    def rolled_back(self, transaction: Transaction) -> None:
        """Nothing of it is left."""
        for queue in transaction.queues.values():
            queue.ask_dispatch()
        transaction.state = ROLLED_BACK
        if not transaction.internal:
            self._events.transaction_rolled_back(transaction.id, len(transaction.sends), len(transaction.acks))
        free_in_slices(transaction, self._jobs)


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
        del transaction.duplicate_ids[-FREED_PER_SLICE:]
        del transaction.indexes[-FREED_PER_SLICE:]
        more = transaction.sends or transaction.planned or transaction.acks or transaction.duplicate_ids
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
