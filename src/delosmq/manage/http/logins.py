"""Who is calling: HTTP Basic against the broker's users. Passwords are verified outside the loop, a few at once."""

import asyncio
import base64
import binascii
from collections.abc import Callable
from typing import Final

from delosmq.manage.http.problems import ProblemError
from delosmq.security.access import AccessControl, Login
from delosmq.security.passwords import verify_login

HASHES_AT_ONCE: Final = 2
"""19 MiB and tens of milliseconds of a core each."""
WAITING_LIMIT: Final = 64
"""Logins that wait for their turn; more are turned away rather than let the line grow."""

NO_LOGIN: Final = "DMQ6301"

Verify = Callable[[str, str], bool]


class BasicLogins:
    """Logs in each request. What was verified before costs no hash again.

    Args:
        verify: compares a stored form with a password; runs in a worker thread.
    """

    def __init__(self, access: AccessControl, *, verify: Verify = verify_login) -> None:
        self._access = access
        self._verify = verify
        self._turn = asyncio.Semaphore(HASHES_AT_ONCE)
        self._waiting = 0

    async def login(self, authorization: str | None) -> Login:
        """The login that an Authorization header stands for.

        Raises:
            ProblemError: 401 for none or a wrong one, without saying which part is wrong; 503 when too many wait.
        """
        if authorization is None:
            raise _refusal(NO_LOGIN, "log in with a user of this broker (HTTP Basic)")
        user, password = _decode_basic(authorization)
        attempt = self._access.attempt(user, password)
        if attempt.login is not None:
            return attempt.login
        if self._waiting >= WAITING_LIMIT:
            raise ProblemError(503, "DMQ6303", "BUSY", "too many logins are being verified; try again in a moment")
        self._waiting += 1
        try:
            async with self._turn:
                # Of many requests that came with the same new login, the first one settles it for all.
                attempt = self._access.attempt(user, password)
                if attempt.login is not None:
                    return attempt.login
                verified = await asyncio.to_thread(self._verify, attempt.stored, password)
        finally:
            self._waiting -= 1
        login = self._access.finish(attempt, verified)
        if login is None:
            raise _refusal("DMQ6302", "wrong user or password; check both")
        return login


def _decode_basic(authorization: str) -> tuple[str, str]:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        raise _refusal("DMQ6304", "log in with HTTP Basic; no other scheme is supported")
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        colon = ""
    if not colon:
        raise _refusal("DMQ6305", "the Authorization header is not HTTP Basic of user:password in UTF-8")
    return user, password


def _refusal(code: str, detail: str) -> ProblemError:
    return ProblemError(401, code, "LOGIN_REQUIRED", detail)
