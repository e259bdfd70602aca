"""Browse cursors: how far each browser, and each consumer of a non-destructive queue, has read.

A message that such a consumer gets is lent to it; `loans` has those that it did not answer yet.
"""

from heapq import heappop, heappush
from typing import Final

from delosmq.engine.base.jobs import Job, Jobs
from delosmq.engine.base.slots import Cursor, Slot
from delosmq.engine.dispatch.ports import ENDED, STAYS, BeforeDelivery
from delosmq.engine.dispatch.rotation import DispatchBudget, precedes
from delosmq.engine.dispatch.selector_group import SelectorGroup
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.in_delivery import Holder
from delosmq.engine.queues.loans import Loans
from delosmq.engine.queues.queue import Queue

UNBOUNDED: Final = -1
_BITS_PER_NUMBER: Final = 256
"""Sequences that share one number, with a bit each. Even with those of other queues between them that takes less."""


def settle_loans(loans: Loans, queue: Queue, jobs: Jobs) -> None:
    """Ends the loans that are answered: now, or when they are many, in slices."""
    if not loans.settling and not loans.settle_some():
        loans.settling = True
        jobs.add(_SettleLoans(loans, queue))


class BrowseCursor:
    """How far one such consumer has come.

    Attributes:
        ended: a browser has seen everything.
    """

    def __init__(self, consumer: Consumer, queue: Queue, group: SelectorGroup, *, page: int) -> None:
        self.consumer = consumer
        self._queue = queue
        self._group = group
        self._loans: Loans = Loans(consumer.credit)
        consumer.loans = self._loans
        self._cursor: Cursor = queue.pending.cursor()
        self._page = page
        self._ends_expired: bool = True
        self.ended: bool = False

    def close(self) -> None:
        """The consumer has left."""
        if not self.ended:
            self._queue.pending.drop(self._cursor)

    def read(self, limit: int, budget: DispatchBudget, before: BeforeDelivery | None, now_ms: int) -> bool:
        """Lends what comes next, ``limit`` at most; True when there may be more at once.

        Args:
            before: ends what is too old; None when nothing in the queue expires.
        """
        consumer = self.consumer
        lent = 0
        while lent < limit and not self.ended:
            if not consumer.has_room():
                return False
            slot = self.next(budget)
            if slot is None:
                return budget.out
            if before is not None and self._ends_expired:
                fate = before.take_expired(self._queue, slot, now_ms)
                if fate == ENDED:
                    lent += before.cost(self._queue)
                if fate != STAYS:
                    continue  # with ROOM_TO_COME the scan ends it later
            self._lend(slot)
            lent += 1
        return not self.ended

    def next(self, budget: DispatchBudget) -> Slot | None:
        """The next message to lend, with the cursor behind it; None when there is none, or no more work allowed."""
        while True:
            slot = self._cursor.peek()
            if slot is None or not budget.spend():
                return None
            self._cursor.advance(slot)
            if self._group.accepts(slot.message, budget):
                return slot

    def _lend(self, slot: Slot) -> None:
        pending = slot.in_list is not None and self._queue.pending.holds(slot)
        borrowed = Slot(slot.message, slot.recorded)
        borrowed.borrowed = True
        # As it would be, were it delivered now.
        borrowed.delivery_count = slot.delivery_count + 1 if pending else slot.delivery_count
        consumer = self.consumer
        self._loans.add(borrowed.sequence, borrowed.message.encoded_size_bytes)
        consumer.port.deliver(borrowed)
        if self._page != UNBOUNDED:
            self._page -= 1
            if self._page == 0:
                self._end()

    def _end(self) -> None:
        self.ended = True
        self._queue.pending.drop(self._cursor)
        self.consumer.port.browse_ended()


class _SettleLoans(Job):
    """Ends loans that are answered, a slice at a time."""

    def __init__(self, loans: Loans, queue: Queue) -> None:
        self._loans = loans
        self._queue = queue

    def step(self) -> bool:
        done = self._loans.settle_some()
        self._queue.ask_dispatch()
        return done


