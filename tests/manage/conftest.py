"""The API under test."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.manage.support import Api


@pytest_asyncio.fixture
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    """With the diverts that a test names as the parameter of this fixture."""
    made = Api(getattr(request, "param", ()))
    yield made
    await made.close()
