"""Calls of the management commands to a running broker."""

import base64
import json
import os
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from functools import cached_property
from http import HTTPStatus
from http.client import BadStatusLine, HTTPException, RemoteDisconnected
from pathlib import Path
from typing import Any, Final

from delosmq.cli.usage import WrongCallError
from delosmq.model.errors import BrokerError
from delosmq.model.values import BODY_LIMIT_BYTES

TIMEOUT_S: Final = 10.0

_MOST_READ: Final = 1 << 20
_MESSAGING: Final = (
    "a port for messages, and not the HTTP interface; name that with --url (http://127.0.0.1:8161 unless"
    " etc/bootstrap.xml says otherwise)"
)
_OF_OTHER_PORTS: Final = frozenset({HTTPStatus.MISDIRECTED_REQUEST, HTTPStatus.UPGRADE_REQUIRED})
"""What the acceptors of other protocols answer to HTTP."""
_CERTIFICATE_ASKED: Final = frozenset(
    {"TLSV13_ALERT_CERTIFICATE_REQUIRED", "TLSV1_ALERT_UNKNOWN_CA", "SSLV3_ALERT_HANDSHAKE_FAILURE"}
)
"""What a server says of the client's certificate, in the words of OpenSSL."""
_OWN_OPTIONS: Final = frozenset({"after", "limit", "queue", "prepared", "force", "text", "priority"})
"""Fields that are no settings of a queue: options of their own."""
_LONGEST_PASSWORD: Final = 4_096
_FIELD: Final = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


