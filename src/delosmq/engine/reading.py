"""Reading without taking: browsers, and consumers of non-destructive queues.

What such a consumer gets is borrowed: a slot of its own on the same message, and whatever it answers changes nothing in
the queue.
"""

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from delosmq.engine.consumer import Consumer
from delosmq.engine.expiry_gate import ENDED, STAYS, ExpiryGate
from delosmq.engine.jobs import Job, Jobs
from delosmq.engine.lanes import Acceptance, Work, precedes
from delosmq.engine.queue import Queue
from delosmq.engine.slots import Cursor, Slot, SlotList

if TYPE_CHECKING:
    from delosmq.engine.starting import Starter

UNBOUNDED: Final = -1
SETTLED_PER_SLICE: Final = 1_000


class Reading:
    """How far one such consumer has come.

    Attributes:
        ended: a browser has seen everything.
    """

    def __init__(self, consumer: Consumer, queue: Queue, acceptance: Acceptance, *, page: int) -> None:
        self._consumer = consumer
        self._queue = queue
        self._acceptance = acceptance
        self._cursor: Cursor = queue.pending.cursor()
        self._page = page
        # The order of a slot is its number here.
        self._lent: SlotList = SlotList()
        self._by_sequence: dict[int, Slot] = {}
        self._lent_last: int = 0
        # All up to this number is answered, but not all of it let go of yet.
        self._answered: int = 0
        self._settling: bool = False
        self._ends_expired: bool = True
        self.ended: bool = False

    def close(self) -> None:
        """The consumer has left; `settle` comes next."""
        self._queue.pending.drop(self._cursor)
        self._answered = self._lent_last

    # -- answers -------------------------------------------------------------------------------------------------

    def holds(self, sequence: int) -> bool:
        """Whether a message is lent under this sequence."""
        return self._lent_as(sequence) is not None

    def _lent_as(self, sequence: int) -> Slot | None:
        slot = self._by_sequence.get(sequence)
        return slot if slot is not None and slot.order > self._answered else None

    def answer(self, sequence: int) -> bool:
        """The consumer is done with a message, one way or the other; False when it isn't lent."""
        slot = self._lent_as(sequence)
        if slot is None:
            return False
        self._let_go(slot)
        return True

    def answer_through(self, sequence: int) -> bool:
        """The same for all that was lent up to this one; `settle` comes next."""
        last = self._lent_as(sequence)
        if last is None:
            return False
        self._answered = last.order
        return True

    def settle(self, jobs: Jobs, starter: "Starter") -> None:
        """Lets go of all that is answered: now, or when it is much, in slices."""
        if not self._settling and not self.settle_some():
            self._settling = True
            jobs.add(_Settling(self, self._queue, starter))

    def settle_some(self) -> bool:
        """A slice of that; True when it was the last one."""
        for _ in range(SETTLED_PER_SLICE):
            slot = self._lent.head
            if slot is None or slot.order > self._answered:
                self._settling = False
                return True
            self._let_go(slot)
        return False

    def _let_go(self, slot: Slot) -> None:
        self._lent.unlink(slot)
        if self._by_sequence.get(slot.sequence) is slot:
            del self._by_sequence[slot.sequence]
        self._consumer.credit.settled(slot.message.encoded_size_bytes)

    # -- reading -------------------------------------------------------------------------------------------------

    def read(self, limit: int, work: Work, expiry: ExpiryGate | None, now_ms: int) -> bool:
        """Lends what comes next, ``limit`` at most; True when there may be more at once.

        Args:
            expiry: ends what is too old; None when nothing in the queue expires.
        """
        consumer = self._consumer
        lent = 0
        while lent < limit and not self.ended:
            if not consumer.has_room():
                return False
            slot = self.next(work)
            if slot is None:
                return work.out
            if expiry is not None and self._ends_expired:
                fate = expiry.take_expired(self._queue, slot, now_ms)
                if fate == ENDED:
                    lent += expiry.cost(self._queue)
                if fate != STAYS:
                    continue  # with ROOM_TO_COME the scan ends it later
            self._lend(slot)
            lent += 1
        return not self.ended

    def next(self, work: Work) -> Slot | None:
        """The next message to lend, with the cursor behind it; None when there is none, or no more work allowed."""
        while True:
            slot = self._cursor.peek()
            if slot is None or not work.spend():
                return None
            self._cursor.advance(slot)
            if self._acceptance.accepts(slot.message, work):
                return slot

    def _lend(self, slot: Slot) -> None:
        pending = slot.in_list is not None and self._queue.pending.holds(slot)
        borrowed = Slot(slot.message, slot.recorded)
        borrowed.borrowed = True
        self._lent_last += 1
        borrowed.order = self._lent_last
        # As it would be, were it delivered now.
        borrowed.delivery_count = slot.delivery_count + 1 if pending else slot.delivery_count
        self._lent.append(borrowed)
        self._by_sequence[borrowed.sequence] = borrowed
        consumer = self._consumer
        consumer.credit.taken(borrowed.message.encoded_size_bytes)
        consumer.port.deliver(borrowed)
        if self._page != UNBOUNDED:
            self._page -= 1
            if self._page == 0:
                self._end()

    def _end(self) -> None:
        self.ended = True
        self._consumer.port.browse_ended()