class Sequences:
    """A set of sequences, of which nearly each has neighbours: bits. Of a million that follow each other it takes less
    than 1 MB, a set of numbers 64 times as much.
    """

    def __init__(self) -> None:
        self._bits: dict[int, int] = {}

    def add(self, sequence: int) -> bool:
        """Takes one in; False when it was in it."""
        place = sequence // _BITS_PER_NUMBER
        bits = self._bits.get(place, 0)
        bit = 1 << sequence % _BITS_PER_NUMBER
        if bits & bit:
            return False
        self._bits[place] = bits | bit
        return True

    def holds(self, sequence: int) -> bool:
        """Whether it is in it."""
        return self._bits.get(sequence // _BITS_PER_NUMBER, 0) >> sequence % _BITS_PER_NUMBER & 1 == 1


class Browser(BrowseCursor):
    """A browser: sees what is pending, and what is in delivery to others, each message once.

    A pass begins with what is in delivery, merged with what is pending by the order of the queue. As messages move
    from one to the other meanwhile there is another pass, until one brings nothing new; that ends it.
    """

    def __init__(self, consumer: Consumer, queue: Queue, group: SelectorGroup, *, page: int) -> None:
        super().__init__(consumer, queue, group, page=page)
        self._ends_expired = False  # it looks, whatever there is
        self._seen: Sequences = Sequences()
        # In delivery, not looked at yet in this pass: place in the queue, sequence, and to whom. No slots: while the
        # browser has no room, the messages may be acknowledged.
        self._in_delivery: list[tuple[int, int, int, Holder]] = []
        self._collected: bool = False
        self._new: bool = False
        # Collecting goes on behind ``_at``, in the list of the consumer at ``_from``.
        self._sources: list[Holder] | None = None
        self._from: int = 0
        self._at: Slot | None = None

    def next(self, budget: DispatchBudget) -> Slot | None:
        while True:
            if not self._collected and not self._collect(budget):
                return None
            slot = self._first()
            if slot is None:
                if not self._new:
                    self._end()
                    return None
                self._new = False
                self._collected = False
                continue
            if not budget.spend():
                return None
            self._take(slot)
            if not self._seen.add(slot.sequence):
                continue
            if slot.due_at_ms == 0 and self._group.accepts(slot.message, budget):
                self._new = True
                return slot

    def _first(self) -> Slot | None:
        in_delivery = self._in_delivery
        pending = self._cursor.peek()
        while in_delivery:
            slot = in_delivery[0][3].slot_of(in_delivery[0][2])
            if slot is not None:
                return slot if pending is None or precedes(slot, pending) else pending
            heappop(in_delivery)
            self._new = True  # gone, or with another consumer by now, where the next pass finds it
        return pending

    def _take(self, slot: Slot) -> None:
        if self._in_delivery and self._in_delivery[0][2] == slot.sequence:
            heappop(self._in_delivery)
        else:
            self._cursor.advance(slot)

    def _end(self) -> None:
        super()._end()
        self._seen = Sequences()
        self._in_delivery = []
        self._sources = None
        self._at = None

    def _collect(self, budget: DispatchBudget) -> bool:
        """Notes what is in delivery; False when more work is needed than is allowed now."""
        sources = self._sources
        if sources is None:
            sources = list(self._queue.holders)
            self._sources = sources
            self._from = 0
            self._at = None
        while self._from < len(sources):
            consumer = sources[self._from]
            source = consumer.in_delivery
            at = self._at
            slot = source.head if at is None or at.in_list is not source else at.next
            while slot is not None:
                if not budget.spend():
                    return False
                self._at = slot
                if not self._seen.holds(slot.sequence):
                    heappush(self._in_delivery, (-slot.level, slot.order, int(slot.sequence), consumer))
                slot = slot.next
            self._from += 1
            self._at = None
        self._sources = None
        self._collected = True
        return True
