"""The pytest plugin: fixtures with a broker. Loaded in every run of pytest beside an installed delosmq, hence light."""

import sys
import time
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from delosmq.client import ClientConnection
    from delosmq.client.aio import AsyncConnection
    from delosmq.testing import BrokerFixture, BrokerOptions

TRACE_TITLE: Final = "what passed through the broker"
BROKERS: Final = frozenset({"broker", "durable_broker", "session_broker", "module_broker"})
WHOLE_BROKERS: Final = frozenset({"whole_session_broker", "whole_module_broker"})
"""They count where a test uses none of `BROKERS`, which are made of them."""


@pytest.hookimpl(tryfirst=True)  # before a conftest.py imports delosmq
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Has Python load the modules of delosmq from their bytecode, as always. Pytest compiles each module of a package
    that brings a plugin anew, to explain its assertions: of a broker that takes a second in every process, where
    nothing keeps what was compiled (PYTHONDONTWRITEBYTECODE, a read-only image)."""
    hook = getattr(early_config.pluginmanager, "rewrite_hook", None)
    marked = getattr(hook, "_must_rewrite", None)
    if isinstance(marked, set):  # no documented name: where it is gone, loading takes longer
        marked.discard("delosmq")


@pytest.fixture(scope="session")
def broker_options() -> "BrokerOptions":
    """Arguments of `BrokerFixture` for the brokers of all fixtures; override it in a conftest.py or a test module."""
    return {}


@pytest.fixture
def broker(broker_options: "BrokerOptions") -> "Iterator[BrokerFixture]":
    """A broker of this test's own, in memory, on free ports."""
    from delosmq.testing import BrokerFixture

    with BrokerFixture(**broker_options) as broker:
        yield broker


@pytest.fixture
def durable_broker(tmp_path: Path, broker_options: "BrokerOptions") -> "Iterator[BrokerFixture]":
    """A broker of this test's own with a journal in ``tmp_path / "broker"``, which can crash and start again."""
    from delosmq.testing import BrokerFixture

    with BrokerFixture(tmp_path / "broker", **broker_options) as broker:
        yield broker


@pytest.fixture(scope="module")
def whole_module_broker(broker_options: "BrokerOptions") -> "Iterator[BrokerFixture]":
    """The broker of `module_broker`, for fixtures that live as long as the module. Nothing is emptied between tests."""
    from delosmq.testing import BrokerFixture

    with BrokerFixture(**broker_options) as broker:
        yield broker


@pytest.fixture
def module_broker(whole_module_broker: "BrokerFixture") -> "BrokerFixture":
    """A broker on the same ports for all tests of a module, in memory, empty when a test begins."""
    whole_module_broker.reset()
    return whole_module_broker


@pytest.fixture(scope="session")
def whole_session_broker(broker_options: "BrokerOptions") -> "Iterator[BrokerFixture]":
    """The broker of `session_broker`, for fixtures that live as long as the session. Nothing is emptied between
    tests."""
    from delosmq.testing import BrokerFixture

    with BrokerFixture(**broker_options) as broker:
        yield broker


@pytest.fixture
def session_broker(whole_session_broker: "BrokerFixture") -> "BrokerFixture":
    """A broker on the same ports for all tests of the session, in memory, empty when a test begins."""
    whole_session_broker.reset()
    return whole_session_broker


# --- the trace of a failed test

BEGAN_S: Final = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Notes when a test begins: what passed before is no part of its trace."""
    item.stash[BEGAN_S] = time.monotonic()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to the report of a failed test what passed through each broker that it used."""
    report = yield
    module = sys.modules.get("delosmq.testing.trace")
    if report.failed and module is not None:
        for text in module.traces_since(item.stash.get(BEGAN_S, 0.0)):
            report.sections.append((TRACE_TITLE, text))
    return report


# --- clients


@pytest.fixture
def broker_of_clients(request: pytest.FixtureRequest) -> "BrokerFixture":
    """The broker to which client fixtures connect: the one that the test uses, or else `broker`."""
    used = set(request.fixturenames)
    named = sorted(used & BROKERS) or sorted(used & WHOLE_BROKERS) or ["broker"]
    found: list[BrokerFixture] = [request.getfixturevalue(name) for name in named]
    if any(one is not found[0] for one in found):
        raise pytest.UsageError(
            f"this test uses {' and '.join(named)}, and a client fixture connects to one broker; use `with"
            f" {named[0]}.connect() as client:` in place of it"
        )
    return found[0]


@pytest.fixture
def broker_client(broker_of_clients: "BrokerFixture") -> "Iterator[ClientConnection]":
    """A blocking connection to the broker of the test, closed at its end."""
    with broker_of_clients.connect() as client:
        yield client


@pytest.fixture
def async_broker_client(request: pytest.FixtureRequest) -> "AsyncConnection":
    """A connection for asyncio to the broker of the test, in the test's event loop, closed at its end."""
    plugin = "anyio" if "anyio_backend" in request.fixturenames else "asyncio"
    try:
        client: AsyncConnection = request.getfixturevalue(f"{plugin}_broker_client")
    except pytest.FixtureLookupError as error:
        raise pytest.UsageError(
            "async_broker_client needs a plugin that runs coroutines: install pytest-asyncio, or use `async with"
            " broker.connect_async() as client:`"
        ) from error
    return client


@pytest.fixture
async def anyio_broker_client(broker_of_clients: "BrokerFixture") -> "AsyncIterator[AsyncConnection]":
    """`async_broker_client` in a test that anyio's plugin runs."""
    async with broker_of_clients.connect_async() as client:
        yield client


def pytest_configure(config: pytest.Config) -> None:
    """Brings `async_broker_client` to tests that pytest-asyncio runs, where it is installed."""
    if config.pluginmanager.hasplugin("asyncio"):
        from delosmq.testing import asyncio_fixtures

        config.pluginmanager.register(asyncio_fixtures, asyncio_fixtures.__name__)
