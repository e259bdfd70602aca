"""The HTTP interface of a broker that waits to become active: its health, and a refusal of everything else."""

import logging
from collections.abc import Callable
from dataclasses import asdict
from typing import Final

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from delosmq.manage.control.host import Reason
from delosmq.manage.http.answers import Health
from delosmq.manage.http.problems import ProblemError
from delosmq.manage.http.sync_wait import Drain
from delosmq.server.peer_log import PeerLog

LIVE: Final = "/health/live"
READY: Final = "/health/ready"


class StandbyApi:
    """An ASGI application that needs no broker.

    Args:
        role: of the broker, as in its ha-policy.
        reason: why it is not ready, at the time of asking.

    Attributes:
        drain, peer_log: as in `HttpApi`.
    """

    def __init__(self, role: str, reason: Callable[[], Reason], logger: logging.Logger) -> None:
        self._role = role
        self._reason = reason
        self.drain = Drain()
        self.peer_log = PeerLog(logger)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request (ASGI 3)."""
        response = self._answer(scope["path"])
        response.headers["Cache-Control"] = "no-store"
        await response(scope, receive, send)

    def _answer(self, path: str) -> Response:
        reason = self._reason()
        if path == LIVE:
            return JSONResponse(asdict(Health("UP", "", [], self._role)))
        if path == READY:
            health = Health("DOWN", f"{reason.code}: {reason.detail}", [reason], self._role)
            return JSONResponse(asdict(health), 503)
        return ProblemError(503, reason.code, "PASSIVE", f"{reason.detail}; ask the active broker").response()
