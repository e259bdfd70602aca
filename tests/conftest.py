"""What all tests share. Random order comes from pytest-randomly; warnings are errors (pyproject.toml)."""

import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.chance import TIMES, tries
from tests.postgres_server import USER, PostgresServer
from tests.replicated_postgres import ReplicatedPostgres
from tools import spark_classes

# Timing is no property of the code under test; a slow machine must not fail a test.
settings.register_profile("delosmq", deadline=None, max_examples=tries(100))
settings.load_profile("delosmq")

SPARK = "spark"
"""The group of tests that share one Spark."""
KILLS = "test_kills.py"
"""Spark's; it starts a Spark for each kill."""
WHOLE_FILE_ON_SPARK = re.compile(r"^pytestmark = .*\bmark\.spark\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With "not spark" in ``-m`` don't even import a file whose ``pytestmark`` says spark: pyspark may be missing."""
    if "not spark" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    return True if WHOLE_FILE_ON_SPARK.search(collection_path.read_text("utf-8")) else None


def pytest_configure(config: pytest.Config) -> None:
    """Several processes (``-n``) take the tests in the order given below, not the files with the most tests first. And
    Spark's Java starts quickly."""
    config.option.loadscopereorder = False
    os.environ.setdefault("SPARK_SUBMIT_OPTS", spark_classes.options())


@pytest.hookimpl(trylast=True)  # after Hypothesis has marked its tests, and pytest-randomly has mixed them
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """More examples than usual take as long as they take. Of several processes one has all that Spark does, as there
    Spark starts once, another the kills, which start it anew each time, and each file is of one process. What takes
    longest comes first, so that no process is left alone with it at the end."""
    slow_files = {item.path for item in items if item.get_closest_marker("slow")}
    groups: dict[pytest.Item, str] = {}
    for item in items:
        if not {"postgres", "own_postgres", "replicated_postgres"}.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.postgres)
        if TIMES > 1 and item.get_closest_marker("hypothesis"):
            item.add_marker(pytest.mark.timeout(0))
        groups[item] = SPARK if item.get_closest_marker("spark") and item.path.name != KILLS else str(item.path)
        if config.pluginmanager.has_plugin("xdist"):
            item.add_marker(pytest.mark.xdist_group(groups[item]))
    items.sort(key=lambda item: (item.path.name != KILLS, groups[item] != SPARK, item.path not in slow_files))


@pytest.fixture(autouse=True)
def leaves_nothing_behind() -> Iterator[None]:
    """A socket or a loop that a test leaves open is an error of that test: otherwise it would be one of whatever test
    collects garbage next. What stays in memory is no longer looked at, neither by the collector nor by
    `gc.get_objects`: a test finds there what it has made itself."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The PostgreSQL of all tests of this process; who stops it takes `own_postgres`."""
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def replicated_postgres() -> Iterator[ReplicatedPostgres]:
    """A primary and a synchronous standby, which the test may kill, stop and promote."""
    servers = ReplicatedPostgres()
    yield servers
    servers.remove()


@pytest.fixture
def own_postgres(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """`postgres` for a test that stops it, kills it, or sets something for its role: afterwards it is as before."""
    yield postgres
    if not postgres.runs:
        postgres.start()
    with postgres.admin() as connection:
        connection.execute(f"ALTER ROLE {USER} RESET ALL")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Spark session for the whole run."""
    from delosmq.spark.session import start_session

    scratch = tmp_path_factory.mktemp("spark")
    session = start_session(
        "delosmq tests",
        settings={
            "spark.local.dir": str(scratch / "local"),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.driver.memory": "768m",
        },
    )
    yield session
    session.stop()
