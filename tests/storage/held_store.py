"""A store in PostgreSQL that holds its tables, for tests of what it reports."""

from collections.abc import Callable

from delosmq.model.settings import DatabaseStoreSettings, JournalSettings
from delosmq.storage.journal.sync.syncer import wait_readable
from delosmq.storage.postgres.store import PostgresStore
from tests.storage.support import NODE, Kept, Listener, store_message

TURNS = 600
TURN_S = 0.1


class Held:
    """A store that holds its tables, and what it reports."""

    def __init__(self, settings: DatabaseStoreSettings) -> None:
        self.listener = Listener()
        self.store = PostgresStore(settings, JournalSettings(file_size_bytes=64 * 1024), node_id=NODE)
        self.store.attach(self.listener, self.listener.source)
        self.store.recover(Kept())

    def send(self, position: int) -> None:
        batch, _ = store_message(position, b"body %d" % position)
        self.store.append(batch)
        self.store.flush()

    def until(self, what: Callable[[], bool]) -> None:
        for _ in range(TURNS):
            self.store.on_readable()
            if what():
                return
            wait_readable(self.store.fileno(), TURN_S)
        raise AssertionError("it did not come about")


Hold = Callable[[DatabaseStoreSettings], Held]


def schema_of(settings: DatabaseStoreSettings) -> str:
    return dict(settings.options)["options"].rpartition("=")[2]


def bodies(settings: DatabaseStoreSettings, hold: Hold) -> int:
    """How many messages the next life finds."""
    store = PostgresStore(settings, JournalSettings(file_size_bytes=64 * 1024), node_id=NODE)
    kept = Kept()
    listener = Listener()
    store.attach(listener, listener.source)
    store.recover(kept)
    found = store.read_in_order(kept.homes)
    store.close(10)
    assert len(set(found)) == len(found)
    return len(found)
