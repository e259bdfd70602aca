"""The calls of the API, each declared by the method that serves it. Routes and OpenAPI come from the declarations."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, replace
from inspect import getdoc
from typing import Any, Final, Generic, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from delosmq.manage.control.host import Host
from delosmq.manage.http.logins import NO_LOGIN, UNKNOWN_PEER, BasicLogins
from delosmq.manage.http.problems import FieldFault, ProblemError, problem_of
from delosmq.manage.http.requests.fields import JsonBody
from delosmq.manage.http.sync_wait import wait_synced
from delosmq.manage.http.validation import invalid
from delosmq.model.errors import BrokerError, InvariantError
from delosmq.model.ids import Position
from delosmq.model.phrases import one_line
from delosmq.model.values import BODY_LIMIT_BYTES
from delosmq.security.access import Login
from delosmq.server.peer_log import PeerLog, peer_name
from delosmq.sessions.outbox import Gate

T = TypeVar("T")
H = TypeVar("H", bound=Callable[..., Awaitable["Answer[Any] | Response"]])

BASE: Final = "/api/v1"
VIEW: Final = "view on the address"
BROWSE: Final = "consume or browse on the address"
EDIT: Final = "edit on the address"
LOGIN: Final = "a login"
NOTHING: Final = "nothing"
"""What a call may need."""

BODY_TIMEOUT_S: Final = 30.0
JSON_TYPE: Final = "application/json"

_COMMON_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True)
class Call:
    """One checked request.

    Attributes:
        path: decoded path parameters.
    """

    request: Request
    login: Login
    path: dict[str, str]


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A success, or what `status` says instead of the operation's.

    Attributes:
        content: a dataclass.
        position: what has to be synced before it may leave.
        entries: how many it lists.
    """

    content: T
    position: Position
    entries: int = 1
    status: int = 0


@dataclass(frozen=True)
class Operation:
    """One call of the API.

    Attributes:
        permission: what it needs, as the documentation says it; the operation itself checks.
        handler: takes a `Call`, and an instance of ``wanted`` if there is one.
        answer: type of the answer, for the documentation; None for what is not JSON.
        wanted: of the request's body or query.
        media_type: of a success.
        takes: media type of a body that the handler reads itself; "" for none.
    """

    method: str
    path: str
    name: str
    summary: str
    permission: str
    handler: Callable[..., Awaitable[Answer[Any] | Response]]
    answer: Any
    wanted: type[BaseModel] | None
    status: int
    media_type: str
    needs_login: bool
    takes: str

    @property
    def has_body(self) -> bool:
        """Whether what it wants comes in the request's body."""
        return self.wanted is not None and issubclass(self.wanted, JsonBody)

    @property
    def is_audited(self) -> bool:
        """Whether the log says who did it: each change but those that readers make all the time."""
        return self.method != "GET" and not self.path.startswith((_READERS, _SINKS))


_DECLARED: Final[dict[object, Operation]] = {}
"""By the function that serves it."""


def operation(
    method: str,
    path: str,
    name: str,
    permission: str,
    *,
    status: int = 200,
    media_type: str = JSON_TYPE,
    needs_login: bool = True,
    takes: str = "",
) -> Callable[[H], H]:
    """Declares the call that the method below serves. Its docstring is the summary, its annotations say what it wants
    and answers."""

    def with_handler(handler: H) -> H:
        hints = get_type_hints(handler)
        answer = hints.pop("return")
        wanted = [hint for hint in hints.values() if issubclass(hint, BaseModel)]
        _DECLARED[handler] = Operation(
            method,
            path,
            name,
            (getdoc(handler) or "").removesuffix("."),
            permission,
            handler,
            answer=get_args(answer)[0] if get_origin(answer) is Answer else None,
            wanted=wanted[0] if wanted else None,
            status=status,
            media_type=media_type,
            needs_login=needs_login,
            takes=takes,
        )
        return handler

    return with_handler


def operations_of(calls: object) -> Iterator[Operation]:
    """What the methods of an object serve, in their order."""
    for name, method in vars(type(calls)).items():
        if method in _DECLARED:
            yield replace(_DECLARED[method], handler=getattr(calls, name))


_READERS: Final = f"{BASE}/leases/"
_SINKS: Final = f"{BASE}/staging/{{application}}/{{batch}}/"
_AUDITED_CHARACTERS: Final = 500

ANONYMOUS: Final = Login("", frozenset())
"""The user of calls that need no login."""

LARGE_ANSWER: Final = 100
"""Entries from which on an answer is encoded outside the loop."""


