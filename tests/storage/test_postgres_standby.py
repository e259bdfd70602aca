"""The store in PostgreSQL with synchronous replication: what is confirmed is on the standby, whatever becomes of the
session that waits for it."""

# HA-2

from collections.abc import Iterator

import pytest

from delosmq.model.settings import DatabaseStoreSettings
from tests.patience import PATIENCE_S
from tests.replicated_postgres import ReplicatedPostgres
from tests.storage.held_store import Held, Hold, bodies

WAITING = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'broker'"


@pytest.fixture(scope="module")
def replicated_postgres() -> Iterator[ReplicatedPostgres]:
    made = ReplicatedPostgres()
    yield made
    made.remove()


@pytest.fixture
def settings(replicated_postgres: ReplicatedPostgres) -> DatabaseStoreSettings:
    """Of new tables, wherever the primary is; no renewal disturbs."""
    schema = replicated_postgres.schema()
    ports = f"{replicated_postgres.primary.port},{replicated_postgres.standby.port}"
    options = {"host": "127.0.0.1,127.0.0.1", "port": ports, "dbname": "postgres", "target_session_attrs": "read-write"}
    options["options"] = f"-c search_path={schema}"
    renewals = {"lock_renew_period_ms": 60_000, "lock_expiration_ms": 600_000}
    return replicated_postgres.primary.settings(schema, options=tuple(options.items()), **renewals)


def await_waiting(replicated_postgres: ReplicatedPostgres, held: Held, do: str) -> None:
    """Until a session of the store waits for the standby; does something to it then. Nothing is confirmed meanwhile."""
    with replicated_postgres.primary.admin() as connection:
        while not connection.execute(f"SELECT {do} {WAITING}").fetchall():
            held.store.on_readable()
            assert held.listener.synced == [1]


def hold_one(settings: DatabaseStoreSettings, hold: Hold) -> Held:
    held = hold(settings)
    held.send(1)
    held.until(lambda: held.listener.synced == [1])
    return held


@pytest.mark.parametrize("do", ["pg_cancel_backend(pid)", "pg_terminate_backend(pid)"])
def test_a_commit_whose_wait_for_the_standby_is_broken_off_is_confirmed_once_the_standby_has_it(
    do: str, replicated_postgres: ReplicatedPostgres, settings: DatabaseStoreSettings, hold: Hold
) -> None:
    """As `statement_timeout` does it: PostgreSQL then answers as if the commit had been replicated."""
    held = hold_one(settings, hold)
    replicated_postgres.standby.stop()
    try:
        held.send(2)
        await_waiting(replicated_postgres, held, do)
        await_waiting(replicated_postgres, held, "pid")  # for what asks whether it is there
    finally:
        replicated_postgres.standby.start()
    held.until(lambda: held.listener.synced == [1, 2])
    assert held.listener.failures == []


def test_what_was_confirmed_is_at_the_standby_that_is_promoted_and_the_store_goes_on(
    replicated_postgres: ReplicatedPostgres, settings: DatabaseStoreSettings, hold: Hold
) -> None:
    held = hold_one(settings, hold)
    replicated_postgres.kill()
    held.send(2)
    replicated_postgres.start()
    held.until(lambda: held.listener.synced == [1, 2])
    assert held.listener.failures == []
    held.store.close(PATIENCE_S)
    assert bodies(settings, hold) == 2
