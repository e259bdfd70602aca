"""Batches by the handful, and a listener that keeps what it hears."""

from delosmq.engine.log.log import NO_BODY, Batch
from delosmq.engine.log.ports import Replay, StateSource, StoreEvents
from delosmq.model.ids import Position
from delosmq.model.message import Home
from delosmq.model.settings import JournalSettings

NODE = bytes(range(16))
SMALL = JournalSettings(file_size_bytes=64 * 1024, spare_files=2)


class State(StateSource):
    """What stands in state blocks."""

    def __init__(self) -> None:
        self.now = b"state"

    def state(self) -> bytes:
        return self.now


class Listener(StoreEvents):
    """What a store reports."""

    def __init__(self) -> None:
        self.synced: list[int] = []
        self.space: list[bool] = []
        self.full: list[bool] = []
        self.failures: list[Exception] = []
        self.source = State()

    def on_synced(self, position: Position) -> None:
        self.synced.append(position)

    def on_space(self, low: bool) -> None:
        self.space.append(low)

    def on_full(self, full: bool) -> None:
        self.full.append(full)

    def on_failure(self, error: Exception) -> None:
        self.failures.append(error)


class Kept(Replay):
    """What a store replays."""

    def __init__(self) -> None:
        self.states: list[tuple[int, bytes]] = []
        self.records: list[tuple[int, bytes]] = []
        self.homes: list[Home] = []

    def replay_state(self, position: Position, state: bytes) -> None:
        self.states.append((position, state))

    def replay_record(self, position: Position, meta: bytes, home: Home) -> None:
        self.records.append((position, meta))
        self.homes.append(home)


def note(position: int, *metas: bytes) -> Batch:
    """A batch without messages."""
    batch = Batch()
    batch.position = Position(position)
    batch.metas[:] = list(metas or (b"note",))
    batch.bodies[:] = [NO_BODY] * len(batch.metas)
    return batch


def store_message(position: int, body: bytes, meta: bytes = b"stored") -> tuple[Batch, Home]:
    batch = note(position, meta)
    batch.bodies[:] = [body]
    home = Home()
    batch.stored[:] = [(0, home)]
    return batch, home


def release(position: int, *homes: Home) -> Batch:
    """A batch that removes the last reference of each home's message."""
    batch = note(position, b"removed")
    batch.targets[:] = list(homes)
    batch.released[:] = list(homes)
    return batch
