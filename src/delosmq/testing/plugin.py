"""The pytest plugin: fixtures with a broker. Loaded in every run of pytest beside an installed delosmq, hence light."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from delosmq.testing import BrokerFixture, BrokerOptions


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
def module_broker(broker_options: "BrokerOptions") -> "Iterator[BrokerFixture]":
    """A broker for all tests of a module, in memory. What one test leaves in it the next one finds."""
    from delosmq.testing import BrokerFixture

    with BrokerFixture(**broker_options) as broker:
        yield broker


@pytest.fixture(scope="session")
def whole_session_broker(broker_options: "BrokerOptions") -> "Iterator[BrokerFixture]":
    """The broker of `session_broker`, for fixtures that live as long as the session and need its ports."""
    from delosmq.testing import BrokerFixture

    with BrokerFixture(**broker_options) as broker:
        yield broker


@pytest.fixture
def session_broker(whole_session_broker: "BrokerFixture") -> "BrokerFixture":
    """A broker on the same ports for all tests of the session, in memory, empty when a test begins."""
    whole_session_broker.reset()
    return whole_session_broker
