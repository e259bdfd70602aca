"""Errors as problem details (RFC 9457), with the stable code of the message and a condition that clients act on."""

from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from delosmq.engine.api import LeaseError, TransactionError, lease, staging_errors, xa
from delosmq.manage.control.queues import ExistsError, InUseError
from delosmq.model.errors import (
    XAER_NOTA,
    BrokerError,
    LimitError,
    MisuseError,
    NotFoundError,
    PermissionDeniedError,
    StorageError,
)

PROBLEM_TYPE: Final = "application/problem+json"
BASIC_CHALLENGE: Final = 'Basic realm="DelosMQ", charset="UTF-8"'

_TITLES: Final = {
    400: "Bad request",
    401: "Login required",
    403: "Not permitted",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Request too large",
    415: "Not JSON",
    429: "Limit reached",
    500: "Broker error",
    501: "Not installed",
    503: "Not ready",
}


@dataclass(frozen=True)
class FieldFault:
    """One field of a request that is wrong."""

    field: str
    message: str


class ProblemDocument(BaseModel):
    """The body of every answer that is not a success."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    condition: str


class ProblemError(Exception):
    """An answer that is not a success, raised from anywhere below a handler.

    Attributes:
        allowed: the methods that the path has, for the header ``Allow``; "" when they are not what is wrong.
    """

    def __init__(
        self,
        status: int,
        code: str,
        condition: str,
        detail: str,
        *,
        faults: tuple[FieldFault, ...] = (),
        allowed: str = "",
    ) -> None:
        super().__init__(code, detail)
        self.status = status
        self.code = code
        self.condition = condition
        self.detail = detail
        self.faults = faults
        self.allowed = allowed

    def response(self) -> Response:
        content: dict[str, object] = {
            "type": "about:blank",
            "title": _TITLES.get(self.status, "Error"),
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "condition": self.condition,
        }
        if self.faults:
            content["faults"] = [{"field": fault.field, "message": fault.message} for fault in self.faults]
        headers = {"WWW-Authenticate": BASIC_CHALLENGE} if self.status == 401 else {}
        if self.allowed:
            headers["Allow"] = self.allowed
        return JSONResponse(content, self.status, headers, PROBLEM_TYPE)


def problem_of(error: BrokerError) -> ProblemError:
    """The answer to a call that failed with ``error``."""
    status, condition = _status_of(error)
    return ProblemError(status, error.code, condition, error.message)


_STAGING: Final = {
    staging_errors.PART_LOST: 404,
    staging_errors.PART_BUSY: 409,
    staging_errors.NOT_YOURS: 403,
    staging_errors.NO_ROOM_NOW: 503,
    staging_errors.FENCED: 409,
}


def _status_of(error: BrokerError) -> tuple[int, str]:
    if isinstance(error, LeaseError):
        return (404 if error.condition == lease.LEASE_LOST else 409), error.condition
    if isinstance(error, staging_errors.StagingError):
        return _STAGING[error.condition], error.condition
    if isinstance(error, xa.XaError):
        return (404, "NOT_FOUND") if error.xa_code == XAER_NOTA else (409, "WRONG_STATE")
    if isinstance(error, TransactionError):
        return 409, "WRONG_STATE"
    if isinstance(error, PermissionDeniedError):
        return 403, "NOT_PERMITTED"
    if isinstance(error, NotFoundError):
        return 404, "NOT_FOUND"
    if isinstance(error, ExistsError):
        return 409, "EXISTS"
    if isinstance(error, InUseError):
        return 409, "IN_USE"
    if isinstance(error, MisuseError):
        return 400, "INVALID"
    if isinstance(error, LimitError):
        return 429, "LIMIT"
    if isinstance(error, StorageError):
        return 503, "STORAGE"
    return 500, "BROKEN"
