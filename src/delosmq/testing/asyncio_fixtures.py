"""What pytest-asyncio runs, in each of its modes. The plugin loads this where it is installed."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest_asyncio

if TYPE_CHECKING:
    from delosmq.client.aio import AsyncConnection
    from delosmq.testing import BrokerFixture


@pytest_asyncio.fixture
async def asyncio_broker_client(broker_of_clients: "BrokerFixture") -> "AsyncIterator[AsyncConnection]":
    """`async_broker_client` in a test that pytest-asyncio runs."""
    async with broker_of_clients.connect_async() as client:
        yield client
