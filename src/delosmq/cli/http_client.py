"""Calls of the management commands to a running broker."""

import base64
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Final

from delosmq.model.errors import BrokerError

TIMEOUT_S: Final = 10.0


class HttpClient:
    """JSON over HTTP with a broker's login. The password comes from a file or DELOSMQ_PASSWORD, never an argument."""

    def __init__(self, url: str, user: str, password_file: Path | None) -> None:
        self._url = (url if "://" in url else f"http://{url}").rstrip("/")
        self._user = user
        self._password = self._read_password(password_file)

    @staticmethod
    def _read_password(password_file: Path | None) -> str:
        if password_file is None:
            password = os.environ.get("DELOSMQ_PASSWORD")
            if password is None:
                raise BrokerError(
                    "DMQ7002", "no password: set DELOSMQ_PASSWORD, or name a file that holds it with --password-file"
                )
            return password
        try:
            return password_file.read_text(encoding="utf-8").rstrip("\n")
        except OSError as error:
            raise BrokerError("DMQ7003", f"can't read the password file {password_file}: {error.strerror}") from error

    def get(self, path: str, **query: object) -> Any:
        """GET; what is "" or 0 is left out of the query."""
        wanted = urllib.parse.urlencode({name: value for name, value in query.items() if value})
        return self.call("GET", f"{path}?{wanted}" if wanted else path)

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Any call; ``path`` is percent-encoded, ``body`` becomes JSON.

        Raises:
            BrokerError: the broker can't be reached, or its own sentence when it refuses.
        """
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, content, method=method)
        if content is not None:
            request.add_header("Content-Type", "application/json")
        token = base64.b64encode(f"{self._user}:{self._password}".encode()).decode()
        request.add_header("Authorization", f"Basic {token}")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise BrokerError("DMQ7004", f"{self._url} answered {error.code}: {_detail(error)}") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise BrokerError(
                "DMQ7005", f"can't reach {self._url}: {reason}; is the broker running, and is --url right?"
            ) from error


def in_path(name: str) -> str:
    """A name as one segment of a path."""
    return urllib.parse.quote(name, safe="")


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (ValueError, KeyError, TypeError):
        return error.reason
