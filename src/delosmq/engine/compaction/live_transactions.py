"""What prepared branches hold, as a compaction finds it: messages to send, messages acknowledged, duplicate ids.

An open transaction has nothing in the store: what it acknowledges is like all that is in delivery. One that is being
committed has, but not for long. A branch that is prepared waits for its coordinator, perhaps for ever, and must not
keep its segments meanwhile.
"""

from typing import Final

from delosmq.engine.addresses.duplicate_ids import DuplicateId
from delosmq.engine.base.slots import Slot
from delosmq.engine.compaction.compactor import LivePlace, Restoration
from delosmq.engine.compaction.live_messages import LiveMessages
from delosmq.engine.log.log import Log
from delosmq.engine.log.records import encode_promised, encode_sent
from delosmq.engine.queues.queue import Queue
from delosmq.engine.transactions.transaction import PREPARED, Transaction
from delosmq.model.message import Home

IDS_PER_SLICE: Final = 100

_MovedId = tuple[Transaction, DuplicateId, Home]
"""With the home that it had before."""


class LiveTransactions(LivePlace):
    """All open transactions, of which only prepared ones matter."""

    def __init__(
        self, transactions: dict[int, Transaction], queues: LiveMessages, restoration: Restoration, log: Log
    ) -> None:
        self._transactions = transactions
        self._queues = queues
        self._restoration = restoration
        self._log = log
        self._waiting: list[Transaction] | None = None
        self._at: int = 0

    def restore_next(self, segment: int, limit: int) -> bool:
        if self._waiting is None:
            self._waiting = [one for one in self._transactions.values() if one.state == PREPARED]
            self._at = 0
        waiting = self._waiting
        ids: list[_MovedId] = []
        while limit > 0 and waiting and not self._restoration.full and len(ids) < IDS_PER_SLICE:
            limit -= 1
            transaction = waiting[-1]
            if (
                transaction.state != PREPARED
                or segment not in transaction.segments
                or not self._look_at(transaction, segment, ids)
            ):
                waiting.pop()
                self._at = 0
        self._close(ids)
        if waiting:
            return False
        self._waiting = None
        return True

    def _look_at(self, transaction: Transaction, segment: int, ids: list[_MovedId]) -> bool:
        """Looks at the next of what it holds. False when that was all."""
        at = self._at
        self._at += 1
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
        if at < len(transaction.notes):
            note = transaction.notes[at]
            if note.home is not None and note.home.segment == segment:
                ids.append((transaction, note, note.home))
                note.store_again(self._log, transaction.id)
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

    def _close(self, ids: list[_MovedId]) -> None:
        if not ids:
            return
        try:
            self._restoration.close()
        finally:
            for transaction, note, old in ids:
                new = note.home
                if new is None or new.segment == 0:
                    note.home = old
                else:
                    transaction.segments.setdefault(new.segment, new)

    def records(self, queue: Queue, slot: Slot) -> list[bytes] | None:
        transaction = self._transactions.get(slot.transaction)
        if slot.in_list is None or transaction is None or transaction.state != PREPARED:
            return None
        # What says that it is acknowledged has to be on the disk as long as the message is.
        return [*self._queues.held_records(queue, slot), encode_promised(transaction.id, queue.id, [slot])]
