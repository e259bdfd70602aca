"""Checks passwords beside the loop, few at a time: a hash costs 19 MiB and tens of milliseconds."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from delosmq.security.access import LoginAttempt
from delosmq.security.passwords import verify_login

# Source: docs/decisions, security: two hashes at once bound memory and leave the loop its core.
_AT_ONCE: Final = 2


class PasswordChecks:
    """A small pool of threads that hash."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="delosmq-password")

    def check(self, attempt: LoginAttempt, password: str, answer: Callable[[bool], None]) -> None:
        """Calls ``answer`` on the loop when it is known whether ``password`` is right."""
        future = self._loop.run_in_executor(self._pool, verify_login, attempt.stored, password)
        future.add_done_callback(lambda done: _pass_on(done, answer))

    async def verify(self, attempt: LoginAttempt, password: str) -> bool:
        """The same for coroutines."""
        return await self._loop.run_in_executor(self._pool, verify_login, attempt.stored, password)

    def close(self) -> None:
        """Lets running checks end and takes no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _pass_on(done: "asyncio.Future[bool]", answer: Callable[[bool], None]) -> None:
    if done.cancelled():
        return
    # A hash that can't be computed is no proof of anything.
    answer(done.exception() is None and done.result())
