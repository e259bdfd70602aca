"""The store in PostgreSQL while something is wrong: a database that is slow, full, read-only, restarted, or answers too
late; a connection cut in a commit."""

# HA-2

import threading
from dataclasses import replace

import pytest

from delosmq.model.ids import Position
from delosmq.model.settings import DatabaseStoreSettings
from delosmq.storage.activation import Role
from delosmq.storage.journal.sync.syncer import wait_readable
from delosmq.storage.postgres.activation import PostgresActivation
from delosmq.testing import ProxiedPiece, TcpProxy
from tests.postgres_server import PostgresServer
from tests.storage.held_store import Hold, bodies, schema_of
from tests.storage.support import NODE, note, store_message

TURNS = 600
TURN_S = 0.1


@pytest.fixture
def settings(postgres: PostgresServer) -> DatabaseStoreSettings:
    return postgres.settings(postgres.schema())


def test_a_slow_database_confirms_later_and_meanwhile_nothing_leaves(
    postgres: PostgresServer, settings: DatabaseStoreSettings, hold: Hold
) -> None:
    held = hold(settings)
    with postgres.admin() as connection, connection.transaction():
        connection.execute(f"SELECT * FROM {schema_of(settings)}.node_manager_store FOR UPDATE")
        assert held.store.may_leave()
        held.send(1)
        held.until(lambda: not held.store.may_leave())
        assert held.listener.synced == []
    held.until(lambda: held.listener.synced == [1] and held.store.may_leave())
    assert held.listener.failures == []


def test_a_lease_that_lapsed_without_a_commit_is_renewed_and_told(
    postgres: PostgresServer, settings: DatabaseStoreSettings, hold: Hold
) -> None:
    held = hold(settings)
    with postgres.admin() as connection, connection.transaction():
        connection.execute(f"SELECT * FROM {schema_of(settings)}.node_manager_store FOR UPDATE")
        held.until(lambda: not held.store.may_leave())
        held.store.on_readable()
    wait_readable(held.store.fileno(), 60)
    assert held.store.may_leave(), "the loop is woken once it may go on"


def test_a_full_disk_takes_no_messages_and_passes(
    postgres: PostgresServer, settings: DatabaseStoreSettings, hold: Hold
) -> None:
    held = hold(settings)
    schema = schema_of(settings)
    with postgres.admin() as connection:
        connection.execute(
            f"CREATE FUNCTION {schema}.no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"
        )
        connection.execute(
            f"CREATE TRIGGER no_room BEFORE INSERT ON {schema}.large_messages FOR EACH ROW EXECUTE FUNCTION "
            f"{schema}.no_room()"
        )
        held.send(1)
        held.until(lambda: held.listener.full == [True])
        assert held.listener.space == [True]
        assert not held.store.takes(1)
        held.store.append(note(2))  # an acknowledgement is taken
        assert held.store.may_leave(), "the lease is renewed all the same"
        connection.execute(f"DROP TRIGGER no_room ON {schema}.large_messages")
    held.until(lambda: held.listener.space == [True, False])
    held.store.wait_synced(Position(2), 30)
    assert held.listener.failures == []


def test_a_database_that_takes_reads_only_for_a_while_is_waited_for(own_postgres: PostgresServer, hold: Hold) -> None:
    held = hold(own_postgres.settings(own_postgres.schema()))
    with own_postgres.admin() as connection:
        connection.execute("ALTER ROLE broker SET default_transaction_read_only = on")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'broker'")
        held.send(1)
        held.until(lambda: "takes reads only" in held.store.trouble())
        assert held.listener.synced == []
        connection.execute("ALTER ROLE broker RESET default_transaction_read_only")
    held.until(lambda: held.listener.synced == [1])
    held.until(lambda: held.store.trouble() == "")


def test_a_session_that_would_lose_commits_in_a_crash_stops_the_store(own_postgres: PostgresServer, hold: Hold) -> None:
    held = hold(own_postgres.settings(own_postgres.schema()))
    with own_postgres.admin() as connection:
        connection.execute("ALTER ROLE broker SET synchronous_commit = off")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'broker'")
    held.send(1)
    held.until(lambda: bool(held.listener.failures))
    assert str(held.listener.failures[0]).startswith("DMQ3063: synchronous_commit is off ")
    assert held.listener.synced == []


def test_a_killed_database_is_waited_for_and_its_holder_goes_on(own_postgres: PostgresServer, hold: Hold) -> None:
    settings = own_postgres.settings(own_postgres.schema())
    held = hold(settings)
    held.send(1)
    held.store.wait_synced(Position(1), 30)
    own_postgres.kill()
    held.send(2)
    held.until(lambda: not held.store.may_leave())
    assert held.listener.synced == [1]
    own_postgres.start()
    held.until(lambda: held.listener.synced == [1, 2] and held.store.may_leave())
    held.store.close(10)
    assert bodies(settings, hold) == 2


def test_what_waits_for_the_database_is_bounded(own_postgres: PostgresServer, hold: Hold) -> None:
    held = hold(own_postgres.settings(own_postgres.schema()))
    own_postgres.kill()
    position = 1
    while held.listener.space == []:
        batch, _ = store_message(position, bytes(1024 * 1024))
        held.store.append(batch)
        held.store.flush()
        position += 1
        assert position < 100
    assert not held.store.takes(1)
    own_postgres.start()
    held.until(lambda: held.listener.space == [True, False])
    held.store.wait_synced(Position(position - 1), 60)


