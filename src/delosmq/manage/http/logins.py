"""The user that calls: HTTP Basic against the broker's users."""

import base64
import binascii
from typing import Final

from starlette.responses import Response

from delosmq.manage.http.problems import ProblemError
from delosmq.model.errors import LimitError
from delosmq.security.access import AccessControl, Login
from delosmq.server.passwords import PasswordChecks

NO_LOGIN: Final = "DMQ6301"
SHOWN_USER: Final = 100
"""Characters of a name that a peer made up."""


class LoginError(ProblemError):
    """The request has no valid login; its connection is closed, as it would take the place of others."""

    def response(self) -> Response:
        response = super().response()
        response.headers["Connection"] = "close"
        return response


class BasicLogins:
    """Logs in each request. What was verified before costs no hash again."""

    def __init__(self, access: AccessControl, passwords: PasswordChecks) -> None:
        self._access = access
        self._passwords = passwords

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
        try:
            verified = await self._passwords.verify(attempt, password)
        except LimitError as busy:
            raise LoginError(503, "DMQ6303", "BUSY", busy.message) from None
        login = self._access.finish(attempt, verified)
        if login is None:
            raise _refusal("DMQ6302", f"user '{user[:SHOWN_USER]}' or its password is wrong; check both")
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


def _refusal(code: str, detail: str) -> LoginError:
    return LoginError(401, code, "LOGIN_REQUIRED", detail)
