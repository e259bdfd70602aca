"""Waiting, on the loop, for what the engine reports by calls: synced positions and messages to lease."""

import asyncio
from typing import Final

from starlette.requests import Request

from delosmq.engine.api import LeaseWaiter
from delosmq.manage.http.problems import ProblemError
from delosmq.model.ids import Position
from delosmq.sessions.outbox import Gate, GateWaiter

SYNC_TIMEOUT_S: Final = 30.0
"""A sync that takes longer is a broken disk; the reader asks again, and every call may be repeated."""
COLLECTING_TIMEOUT_S: Final = 1.0
"""A lease under way goes on with the next tick; unless told, look again after this time."""


class _SyncWaiter(GateWaiter):
    def __init__(self, future: asyncio.Future[None]) -> None:
        self._future = future

    def on_open(self) -> None:
        if not self._future.done():
            self._future.set_result(None)


async def wait_synced(gate: Gate, position: Position) -> None:
    """Returns when everything up to ``position`` survives a crash.

    Raises:
        ProblemError: 503, the store does not confirm.
    """
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiter = _SyncWaiter(future)
    if gate.wait(position, waiter):
        return
    try:
        async with asyncio.timeout(SYNC_TIMEOUT_S):
            await future
    except TimeoutError:
        raise ProblemError(
            503,
            "DMQ6102",
            "STORAGE",
            f"the store did not confirm within {SYNC_TIMEOUT_S:.0f} s; look at the broker's log and ask again",
        ) from None
    finally:
        gate.cancel(waiter)


class Drain:
    """Ends long polls when the server stops."""

    def __init__(self) -> None:
        self.started: bool = False
        self._polls: set[LongPoll] = set()

    def join(self, poll: "LongPoll") -> None:
        """A poll that is to hear of the drain."""
        self._polls.add(poll)

    def leave(self, poll: "LongPoll") -> None:
        """It is over."""
        self._polls.discard(poll)

    def start(self) -> None:
        """From now on nothing waits for messages."""
        self.started = True
        for poll in self._polls:
            poll.on_messages()


class LongPoll(LeaseWaiter):
    """One reader's wait for messages: ended by messages, its time, its client's leaving, or a drain.

    Attributes:
        departed: the client went away.
    """

    def __init__(self, request: Request, drain: Drain, wait_ms: int) -> None:
        self.departed: bool = False
        self._drain = drain
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + wait_ms / 1000
        self._event = asyncio.Event()
        self._watch_task = asyncio.create_task(self._watch(request))
        drain.join(self)

    def on_messages(self) -> None:
        self._event.set()

    @property
    def is_over(self) -> bool:
        """Whether there is no time left to wait for messages."""
        return self._drain.started or self._loop.time() >= self._deadline

    async def wait(self, *, collecting: bool) -> None:
        """Until something happens. A lease under way is not held to the reader's time."""
        try:
            async with asyncio.timeout_at(self._loop.time() + COLLECTING_TIMEOUT_S if collecting else self._deadline):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()

    async def close(self) -> None:
        self._drain.leave(self)
        self._watch_task.cancel()
        await asyncio.gather(self._watch_task, return_exceptions=True)

    async def _watch(self, request: Request) -> None:
        while not self.departed:
            message = await request.receive()
            self.departed = message["type"] == "http.disconnect"
        self._event.set()
