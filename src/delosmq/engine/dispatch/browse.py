"""Reading without taking: browsers, and consumers of non-destructive queues.

What such a consumer gets is borrowed: a slot of its own on the same message, and whatever it answers changes nothing in
the queue. Only the outbox keeps that slot, until the frame is written: a consumer that answers nothing must not keep
messages that have left their queue, which no limit counts. What is kept here for its answer is two numbers.
"""

from collections import OrderedDict
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from delosmq.engine.base.jobs import Job, Jobs
from delosmq.engine.base.slots import Cursor, Slot
from delosmq.engine.dispatch.expiry_gate import ENDED, STAYS, ExpiryGate
from delosmq.engine.dispatch.rotation import Acceptance, Work, precedes
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.queue import Queue

if TYPE_CHECKING:
    from delosmq.engine.dispatch.dispatch_start import Starter

UNBOUNDED: Final = -1
SETTLED_PER_SLICE: Final = 1_000

MOST_LENT: Final = 65_536
"""To one consumer. Of more the oldest counts as answered: JMS browsers in sessions that acknowledge later answer
nothing before they have seen all."""

_SIZE_BITS: Final = 40
"""No message is larger than a frame, whose size has 32 bits."""
_SIZE: Final = (1 << _SIZE_BITS) - 1
_TOGETHER: Final = 256
"""Sequences whose bits are one number: with other queues' messages between them a few of them still pay for it."""
_NOT_LENT: Final = 0
"""Numbers begin at 1."""


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
        # By sequence, in the order in which they were lent: a running number, and the size of the message. An
        # OrderedDict finds its first entry at once, however many went before it.
        self._lent: OrderedDict[int, int] = OrderedDict()
        self._lent_last: int = 0
        # All up to this number is answered, but not all of it let go of yet.
        self._answered: int = 0
        self._settling: bool = False
        self._ends_expired: bool = True
        self.ended: bool = False

    def close(self) -> None:
        """The consumer has left; `settle` comes next."""
        if not self.ended:
            self._queue.pending.drop(self._cursor)
        self._answered = self._lent_last

    # -- answers -------------------------------------------------------------------------------------------------

    def holds(self, sequence: int) -> bool:
        """Whether a message is lent under this sequence."""
        return self._number_of(sequence) != _NOT_LENT

    def _number_of(self, sequence: int) -> int:
        lent = self._lent.get(sequence)
        if lent is None or lent >> _SIZE_BITS <= self._answered:
            return _NOT_LENT
        return lent >> _SIZE_BITS

    def answer(self, sequence: int) -> bool:
        """The consumer is done with a message, one way or the other; False when it isn't lent."""
        if self._number_of(sequence) == _NOT_LENT:
            return False
        self._let_go(sequence)
        return True

    def answer_through(self, sequence: int) -> bool:
        """The same for all that was lent up to this one; `settle` comes next."""
        number = self._number_of(sequence)
        if number == _NOT_LENT:
            return False
        self._answered = number
        return True

    def settle(self, jobs: Jobs, starter: "Starter") -> None:
        """Lets go of all that is answered: now, or when it is much, in slices."""
        if not self._settling and not self.settle_some():
            self._settling = True
            jobs.add(_Settling(self, self._queue, starter))

    def settle_some(self) -> bool:
        """A slice of that; True when it was the last one."""
        for _ in range(SETTLED_PER_SLICE):
            if not self._lent:
                break
            sequence = next(iter(self._lent))
            if self._lent[sequence] >> _SIZE_BITS > self._answered:
                break
            self._let_go(sequence)
        else:
            return False
        self._settling = False
        return True

    def _let_go(self, sequence: int) -> None:
        self._consumer.credit.settled(self._lent.pop(sequence) & _SIZE)

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
        # As it would be, were it delivered now.
        borrowed.delivery_count = slot.delivery_count + 1 if pending else slot.delivery_count
        consumer = self._consumer
        sequence = borrowed.sequence
        if sequence in self._lent:  # it came back to the queue meanwhile, and its one answer will be for both
            self._let_go(sequence)
        size = borrowed.message.encoded_size_bytes
        self._lent_last += 1
        if len(self._lent) >= MOST_LENT:
            self._let_go(next(iter(self._lent)))
        self._lent[sequence] = self._lent_last << _SIZE_BITS | size
        consumer.credit.taken(size)
        consumer.port.deliver(borrowed)
        if self._page != UNBOUNDED:
            self._page -= 1
            if self._page == 0:
                self._end()

    def _end(self) -> None:
        self.ended = True
        self._queue.pending.drop(self._cursor)
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


