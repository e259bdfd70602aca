"""One broker in memory for the whole folder: each test uses destinations of its own, named after the test."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack

import pytest

import delosmq
from delosmq.client import AckMode, ClientConnection, connect
from delosmq.client.aio import AsyncConnection
from delosmq.client.aio import connect as connect_async
from delosmq.client.aio_session import AsyncSession
from delosmq.client.options.connect_options import plan_for
from tests.client.support import Counting, OpenAsync, OpenSession


@pytest.fixture(scope="session")
def broker() -> Iterator[delosmq.Broker]:
    with delosmq.Broker(http=False) as running:
        yield running


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A destination nobody else uses."""
    return re.sub(r"[^A-Za-z0-9]+", ".", str(request.node.nodeid.partition("::")[2])).strip(".")


@pytest.fixture
def connection(broker: delosmq.Broker) -> Iterator[ClientConnection]:
    with connect(broker.openwire_url, user=broker.user, password=broker.password) as made:
        yield made


@pytest.fixture
async def aio(broker: delosmq.Broker) -> AsyncIterator[AsyncConnection]:
    async with connect_async(broker.openwire_url, user=broker.user, password=broker.password) as made:
        yield made


@pytest.fixture
def open_session(connection: ClientConnection) -> Iterator[OpenSession]:
    """Makes sessions that are closed after the test."""
    with ExitStack() as stack:
        yield lambda mode=AckMode.AUTO: stack.enter_context(connection.create_session(mode))


@pytest.fixture
async def open_async(aio: AsyncConnection) -> AsyncIterator[OpenAsync]:
    """Makes sessions that are closed after the test."""
    async with AsyncExitStack() as stack:

        async def make(mode: AckMode = AckMode.AUTO) -> AsyncSession:
            return await stack.enter_async_context(await aio.create_session(mode))

        yield make


@pytest.fixture
def counting(broker: delosmq.Broker) -> Iterator[tuple[Counting, AsyncConnection]]:
    """A connection that is not started."""
    thread = Counting()
    inner = thread.run(AsyncConnection.open(plan_for(broker.openwire_url, user=broker.user, password=broker.password)))
    yield thread, inner
    thread.run(inner.close())
    thread.end()