class Endpoints:
    """Turns operations into routes: login, checked input, gate, problems."""

    def __init__(self, logins: BasicLogins, gate: Gate, host: Host, logger: logging.Logger, peer_log: PeerLog) -> None:
        self._logins = logins
        self._gate = gate
        self._host = host
        self._logger = logger
        self._peer_log = peer_log
        self._audit_log = logger.getChild("audit")

    def route(self, operation: Operation) -> Route:

        async def endpoint(request: Request) -> Response:
            return await self._serve(operation, request)

        return Route(operation.path, endpoint, methods=[operation.method], name=operation.name)

    async def _serve(self, operation: Operation, request: Request) -> Response:
        try:
            response = await self._answer(operation, request)
        except ProblemError as problem:
            if problem.status == 401 and problem.code != NO_LOGIN:
                peer = _peer(request)
                self._peer_log.warning(peer, f"{problem.code}: refused a login from {peer}: {problem.detail}")
            response = problem.response()
        except BrokerError as error:
            if isinstance(error, InvariantError):
                self._logger.critical(f"{error}; the broker stops", exc_info=error)
                self._host.broken(error)
            response = problem_of(error).response()
        except ClientDisconnect:
            response = Response(status_code=400)  # it is not read
        except Exception as error:
            self._logger.exception(f"DMQ6409: {operation.method} {operation.path} failed; please report this")
            response = ProblemError(
                500, "DMQ6409", "BROKEN", f"the broker failed to answer ({type(error).__name__}); its log says more"
            ).response()
        response.headers.update(_COMMON_HEADERS)
        return response

    async def _answer(self, operation: Operation, request: Request) -> Response:
        login = ANONYMOUS
        if operation.needs_login:
            peer = UNKNOWN_PEER if request.client is None else peer_name(tuple(request.client))
            login = await self._logins.login(request.headers.get("authorization"), peer)
        call = Call(request, login, decode_path(request))
        model = operation.wanted
        body: BaseModel | None = None
        if model is None:
            answer = await operation.handler(call)
        elif operation.has_body:
            body = await _read_body(request, model)
            answer = await operation.handler(call, body)
        else:
            answer = await operation.handler(call, _read_query(request, model))
        if operation.is_audited:
            self._audit(operation, call, body)
        if isinstance(answer, Response):
            return answer
        await wait_synced(self._gate, answer.position)
        if answer.entries >= LARGE_ANSWER:
            encoded = await asyncio.to_thread(_encode, answer.content)
        else:
            encoded = _encode(answer.content)
        return Response(encoded, answer.status or operation.status, media_type=JSON_TYPE)

    def _audit(self, operation: Operation, call: Call, body: BaseModel | None) -> None:
        name = next(iter(call.path.values()), "") or getattr(body, "name", "")
        given = {} if body is None else body.model_dump(exclude_unset=True, exclude={"name", "text"})
        fields = one_line(f" {dict(sorted(given.items()))}", _AUDITED_CHARACTERS) if given else ""
        user, named = (one_line(text, _AUDITED_CHARACTERS) for text in (call.login.user, str(name)))
        self._audit_log.info(f"DMQ6180: user '{user}' at {_peer(call.request)}: {operation.name} '{named}'{fields}")


def _encode(content: Any) -> bytes:
    return json.dumps(asdict(content), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _peer(request: Request) -> str:
    return request.client.host if request.client is not None else UNKNOWN_PEER


def decode_path(request: Request) -> dict[str, str]:
    """Path parameters as names; segments travel percent-encoded, so that a name may hold any character."""
    try:
        return {key: unquote(str(value), errors="strict") for key, value in request.path_params.items()}
    except UnicodeDecodeError:
        raise ProblemError(400, "DMQ6401", "INVALID", "a name in the path is not percent-encoded UTF-8") from None


async def _read_body(request: Request, model: type[BaseModel]) -> BaseModel:
    needless = getattr(model, "may_be_left_out", False)
    # Also keeps other sites' forms from acting with a browser's remembered login: they can't send this type.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON_TYPE:
        # Other clients than browsers may leave out an empty body; a browser names the site that it acts for.
        if not needless or "origin" in request.headers or await _collect(request):
            raise _not_json_type()
        return model()
    encoded = await _collect(request)
    if needless and not encoded:
        return model()
    try:
        # Parsed here first: pydantic's own words for bad JSON name no line.
        json.loads(encoded, object_pairs_hook=_each_once)
        return model.model_validate_json(encoded)
    except ValidationError as error:
        raise invalid(error, model) from None
    except RecursionError:
        sentence = "the request's body has lists or objects nested too deeply; write the fields of one object"
        raise ProblemError(400, "DMQ6403", "NOT_JSON", sentence) from None
    except ValueError as error:
        raise ProblemError(400, "DMQ6403", "NOT_JSON", f"the request's body is not JSON: {error}") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON that says each field once, as of two values one would be overlooked."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        fault = FieldFault(twice, "is given twice; give it once")
        raise ProblemError(400, "DMQ6163", "INVALID", f"'{twice}' {fault.message}", faults=(fault,))
    return found


def _not_json_type() -> ProblemError:
    return ProblemError(
        415, "DMQ6402", "NOT_JSON", f"send the request's body as JSON, with the header Content-Type: {JSON_TYPE}"
    )


async def _collect(request: Request) -> bytes:
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > BODY_LIMIT_BYTES:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for part in request.stream():
                size += len(part)
                if size > BODY_LIMIT_BYTES:
                    raise _too_large()
                parts.append(part)
    except TimeoutError:
        raise ProblemError(
            400, "DMQ6404", "TOO_SLOW", f"the request's body did not arrive within {BODY_TIMEOUT_S:.0f} s"
        ) from None
    return b"".join(parts)


def _too_large() -> ProblemError:
    return ProblemError(413, "DMQ6405", "TOO_LARGE", f"a request's body may have {BODY_LIMIT_BYTES} bytes at most")


def _read_query(request: Request, model: type[BaseModel]) -> BaseModel:
    fields = request.query_params.multi_items()
    if len({name for name, _ in fields}) != len(fields):
        raise ProblemError(400, "DMQ6406", "INVALID", "a query parameter is given twice; give each once")
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        raise invalid(error, model) from None
