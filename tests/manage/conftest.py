"""The API under test."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.manage.support import Api


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Api]:
    made = Api()
    yield made
    await made.close()
