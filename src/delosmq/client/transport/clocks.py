"""Time and chance, for the machine of a connection."""

import asyncio
import random
import secrets
import time
from collections.abc import Coroutine
from typing import Any

from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.ports import Clock, Random


class LinkClock(Clock):
    """The clocks of this process.

    Attributes:
        ahead_ns: by which they are ahead of it, as those of a broker under test are.
    """

    def __init__(self) -> None:
        self.ahead_ns = 0

    def wall_ms(self) -> WallMs:
        return WallMs((time.time_ns() + self.ahead_ns) // 1_000_000)

    def monotonic_ns(self) -> MonotonicNs:
        return MonotonicNs(time.monotonic_ns() + self.ahead_ns)


class LocalRandom(Random):
    """Chance of this process."""

    def token(self, size_bytes: int) -> str:
        return secrets.token_urlsafe(size_bytes)

    def fraction(self) -> float:
        return random.random()


async def happens_within(event: asyncio.Event, within_s: float) -> bool:
    """Waits for an event, for so long. Outside of a task too, where `asyncio.timeout` is refused."""
    loop = asyncio.get_running_loop()
    happened: asyncio.Future[bool] = loop.create_future()

    def end(value: bool) -> None:
        if not happened.done():
            happened.set_result(value)

    waiting = loop.create_task(event.wait())
    waiting.add_done_callback(lambda _: end(True))
    timer = loop.call_later(within_s, end, False)
    try:
        return await happened
    finally:
        timer.cancel()
        waiting.cancel()


async def done_before(work: Coroutine[Any, Any, None], end: asyncio.Event) -> None:
    """Waits for what is to be done, or until the end comes first."""
    loop = asyncio.get_running_loop()
    working, ending = loop.create_task(work), loop.create_task(end.wait())
    try:
        await asyncio.wait((working, ending), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        working.cancel()
        ending.cancel()
