"""The whole API: its rows, and the ASGI application that serves them."""

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
from delosmq.manage.control.addresses import AddressControl, AddressInfo
from delosmq.manage.control.broker import BrokerControl, BrokerStatus
from delosmq.manage.control.explain import ExplainControl, MessageExplanation, QueueExplanation
from delosmq.manage.control.explain_address import AddressExplanation, ExplainAddressControl
from delosmq.manage.control.host import Host
from delosmq.manage.control.leases import LeaseControl
from delosmq.manage.control.messages import MessageControl, MessagePage, SentMessage
from delosmq.manage.control.queue_info import QueueInfo
from delosmq.manage.control.queues import QueueControl
from delosmq.manage.control.transactions import TransactionControl
from delosmq.manage.http import openapi, requests
from delosmq.manage.http.answers import (
    Acked,
    AddressList,
    BranchEnd,
    Cleared,
    DeletedAddress,
    DeletedQueue,
    FirstPage,
    GroupList,
    Health,
    HeuristicList,
    LeaseList,
    Purged,
    QueueList,
    Released,
    TransactionList,
)
from delosmq.manage.http.arrow import ARROW_TYPE
from delosmq.manage.http.calls.broker import BrokerCalls, TransactionCalls
from delosmq.manage.http.calls.explain import ExplainCalls, MessageCalls
from delosmq.manage.http.calls.leases import LeaseCalls
from delosmq.manage.http.calls.queues import QueueCalls
from delosmq.manage.http.health import HealthCalls
from delosmq.manage.http.logins import BasicLogins
from delosmq.manage.http.operations import JSON_TYPE, Answer, Call, Endpoints, Operation
from delosmq.manage.http.problems import ProblemError
from delosmq.manage.http.sync_wait import Drain
from delosmq.model.conversion import Conversions
from delosmq.model.ids import Position
from delosmq.security.access import AccessControl
from delosmq.server.passwords import PasswordChecks
from delosmq.server.peer_log import PeerLog
from delosmq.sessions.lease.answers import GroupStat, LeaseExtent, OpenedGroup
from delosmq.sessions.outbox import Gate

BASE: Final = "/api/v1"
_VIEW: Final = "view on the address"
_EDIT: Final = "edit on the address"
_CONSUME: Final = "consume on the address of the queue"
_LOGIN: Final = "a login"
_MANAGE: Final = "manage on the address activemq.management"
_NOTHING: Final = "nothing"

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
    ) -> None:
        self.drain = Drain()
        queues = QueueControl(broker, access)
        leases = LeaseControl(broker, access)
        addresses = AddressControl(broker, access)
        control = BrokerControl(broker, host, clock=broker.clock, version=version)
        queue_calls = QueueCalls(broker, queues, host, gate=gate, conversions=conversions, logger=logger)
        lease_calls = LeaseCalls(
            broker, leases, host, gate=gate, drain=self.drain, conversions=conversions, logger=logger
        )
        self.operations: list[Operation] = [
            *_queue_operations(queue_calls),
            *_message_operations(MessageCalls(broker, MessageControl(broker, queues, conversions), host)),
            *_explain_operations(
                ExplainCalls(
                    broker,
                    ExplainControl(broker, queues, conversions),
                    ExplainAddressControl(broker, addresses, access),
                    host,
                )
            ),
            *_lease_operations(lease_calls),
            *_broker_operations(BrokerCalls(broker, control, addresses, host)),
            *_transaction_operations(TransactionCalls(broker, TransactionControl(broker, access), host)),
            *_health_operations(HealthCalls(control, queues, addresses, leases)),
            Operation("GET", "/", "firstPage", "Where to go on", _NOTHING, _first_page, FirstPage, needs_login=False),
            Operation("GET", "/openapi.json", "openapi", "This document", _LOGIN, self._openapi, None),
        ]
        self._version = version
        self.peer_log = PeerLog(logger)
        endpoints = Endpoints(BasicLogins(access, passwords), gate, host, logger, self.peer_log)
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

    async def _openapi(self, call: Call) -> Response:
        encoded = _DOCUMENTS.get(self._version)
        if encoded is None:
            # Outside the loop, as it takes 200 ms.
            encoded = await asyncio.to_thread(self._encoded_document)
            _DOCUMENTS[self._version] = encoded
        return Response(encoded, media_type=JSON_TYPE)

    def _encoded_document(self) -> bytes:
        made = openapi.document(self.operations, self._version)
        return json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode()