class HttpClient:
    """JSON over HTTP with a broker's login. The password comes from a file or DELOSMQ_PASSWORD, never an argument."""

    def __init__(
        self,
        url: str,
        user: str,
        password_file: Path | None,
        *,
        ca_file: Path | None = None,
        cert_file: Path | None = None,
    ) -> None:
        """
        Args:
            ca_file: of the authority that a broker with https:// is checked with; None for those of the system.
            cert_file: the client's own certificate, with its key.
        """
        self._url = (url if "://" in url else f"http://{url}").rstrip("/")
        self.user = user
        self._password_file = password_file
        self._ca_file = ca_file
        self._cert_file = cert_file

    @cached_property
    def _tls(self) -> ssl.SSLContext | None:
        """None for http://."""
        if not self._url.lower().startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cafile=self._ca_file)
        except (OSError, ValueError) as error:
            raise BrokerError("DMQ7115", f"can't read the authorities in {self._ca_file}: {_readable(error)}") from None
        if self._cert_file is not None:
            try:
                context.load_cert_chain(self._cert_file, password=_no_password)
            except (OSError, ValueError) as error:
                raise BrokerError(
                    "DMQ7115", f"can't read the certificate in {self._cert_file}: {_readable(error)}"
                ) from None
        return context

    @cached_property
    def _password(self) -> str:
        """Read with the first call: what is wrong with the other arguments is said first."""
        password_file = self._password_file
        if password_file is None:
            password = os.environ.get("DELOSMQ_PASSWORD")
            if password is None:
                raise BrokerError(
                    "DMQ7002", "no password: set DELOSMQ_PASSWORD, or name a file that holds it with --password-file"
                )
            if not password:
                raise BrokerError(
                    "DMQ7105",
                    "DELOSMQ_PASSWORD is empty: set it to the password, or name a file that holds it with"
                    " --password-file",
                )
            return password
        try:
            with password_file.open(encoding="utf-8") as opened:
                password = opened.read(_LONGEST_PASSWORD + 1).rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise BrokerError("DMQ7003", f"can't read the password file {password_file}: {reason}") from error
        if len(password) > _LONGEST_PASSWORD:
            raise BrokerError(
                "DMQ7003",
                f"can't read the password file {password_file}: it holds more than {_LONGEST_PASSWORD} characters; name"
                " the file that holds the password and nothing else",
            )
        if not password:
            raise BrokerError("DMQ7106", f"the password file {password_file} is empty; write the password into it")
        return password

    def get(self, path: str, **query: object) -> Any:
        """GET; what is "" or 0 is left out of the query."""
        wanted = urllib.parse.urlencode({name: value for name, value in query.items() if value})
        return self.call("GET", f"{path}?{wanted}" if wanted else path)

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Any call; ``path`` is percent-encoded, ``body`` becomes JSON.

        Raises:
            BrokerError: the body is too large, the broker can't be reached, or its own sentence when it refuses.
        """
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            check_body(content)
        request = urllib.request.Request(self._url + path, content, method=method)
        if content is not None:
            request.add_header("Content-Type", "application/json")
        token = base64.b64encode(f"{self.user}:{self._password}".encode()).decode()
        request.add_header("Authorization", f"Basic {token}")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=self._tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            answer_text = error.read(_MOST_READ).decode("utf-8", "replace")
            if error.code in _OF_OTHER_PORTS:
                said = f"; it says: {answer_text.strip()}" if answer_text.strip() else ""
                raise BrokerError("DMQ7107", f"{self._url} is {_MESSAGING}{said}") from error
            raise BrokerError("DMQ7004", f"{self._url} answered {error.code}: {_told(answer_text, error)}") from error
        except (RemoteDisconnected, BadStatusLine) as error:
            raise BrokerError("DMQ7108", f"{self._url} does not speak HTTP: perhaps it is {_MESSAGING}") from error
        except (OSError, ValueError, HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(reason, ConnectionResetError | BrokenPipeError):
                raise BrokerError("DMQ7108", f"{self._url} does not speak HTTP: perhaps it is {_MESSAGING}") from error
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise BrokerError(
                    "DMQ7116",
                    f"the certificate of {self._url} is not trusted ({reason.verify_message}): name the PEM file of its"
                    " authority with --ca-file, and in --url a host for which it was made",
                ) from error
            if isinstance(reason, ssl.SSLError) and reason.reason in _CERTIFICATE_ASKED:
                raise BrokerError(
                    "DMQ7119",
                    f"{self._url} does not accept the client's certificate, or asks for one: name a PEM file with a"
                    " certificate and its key with --cert-file",
                ) from error
            if isinstance(reason, ssl.SSLError):
                raise BrokerError("DMQ7112", f"there is no TLS at {self._url}, write http:// in --url") from error
            raise BrokerError(
                "DMQ7005", f"can't reach {self._url}: {reason}; is the broker running, and is --url right?"
            ) from error


def _readable(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "it is missing; correct the path"
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError):
        return f"{error.strerror}; name a PEM file that may be read"
    return "it is no PEM file of that kind, or its key is encrypted; look at it with: openssl x509 -text -in FILE"


def _no_password() -> str:
    """Without this OpenSSL would ask on the terminal for that of an encrypted key."""
    return ""


def check_body(content: bytes) -> None:
    """Raises BrokerError for what is larger than a request's body may be: the broker would hang up while it is sent."""
    if len(content) > BODY_LIMIT_BYTES:
        message = f"a request's body may have {BODY_LIMIT_BYTES} bytes at most, as JSON; send a shorter text"
        raise BrokerError("DMQ7113", message)


def in_path(name: str, argument: str = "NAME") -> str:
    """A name as one segment of a path; raises WrongCallError for none, which would make another path."""
    if not name:
        raise WrongCallError("DMQ7114", f"{argument} must not be empty")
    return urllib.parse.quote(name, safe="")


def _told(answer: str, error: urllib.error.HTTPError) -> str:
    """What a refusal says; of fields, by the names they have here."""
    try:
        problem = json.loads(answer)
        faults = problem.get("faults") or []
        return "; ".join(_fault(str(fault["field"]), str(fault["message"])) for fault in faults) or problem["detail"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return error.reason


def _fault(field: str, message: str) -> str:
    said = _FIELD.sub(lambda found: found[0].replace("_", "-"), message).replace("or null", "or default")
    return f"{option_of(field)} {said}" if field else f"the request {said}"


def option_of(field: str) -> str:
    """How a field of a request is written on the command line."""
    return f"--{field}" if field in _OWN_OPTIONS else "NAME" if field == "name" else f"--set {field.replace('_', '-')}"
