"""A stand-in for the engine that knows what a journal must give back.

Messages lie in up to three queues, bindings are settings that only the state block keeps once their segment is gone.
"""

import json
from random import Random

from delosmq.engine.log.log import NO_BODY, Batch
from delosmq.engine.log.ports import Replay, StateSource, StoreEvents
from delosmq.model.ids import Position
from delosmq.model.message import Home
from delosmq.storage.port import ServedStore


class Snapshot:
    """What must be there after a restart that ends at this position."""

    def __init__(self, messages: dict[int, tuple[frozenset[int], bytes]], settings: dict[str, int]) -> None:
        self.messages = messages
        self.settings = settings


class ModelState(StateSource):
    """The settings as they stand."""

    def __init__(self) -> None:
        self.settings: dict[str, int] = {}

    def state(self) -> bytes:
        return json.dumps(self.settings).encode()


class ModelBroker(StoreEvents):
    """Issues batches like an engine does and remembers what follows from each."""

    def __init__(self, random: Random) -> None:
        self.source = ModelState()
        self.random = random
        self.position = 0
        self.synced = 0
        self.low = False
        self.failures: list[Exception] = []
        self.next_id = 1
        self.messages: dict[int, tuple[set[int], Home, bytes]] = {}
        self.snapshots: dict[int, Snapshot] = {0: Snapshot({}, {})}

    def on_synced(self, position: Position) -> None:
        assert self.synced < position <= self.position
        assert not self.failures, "nothing is synced after a failure"
        self.synced = position

    def on_space(self, low: bool) -> None:
        assert low != self.low
        self.low = low

    def on_full(self, full: bool) -> None:
        assert self.low or not full

    def on_failure(self, error: Exception) -> None:
        self.failures.append(error)

    def batch(self) -> Batch:
        batch = Batch()
        batch.position = Position(self.position + 1)
        return batch

    def add_message(self, batch: Batch, body: bytes, queues: set[int]) -> int:
        number = self.next_id
        self.next_id += 1
        home = Home()
        batch.stored.append((len(batch.metas), home))
        batch.metas.append(json.dumps(["stored", number, sorted(queues)]).encode())
        batch.bodies.append(body)
        self.messages[number] = (set(queues), home, body)
        return number

    def remove_message(self, batch: Batch, number: int, queue: int) -> None:
        queues, home, _ = self.messages[number]
        queues.discard(queue)
        batch.metas.append(json.dumps(["removed", number, queue]).encode())
        batch.bodies.append(NO_BODY)
        batch.targets.append(home)
        if not queues:
            batch.released.append(home)
            del self.messages[number]

    def change_setting(self, batch: Batch, key: str, difference: int) -> None:
        # Adding shows a change that is replayed on a state which holds it already.
        settings = self.source.settings
        settings[key] = settings.get(key, 0) + difference
        batch.metas.append(json.dumps(["add", key, difference]).encode())
        batch.bodies.append(NO_BODY)

    def drop_setting(self, batch: Batch, key: str) -> None:
        del self.source.settings[key]
        batch.metas.append(json.dumps(["drop", key, 0]).encode())
        batch.bodies.append(NO_BODY)

    def send(self, store: ServedStore, batch: Batch) -> None:
        # As the engine: memory has changed, the position counts once the store has the batch.
        expected = Snapshot(
            {number: (frozenset(queues), body) for number, (queues, _, body) in self.messages.items()},
            dict(self.source.settings),
        )
        self.snapshots[batch.position] = expected
        self.position = batch.position
        store.append(batch)

    def random_batch(self, most_body: int = 3000, *, keep: float = 0.5) -> Batch:
        """Something a broker would decide. ``keep`` says how much more is stored than removed."""
        random = self.random
        batch = self.batch()
        for _ in range(random.choice([1, 1, 1, 2, 5])):
            kind = random.random()
            if kind < keep and not self.low:
                body = random.randbytes(random.choice([0, 10, random.randrange(most_body)]))
                if not any(batch.bodies) and random.random() < 0.02:
                    body = random.randbytes(random.randrange(14_000, 19_000))
                self.add_message(batch, body, set(random.sample([1, 2, 3], random.randint(1, 3))))
            elif kind < 0.95 and self.messages:
                # Mostly the oldest, as queues are; sometimes anything.
                numbers = list(self.messages)
                number = numbers[0] if random.random() < 0.7 else random.choice(numbers)
                self.remove_message(batch, number, random.choice(sorted(self.messages[number][0])))
            else:
                self.change_setting(batch, f"key{random.randrange(5)}", random.randrange(1000))
        return batch


class ModelReplay(Replay):
    """Rebuilds what the model knows, as the engine does: state first, newer changes on top, references always."""

    def __init__(self) -> None:
        self.state_position = 0
        self.settings: dict[str, int] = {}
        self.messages: dict[int, tuple[set[int], Home]] = {}
        self.records: list[tuple[int, bytes]] = []

    def replay_state(self, position: Position, state: bytes) -> None:
        assert not self.records
        self.state_position = position
        self.settings = json.loads(state)

    def replay_record(self, position: Position, meta: bytes, home: Home) -> None:
        assert not self.records or self.records[-1][0] <= position, "oldest first"
        self.records.append((position, meta))
        kind, first, second = json.loads(meta)
        if kind == "stored":
            self.messages[first] = (set(second), home)
        elif kind == "removed":
            if first in self.messages:
                self.messages[first][0].discard(second)
                if not self.messages[first][0]:
                    del self.messages[first]
        elif position <= self.state_position:
            pass
        elif kind == "drop":
            del self.settings[first]
        else:
            self.settings[first] = self.settings.get(first, 0) + second


def resume(model: ModelBroker, store: ServedStore) -> tuple[ModelBroker, ModelReplay]:
    """Recovers ``store``, checks what came against ``model`` and returns the model that goes on from there."""
    replay = ModelReplay()
    after = ModelBroker(model.random)
    store.attach(after, after.source)
    position = store.recover(replay)
    assert model.synced <= position <= model.position, "confirmed batches are there, and none that never was"
    expected = model.snapshots[position]
    found = {number: (frozenset(queues), store.read(home)) for number, (queues, home) in replay.messages.items()}
    assert set(found) == set(expected.messages), "no message lost, none come back"
    assert found == expected.messages
    assert replay.settings == expected.settings
    after.position = after.synced = position
    after.next_id = model.next_id
    after.source.settings = replay.settings
    after.messages = {
        number: (queues, home, expected.messages[number][1]) for number, (queues, home) in replay.messages.items()
    }
    after.snapshots = {position: expected}
    return after, replay
