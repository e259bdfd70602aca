"""What the tests of the client share."""

import threading
from typing import Protocol

from delosmq.client import AckMode, ClientSession
from delosmq.client.aio_session import AsyncSession

WAIT_S = 10.0
"""For what must come."""


class OpenSession(Protocol):
    def __call__(self, mode: AckMode = AckMode.AUTO) -> ClientSession: ...


class OpenAsync(Protocol):
    async def __call__(self, mode: AckMode = AckMode.AUTO) -> AsyncSession: ...


def wait_for_forgotten() -> None:
    """A forgotten connection is closed by its thread, and that ends with the last one."""
    for thread in threading.enumerate():
        if thread.name == "delosmq-client":
            thread.join(WAIT_S)
