"""Time and chance, which come in from outside so that tests and simulation own them."""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.model.ids import MonotonicNs, WallMs

LONGEST_NAP_MS: Final = 1_000


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock(ABC):
    """Both clocks of a broker."""

    @abstractmethod
    def wall_ms(self) -> WallMs:
        """Milliseconds since the epoch; may jump when an operator sets the clock."""

    @abstractmethod
    def monotonic_ns(self) -> MonotonicNs:
        """Nanoseconds that never go back; for deadlines only."""

    def longest_nap_ms(self) -> int:
        """What waits for a time of day looks at the wall clock this often, as it may be set forward."""
        return LONGEST_NAP_MS


@mypyc_attr(allow_interpreted_subclasses=True)
class Random(ABC):
    """Unpredictable names (session ids, passwords, incarnations) and numbers."""

    @abstractmethod
    def token(self, size_bytes: int) -> str:
        """A URL-safe random string made of ``size_bytes`` random bytes."""

    @abstractmethod
    def fraction(self) -> float:
        """A number from 0 (inclusive) to 1 (exclusive), for delays that should not coincide."""
