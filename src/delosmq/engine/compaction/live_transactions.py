"""Prepared branches for compaction: their messages to send, acknowledged messages and duplicate ids.

An open transaction has nothing in the store: what it acknowledges is like all that is in delivery. One that is being
committed has, but not for long. A branch that is prepared waits for its coordinator, perhaps for ever, and must not
keep its segments meanwhile.
"""

from collections.abc import Generator

from delosmq.engine.base.slots import Slot
from delosmq.engine.compaction.compactor import LivePlace, Restoration
from delosmq.engine.compaction.live_messages import LiveMessages
from delosmq.engine.log.records import encode_promised, encode_sent
from delosmq.engine.queues.queue import Queue
from delosmq.engine.transactions.transaction import PREPARED, Transaction


class LiveTransactions(LivePlace):
    """All open transactions, of which only prepared ones matter."""

    def __init__(self, transactions: dict[int, Transaction], queues: LiveMessages, restoration: Restoration) -> None:
        self._transactions = transactions
        self._queues = queues
        self._restoration = restoration

    def restore(self, segment: int) -> Generator[None, None, None]:
        waiting = [one for one in self._transactions.values() if one.state == PREPARED]
        while waiting:
            transaction = waiting.pop()
            at = 0
            while _lives_in(transaction, segment) and self._look_at(transaction, at, segment):
                at += 1
                yield
            yield

    def _look_at(self, transaction: Transaction, at: int, segment: int) -> bool:
        """Looks at the next of what it holds. False when that was all."""
        if at < len(transaction.planned):
            self._look_at_sent(transaction, at, segment)
            return True
        at -= len(transaction.planned)
        if at < len(transaction.acks):
            promised = transaction.acks[at]
            home = promised.slot.message.home
            if promised.slot.recorded and home is not None and home.segment == segment:
                self._restoration.found(promised.queue, promised.slot, self)
            return True
        at -= len(transaction.acks)
        if at < len(transaction.duplicate_ids):
            entry = transaction.duplicate_ids[at]
            if entry.home is not None and entry.home.segment == segment:
                self._restoration.move_id(entry, transaction)
            return True
        return False

    def _look_at_sent(self, transaction: Transaction, at: int, segment: int) -> None:
        item = transaction.planned[at]
        message = item.message
        if message.home is None or message.home.segment != segment:
            return
        place = transaction.indexes[at] if transaction.indexes else at
        durable = [int(queue.id) for queue in item.queues if queue.settings.durable]
        meta = encode_sent(message, durable, transaction.id, place, item.original_place)
        self._restoration.move(message, meta, [], [transaction.id])

    def records(self, queue: Queue, slot: Slot) -> list[bytes] | None:
        transaction = self._transactions.get(slot.transaction)
        if slot.in_list is None or transaction is None or transaction.state != PREPARED:
            return None
        # What says that it is acknowledged has to be on the disk as long as the message is.
        return [*self._queues.held_records(queue, slot), encode_promised(transaction.id, queue.id, [slot])]


def _lives_in(transaction: Transaction, segment: int) -> bool:
    """Whether it may have something there: it may end while it is looked at."""
    return transaction.state == PREPARED and segment in transaction.segments
