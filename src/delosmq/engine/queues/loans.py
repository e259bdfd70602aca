"""Loans: messages lent to a browser, or to a consumer of a non-destructive queue.

What such a consumer gets is borrowed: a slot of its own on the same message, and whatever it answers changes nothing in
the queue. Only the outbox keeps that slot, until the frame is written: a consumer that answers nothing must not keep
messages that have left their queue, which no limit counts. What is kept here for its answer is two numbers.
"""

from collections import OrderedDict
from typing import Final

from delosmq.engine.queues.credit import Credit

SETTLED_PER_SLICE: Final = 1_000

MOST_LENT: Final = 65_536
"""To one consumer. Of more the oldest counts as answered: JMS browsers in sessions that acknowledge later answer
nothing before they have seen all."""

_SIZE_BITS: Final = 40
"""No message is larger than a frame, and the size of that has 32 bits."""
_SIZE: Final = (1 << _SIZE_BITS) - 1
_NOT_LENT: Final = 0
"""Numbers begin at 1."""


class Loans:
    """Messages lent to one consumer and not answered.

    Attributes:
        settling: a job goes on with `settle_some`.
    """

    def __init__(self, credit: Credit) -> None:
        self._credit = credit
        self.settling: bool = False
        # By sequence, in the order in which they were lent: a running number, and the size of the message. An
        # OrderedDict finds its first entry at once, however many went before it.
        self._lent: OrderedDict[int, int] = OrderedDict()
        self._last: int = 0
        # All up to this number is answered, but not all of it settled yet.
        self._answered: int = 0

    def add(self, sequence: int, size_bytes: int) -> None:
        """Lends one more message."""
        if sequence in self._lent:  # it came back to the queue meanwhile, and its one answer will be for both
            self._settle(sequence)
        self._last += 1
        if len(self._lent) >= MOST_LENT:
            self._settle(next(iter(self._lent)))
        self._lent[sequence] = self._last << _SIZE_BITS | size_bytes
        self._credit.taken(size_bytes)

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
        self._settle(sequence)
        return True

    def answer_through(self, sequence: int) -> bool:
        """The same for all that was lent up to this one; `settle_some` comes next."""
        number = self._number_of(sequence)
        if number == _NOT_LENT:
            return False
        self._answered = number
        return True

    def answer_all(self) -> None:
        """The consumer has left; `settle_some` comes next."""
        self._answered = self._last

    def settle_some(self) -> bool:
        """Ends a slice of the loans that are answered; True when it was the last one."""
        for _ in range(SETTLED_PER_SLICE):
            if not self._lent:
                break
            sequence = next(iter(self._lent))
            if self._lent[sequence] >> _SIZE_BITS > self._answered:
                break
            self._settle(sequence)
        else:
            return False
        self.settling = False
        return True

    def _settle(self, sequence: int) -> None:
        self._credit.settled(self._lent.pop(sequence) & _SIZE)