async def _first_page(call: Call) -> Answer:
    return Answer(_FIRST_PAGE, Position(0))


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


def _queue_operations(calls: QueueCalls) -> list[Operation]:
    base = f"{BASE}/queues"
    one = base + "/{name}"
    return [
        Operation(
            "GET", base, "listQueues", "A page of the queues", _VIEW, calls.list, QueueList, query=requests.ListPage
        ),
        Operation("GET", one, "getQueue", "One queue", _VIEW, calls.get, QueueInfo),
        Operation(
            "POST",
            base,
            "createQueue",
            "Create a queue",
            _EDIT,
            calls.create,
            QueueInfo,
            requests.CreateQueue,
            status=201,
        ),
        Operation("PATCH", one, "updateQueue", "Change a queue", _EDIT, calls.update, QueueInfo, requests.UpdateQueue),
        Operation(
            "DELETE",
            one,
            "deleteQueue",
            "Delete a queue and what it holds",
            _EDIT,
            calls.delete,
            DeletedQueue,
            query=requests.Forced,
        ),
        *(
            Operation("POST", f"{one}/{verb}", f"{verb}Queue", summary, _EDIT, handler, answer, requests.Nothing)
            for verb, summary, handler, answer in (
                ("pause", "Deliver nothing until it is resumed", calls.pause, QueueInfo),
                ("resume", "Deliver again", calls.resume, QueueInfo),
                ("disable", "Let no message enter until it is enabled", calls.disable, QueueInfo),
                ("enable", "Let messages enter again", calls.enable, QueueInfo),
                ("purge", "Remove all messages that are not in delivery to a consumer", calls.purge, Purged),
            )
        ),
        Operation(
            "GET",
            f"{one}/rows",
            "browseQueue",
            "Messages of a queue in order of their sequence, without taking them",
            "consume or browse on the address",
            calls.rows,
            None,
            query=requests.BrowseRows,
            media_type=ARROW_TYPE,
        ),
    ]


def _message_operations(calls: MessageCalls) -> list[Operation]:
    return [
        Operation(
            "GET",
            f"{BASE}/queues/{{name}}/messages",
            "lookAtMessages",
            "Messages of a queue in order of their sequence, with the beginning of their bodies",
            "consume or browse on the address",
            calls.look,
            MessagePage,
            query=requests.LookAtMessages,
        ),
        Operation(
            "POST",
            f"{BASE}/queues/{{name}}/messages",
            "sendText",
            "Send a text to this queue",
            "send on the address",
            calls.send,
            SentMessage,
            requests.SendText,
            status=201,
        ),
    ]


def _explain_operations(calls: ExplainCalls) -> list[Operation]:
    return [
        Operation(
            "GET",
            f"{BASE}/queues/{{name}}/explain",
            "explainQueue",
            "Where the messages of a queue stand, and what to do about it",
            _VIEW,
            calls.queue,
            QueueExplanation,
            query=requests.ExplainQueue,
        ),
        Operation(
            "GET",
            f"{BASE}/messages/{{id}}/explain",
            "explainMessage",
            "Where a message stands in each queue",
            _VIEW,
            calls.message,
            MessageExplanation,
            query=requests.ExplainMessage,
        ),
        Operation(
            "GET",
            f"{BASE}/addresses/{{name}}/explain",
            "explainAddress",
            "Where messages sent to an address go",
            _VIEW,
            calls.address,
            AddressExplanation,
        ),
    ]


