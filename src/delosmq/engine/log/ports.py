"""What a store has to do with the engine beside the batches it takes: replay, the state, and what it reports."""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.model.ids import Position
from delosmq.model.message import Home

EVERYTHING: Final = Position(1 << 61)
"""Higher than any position."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Replay(ABC):
    """Receives what a store holds, at start."""

    @abstractmethod
    def replay_state(self, position: Position, state: bytes) -> None:
        """The newest state block and the position it was taken at; called at most once and before any record."""

    @abstractmethod
    def replay_record(self, position: Position, meta: bytes, home: Home) -> None:
        """One record of the batch at ``position``, oldest first. ``home`` says where its body lies (size 0: none).

        Records older than the state block come too, those of live segments: the engine skips what the state covers.
        """


@mypyc_attr(allow_interpreted_subclasses=True)
class StateSource(ABC):
    """Gives a store the state that must outlive the segments in which it was recorded."""

    @abstractmethod
    def state(self) -> bytes:
        """Bindings, high-water marks and leases as they stand after the last appended batch."""


@mypyc_attr(allow_interpreted_subclasses=True)
class StoreEvents(ABC):
    """What a store reports while it runs. Called on the engine's thread only."""

    @abstractmethod
    def on_synced(self, position: Position) -> None:
        """Everything up to ``position`` survives a crash."""

    @abstractmethod
    def on_space(self, low: bool) -> None:
        """True: no durable message may be accepted until False follows. Removals are always taken."""

    @abstractmethod
    def on_full(self, full: bool) -> None:
        """Why space is low. True: the disk gives no more. False: nothing is wrong, the next file will be ready in a
        moment. Comes after the `on_space` that it is about."""

    @abstractmethod
    def on_failure(self, error: Exception) -> None:
        """A write or sync failed: nothing more will be synced. The broker must stop."""

    def awaited(self) -> Position:
        """The newest position that an answer waits for, or waited for. A store may put off syncs behind it."""
        return EVERYTHING
