"""Recording decisions: the log, its batches and the port that a store implements.

One decision is one batch. A batch lies in the store as a whole or not at all, and its position is the engine's own
count. What leaves the broker carries the position it depends on and waits until the store reports it as synced.
"""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.model.ids import Position
from delosmq.model.message import Home

NO_BODY: Final = b""


class Batch:
    """The records of one decision, in order.

    A record is a ``meta`` (small, self-describing, read again at every restart) and a ``body`` (large, read only when
    its message is still alive). The lists below tell the store what it must know to reclaim space, and nothing else.

    Attributes:
        position: given when the batch is closed; the first is 1, each following one is larger by 1.
        metas, bodies: one entry a record; a body is `NO_BODY` for records that have none.
        stored: ``(index of the record, home)`` of each message stored by this batch, for the first time or again.
        targets: the home of the message that each removal in this batch is about. A removal must stay on disk while
            its target does.
        released: homes at which no message lives any more: this batch removed its last reference, or stores it again
            elsewhere.
    """

    def __init__(self) -> None:
        self.position: Position = Position(0)
        self.metas: list[bytes] = []
        self.bodies: list[bytes] = []
        self.stored: list[tuple[int, Home]] = []
        self.targets: list[Home] = []
        self.released: list[Home] = []


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
        """True: no durable message may be accepted until False follows. Removals always fit (reserve)."""

    @abstractmethod
    def on_failure(self, error: Exception) -> None:
        """A write or sync failed: nothing more will be synced. The broker must stop."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Store(ABC):
    """The port behind which journals, databases and memory look alike."""

    @abstractmethod
    def recover(self, replay: Replay) -> Position:
        """Replays what is stored and returns the newest position (0 for an empty store). Called once, first.

        Raises:
            StorageError: the store is damaged below its synced position (file and offset named) or can't be read.
        """

    @abstractmethod
    def append(self, batch: Batch) -> None:
        """Takes a batch; returns at once. Fills the homes in ``batch.stored``. May not keep the batch.

        Raises:
            StorageError: the batch is larger than the store can take. Nothing has changed.
        """

    @abstractmethod
    def flush(self) -> None:
        """Writes what was appended and asks for a sync; called once per tick of the loop, cheap when nothing waits."""

    @abstractmethod
    def read(self, home: Home) -> bytes:
        """The body stored at ``home``."""

    def compaction_victim(self) -> int:
        """The segment whose living messages should be stored again elsewhere, so that it can be freed; 0 for none.

        To be asked about once a second: it looks at all segments. A store without segments never wants it.
        """
        return 0


class Log:
    """Collects the records of the decision under way and closes them into batches.

    Attributes:
        position: of the newest closed batch; what a reply depends on that read or changed durable state.
        synced: everything up to here survives a crash.
        storage_low: the store can take no more messages for now; removals it still takes.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: Batch | None = None
        self._stopped: bool = False
        self.position: Position = Position(0)
        self.synced: Position = Position(0)
        self.storage_low: bool = False

    def batch(self) -> Batch:
        """The batch of the decision under way; made by its first record."""
        batch = self._open
        if batch is None:
            batch = Batch()
            batch.position = Position(self.position + 1)
            self._open = batch
        return batch

    def record(self, meta: bytes) -> None:
        """Adds a record without a body."""
        batch = self.batch()
        batch.metas.append(meta)
        batch.bodies.append(NO_BODY)

    def stop(self) -> None:
        """Records nothing from now on: the broker has failed, and what is half decided must not reach the store."""
        self._stopped = True

    def close(self) -> Position:
        """Ends the decision: hands its batch, if any, to the store. Returns the newest position."""
        batch = self._open
        if batch is not None:
            self._open = None
            if self._stopped:
                return self.position
            self._store.append(batch)
            self.position = batch.position
        return self.position
