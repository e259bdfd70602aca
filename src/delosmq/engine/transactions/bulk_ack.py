"""A cumulative acknowledgement of very many messages, a slice at a time."""

from array import array
from typing import Final

from delosmq.engine.base.jobs import Jobs
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.in_delivery import BulkAck
from delosmq.engine.queues.queue import Queue
from delosmq.engine.transactions.transaction import Promised, Transaction

TAKEN_PER_SLICE: Final = 1_000


class TransactionAck(BulkAck):
    """Promises to a transaction what a consumer holds up to one message.

    Till it is through nothing else of that consumer returns, or what is acknowledged might. No client should settle
    single ones of these messages meanwhile: the last word would count.

    Attributes:
        per_slice: how many it takes at a time.
    """

    def __init__(self, transaction: Transaction, queue: Queue, consumer: Consumer, sequence: int) -> None:
        super().__init__(consumer)
        self._transaction = transaction
        self._queue = queue
        before = consumer.under_way
        self._before: TransactionAck | None = before if isinstance(before, TransactionAck) else None
        # What is another's now, or on its way back, stays out of this, whatever becomes of it later: some of it may be
        # delivered to the same consumer again meanwhile. Taken from the end.
        coming = self._coming()
        self._sequences: array[int] = consumer.free_through(sequence, coming)
        self._sequences.reverse()
        self._jobs: Jobs | None = None
        self.per_slice: int = TAKEN_PER_SLICE

    def _coming(self) -> set[int]:
        """The sequences that earlier acknowledgements will take, or that are given back."""
        coming: set[int] = set()
        for sequences in self.consumer.giving_back:
            coming.update(sequences)
        before = self._before
        while before is not None and not before.over:
            coming.update(before._sequences)
            before = before._before
        return coming

    def start(self, jobs: Jobs) -> bool:
        """Begins with the next tick. False when there is nothing to take: then it doesn't."""
        if not self._sequences:
            return False
        self.consumer.under_way = self
        self._transaction.bulk_ack_count += 1
        self._jobs = jobs
        jobs.add(self)
        return True

    def step(self) -> bool:
        before = self._before
        if before is not None:
            if not before.over:
                return False
            self._before = None
        self._take()
        if self._sequences:
            return False
        self._finish()
        return True

    def _take(self) -> None:
        sequences = self._sequences
        consumer = self.consumer
        queue = self._queue
        transaction = self._transaction
        for _ in range(min(len(sequences), self.per_slice)):
            slot = consumer.held(sequences.pop())
            if slot is not None:
                consumer.promise(slot, transaction.id)
                transaction.acks.append(Promised(queue, consumer, slot))
        if consumer.full and not consumer.closed:
            queue.rejoin(consumer)
        queue.ask_dispatch()

    def _finish(self) -> None:
        self.over = True
        del self._sequences[:]
        self._transaction.bulk_ack_count -= 1
        if self.consumer.under_way is self:
            self.consumer.under_way = None
        jobs = self._jobs
        if jobs is not None:
            for job in self.follow_ups:
                jobs.add(job)
        self.follow_ups = []
        if not self._transaction.internal:
            self.tell(None)
