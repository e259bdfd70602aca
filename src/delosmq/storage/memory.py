"""The store of a broker without persistence: everything is "synced" at the next flush and gone with the process."""

from delosmq.engine.log.log import Batch
from delosmq.engine.log.ports import Replay, StateSource, StoreEvents
from delosmq.model.errors import InvariantError, MisuseError
from delosmq.model.ids import MonotonicNs, Position
from delosmq.model.message import Home
from delosmq.storage.port import NO_DESCRIPTOR, ServedStore


class MemoryStore(ServedStore):
    """Keeps nothing but the count of batches."""

    def __init__(self, events: StoreEvents | None = None) -> None:
        self._events = events
        self._last = Position(0)
        self._reported = Position(0)

    def attach(self, events: StoreEvents, state: StateSource) -> None:
        self._events = events

    def recover(self, replay: Replay) -> Position:
        return Position(0)

    def append(self, batch: Batch) -> None:
        if batch.position != self._last + 1:
            raise InvariantError("DMQ3041", f"batch {batch.position} does not follow batch {self._last}")
        self._last = batch.position

    def flush(self) -> None:
        if self._reported != self._last:
            self._reported = self._last
            if self._events is not None:
                self._events.on_synced(self._last)

    def read(self, home: Home) -> bytes:
        raise MisuseError("DMQ3002", "the memory store keeps no bodies; they are in the messages themselves")

    def fileno(self) -> int:
        return NO_DESCRIPTOR

    def on_readable(self) -> None:
        pass

    def tick(self, now: MonotonicNs) -> None:
        pass

    def wait_synced(self, position: Position, timeout_s: float) -> None:
        self.flush()

    def close(self, timeout_s: float) -> None:
        self.flush()
