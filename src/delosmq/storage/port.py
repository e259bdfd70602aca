"""What every store offers to the server besides the engine's port: start, waiting, the loop's hooks and the end."""

from abc import abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.log.log import Store
from delosmq.engine.log.ports import StateSource, StoreEvents
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs, Position
from delosmq.storage.activation import ActiveLease

NO_DESCRIPTOR: Final = -1


@mypyc_attr(allow_interpreted_subclasses=True)
class ServedStore(Store):
    """A store as the server runs it. Every call happens on the engine's thread.

    Attributes:
        node_id: the 16 bytes by which brokers tell each other apart, once it is recovered; empty for a store that keeps
            nothing.
        lease: of a broker that shares the store with others, if the store has none of its own.
    """

    node_id: bytes = b""
    lease: ActiveLease | None = None

    @abstractmethod
    def attach(self, events: StoreEvents, state: StateSource) -> None:
        """Names the listener for synced positions and the source of the state. Called once, before `recover`."""

    @abstractmethod
    def fileno(self) -> int:
        """The descriptor to watch for reading, or `NO_DESCRIPTOR` when the store works at once."""

    @abstractmethod
    def on_readable(self) -> None:
        """Takes in what the background has done; reports it through `StoreEvents`. Never blocks."""

    def put_off(self) -> Position:
        """Up to where something is written for which no sync was asked, as no client waits; `NOTHING_DURABLE` for none.
        Who runs the store has it synced within a bounded time: `catch_up`."""
        return NOTHING_DURABLE

    def catch_up(self, position: Position) -> None:
        """Asks for a sync of everything written up to ``position``, unless that has been done."""

    def may_leave(self) -> bool:
        """Whether the store is this broker's for sure. While another one may have taken it over nothing leaves, not
        even what depends on nothing. That it is again is told through `fileno`, or by who renews the lease."""
        return self.lease is None or self.lease.holds()

    def trouble(self) -> str:
        """Why nothing is confirmed for now, as one sentence; "" while all is well."""
        return ""

    @abstractmethod
    def tick(self, now: MonotonicNs) -> None:
        """Retries what failed for want of space. To be called about once a second."""

    @abstractmethod
    def wait_synced(self, position: Position, timeout_s: float) -> None:
        """Flushes and blocks until everything up to ``position`` survives a crash.

        Raises:
            StorageError: it did not come about in time, or the store has failed.
        """

    @abstractmethod
    def close(self, timeout_s: float) -> None:
        """Flushes, syncs what is outstanding for at most ``timeout_s`` and closes everything. May be repeated.

        Raises:
            StorageError: not everything was synced. The store is closed all the same.
        """