def test_a_commit_whose_answer_is_lost_counts_once(
    postgres: PostgresServer, settings: DatabaseStoreSettings, hold: Hold
) -> None:
    armed = threading.Event()

    def lose_answer(piece: ProxiedPiece) -> bytes | None:
        if piece.to_client and armed.is_set():
            armed.clear()
            return None
        return piece.content

    with TcpProxy(postgres.port, change=lose_answer) as proxy:
        options = tuple({**dict(settings.options), "port": str(proxy.port)}.items())
        renewals = {"lock_renew_period_ms": 60_000, "lock_expiration_ms": 600_000}
        held = hold(DatabaseStoreSettings(settings.url, options, settings.user, settings.password, **renewals))
        for position in range(1, 11):
            armed.set()
            held.send(position)
            held.until(lambda: held.listener.synced[-1:] == [position])  # noqa: B023 -- called before the next turn
            assert not armed.is_set()
        held.store.close(10)
    assert bodies(settings, hold) == 10


def test_a_session_that_ends_before_its_commit_sends_it_again(
    postgres: PostgresServer, settings: DatabaseStoreSettings, hold: Hold
) -> None:
    held = hold(settings)
    with postgres.admin() as connection:
        with connection.transaction():
            connection.execute(f"SELECT * FROM {schema_of(settings)}.node_manager_store FOR UPDATE")
            held.send(1)
            while True:
                waiting = connection.execute(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'broker' "
                    "AND wait_event_type = 'Lock'"
                ).fetchone()
                if waiting is not None and waiting[0]:
                    break
    held.until(lambda: held.listener.synced == [1])
    held.store.close(10)
    assert bodies(settings, hold) == 1


def test_a_commit_that_comes_in_late_while_the_renewal_after_it_is_lost_counts_once(
    postgres: PostgresServer, hold: Hold
) -> None:
    settings = postgres.settings(
        postgres.schema(), network_timeout_ms=1_000, lock_renew_period_ms=60_000, lock_expiration_ms=600_000
    )
    schema = schema_of(settings)
    armed = threading.Event()

    with postgres.admin() as connection:

        def lose_renewal(piece: ProxiedPiece) -> bytes | None:
            if piece.to_client or b"renew" not in piece.content or not armed.is_set():
                return piece.content
            armed.clear()
            connection.execute("COMMIT")
            while connection.execute(f"SELECT last_batch FROM {schema}.node_manager_store").fetchone() != (3,):
                pass
            return None

        with TcpProxy(postgres.port, change=lose_renewal) as proxy:
            options = tuple({**dict(settings.options), "port": str(proxy.port)}.items())
            held = hold(replace(settings, options=options))
            for position in (1, 2):  # with the second the statement is prepared, and waits for the lock as a whole
                held.send(position)
                held.until(lambda: held.listener.synced[-1:] == [position])  # noqa: B023 -- called before the next turn
            connection.execute("BEGIN")
            connection.execute(f"LOCK TABLE {schema}.large_messages")
            armed.set()
            held.send(3)
            held.until(lambda: 3 in held.listener.synced or bool(held.listener.failures))
            assert held.listener.failures == []
            assert not armed.is_set()
            held.send(4)
            held.until(lambda: 4 in held.listener.synced)
            held.store.close(10)
    assert bodies(settings, hold) == 4


def jump(postgres: PostgresServer, settings: DatabaseStoreSettings, ahead_s: int) -> None:
    """What a jump of the database's clock does to the lease: it ends so much earlier."""
    with postgres.admin() as connection:
        connection.execute(
            f"UPDATE {schema_of(settings)}.node_manager_store "
            f"SET lease_until = lease_until - {ahead_s} * interval '1 second'"
        )


RENEWED_BY_COMMITS = {"lock_expiration_ms": 120_000, "lock_renew_period_ms": 60_000}


def test_when_the_clock_of_the_database_jumps_ahead_two_believe_that_they_hold_it_and_one_writes_and_confirms(
    postgres: PostgresServer, hold: Hold
) -> None:
    settings = postgres.settings(postgres.schema(), **RENEWED_BY_COMMITS)
    former = hold(settings)
    former.send(1)
    former.until(lambda: former.listener.synced == [1])
    jump(postgres, settings, 3_600)
    holder = hold(settings)
    assert former.store.may_leave(), "it can't know yet"
    former.send(2)
    holder.send(2)
    holder.until(lambda: holder.listener.synced == [2])
    former.until(lambda: bool(former.listener.failures))
    assert str(former.listener.failures[0]).startswith("DMQ3071: ")
    assert former.listener.synced == [1]
    assert not former.store.may_leave()
    assert holder.listener.failures == []
    holder.store.close(10)
    assert bodies(settings, hold) == 2


def test_when_the_clock_of_the_database_jumps_back_its_holder_goes_on_and_no_other_takes_over(
    postgres: PostgresServer, hold: Hold
) -> None:
    settings = postgres.settings(postgres.schema(), **RENEWED_BY_COMMITS)
    held = hold(settings)
    jump(postgres, settings, -3_600)
    other = PostgresActivation(settings, Role.PRIMARY, node_id=NODE)
    assert not other.attempt().active
    held.send(1)
    held.until(lambda: held.listener.synced == [1])
    assert not other.attempt().active
    assert held.listener.failures == []
    other.close()
    held.store.close(10)
    assert bodies(settings, hold) == 1


def test_a_taken_table_stops_the_store_with_a_sentence(
    postgres: PostgresServer, settings: DatabaseStoreSettings, hold: Hold
) -> None:
    held = hold(settings)
    with postgres.admin() as connection:
        connection.execute(f"DROP TABLE {schema_of(settings)}.large_messages")
    held.send(1)
    held.until(lambda: bool(held.listener.failures))
    assert str(held.listener.failures[0]).startswith("DMQ3072: ")
    assert held.listener.synced == []
