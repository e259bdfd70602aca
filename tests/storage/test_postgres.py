"""The store in PostgreSQL: what it keeps, gives back, frees and refuses. What every store promises: the contract."""

import contextlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random

import pytest

from delosmq.engine.api import EngineBroker, EngineEvents, JobWaiter
from delosmq.model.errors import BrokerError, ConfigurationError, StorageError
from delosmq.model.ids import Position
from delosmq.model.message import ANYCAST, Message
from delosmq.model.settings import BrokerSettings, DatabaseStoreSettings, JournalSettings, QueueSettings
from delosmq.server.ticker import GateEvents
from delosmq.sessions.outbox import Gate
from delosmq.storage.activation import Role
from delosmq.storage.journal.sync.syncer import wait_readable
from delosmq.storage.postgres.activation import PostgresActivation
from delosmq.storage.postgres.store import PostgresStore
from tests.chance import tries
from tests.engine.support import CountingRandom, ManualClock
from tests.postgres_server import PostgresServer
from tests.simulation.broker_model import ModelBroker, resume
from tests.storage.support import NODE, Kept, Listener, note, release, store_message

JOURNAL = JournalSettings(file_size_bytes=64 * 1024)
SHORT_LEASE = {"lock_expiration_ms": 300, "lock_renew_period_ms": 60_000}
"""Ends soon, as it is renewed by commits alone: a store that does nothing is as good as dead."""


@pytest.fixture
def settings(postgres: PostgresServer) -> DatabaseStoreSettings:
    return postgres.settings(postgres.schema())


class Stores:
    """Opens stores, and closes them all."""

    def __init__(self) -> None:
        self.opened: list[PostgresStore] = []

    def open(self, settings: DatabaseStoreSettings, journal: JournalSettings = JOURNAL, **more: float) -> PostgresStore:
        store = PostgresStore(settings, journal, node_id=NODE, **more)  # type: ignore[arg-type]
        self.opened.append(store)
        return store

    def recovered(self, settings: DatabaseStoreSettings, listener: Listener | None = None) -> PostgresStore:
        store = self.open(settings)
        heard = listener or Listener()
        store.attach(heard, heard.source)
        store.recover(Kept())
        return store


@pytest.fixture
def stores() -> Iterator[Stores]:
    made = Stores()
    yield made
    for store in made.opened:
        with contextlib.suppress(StorageError):  # it was fenced
            store.close(10)


@pytest.mark.parametrize("seed", range(tries(6)))
def test_the_next_life_has_what_was_confirmed_and_the_one_before_writes_nothing_more(
    seed: int, postgres: PostgresServer, stores: Stores
) -> None:  # HA-2
    settings = postgres.settings(postgres.schema(), **SHORT_LEASE)
    model = ModelBroker(Random(seed))
    store = stores.open(settings)
    model, _ = resume(model, store)
    for _ in range(4):
        for _turn in range(60):
            model.send(store, model.random_batch(keep=0.45))
            if model.random.random() < 0.3:
                store.flush()
            if model.random.random() < 0.1:
                store.wait_synced(Position(model.position), 30)
            store.on_readable()
        former, store = store, stores.open(settings)
        known, (model, _) = model, resume(model, store)
        # What the former one commits now, or had under way, changes nothing.
        known.send(former, known.random_batch())
        with pytest.raises(StorageError, match="DMQ3071"):
            former.wait_synced(Position(known.position), 30)
        assert known.failures


def test_bodies_can_be_read_before_and_after_their_commit(settings: DatabaseStoreSettings, stores: Stores) -> None:
    store = stores.recovered(settings)
    contents = [b"first", b"second" * 100_000, b"third" * 300_000]
    homes = []
    for position, body in enumerate(contents, 1):
        batch, home = store_message(position, body)
        store.append(batch)
        homes.append(home)
    assert store.read_in_order(homes) == contents
    store.flush()
    assert store.read_in_order(homes) == contents
    store.wait_synced(Position(3), 30)
    assert store.read_in_order(homes) == contents
    assert [store.read(home) for home in homes] == contents


def rows(postgres: PostgresServer, settings: DatabaseStoreSettings, table: str) -> int:
    schema = dict(settings.options)["options"].rpartition("=")[2]
    with postgres.admin() as connection:
        found = connection.execute(f"SELECT count(*) FROM {schema}.{table}").fetchone()
    assert found is not None
    return int(str(found[0]))


