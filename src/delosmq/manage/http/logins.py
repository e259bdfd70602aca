"""The user that calls: HTTP Basic against the broker's users, and the login port, as for any client."""

import asyncio
import base64
import binascii
from typing import Final

from starlette.responses import Response

from delosmq.manage.http.problems import ProblemError, problem_of
from delosmq.model.errors import BrokerError, LimitError, PeerError
from delosmq.security.access import AccessControl, Login, LoginAttempt
from delosmq.server.passwords import PasswordChecks
from delosmq.server.peer_log import PeerLog
from delosmq.sessions.login import WAIT, LoginPort, LoginRequest, decided, withdraw

UNKNOWN_PEER: Final = "unknown"
NO_LOGIN: Final = "DMQ6301"
ACCEPTOR: Final = "http"
"""What the login port is told, which knows acceptors by their names."""
LONGEST_WAIT_S: Final = 10
"""For the login port; as the ``handshake-timeout`` of acceptors."""
SHOWN_USER: Final = 100
"""Characters of a name that a peer made up."""


class LoginError(ProblemError):
    """The request has no valid login; its connection is closed, as it would take the place of others."""

    def response(self) -> Response:
        response = super().response()
        response.headers["Connection"] = "close"
        return response


class BasicLogins:
    """Logs in each request. What was verified before costs no hash again.

    Args:
        port: asked for each request whose password is right.
        peer_log: hears when it fails.
    """

    def __init__(self, access: AccessControl, passwords: PasswordChecks, port: LoginPort, peer_log: PeerLog) -> None:
        self._access = access
        self._passwords = passwords
        self._port = port
        self._peer_log = peer_log

    async def login(self, authorization: str | None, peer: str = UNKNOWN_PEER) -> Login:
        """The login that an Authorization header stands for.

        Args:
            peer: address and port.

        Raises:
            ProblemError: 401 for none or a wrong one, without saying which part is wrong; 503 when too many wait; 403
                and others when the login port refuses it.
        """
        if authorization is None:
            raise _refusal(NO_LOGIN, "log in with a user of this broker (HTTP Basic)")
        user, password = _decode_basic(authorization)
        attempt = self._access.attempt(user, password)
        login = attempt.login
        if login is None:
            try:
                verified = await self._passwords.verify(attempt, password)
            except LimitError as busy:
                raise LoginError(503, "DMQ6303", "BUSY", busy.message) from None
            login = self._access.finish(attempt, verified)
        if login is None:
            raise _wrong(user)
        try:
            return await self._decide(LoginRequest(login, "", peer, ACCEPTOR, ask_again=_nothing), attempt)
        except PeerError as refusal:
            raise LoginError(403, refusal.code, "REFUSED", refusal.message) from None
        except BrokerError as error:
            problem = problem_of(error)
            raise LoginError(problem.status, problem.code, problem.condition, problem.detail) from None

    async def _decide(self, request: LoginRequest, attempt: LoginAttempt) -> Login:
        """The login, once the port has admitted it.

        Raises:
            BrokerError: the port refuses it.
            ProblemError: 503, it does not know in time; 401, the user was changed or removed meanwhile.
        """

        def report(trouble: BrokerError) -> None:
            host = request.peer.rpartition(":")[0]
            self._peer_log.warning(host, f"{trouble} [peer {request.peer}, the HTTP interface]")

        answer = decided(self._port, request, report)
        if answer is WAIT:
            asked = asyncio.Event()
            request.ask_again = asked.set
            try:
                async with asyncio.timeout(LONGEST_WAIT_S):
                    while answer is WAIT:
                        await asked.wait()
                        asked.clear()
                        request.login = self._still_right(attempt)
                        answer = decided(self._port, request, report)
            except TimeoutError:
                raise LoginError(
                    503, "DMQ6306", "BUSY", f"the login was not decided within {LONGEST_WAIT_S} s; try again later"
                ) from None
            finally:
                if answer is WAIT:
                    withdraw(self._port, request, report)
        refusal = answer.refusal()
        if refusal is not None:
            raise refusal
        return request.login

    def _still_right(self, attempt: LoginAttempt) -> Login:
        login = self._access.still_right(attempt)
        if login is None:
            raise _wrong(attempt.user)
        return login


def _nothing() -> None:
    """What has its answer is not asked for again."""


def _wrong(user: str) -> LoginError:
    return _refusal("DMQ6302", f"user '{user[:SHOWN_USER]}' or its password is wrong; check both")


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