class _Settling(Job):
    """Lets go of what a reader has answered, a slice at a time."""

    def __init__(self, reading: Reading, queue: Queue, starter: "Starter") -> None:
        self._reading = reading
        self._queue = queue
        self._starter = starter

    def step(self) -> bool:
        done = self._reading.settle_some()
        self._starter.mark(self._queue)
        return done


class Browsing(Reading):
    """A browser: sees what is pending, and what is in delivery to others, each message once.

    A pass begins with what is in delivery, merged with what is pending by the order of the queue. As messages move
    from one to the other meanwhile there is another pass, until one brings nothing new; that ends it.
    """

    def __init__(self, consumer: Consumer, queue: Queue, acceptance: Acceptance, *, page: int) -> None:
        super().__init__(consumer, queue, acceptance, page=page)
        self._ends_expired = False  # it looks, whatever there is
        self._seen: set[int] = set()
        # In delivery, not looked at yet in this pass.
        self._held: list[tuple[int, int, int, Slot]] = []
        self._collected: bool = False
        self._new: bool = False
        # Collecting goes on behind ``_at``, in the list of the consumer at ``_from``.
        self._sources: list[SlotList] | None = None
        self._from: int = 0
        self._at: Slot | None = None

    def next(self, work: Work) -> Slot | None:
        while True:
            if not self._collected and not self._collect(work):
                return None
            slot = self._first()
            if slot is None:
                if not self._new:
                    self._end()
                    return None
                self._new = False
                self._collected = False
                continue
            if not work.spend():
                return None
            self._take(slot)
            if slot.sequence in self._seen:
                continue
            self._seen.add(slot.sequence)
            if slot.due_at_ms == 0 and self._acceptance.accepts(slot.message, work):
                self._new = True
                return slot

    def _first(self) -> Slot | None:
        held = self._held
        while held and held[0][3].in_list is None:
            heappop(held)  # it is gone
        pending = self._cursor.peek()
        if held and (pending is None or precedes(held[0][3], pending)):
            return held[0][3]
        return pending

    def _take(self, slot: Slot) -> None:
        if self._held and self._held[0][3] is slot:
            heappop(self._held)
        else:
            self._cursor.advance(slot)

    def _collect(self, work: Work) -> bool:
        """Notes what is in delivery; False when more work is needed than is allowed now."""
        sources = self._sources
        if sources is None:
            sources = [consumer.in_delivery for consumer in self._queue.consumers]
            self._sources = sources
            self._from = 0
            self._at = None
        while self._from < len(sources):
            source = sources[self._from]
            at = self._at
            slot = source.head if at is None or at.in_list is not source else at.next
            while slot is not None:
                if not work.spend():
                    return False
                self._at = slot
                if slot.sequence not in self._seen:
                    key = (-slot.level, slot.order, slot.sequence)
                    heappush(self._held, (key[0], key[1], key[2], slot))
                slot = slot.next
            self._from += 1
            self._at = None
        self._sources = None
        self._collected = True
        return True
