"""HTTP to one of several servers: logs in, retries for a bounded time, moves on to the next server.

A broker that restarts must not fail a query at once. Every call made through here is idempotent, so a request may
be sent again when its answer was lost.
"""

import base64
import http.client
import json
import ssl
import time
from collections.abc import Callable
from typing import Any, NoReturn
from urllib.parse import quote

from delosmq.model.errors import BrokerError
from delosmq.spark import errors
from delosmq.spark.options import DEFAULT_PORT, ConnectionOptions, HttpEndpoint, tls_context

ANSWER_TIMEOUT_S = 65.0
"""Longer than the longest poll the broker allows (30 s), so that only a dead peer runs into it."""
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
_OF_OTHER_PORTS = frozenset({421, 426})
"""What the acceptors of other protocols answer to HTTP, in plain text."""
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"})
"""How OpenSSL names an answer that is none of TLS."""
_TLS_ALERT = "\x15\x03"
"""How the answer of a TLS port to plain HTTP begins."""
_CERTIFICATE_ASKED = frozenset({"TLSV13_ALERT_CERTIFICATE_REQUIRED", "TLSV1_ALERT_UNKNOWN_CA"})
"""How OpenSSL names what a server says of the client's certificate."""
_SPEAKS_TLS = "TLS_NEEDED"
"""Condition of a broker's answer there."""
JSON_TYPE = "application/json"
STAGING = "/api/v1/staging/"
"""Where a limit is final, and a full address is waited for with a line that says so."""
RETRYABLE_STATUS = frozenset({429, 502, 503, 504})

CONDITIONS: dict[str, tuple[type[BrokerError], str]] = {
    "LEASE_LOST": (errors.LeaseLostError, "DMQ8057"),
    "FOREIGN_INCARNATION": (errors.ForeignIncarnationError, "DMQ8020"),
    "GROUP_BUSY": (errors.GroupBusyError, "DMQ8021"),
    "FENCED": (errors.FencedError, "DMQ8022"),
    "OTHER_SELECTOR": (errors.OptionError, "DMQ8070"),
    "BODY_TOO_LARGE": (errors.BodyTooLargeError, "DMQ8068"),
    "NO_ROOM_NOW": (errors.NoRoomError, "DMQ8172"),
    "PART_BUSY": (errors.PartBusyError, "DMQ8173"),
    "PART_LOST": (errors.PartLostError, "DMQ8174"),
    "LIMIT": (errors.AnswerError, "DMQ8175"),
    "TOO_LARGE": (errors.PartTooLargeError, "DMQ8177"),
}


class UnansweredError(Exception):
    """A server could not be reached, broke off or is not ready; trying again may help."""


