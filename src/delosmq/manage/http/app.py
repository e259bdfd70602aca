"""The whole API: its calls, and the ASGI application that serves them."""

import asyncio
import json
import logging
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from delosmq.engine.api import EngineBroker
from delosmq.manage.control.addresses import AddressControl
from delosmq.manage.control.broker import BrokerControl
from delosmq.manage.control.explain import ExplainControl
from delosmq.manage.control.explain_address import ExplainAddressControl
from delosmq.manage.control.host import Host
from delosmq.manage.control.messages import MessageControl
from delosmq.manage.control.queues import QueueControl
from delosmq.manage.control.routers import RouterControl
from delosmq.manage.control.transactions import TransactionControl
from delosmq.manage.http import openapi
from delosmq.manage.http.answers import FirstPage
from delosmq.manage.http.calls.broker import BrokerCalls, TransactionCalls
from delosmq.manage.http.calls.explain import ExplainCalls, MessageCalls
from delosmq.manage.http.calls.handlers import CallParts
from delosmq.manage.http.calls.leases import LeaseCalls
from delosmq.manage.http.calls.queues import QueueCalls
from delosmq.manage.http.calls.routers import RouterCalls
from delosmq.manage.http.calls.staged_parts import StagingCalls
from delosmq.manage.http.health import HealthCalls
from delosmq.manage.http.logins import BasicLogins
from delosmq.manage.http.operations import (
    BASE,
    JSON_TYPE,
    LOGIN,
    NOTHING,
    Answer,
    Call,
    Endpoints,
    Operation,
    operation,
    operations_of,
)
from delosmq.manage.http.problems import ProblemError
from delosmq.manage.http.sync_wait import Drain
from delosmq.model.conversion import Conversions
from delosmq.model.ids import Position
from delosmq.security.access import AccessControl
from delosmq.server.passwords import PasswordChecks
from delosmq.server.peer_log import PeerLog
from delosmq.sessions.lease.session import LeaseSession
from delosmq.sessions.login import ADMIT_ALL, LoginPort
from delosmq.sessions.outbox import Gate

_DOCUMENTS: Final[dict[str, bytes]] = {}
"""The OpenAPI document of each version, made when it is first asked for: all brokers of a process have the same."""


_FIRST_PAGE: Final = FirstPage(
    "DelosMQ",
    api=f"{BASE}/queues, {BASE}/addresses and others, with a user of this broker (HTTP Basic)",
    openapi="/openapi.json describes every call; with a login",
    health="/health/live and /health/ready",
    metrics="/metrics, for Prometheus; with a login",
    documentation="docs/http.md beside the source of this version; `delosmq --help` for the command line",
)


class HttpApi:
    """The HTTP API of one broker, as an ASGI application.

    Attributes:
        drain: start it before the server stops, so that long polls end.
        operations: every call, in the order of the documentation.
        peer_log: for what those who call cause.
    """

    def __init__(
        self,
        broker: EngineBroker,
        host: Host,
        gate: Gate,
        *,
        access: AccessControl,
        passwords: PasswordChecks,
        conversions: Conversions,
        logger: logging.Logger,
        version: str,
        logins: LoginPort = ADMIT_ALL,
        routers: RouterControl | None = None,
    ) -> None:
        self.drain = Drain()
        queues = QueueControl(broker, access)
        addresses = AddressControl(broker, access)
        control = BrokerControl(broker, host, clock=broker.clock, version=version)
        parts = CallParts(broker, host, gate, conversions, logger)
        router_control = RouterControl({}, access, broker) if routers is None else routers
        calls: list[object] = [
            QueueCalls(parts, queues),
            MessageCalls(parts, MessageControl(broker, queues, conversions)),
            ExplainCalls(
                parts, ExplainControl(broker, queues, conversions), ExplainAddressControl(broker, addresses, access)
            ),
            LeaseCalls(parts, access, self.drain),
            StagingCalls(parts, access, self.drain),
            BrokerCalls(parts, control, addresses),
            TransactionCalls(parts, TransactionControl(broker, access)),
            RouterCalls(parts, router_control),
            HealthCalls(
                control, queues, addresses, router_control, lambda login: LeaseSession(broker, access, login).stats()
            ),
            self,
        ]
        self.operations: list[Operation] = [operation for one in calls for operation in operations_of(one)]
        self._version = version
        self.peer_log = PeerLog(logger)
        endpoints = Endpoints(BasicLogins(access, passwords, logins, self.peer_log), gate, host, logger, self.peer_log)
        self._app = Starlette(
            routes=[endpoints.route(operation) for operation in self.operations],
            exception_handlers={HTTPException: _on_http_exception},
        )
        # A slash too many is answered as any other path that does not exist, and not by a redirection without words.
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request (ASGI 3)."""
        raw = scope.get("raw_path")
        if scope["type"] == "http" and raw:
            # Routes match the path as it was sent: a decoded "/" inside a name would look like a separator.
            scope = dict(scope)
            scope["path"] = raw.partition(b"?")[0].decode("latin-1")
        await self._app(scope, receive, send)

    @operation("GET", "/", "firstPage", NOTHING, needs_login=False)
    async def first_page(self, call: Call) -> Answer[FirstPage]:
        """Where to go on."""
        return Answer(_FIRST_PAGE, Position(0))

    @operation("GET", "/openapi.json", "openapi", LOGIN)
    async def openapi(self, call: Call) -> Response:
        """This document."""
        encoded = _DOCUMENTS.get(self._version)
        if encoded is None:
            # Outside the loop, as it takes 200 ms.
            encoded = await asyncio.to_thread(self._encoded_document)
            _DOCUMENTS[self._version] = encoded
        return Response(encoded, media_type=JSON_TYPE)

    def _encoded_document(self) -> bytes:
        made = openapi.document(self.operations, self._version)
        return json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode()


async def _on_http_exception(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    path = request.scope["path"][:200]
    if status == 405:
        allowed = _allowed(request)
        sentence = f"{request.method} is not a method of {path}; use {allowed}"
        return ProblemError(405, "DMQ6422", "INVALID", sentence, allowed=allowed).response()
    remedy = "leave out the slash at its end" if path.endswith("/") else "/openapi.json lists what there is"
    return ProblemError(status, "DMQ6421", "NOT_FOUND", f"there is no {path}; {remedy}").response()


def _allowed(request: Request) -> str:
    """The methods of a path that exists, of all its routes."""
    methods: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            methods |= route.methods or set()
    return ", ".join(sorted(methods))
