"""Credit: how much may be in delivery to one consumer. The protocol chooses the strategy."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Credit(ABC):
    """Counts what is in delivery and says when it is enough."""

    @abstractmethod
    def has_room(self) -> bool:
        """Whether one more message may go out."""

    @abstractmethod
    def taken(self, size_bytes: int) -> None:
        """A message of this size was delivered to the consumer."""

    @abstractmethod
    def settled(self, size_bytes: int) -> None:
        """A message of this size was acknowledged or returned."""

    def promised(self, size_bytes: int) -> None:
        """It was acknowledged in a transaction: it takes no credit any more, or a transaction could be no larger than a
        window."""
        self.settled(size_bytes)

    def committed(self, size_bytes: int) -> None:  # noqa: B027 - a window has its room back since the promise
        """A promised acknowledgement was committed."""

    def rolled_back(self, size_bytes: int) -> None:
        """A promised acknowledgement was rolled back: the message is in delivery as before."""
        self.taken(size_bytes)

    def room(self) -> int:
        """How many messages may go out, where that is counted in messages; 0 where it isn't."""
        return 0

    def is_asked(self) -> bool:
        """Whether a peer that pulled is to be told that there is nothing more for it now. As a rule not one that has
        got what it asked for."""
        return self.has_room()

    def extended(self, count: int) -> None:  # noqa: B027 - few protocols say so
        """The peer has taken that many messages and will acknowledge them later."""

    def pulled(self, count: int) -> None:  # noqa: B027 - few protocols ask
        """The peer asks for so many messages."""


class MessageCredit(Credit):
    """At most ``limit`` messages in delivery."""

    def __init__(self, limit: int) -> None:
        self._room = limit

    def has_room(self) -> bool:
        return self._room > 0

    def taken(self, size_bytes: int) -> None:
        self._room -= 1

    def settled(self, size_bytes: int) -> None:
        self._room += 1


class ByteCredit(Credit):
    """A window of bytes: full once the bytes in delivery reach it, so one message larger than the window still fits."""

    def __init__(self, window_bytes: int) -> None:
        self._room = window_bytes

    def has_room(self) -> bool:
        return self._room > 0

    def taken(self, size_bytes: int) -> None:
        self._room -= size_bytes

    def settled(self, size_bytes: int) -> None:
        self._room += size_bytes


class OpenCredit(Credit):
    """No bound of its own: only the outbox limits what is under way."""

    def has_room(self) -> bool:
        return True

    def taken(self, size_bytes: int) -> None:
        pass

    def settled(self, size_bytes: int) -> None:
        pass


class PrefetchCredit(Credit):
    """The prefetch of ActiveMQ Classic: messages dispatched, and an extension that the peer earns by taking them.

    Full once ``dispatched - extension`` reaches the limit. With a limit of 0 nothing goes out that was not pulled, and
    acknowledgements give nothing back.

    Attributes:
        dispatched: messages in delivery, those acknowledged in an open transaction included.
        extension: messages allowed above the limit; with a limit of 0, messages still to be sent for the last pull.
        singly: acknowledgements within a transaction name one message each (INDIVIDUAL) and so extend at once; those of
            ranges (STANDARD) were extended by DELIVERED before.
        extends: False: neither gives an extension; only a pull does.

    Source: activemq-broker, PrefetchSubscription.
    """

    def __init__(self, limit: int, *, singly: bool = False) -> None:
        self._limit = limit
        self._range: bool = False
        self.extends: bool = True
        self.dispatched: int = 0
        self.extension: int = 0
        self.singly = singly

    def has_room(self) -> bool:
        if self._limit == 0:
            return self.extension > 0
        return self.dispatched - self.extension < self._limit

    def room(self) -> int:
        if self._limit == 0:
            return self.extension
        return max(0, self._limit - self.dispatched + self.extension)

    def taken(self, size_bytes: int) -> None:
        self.dispatched += 1
        if self._limit == 0 and self.extension > 0:
            self.extension -= 1

    def settled(self, size_bytes: int) -> None:
        self.dispatched -= 1
        if not self._range:
            self._shrink()

    def promised(self, size_bytes: int) -> None:
        if self.singly and self._limit > 0 and self.extends:
            self.extension += 1

    def committed(self, size_bytes: int) -> None:
        self.dispatched -= 1
        self._shrink()

    def rolled_back(self, size_bytes: int) -> None:
        self._shrink()

    def extended(self, count: int) -> None:
        if self._limit > 0 and self.extends:
            self.extension += count

    def pulled(self, count: int) -> None:
        if self._limit == 0:
            self.extension = count

    def resize(self, limit: int) -> None:
        """The peer wants another prefetch from now on."""
        if (self._limit == 0) != (limit == 0):
            self.extension = 0
        self._limit = limit

    def begin_range(self) -> None:
        """What is settled until `end_range` is one acknowledgement (EXPIRED, POISON), shrinking the extension once."""
        self._range = True

    def end_range(self, *, shrinks: bool = True) -> None:
        """Ends `begin_range`."""
        self._range = False
        if shrinks:
            self._shrink()

    def _shrink(self) -> None:
        if self._limit > 0 and self.extension > 0:
            self.extension -= 1
