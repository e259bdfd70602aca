"""Checks passwords beside the loop, few at a time: a hash costs 19 MiB and tens of milliseconds."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from delosmq.model.errors import LimitError
from delosmq.security.access import LoginAttempt
from delosmq.security.passwords import verify_login

# Source: docs/decisions, security: two hashes at once bound memory and leave the loop its core.
AT_ONCE: Final = 2
WAITING_LIMIT: Final = 64
"""Hashes that wait for their turn; more are turned away rather than let the line grow."""

Answer = Callable[[bool], None]
Verify = Callable[[str, str], bool]


class PasswordCheck:
    """One hash, and all who wait for it: many connections of one user need no more than one."""

    def __init__(self, attempt: LoginAttempt, password: str) -> None:
        self.attempt = attempt
        self.password = password
        self.answers: list[Answer] = []


class PasswordChecks:
    """The hashes of one broker, whatever protocol they are for.

    Args:
        verify: compares a stored form with a password; runs in a worker thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, verify: Verify = verify_login) -> None:
        self._loop = loop
        self._verify = verify
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="delosmq-password")
        self._waiting: deque[PasswordCheck] = deque()
        self._by_key: dict[bytes, PasswordCheck] = {}
        self._running = 0
        self._closed = False

    def check(self, attempt: LoginAttempt, password: str, answer: Answer) -> PasswordCheck:
        """Calls ``answer`` on the loop when it is known whether ``password`` is right.

        Raises:
            LimitError: too many wait already.
        """
        check = self._by_key.get(attempt.cache_key)
        if check is None:
            if self._closed or len(self._waiting) >= WAITING_LIMIT:
                raise LimitError("DMQ6705", "too many logins are being verified; try again in a moment")
            check = PasswordCheck(attempt, password)
            self._by_key[attempt.cache_key] = check
            self._waiting.append(check)
        check.answers.append(answer)
        self._start_next()
        return check

    def cancel(self, check: PasswordCheck, answer: Answer) -> None:
        """The session does not wait any more; a hash without a waiting session is not begun."""
        if answer in check.answers:
            check.answers.remove(answer)
        if not check.answers and check in self._waiting:
            self._waiting.remove(check)
            self._remove(check)

    async def verify(self, attempt: LoginAttempt, password: str) -> bool:
        """The same for coroutines.

        Raises:
            LimitError: too many wait already.
        """
        future: asyncio.Future[bool] = self._loop.create_future()

        def answer(verified: bool) -> None:
            if not future.done():
                future.set_result(verified)

        check = self.check(attempt, password, answer)
        try:
            return await future
        finally:
            self.cancel(check, answer)

    def close(self) -> None:
        """Lets running checks end and takes no more; who still waits is told no."""
        self._closed = True
        while self._waiting:
            self._answer(self._waiting.popleft(), False)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start_next(self) -> None:
        while self._waiting and self._running < AT_ONCE:
            check = self._waiting.popleft()
            self._running += 1
            future = self._loop.run_in_executor(self._pool, self._verify, check.attempt.stored, check.password)
            future.add_done_callback(lambda done, check=check: self._on_done(check, done))  # type: ignore[misc]

    def _on_done(self, check: PasswordCheck, done: "asyncio.Future[bool]") -> None:
        self._running -= 1
        # A hash that can't be computed is no proof of anything.
        self._answer(check, not done.cancelled() and done.exception() is None and done.result())
        self._start_next()

    def _answer(self, check: PasswordCheck, verified: bool) -> None:
        self._remove(check)
        answers = check.answers
        check.answers = []
        for answer in answers:
            answer(verified)

    def _remove(self, check: PasswordCheck) -> None:
        self._by_key.pop(check.attempt.cache_key, None)
