"""Takeover under load, in short; `python -m tests.ha.takeovers` is the long form."""

# HA-1, HA-2

from pathlib import Path
from random import Random

import pytest

from tests.ha.shared_stores import SharedDirectory, SharedTables
from tests.ha.takeovers import CRASH, KILL, KILL_IN_CRASH, WAKE, WAKE_AFTER_CRASH, run_takeovers
from tests.postgres_server import PostgresServer
from tests.replicated_postgres import ReplicatedPostgres


@pytest.mark.timeout(300)
def test_nothing_confirmed_is_lost_and_nothing_acknowledged_comes_back_when_a_backup_takes_over(
    tmp_path: Path,
) -> None:
    run_takeovers(tmp_path, SharedDirectory(as_on_a_network=False), [KILL] * 2, Random(1))


@pytest.mark.timeout(300)
def test_clients_follow_when_a_paused_broker_loses_its_directory_and_what_it_says_on_waking_counts_for_nothing(
    tmp_path: Path,
) -> None:
    run_takeovers(tmp_path, SharedDirectory(as_on_a_network=True), [WAKE], Random(1))


@pytest.mark.timeout(300)
def test_the_same_on_postgresql_with_brokers_that_wake_and_a_database_that_dies_as_well(
    tmp_path: Path, own_postgres: PostgresServer
) -> None:
    run_takeovers(tmp_path, SharedTables(own_postgres), [WAKE_AFTER_CRASH, KILL_IN_CRASH], Random(1))


@pytest.mark.timeout(300)
def test_the_same_on_a_standby_that_is_promoted_when_the_primary_of_the_database_is_gone(
    tmp_path: Path, replicated_postgres: ReplicatedPostgres
) -> None:
    run_takeovers(tmp_path, SharedTables(replicated_postgres), [CRASH], Random(1))
