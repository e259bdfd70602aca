"""What a large transaction collected is let go of in slices: a million objects freed at once take 200 ms."""

from typing import Final

from delosmq.engine.base.jobs import Job, Jobs
from delosmq.engine.transactions.transaction import Transaction

FREED_PER_SLICE: Final = 1_000


class LetGo(Job):
    """Empties a transaction that is over. Only what it collected is touched; what it came to stays."""

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


def let_go(transaction: Transaction, jobs: Jobs) -> None:
    """A transaction is over. A small one goes by itself."""
    if transaction.operations + len(transaction.planned) > FREED_PER_SLICE:
        jobs.add(LetGo(transaction))
