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
        """A message of this size was handed to the consumer."""

    @abstractmethod
    def settled(self, size_bytes: int) -> None:
        """A message of this size was acknowledged or returned."""


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
