"""A journal in a shared directory: a broker that was superseded and does not know it changes nothing that counts.

A network file system takes its lock from a broker that it does not hear of, so the broker goes on writing beside its
successor. Whatever the two do in whatever order, the next start finds what was confirmed, in one history.
"""

# HA-1

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from delosmq.engine.log.log import Batch
from delosmq.model.errors import StorageError, SupersededError
from delosmq.model.ids import Position
from delosmq.storage.activation import Fence, Role
from delosmq.storage.journal import JournalStore, open_journal
from delosmq.storage.journal.sync.syncer import wait_readable
from delosmq.storage.shared_directory import DirectoryActivation
from tests.storage.support import NODE, SMALL, Kept, Listener, note, release, store_message
from tests.storage.test_shared_directory import NetworkLock

SEEDS = range(12)
STEPS = 60
LARGE = 9_000
"""Seven fill a segment."""
SYNC_S = 30.0


class Brittle(DirectoryActivation):
    """One whose lock the test takes away."""

    def __init__(self, directory: Path) -> None:
        self.locks: list[NetworkLock] = []
        super().__init__(directory, Role.PRIMARY, lock_of=self._make)

    def _make(self, directory: Path) -> NetworkLock:
        self.locks.append(NetworkLock(directory, wanted=False))
        return self.locks[-1]

    def take_away(self) -> None:
        self.locks[0].take_away()


class OpenGate(Fence):
    """Lets everybody pass."""

    def check(self) -> None:
        pass


class Unfenced(Brittle):
    """A mutant that does not check its epoch."""

    def fence(self) -> Fence:  # type: ignore[override]
        return OpenGate()


class Life:
    """One broker's journal, and what it was told."""

    def __init__(self, directory: Path, kind: type[Brittle] = Brittle) -> None:
        self.activation = kind(directory)
        assert self.activation.attempt().active
        self.store: JournalStore = open_journal(
            directory, SMALL, node_id=NODE, sync_process=False, activation=self.activation
        )
        self.listener = Listener()
        self.store.attach(self.listener, self.listener.source)
        self.kept = Kept()
        self.position = int(self.store.recover(self.kept))
        self.written: list[tuple[int, bytes]] = []
        self.confirmed = self.position
        self.homes = list(self.kept.homes)
        self.failed = False

    @property
    def found(self) -> list[bytes]:
        return [meta for _, meta in self.kept.records]

    def append(self, meta: bytes, *, large: bool = False) -> None:
        self.position += 1
        batch, home = store_message(self.position, bytes(LARGE if large else 10), meta)
        self.homes.append(home)
        self.take(batch)
        self.written.append((self.position, meta))

    def take(self, batch: Batch) -> None:
        """Appends it, once there is a file for it."""
        deadline = time.monotonic() + SYNC_S
        while True:
            try:
                self.store.append(batch)
                return
            except StorageError as error:
                if error.code != "DMQ3004" or time.monotonic() > deadline:
                    raise
            self.store.flush()
            wait_readable(self.store.fileno(), SYNC_S)
            self.store.on_readable()

    def sync(self) -> bool:
        try:
            self.store.wait_synced(Position(self.position), SYNC_S)
        except StorageError:
            self.failed = True
            return False
        self.confirmed = self.position
        return True

    def confirmed_metas(self) -> list[bytes]:
        return [meta for position, meta in self.written if position <= self.confirmed]

    def close(self) -> None:
        try:
            self.store.close(SYNC_S)
        except StorageError:
            self.failed = True
        self.activation.close()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    return tmp_path / "shared"


def step(life: Life, name: bytes, random: Random) -> None:
    """One thing that a broker may do."""
    if life.failed:
        return
    try:
        match random.randrange(6):
            case 0 | 1:
                life.append(name + b"%d" % life.position)
            case 2:
                life.append(name + b"%d" % life.position, large=True)
            case 3:
                life.store.flush()
            case 4:
                life.store.on_readable()
            case 5:
                life.sync()
    except StorageError:
        life.failed = True


def history(directory: Path, random: Random, kind: type[Brittle] = Brittle) -> None:
    """A broker, its successor beside it, and what the third one finds."""
    old = Life(directory, kind)
    for _ in range(random.randrange(STEPS)):
        step(old, b"old", random)
    old.activation.take_away()
    new = Life(directory)
    lost = [meta for meta in old.confirmed_metas() if meta not in new.found]
    assert not lost, f"confirmed and lost with the takeover: {lost}"
    for _ in range(STEPS):
        step(*random.choice([(old, b"old"), (new, b"new")]), random)
    assert not new.failed
    assert new.sync()
    expected = new.found + new.confirmed_metas()
    late = [meta for meta in old.confirmed_metas() if meta not in new.found]
    assert not late, f"confirmed by the broker that was superseded: {late}"
    first, second = random.sample([old, new], 2)
    first.close()
    second.close()
    third = Life(directory)
    assert third.found == expected
    third.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_two_brokers_write_beside_each_other_what_was_confirmed_is_one_history(
    directory: Path, seed: int
) -> None:
    history(directory, Random(seed))


def test_a_broker_that_does_not_check_its_epoch_is_caught(directory: Path) -> None:
    def run_all() -> None:
        for seed in SEEDS:
            history(directory / str(seed), Random(seed), Unfenced)

    with pytest.raises(AssertionError, match="confirmed by the broker that was superseded"):
        run_all()


