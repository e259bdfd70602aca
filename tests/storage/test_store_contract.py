"""What every store promises, asked of each of them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from delosmq.model.errors import InvariantError
from delosmq.model.ids import MonotonicNs, Position
from delosmq.storage.journal import open_journal
from delosmq.storage.journal.sync.syncer import wait_readable
from delosmq.storage.memory import MemoryStore
from delosmq.storage.port import NO_DESCRIPTOR, ServedStore
from delosmq.storage.postgres.store import PostgresStore
from tests.postgres_server import PostgresServer
from tests.storage.support import NODE, SMALL, Kept, Listener, State, note, store_message

SMALLER = replace(SMALL, file_size_bytes=32 * 1024)
"""Segments of rows hold nothing but them: without the overhead of files, these are as many."""

Opener = Callable[[Path], ServedStore]


def memory(directory: Path) -> ServedStore:
    return MemoryStore()


def journal_with_threads(directory: Path) -> ServedStore:
    return open_journal(directory, SMALL, node_id=NODE, sync_process=False)


def journal_with_process(directory: Path) -> ServedStore:
    return open_journal(directory, SMALL, node_id=NODE, sync_process=True)


KINDS: list[str] = ["memory", "journal_with_threads", "journal_with_process", "postgres_tables"]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Opener:
    if request.param == "memory":
        return memory
    if request.param == "journal_with_threads":
        return journal_with_threads
    if request.param == "journal_with_process":
        return journal_with_process
    postgres: PostgresServer = request.getfixturevalue("postgres")
    settings = postgres.settings(postgres.schema())
    return lambda directory: PostgresStore(settings, SMALLER, node_id=NODE)


@pytest.fixture
def store(kind: Opener, tmp_path: Path) -> Iterator[ServedStore]:
    opened = kind(tmp_path / "journal")
    yield opened
    opened.close(10)


def test_a_new_store_is_empty(store: ServedStore) -> None:
    store.attach(Listener(), State())
    kept = Kept()
    assert store.recover(kept) == 0
    assert (kept.states, kept.records) == ([], [])


def test_nothing_is_synced_before_the_flush(store: ServedStore) -> None:
    listener = Listener()
    store.attach(listener, listener.source)
    store.recover(Kept())
    store.append(note(1))
    store.append(note(2))
    assert listener.synced == []
    store.wait_synced(Position(2), 10)
    assert listener.synced == [2]


def test_flushing_again_reports_nothing_again(store: ServedStore) -> None:
    listener = Listener()
    store.attach(listener, listener.source)
    store.recover(Kept())
    store.append(note(1))
    store.wait_synced(Position(1), 10)
    store.flush()
    store.on_readable()
    store.tick(MonotonicNs(0))
    assert listener.synced == [1]
    assert (listener.space, listener.failures) == ([], [])


def test_positions_have_no_gaps(store: ServedStore) -> None:
    store.attach(Listener(), State())
    store.recover(Kept())
    with pytest.raises(InvariantError, match=r"DMQ30(01|41|64)"):
        store.append(note(2))


def test_closing_syncs_what_is_left(store: ServedStore) -> None:
    listener = Listener()
    store.attach(listener, listener.source)
    store.recover(Kept())
    batch, _ = store_message(1, b"body")
    store.append(batch)
    store.close(10)
    assert listener.synced == [1]
    store.close(10)


@pytest.mark.parametrize("kind", KINDS[1:], indirect=True)
def test_a_durable_store_gives_back_what_was_appended(kind: Opener, tmp_path: Path) -> None:
    listener = Listener()
    first = kind(tmp_path / "journal")
    first.attach(listener, listener.source)
    first.recover(Kept())
    sent = []
    for position in range(1, 200):
        batch, home = store_message(position, b"%d" % position * (position * 3), b"meta %d" % position)
        while listener.space[-1:] == [True]:
            wait_readable(first.fileno(), 10)
            first.on_readable()
        first.append(batch)
        sent.append((home.segment, home.offset, home.size_bytes))
        if position % 10 == 0:
            first.wait_synced(Position(position), 10)
    first.close(10)
    assert listener.synced[-1] == 199
    second = kind(tmp_path / "journal")
    second.attach(listener, listener.source)
    kept = Kept()
    assert second.recover(kept) == 199
    assert kept.records == [(position, b"meta %d" % position) for position in range(1, 200)]
    assert [(home.segment, home.offset, home.size_bytes) for home in kept.homes] == sent
    assert [second.read(home) for home in kept.homes] == [b"%d" % p * (p * 3) for p in range(1, 200)]
    assert len({home.segment for home in kept.homes}) > 3, "rolled"
    second.close(10)


def test_memory_needs_no_descriptor() -> None:
    assert MemoryStore().fileno() == NO_DESCRIPTOR