def test_rows_that_nothing_needs_are_deleted(
    postgres: PostgresServer, settings: DatabaseStoreSettings, stores: Stores
) -> None:
    store = stores.recovered(settings)
    position = 0
    for _ in range(60):
        batch, home = store_message(position + 1, bytes(8_000))
        store.append(batch)
        store.append(release(position + 2, home))
        position += 2
        store.wait_synced(Position(position), 30)
    store.close(30)  # waits for what it has deleted so far only
    again = stores.recovered(settings)
    again.append(note(position + 1))
    again.wait_synced(Position(position + 1), 30)
    while rows(postgres, settings, "large_messages") > 20:
        wait_readable(again.fileno(), 0.01)
    assert rows(postgres, settings, "bindings") <= 4


class Life:
    """An engine on a store."""

    def __init__(self, store: PostgresStore, journal: JournalSettings) -> None:
        self.clock = ManualClock()
        self.store = store
        settings = BrokerSettings(
            journal=journal,
            queues=(QueueSettings("jobs", "jobs", ANYCAST), QueueSettings("dead", "dead", ANYCAST)),
        )
        self.broker = EngineBroker(settings, store, clock=self.clock, random=CountingRandom(), events=EngineEvents())
        store.attach(GateEvents(self.broker, Gate()), self.broker.state)
        store.wait_synced(self.broker.start(), 30)

    def send(self, address: str, body: bytes) -> None:
        message = Message(address, "stomp/12", b"", body, durable=True, timestamp_ms=self.clock.wall_ms())
        assert self.broker.producers.send(message)

    def turn(self) -> None:
        self.clock.now_ms += 1_100
        self.broker.tick()
        self.store.wait_synced(self.broker.log.position, 30)


def test_one_old_message_keeps_no_later_rows(
    postgres: PostgresServer, settings: DatabaseStoreSettings, stores: Stores
) -> None:
    journal = replace(JOURNAL, compact_min_files=3)
    life = Life(stores.open(settings, journal), journal)
    life.send("dead", b"letter")
    for _ in range(60):
        life.send("jobs", bytes(20_000))
        life.turn()
        life.broker.resources.purge_queue("jobs")
        life.turn()
    assert rows(postgres, settings, "bindings") <= 10
    life.store.close(30)
    again = Life(stores.open(settings, journal), journal)
    (slot,) = again.broker.queues["dead"].pending.in_order()
    assert slot.message.body == b"letter"
    assert again.broker.queues["jobs"].message_count == 0


def test_what_a_sink_staged_and_published_is_there_in_the_next_life(
    settings: DatabaseStoreSettings, stores: Stores
) -> None:
    life = Life(stores.open(settings), JOURNAL)
    for uuid, batch in (("a", 0), ("b", 1)):
        part = life.broker.staging.begin("query", batch, uuid, "sam")
        message = Message("jobs", "stomp/12", b"", uuid.encode(), durable=True, timestamp_ms=life.clock.wall_ms())
        assert life.broker.staging.add(part, message, ANYCAST)
        assert life.broker.staging.prepare(part, Ended())
        if uuid == "a":
            assert life.broker.staging.publish("query", batch, [uuid], "sam")
        life.turn()
    life.store.close(30)
    again = Life(stores.open(settings), JOURNAL)
    assert not again.broker.staging.publish("query", 0, ["a"], "sam")
    assert again.broker.staging.publish("query", 1, ["b"], "sam")
    again.turn()
    assert [slot.message.body for slot in again.broker.queues["jobs"].pending.in_order()] == [b"a", b"b"]


class Ended(JobWaiter):
    def on_ended(self, error: BrokerError | None) -> None: ...


def test_brokers_that_make_the_tables_at_once_both_find_them(postgres: PostgresServer) -> None:
    for _ in range(tries(5)):
        settings = postgres.settings(postgres.schema())
        activations = [PostgresActivation(settings, Role.PRIMARY, node_id=NODE) for _ in range(4)]
        with ThreadPoolExecutor(len(activations)) as threads:
            attempts = list(threads.map(PostgresActivation.attempt, activations))
        assert sorted(attempt.active for attempt in attempts) == [False, False, False, True]
        for activation in activations:
            activation.close()


# -- what is refused -----------------------------------------------------------------------------------------------


