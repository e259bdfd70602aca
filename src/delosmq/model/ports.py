"""Time and chance, which come in from outside so that tests and simulation own them."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.model.ids import MonotonicNs, WallMs


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock(ABC):
    """Both clocks of a broker."""

    @abstractmethod
    def wall_ms(self) -> WallMs:
        """Milliseconds since the epoch; may jump when an operator sets the clock."""

    @abstractmethod
    def monotonic_ns(self) -> MonotonicNs:
        """Nanoseconds that never go back; for deadlines only."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Random(ABC):
    """Unpredictable names (session ids, passwords, incarnations) and numbers."""

    @abstractmethod
    def token(self, size_bytes: int) -> str:
        """A URL-safe random string made of ``size_bytes`` random bytes."""

    @abstractmethod
    def fraction(self) -> float:
        """A number from 0 (inclusive) to 1 (exclusive), for delays that should not coincide."""