class Sequences:
    """A set of sequences, of which nearly each has neighbours: bits. Of a million that follow each other it takes less
    than 1 MB, a set of numbers 64 times as much.
    """

    def __init__(self) -> None:
        self._bits: dict[int, int] = {}

    def add(self, sequence: int) -> bool:
        """Takes one in; False when it was in it."""
        place = sequence // _TOGETHER
        bits = self._bits.get(place, 0)
        bit = 1 << sequence % _TOGETHER
        if bits & bit:
            return False
        self._bits[place] = bits | bit
        return True

    def holds(self, sequence: int) -> bool:
        """Whether it is in it."""
        return self._bits.get(sequence // _TOGETHER, 0) >> sequence % _TOGETHER & 1 == 1


class Browsing(Reading):
    """A browser: sees what is pending, and what is in delivery to others, each message once.

    A pass begins with what is in delivery, merged with what is pending by the order of the queue. As messages move
    from one to the other meanwhile there is another pass, until one brings nothing new; that ends it.
    """

    def __init__(self, consumer: Consumer, queue: Queue, acceptance: Acceptance, *, page: int) -> None:
        super().__init__(consumer, queue, acceptance, page=page)
        self._ends_expired = False  # it looks, whatever there is
        self._seen: Sequences = Sequences()
        # In delivery, not looked at yet in this pass: place in the queue, sequence, and to whom. No slots: while the
        # browser has no room, the messages may be acknowledged.
        self._held: list[tuple[int, int, int, Consumer]] = []
        self._collected: bool = False
        self._new: bool = False
        # Collecting goes on behind ``_at``, in the list of the consumer at ``_from``.
        self._sources: list[Consumer] | None = None
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
            if not self._seen.add(slot.sequence):
                continue
            if slot.due_at_ms == 0 and self._acceptance.accepts(slot.message, work):
                self._new = True
                return slot

    def _first(self) -> Slot | None:
        held = self._held
        pending = self._cursor.peek()
        while held:
            slot = held[0][3].slot_of(held[0][2])
            if slot is not None:
                return slot if pending is None or precedes(slot, pending) else pending
            heappop(held)
            self._new = True  # gone, or with another consumer by now, where the next pass finds it
        return pending

    def _take(self, slot: Slot) -> None:
        if self._held and self._held[0][2] == slot.sequence:
            heappop(self._held)
        else:
            self._cursor.advance(slot)

    def _end(self) -> None:
        super()._end()
        self._seen = Sequences()
        self._held = []
        self._sources = None
        self._at = None

    def _collect(self, work: Work) -> bool:
        """Notes what is in delivery; False when more work is needed than is allowed now."""
        sources = self._sources
        if sources is None:
            sources = list(self._queue.consumers)
            self._sources = sources
            self._from = 0
            self._at = None
        while self._from < len(sources):
            consumer = sources[self._from]
            source = consumer.in_delivery
            at = self._at
            slot = source.head if at is None or at.in_list is not source else at.next
            while slot is not None:
                if not work.spend():
                    return False
                self._at = slot
                if not self._seen.holds(slot.sequence):
                    heappush(self._held, (-slot.level, slot.order, int(slot.sequence), consumer))
                slot = slot.next
            self._from += 1
            self._at = None
        self._sources = None
        self._collected = True
        return True