def refusal(stores: Stores, settings: DatabaseStoreSettings) -> str:
    store = stores.open(settings, wait_for_start_s=0.3)
    listener = Listener()
    store.attach(listener, listener.source)
    with pytest.raises((StorageError, ConfigurationError)) as raised:
        store.recover(Kept())
    return str(raised.value)


def change(postgres: PostgresServer, settings: DatabaseStoreSettings, *statements: str) -> None:
    schema = dict(settings.options)["options"].rpartition("=")[2]
    with postgres.admin() as connection:
        connection.execute(f"SET search_path = {schema}")
        for statement in statements:
            connection.execute(statement)


def test_tables_of_another_program_are_left_alone(
    postgres: PostgresServer, settings: DatabaseStoreSettings, stores: Stores
) -> None:
    change(postgres, settings, "CREATE TABLE messages (id bigint, userRecordType smallint)")
    assert refusal(stores, settings).startswith("DMQ3061: ")
    change(postgres, settings, "DROP TABLE messages")
    stores.recovered(settings)


def test_tables_that_lack_one_are_told(
    postgres: PostgresServer, settings: DatabaseStoreSettings, stores: Stores
) -> None:
    stores.recovered(settings).close(10)
    change(postgres, settings, "DROP TABLE large_messages")
    assert "'large_messages'" in refusal(stores, settings)


def test_a_newer_format_is_told(postgres: PostgresServer, settings: DatabaseStoreSettings, stores: Stores) -> None:
    stores.recovered(settings).close(10)
    change(postgres, settings, "UPDATE node_manager_store SET format = 2")
    assert refusal(stores, settings).startswith("DMQ3062: the tables in the database have format 2, ")


def test_damaged_rows_are_told(postgres: PostgresServer, settings: DatabaseStoreSettings, stores: Stores) -> None:
    store = stores.recovered(settings)
    batch, home = store_message(1, b"body of some length")
    store.append(batch)
    store.close(10)
    change(postgres, settings, "UPDATE large_messages SET content = set_byte(content, 8, 0)")
    again = stores.recovered(settings)
    with pytest.raises(StorageError, match=r"DMQ3074.*'large_messages'"):
        again.read(home)
    again.close(10)
    change(postgres, settings, "UPDATE messages SET records = set_byte(records, 8, 255)")
    assert refusal(stores, settings).startswith("DMQ3075: ")


def test_a_wrong_password_is_told_and_not_shown(settings: DatabaseStoreSettings, stores: Stores) -> None:
    said = refusal(stores, replace(settings, password="quite wrong"))
    assert said.startswith("DMQ3065: ")
    assert "quite wrong" not in said
    assert "quite wrong" not in repr(replace(settings, password="quite wrong"))


def test_an_unknown_database_is_told(settings: DatabaseStoreSettings, stores: Stores) -> None:
    options = tuple({**dict(settings.options), "dbname": "nowhere"}.items())
    assert refusal(stores, replace(settings, options=options)).startswith("DMQ3065: ")


def test_a_schema_that_is_not_there_is_told(postgres: PostgresServer, stores: Stores) -> None:
    said = refusal(stores, postgres.settings("nowhere"))
    assert re.match(r"DMQ3069: .* has no schema 'nowhere', or none that '\w+' may use; make it \(CREATE SCHEMA", said)


def test_a_database_that_is_away_is_told(own_postgres: PostgresServer, stores: Stores) -> None:
    settings = own_postgres.settings(own_postgres.schema())
    own_postgres.stop()
    assert refusal(stores, settings).startswith("DMQ3067: ")


@pytest.mark.parametrize("name", ["synchronous_commit", "fsync", "full_page_writes"])
def test_a_server_that_may_lose_what_it_confirmed_is_refused(name: str, stores: Stores) -> None:  # HA-2
    server = PostgresServer(f"{name}=off")
    try:
        server.start()
        assert refusal(stores, server.settings(server.schema())).startswith(f"DMQ3063: {name} is off ")
    finally:
        server.remove()


def test_a_database_that_takes_reads_only_is_told(own_postgres: PostgresServer, stores: Stores) -> None:
    settings = own_postgres.settings(own_postgres.schema())
    with own_postgres.admin() as connection:
        connection.execute("ALTER ROLE broker SET default_transaction_read_only = on")
    assert refusal(stores, settings).startswith("DMQ3066: ")
