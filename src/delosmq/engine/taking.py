"""A cumulative acknowledgement of very many messages, a slice at a time."""

from typing import TYPE_CHECKING, Final

from delosmq.engine.jobs import Job
from delosmq.engine.slots import Slot
from delosmq.engine.transactions import ROLLBACK_ONLY, ROLLED_BACK, Promised, Transaction, TransactionWaiter
from delosmq.model.errors import BrokerError

if TYPE_CHECKING:
    from delosmq.engine.consumer import Consumer
    from delosmq.engine.dispatch import Dispatcher
    from delosmq.engine.jobs import Jobs
    from delosmq.engine.queue import Queue

TAKEN_PER_SLICE: Final = 1_000


class Taking(Job):
    """Promises to a transaction what a consumer holds up to one message.

    Till it is through nothing else of that consumer returns, or what is acknowledged might. Nobody should answer for
    single ones of these messages meanwhile: the last word would count.

    Attributes:
        waiter: told when the transaction has all of them; of one that exists for them alone, when it is committed.
        returning: what goes on afterwards: the consumer was closed, or rejected something.
        over: nothing is left to do.
    """

    def __init__(
        self, transaction: Transaction, queue: "Queue", consumer: "Consumer", sequence: int, dispatcher: "Dispatcher"
    ) -> None:
        self._transaction = transaction
        self._queue = queue
        self._consumer = consumer
        self._dispatcher = dispatcher
        # Taken from the end.
        self._slots: list[Slot] = consumer.all_through(sequence)
        self._slots.reverse()
        self._before: Taking | None = consumer.under_way
        self._jobs: Jobs | None = None
        self.waiter: TransactionWaiter | None = None
        self.returning: list[Job] = []
        self.over: bool = False
        consumer.under_way = self
        transaction.taking += 1

    def start(self, jobs: "Jobs") -> None:
        """Begins with the next tick."""
        self._jobs = jobs
        jobs.add(self)

    def step(self) -> bool:
        before = self._before
        if before is not None:
            if not before.over:
                return False
            self._before = None
        transaction = self._transaction
        if transaction.state not in (ROLLBACK_ONLY, ROLLED_BACK):
            self._take()
            if self._slots:
                return False
        self._finish()
        return True

    def _take(self) -> None:
        slots = self._slots
        consumer = self._consumer
        held = consumer.in_delivery
        queue = self._queue
        transaction = self._transaction
        for _ in range(min(len(slots), TAKEN_PER_SLICE)):
            slot = slots.pop()
            if slot.in_list is held and slot.transaction == 0:
                consumer.promise(slot, transaction.id)
                transaction.acks.append(Promised(queue, consumer, slot))
        if consumer.parked and not consumer.closed:
            queue.unpark(consumer)
        self._dispatcher.mark(queue)

    def _finish(self) -> None:
        self.over = True
        self._slots.clear()
        self._transaction.taking -= 1
        if self._consumer.under_way is self:
            self._consumer.under_way = None
        jobs = self._jobs
        if jobs is not None:
            for job in self.returning:
                jobs.add(job)
        self.returning = []
        if not self._transaction.internal:
            self.tell(None)

    def tell(self, error: BrokerError | None) -> None:
        """Tells whoever waits, once."""
        waiter = self.waiter
        self.waiter = None
        if waiter is not None:
            waiter.on_ended(error)
