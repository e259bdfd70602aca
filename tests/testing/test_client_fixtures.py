"""Client fixtures: connections to the test's broker under pytest-asyncio and anyio's plugin."""

import gc
import warnings

import pytest

from delosmq.testing import BrokerFixture
from tests.testing.support import run_pytest

pytest_plugins = ["pytester"]


def test_clients_are_found_without_configuration(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import delosmq.client


def test_of_a_broker_of_its_own(broker_client):
    broker_client.send("tea", "one pot")


def test_of_the_broker_that_the_test_uses(broker_client, durable_broker):
    broker_client.send("tea", "one pot")
    durable_broker.queue("tea").assert_has(messages=1)


def test_of_the_sessions_broker_that_is_empty(broker_client, session_broker, whole_session_broker):
    session_broker.queue("tea").assert_has(messages=0)
    broker_client.send("tea", "one pot")
    session_broker.queue("tea").assert_has(messages=1)


def test_of_a_fixture_that_lives_as_long_as_the_session(broker_client, whole_session_broker):
    broker_client.send("tea", "one pot")
    assert "one pot" in whole_session_broker.queue("tea").texts


def test_of_a_broker_that_has_crashed(broker_client, durable_broker):
    durable_broker.crash()


def test_of_a_broker_that_has_stopped(broker_client, broker):
    broker.stop()


async def test_in_a_running_loop(async_broker_client, broker):
    await async_broker_client.send("tea", "one pot")
    async for message in async_broker_client.messages("tea", timeout_s=10):
        assert message.text == "one pot"
        break


async def test_both_in_a_running_loop(async_broker_client, broker_client, broker):
    broker_client.send("tea", "one pot")
    await async_broker_client.send("tea", "two pots")
    await broker.queue("tea").wait_for_async(messages=2)
"""
    )
    run_pytest(pytester, "-o", "asyncio_mode=auto").assert_outcomes(passed=8)


def test_they_work_in_strict_mode_and_with_anyio(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import asyncio

import gc
import warnings

import pytest


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.asyncio
async def test_with_pytest_asyncio(async_broker_client, broker):
    await async_broker_client.send("tea", "one pot")
    broker.queue("tea").assert_has(messages=1)


@pytest.mark.anyio
async def test_with_anyio(async_broker_client, broker):
    await async_broker_client.send("tea", "one pot")
    broker.queue("tea").assert_has(messages=1)
"""
    )
    run_pytest(pytester, "-o", "asyncio_mode=strict").assert_outcomes(passed=2)


def test_what_is_missing_or_in_doubt_is_said(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
def test_two_brokers(broker_client, durable_broker, module_broker): ...


def test_no_plugin(async_broker_client): ...
"""
    )
    found = pytester.runpytest_subprocess("-W", "error", "-p", "no:asyncio", "-p", "no:anyio", "-p", "no:randomly")
    found.assert_outcomes(errors=2)
    found.stdout.fnmatch_lines(
        [
            "*this test uses durable_broker and module_broker*`with durable_broker.connect() as client:`*",
            "*async_broker_client needs a plugin that runs coroutines: install pytest-asyncio*",
        ]
    )


def test_a_connection_takes_options_and_a_client_id() -> None:
    with BrokerFixture() as broker:
        url = f"failover:({broker.openwire_url})?initialReconnectDelay=1"
        with broker.connect(url, client_id="waiter") as client:
            assert client.client_id == "waiter"
            broker.cut_connections()
            client.send("tea", "one pot")
        broker.queue("tea").assert_has(messages=1)


def test_a_connection_that_was_forgotten_names_the_line_of_the_test(broker: BrokerFixture) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        broker.connect()
        gc.collect()
    said = [str(one.message) for one in found if one.category is ResourceWarning]
    assert [line.partition(":")[0] for line in said] == [f"the connection made at {__file__}"]
