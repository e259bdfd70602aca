"""What the tests of the client share."""

from typing import Protocol

from delosmq.client import AckMode, ClientSession
from delosmq.client.aio_sessions import AsyncSession

WAIT_S = 10.0
"""For what must come."""


class OpenSession(Protocol):
    def __call__(self, mode: AckMode = AckMode.AUTO) -> ClientSession: ...


class OpenAsync(Protocol):
    async def __call__(self, mode: AckMode = AckMode.AUTO) -> AsyncSession: ...