class RetryTimer:
    """How long a call may go on failing: pauses grow from 0.1 to 2 s until ``limit_s`` without progress is over."""

    def __init__(self, limit_s: float, monotonic: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self.limit_s = limit_s
        self._monotonic = monotonic
        self._sleep = sleep
        self.progress()

    def progress(self) -> None:
        """Something arrived: start counting anew."""
        self._until = self._monotonic() + self.limit_s
        self._pause_s = FIRST_PAUSE_S

    def wait(self) -> bool:
        """Sleep before the next attempt; false when there is no time left for one."""
        if self._monotonic() + self._pause_s > self._until:
            return False
        self._sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        return True


class Transport:
    """One kept connection to the server that answered last. Not for several threads. Pickled: never."""

    def __init__(
        self,
        options: ConnectionOptions,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.options = options
        self._monotonic = monotonic
        self._sleep = sleep
        self._at = 0
        self._connection: http.client.HTTPConnection | None = None
        token = base64.b64encode(f"{options.user}:{options.password}".encode()).decode("ascii")
        self._headers = {"Authorization": f"Basic {token}"} if options.user else {}

    @property
    def server(self) -> HttpEndpoint:
        """The server that the next request goes to."""
        return self.options.servers[self._at]

    def retries(self) -> RetryTimer:
        """A new allowance of retries."""
        return RetryTimer(self.options.retry_timeout_s, self._monotonic, self._sleep)

    def close(self) -> None:
        """Drop the connection; the next request makes a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def call(
        self, method: str, path: str, body: dict[str, object] | bytes | None = None, *, content_type: str = JSON_TYPE
    ) -> dict[str, Any]:
        """Send a request and return the JSON object answered.

        Args:
            content_type: of a body that is bytes already.

        Raises:
            BrokerUnreachableError: no server answered in time.
            BrokerError: the subclass that fits the broker's refusal.
        """
        retries = self.retries()
        while True:
            try:
                with self.open(method, path, body, content_type=content_type) as response:
                    answer = self.reading(response.read)
                return _decode_object(answer, path)
            except UnansweredError as failure:
                self.retry(retries, failure)

    def open(
        self, method: str, path: str, body: dict[str, object] | bytes | None = None, *, content_type: str = JSON_TYPE
    ) -> http.client.HTTPResponse:
        """One attempt: the open response of a request that the broker accepted.

        Raises:
            UnansweredError: trying again may help (see `retry`).
            BrokerError: the subclass that fits the broker's refusal.
        """
        encoded = json.dumps(body).encode() if isinstance(body, dict) else body
        headers = self._headers if encoded is None else {**self._headers, "Content-Type": content_type}
        while True:
            reused = self._connection is not None
            try:
                connection = self._connection or self._connect()
                self._connection = connection
                connection.request(method, path, body=encoded, headers=headers)
                response = connection.getresponse()
                break
            except ssl.SSLCertVerificationError as wrong:
                self.close()
                raise errors.LoginRefusedError(
                    "DMQ8013",
                    f"the certificate of {self.server} is not trusted ({wrong.verify_message}): set tls.caFile",
                ) from None
            except (OSError, http.client.HTTPException) as wrong:
                self.close()
                if isinstance(wrong, ssl.SSLError) and wrong.reason in _CERTIFICATE_ASKED:
                    raise errors.LoginRefusedError(
                        "DMQ8016",
                        f"{self.server} does not accept the client's certificate, or asks for one: set tls.certFile",
                    ) from None
                if isinstance(wrong, ssl.SSLError) and wrong.reason in _NO_TLS:
                    raise self._wrong_scheme("does not speak TLS", "http") from None
                if isinstance(wrong, http.client.BadStatusLine) and str(wrong).startswith(_TLS_ALERT):
                    raise self._wrong_scheme("speaks TLS", "https") from None
                if isinstance(wrong, http.client.BadStatusLine) and not isinstance(wrong, OSError):
                    raise self._no_http("it answers in another protocol") from None
                if not reused:
                    raise UnansweredError(_reason(wrong)) from wrong
                # The server may close a connection that was idle; that says nothing about the server.
        if response.status < 300:
            return response
        with response:
            self._refuse(response.status, path, self.reading(response.read))

    def reading(self, read: Callable[[], bytes]) -> bytes:
        """What `read` returns; a connection that breaks off meanwhile is an UnansweredError."""
        try:
            return read()
        except (OSError, http.client.HTTPException) as wrong:
            self.close()
            raise UnansweredError(_reason(wrong)) from wrong

    def retry(self, retries: RetryTimer, failure: UnansweredError) -> None:
        """Move to the next server, and pause when all had their turn.

        Raises:
            BrokerUnreachableError: no time is left for a retry.
        """
        self.close()
        asked = self.server
        self._at = (self._at + 1) % len(self.options.servers)
        if self._at == 0 and not retries.wait():
            names = ", ".join(str(server) for server in self.options.servers)
            raise errors.BrokerUnreachableError(
                "DMQ8010",
                f"no broker answered at {names} for {retries.limit_s:g} s (last: {asked}: {failure}): check that it "
                "runs and that the option servers names its HTTP address, with http:// or https:// as it speaks",
            ) from failure

    def _connect(self) -> http.client.HTTPConnection:
        server = self.server
        if server.secure:
            context = tls_context(self.options.tls)
            return http.client.HTTPSConnection(server.host, server.port, timeout=ANSWER_TIMEOUT_S, context=context)
        return http.client.HTTPConnection(server.host, server.port, timeout=ANSWER_TIMEOUT_S)

    def _wrong_scheme(self, does: str, scheme: str) -> errors.AnswerError:
        server = self.server
        return errors.AnswerError(
            "DMQ8015",
            f"{server} {does}: write {scheme}://{server.host}:{server.port} in the option servers",
        )

    def _no_http(self, said: str) -> errors.AnswerError:
        return errors.AnswerError(
            "DMQ8014",
            f"{self.server} is not the HTTP interface of a broker ({said.rstrip('.')}): name the port of its HTTP "
            f"interface, {DEFAULT_PORT} by default, in the option servers, not that of STOMP or OpenWire",
        )

    def _refuse(self, status: int, path: str, answer: bytes) -> NoReturn:
        """Raise the error that the problem document in `answer` describes."""
        problem = _decode_problem(answer)
        if problem.get("condition") == _SPEAKS_TLS:
            raise self._wrong_scheme("speaks TLS", "https")
        if status in _OF_OTHER_PORTS and not problem:
            raise self._no_http(answer.decode("utf-8", "replace").strip().partition("\n")[0] or f"status {status}")
        detail = str(problem.get("detail") or problem.get("title") or f"status {status}")
        kind, code = CONDITIONS.get(str(problem.get("condition", "")), (None, ""))
        if status in RETRYABLE_STATUS and (kind is None or not path.startswith(STAGING)):
            self.close()
            raise UnansweredError(f"not ready ({detail})")
        if kind is not None:
            raise kind(code, detail)
        if status == 401:
            raise errors.LoginRefusedError(
                "DMQ8011", f"{self.server} refused the login of user {self.options.user!r}: check user and password"
            )
        if status == 403:
            raise errors.ForbiddenError(
                "DMQ8012", f"user {self.options.user!r} may not do this at {self.server}: {detail}"
            )
        if status == 404:
            raise errors.QueueMissingError("DMQ8024", detail)
        sentence = f"{self.server} answered {status} to {path}: {detail}"
        unknown = _unknown_field(problem)
        if unknown:
            raise errors.UnknownFieldError("DMQ8058", sentence, unknown)
        raise errors.AnswerError("DMQ8058", sentence)


def segment(name: str) -> str:
    """`name` as one segment of a path."""
    return quote(name, safe="")


def _reason(wrong: BaseException) -> str:
    return str(wrong) or type(wrong).__name__


def _unknown_field(problem: dict[str, Any]) -> str:
    """The field that the broker does not know, "" for none."""
    faults = problem.get("faults")
    for fault in faults if isinstance(faults, list) else ():
        if isinstance(fault, dict) and str(fault.get("message", "")).startswith("is unknown"):
            return str(fault.get("field", ""))
    return ""


def _decode_problem(answer: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(answer)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _decode_object(answer: bytes, path: str) -> dict[str, Any]:
    try:
        decoded = json.loads(answer)
    except ValueError:
        decoded = None
    if not isinstance(decoded, dict):
        raise errors.AnswerError("DMQ8058", f"the answer to {path} is no JSON object: is this a DelosMQ HTTP listener?")
    return decoded