def test_nothing_that_a_superseded_broker_asks_for_is_confirmed(directory: Path) -> None:
    old = Life(directory)
    old.append(b"before")
    assert old.sync()
    old.activation.take_away()
    new = Life(directory)
    old.append(b"after")
    assert not old.sync()
    assert isinstance(old.listener.failures[0], SupersededError)
    assert "DMQ3053" in str(old.listener.failures[0])
    assert new.found == [b"before"]
    old.close()
    new.close()


def test_what_a_successor_writes_is_in_files_of_its_own_and_those_of_the_former_are_let_be(directory: Path) -> None:
    old = Life(directory)
    for _ in range(20):
        old.append(b"m", large=True)
        assert old.sync()
    tail = max(directory.glob("journal-*.dmq"), key=lambda path: path.stat().st_mtime_ns).name
    before = {path.name: path.read_bytes() for path in directory.glob("journal-*.dmq")}
    old.activation.take_away()
    new = Life(directory)
    for _ in range(40):
        new.append(b"n", large=True)
        assert new.sync()
    for path in directory.glob("journal-1*.dmq"):
        assert path.read_bytes() == before[path.name]
    assert tail in before
    assert len(list(directory.glob("journal-2*.dmq"))) > 5
    old.close()
    new.close()


def test_a_superseded_broker_that_misses_a_file_of_its_own_says_why(directory: Path) -> None:
    old = Life(directory)
    old.append(b"before")
    assert old.sync()
    old.activation.take_away()
    new = Life(directory)
    deadline = time.monotonic() + SYNC_S
    while len(list(directory.glob("journal-1*.dmq"))) > 1 and time.monotonic() < deadline:
        new.append(b"m")
        assert new.sync()
    while not old.listener.failures and time.monotonic() < deadline:
        step(old, b"old", Random(1))
    assert isinstance(old.listener.failures[0], SupersededError)
    old.close()
    new.close()


def test_files_of_a_former_epoch_go_when_nothing_in_them_counts(directory: Path) -> None:
    first = Life(directory)
    for _ in range(20):
        first.append(b"m", large=True)
        assert first.sync()
    first.close()
    second = Life(directory)
    homes = second.homes
    assert len(homes) == 20
    second.position += 1
    second.take(release(second.position, *homes))
    for _ in range(10):
        second.append(b"n", large=True)
        assert second.sync()
    second.close()
    third = Life(directory)
    assert third.found.count(b"m") == 0
    third.close()
    assert not list(directory.glob("journal-1*.dmq"))


def test_a_journal_of_one_broker_is_taken_over_as_it_is_and_given_back(directory: Path) -> None:
    """Before ha-policy, with it, and when it is removed again."""

    def alone(meta: bytes, expected: list[bytes]) -> None:
        store = open_journal(directory, SMALL, node_id=NODE, sync_process=False)
        listener, kept = Listener(), Kept()
        store.attach(listener, listener.source)
        position = Position(store.recover(kept) + 1)
        assert [found for _, found in kept.records] == expected
        store.append(store_message(position, b"body", meta)[0])
        store.wait_synced(position, SYNC_S)
        store.close(SYNC_S)

    alone(b"alone", [])
    assert (directory / "manifest").exists()
    shared = Life(directory)
    assert shared.found == [b"alone"]
    shared.append(b"shared")
    assert shared.sync()
    shared.close()
    assert sorted(path.name for path in directory.glob("manifest*")) == ["manifest-000001"]
    alone(b"alone again", [b"alone", b"shared"])
    assert sorted(path.name for path in directory.glob("manifest*")) == ["manifest-000002"]
    alone(b"and again", [b"alone", b"shared", b"alone again"])


def test_a_journal_that_no_two_brokers_share_has_the_names_that_it_always_had(directory: Path) -> None:
    store = open_journal(directory, SMALL, node_id=NODE, sync_process=True)
    listener = Listener()
    store.attach(listener, listener.source)
    store.recover(Kept())
    store.append(note(1, b"one"))
    store.wait_synced(Position(1), SYNC_S)
    store.close(SYNC_S)
    names = sorted(path.name for path in directory.iterdir())
    assert names[-2:] == ["lock", "manifest"]
    assert all(name in ("lock", "manifest") or name.startswith("journal-00000") for name in names)


def test_a_sync_process_checks_the_epoch_as_well(directory: Path) -> None:
    activation = Brittle(directory)
    activation.attempt()
    store = open_journal(directory, SMALL, node_id=NODE, sync_process=True, activation=activation)
    listener = Listener()
    store.attach(listener, listener.source)
    store.recover(Kept())
    store.append(note(1, b"one"))
    store.wait_synced(Position(1), SYNC_S)
    activation.take_away()
    successor = DirectoryActivation(directory, Role.PRIMARY)
    # The sync process has the former's descriptors, as a file server has its locks no more.
    successor_file = successor.attempt()
    store.append(note(2, b"two"))
    assert successor_file.active
    with pytest.raises(SupersededError, match="DMQ3053"):
        store.wait_synced(Position(2), SYNC_S)
    with pytest.raises(SupersededError):
        store.close(SYNC_S)
    activation.close()
    successor.close()