def _lease_operations(calls: LeaseCalls) -> list[Operation]:
    base = f"{BASE}/leases"
    one = base + "/{group}"
    return [
        Operation("GET", base, "listGroups", "All lease groups", _CONSUME, calls.list, GroupList),
        Operation(
            "POST",
            f"{one}/open",
            "openGroup",
            "Open a group under a new epoch, which fences all earlier ones",
            f"{_CONSUME}; createDurableQueue for a new subscription to a topic",
            calls.open,
            OpenedGroup,
            requests.OpenLeases,
        ),
        Operation(
            "POST",
            f"{one}/lease",
            "nextLease",
            "Acknowledge leases and get the next one; waits for messages",
            _CONSUME,
            calls.next,
            LeaseExtent,
            requests.NextLease,
        ),
        Operation("GET", f"{one}/stat", "statGroup", "Where a group stands", _CONSUME, calls.stat, GroupStat),
        Operation(
            "GET",
            f"{one}/describe",
            "describeLeases",
            "Rows and bytes of leases",
            _CONSUME,
            calls.describe,
            LeaseList,
            query=requests.DescribeLeases,
        ),
        Operation(
            "GET",
            one + "/{lease}/rows",
            "fetchRows",
            "Rows of a lease; changes nothing",
            _CONSUME,
            calls.rows,
            None,
            query=requests.LeaseRows,
            media_type=ARROW_TYPE,
        ),
        Operation(
            "POST", f"{one}/ack", "ackLeases", "Acknowledge leases", _CONSUME, calls.ack, Acked, requests.AckLeases
        ),
        Operation(
            "POST",
            f"{one}/release",
            "releaseGroup",
            "End a group; what it did not acknowledge goes back in order",
            _CONSUME,
            calls.release,
            Released,
            requests.ReleaseGroup,
        ),
    ]


def _broker_operations(calls: BrokerCalls) -> list[Operation]:
    base = f"{BASE}/addresses"
    one = base + "/{name}"
    return [
        Operation("GET", f"{BASE}/broker", "getBroker", "The broker as it stands", _LOGIN, calls.get, BrokerStatus),
        Operation(
            "GET",
            base,
            "listAddresses",
            "A page of the addresses",
            _VIEW,
            calls.list_addresses,
            AddressList,
            query=requests.ListPage,
        ),
        Operation("GET", one, "getAddress", "One address", _VIEW, calls.get_address, AddressInfo),
        Operation(
            "POST",
            base,
            "createAddress",
            "Create an address, or give it more routing types",
            _EDIT,
            calls.create_address,
            AddressInfo,
            requests.CreateAddress,
            status=201,
        ),
        Operation(
            "DELETE",
            one,
            "deleteAddress",
            "Delete an address, with force its queues too",
            _EDIT,
            calls.delete_address,
            DeletedAddress,
            query=requests.Forced,
        ),
        Operation(
            "DELETE",
            f"{one}/duplicate-ids",
            "clearDuplicateIds",
            "Forget which duplicate ids were sent to an address",
            _EDIT,
            calls.clear_duplicate_ids,
            Cleared,
        ),
    ]


def _transaction_operations(calls: TransactionCalls) -> list[Operation]:
    base = f"{BASE}/transactions"
    return [
        Operation(
            "GET",
            base,
            "listTransactions",
            "A page of the open and prepared transactions",
            _MANAGE,
            calls.list,
            TransactionList,
            query=requests.TransactionPage,
        ),
        Operation(
            "POST",
            base + "/{xid}/commit",
            "commitBranch",
            "Commit a prepared branch in place of its coordinator",
            _MANAGE,
            calls.commit,
            BranchEnd,
            requests.Nothing,
        ),
        Operation(
            "POST",
            base + "/{xid}/rollback",
            "rollBackBranch",
            "Roll a prepared branch back in place of its coordinator",
            _MANAGE,
            calls.roll_back,
            BranchEnd,
            requests.Nothing,
        ),
        Operation(
            "GET",
            base + "/heuristics",
            "listHeuristics",
            "A page of the branches that operators ended and whose coordinators have not forgotten them",
            _MANAGE,
            calls.list_heuristics,
            HeuristicList,
            query=requests.HeuristicPage,
        ),
        Operation(
            "POST",
            base + "/{xid}/forget",
            "forgetBranch",
            "Forget a branch that an operator ended, in place of its coordinator",
            _MANAGE,
            calls.forget,
            BranchEnd,
            requests.Nothing,
        ),
    ]


def _health_operations(calls: HealthCalls) -> list[Operation]:
    return [
        Operation("GET", "/health/live", "live", "The broker runs", _NOTHING, calls.live, Health, needs_login=False),
        Operation(
            "GET", "/health/ready", "ready", "The broker takes work", _NOTHING, calls.ready, Health, needs_login=False
        ),
        Operation(
            "GET", "/metrics", "metrics", "Metrics for Prometheus", _LOGIN, calls.metrics, None, media_type="text/plain"
        ),
    ]
