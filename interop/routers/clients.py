"""The clients that routers send elsewhere, behind one port: the Java client over OpenWire, and stomp.py."""

from __future__ import annotations

import contextlib
import re
import selectors
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import stomp
from stomp.utils import Frame

from interop.java import JVM_OPTIONS

HOST: Final = "127.0.0.1"
PATIENCE_S: Final = 60.0
"""For what must come."""
_MOST_REDIRECTS: Final = 5
_RETRY_S: Final = 0.2
_PORT: Final = re.compile(r":(\d+)\D*$")
_CLOSED: Final = "closed"


class NotShown(Exception):
    """Something is not as the program says; the message is one sentence."""


class Refused(Exception):
    """The broker does not serve this client; the message is what the client was told."""


@dataclass(frozen=True, slots=True)
class Login:
    """A user with the password."""

    user: str
    password: str


class RoutedConnection(ABC):
    """One that is served by some broker."""

    @property
    @abstractmethod
    def port(self) -> int:
        """Of the broker that serves it."""

    @abstractmethod
    def send(self, queue: str, text: str) -> None:
        """Returns when the broker has the message."""

    @abstractmethod
    def receive(self, queue: str) -> str:
        """The text of the next message, which is acknowledged. Raises NotShown when none comes."""

    @abstractmethod
    def close(self) -> None:
        """Returns when it is closed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RoutedClient(ABC):
    """Somebody else's client.

    Attributes:
        reconnects: its connections go on at the next broker when theirs is gone.
    """

    name: str
    reconnects: bool

    @abstractmethod
    def connect(self, ports: Sequence[int], login: Login, client_id: str) -> RoutedConnection:
        """Tries the brokers in this order and goes where it is sent, until one serves it. Raises NotShown."""

    @abstractmethod
    def ask(self, port: int, login: Login, client_id: str) -> RoutedConnection:
        """The same with one broker, without going elsewhere. Raises Refused."""

    def close(self) -> None:  # noqa: B027 -- a client without a process of its own has nothing to do
        """Ends its process."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class JavaClient(RoutedClient):
    """The unmodified Java client over OpenWire, in one process that does as it is told.

    Args:
        java, classpath: the program and what it needs, compiled.
    """

    reconnects = True

    def __init__(self, java: str, classpath: str, version: str, errors: Path) -> None:
        self.name = f"Java client {version}"
        self._names = count(1)
        self._errors = errors.open("ab")
        self._process = subprocess.Popen(
            [java, *JVM_OPTIONS, "-cp", classpath, "interop.routers.RoutedClient"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        assert self._process.stdout is not None
        self._answers = selectors.DefaultSelector()
        self._answers.register(self._process.stdout, selectors.EVENT_READ)

    def do(self, *words: str) -> str:
        """What comes of it. Raises Refused with the error, and NotShown when there is no answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(("\t".join(words) + "\n").encode())
        self._process.stdin.flush()
        if not self._answers.select(PATIENCE_S):
            self._process.kill()
            raise NotShown(f"the {self.name} does not end '{words[0]}' within {PATIENCE_S:g} s")
        verdict, _, text = self._process.stdout.readline().decode().rstrip("\n").partition("\t")
        if verdict != "ok":
            raise Refused(text or f"the process of the {self.name} has ended")
        return text

    def connect(self, ports: Sequence[int], login: Login, client_id: str) -> RoutedConnection:
        brokers = ",".join(f"tcp://{HOST}:{port}" for port in ports)
        options = "randomize=false&initialReconnectDelay=100&useExponentialBackOff=false"
        try:
            return self._open(f"failover:({brokers})?{options}&jms.clientID={client_id}", login)
        except Refused as error:
            raise NotShown(f"the {self.name} is not served: {error}") from error

    def ask(self, port: int, login: Login, client_id: str) -> RoutedConnection:
        return self._open(f"tcp://{HOST}:{port}?jms.clientID={client_id}", login)

    def _open(self, url: str, login: Login) -> RoutedConnection:
        name = str(next(self._names))
        self.do("connect", name, url, login.user, login.password)
        return _JavaConnection(self, name)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._answers.close()
        self._errors.close()


class _JavaConnection(RoutedConnection):
    def __init__(self, client: JavaClient, name: str) -> None:
        self._client = client
        self._name = name

    @property
    def port(self) -> int:
        return port_in(self._client.do("where", self._name))

    def send(self, queue: str, text: str) -> None:
        self._client.do("send", self._name, queue, text)

    def receive(self, queue: str) -> str:
        text = self._client.do("receive", self._name, queue, str(int(PATIENCE_S * 500)))
        if not text:
            raise NotShown(f"no message comes from {queue} at port {self.port}")
        return text

    def close(self) -> None:
        self._client.do("close", self._name)


def port_in(address: str) -> int:
    """Of an address as clients and brokers write it. Raises NotShown for one without a port."""
    found = _PORT.search(address)
    if found is None:
        raise NotShown(f"'{address}' has no port")
    return int(found[1])


class StompClient(RoutedClient):
    """stomp.py, which follows the header ``redirect-to`` of an ERROR; without one it tries the next broker."""

    name = f"stomp.py {version('stomp.py')}"
    reconnects = False

    def connect(self, ports: Sequence[int], login: Login, client_id: str) -> RoutedConnection:
        deadline = time.monotonic() + PATIENCE_S
        told = ""
        while time.monotonic() < deadline:
            for port in ports:
                try:
                    return self._follow(port, login, client_id)
                except (Refused, stomp.exception.ConnectFailedException) as error:
                    told = str(error)
            # No condition to wait for: the client polls until a broker takes it.
            time.sleep(_RETRY_S)
        raise NotShown(f"stomp.py is not served within {PATIENCE_S:g} s: {told}")

    def _follow(self, port: int, login: Login, client_id: str) -> RoutedConnection:
        for _ in range(_MOST_REDIRECTS):
            connection = _StompConnection(port)
            told = connection.log_in(login, client_id)
            if told is None:
                return connection
            if "redirect-to" not in told:
                raise Refused(told.get("message", ""))
            port = port_in(told["redirect-to"])
        raise Refused(f"redirected more than {_MOST_REDIRECTS} times")

    def ask(self, port: int, login: Login, client_id: str) -> RoutedConnection:
        connection = _StompConnection(port)
        told = connection.log_in(login, client_id)
        if told is not None:
            raise Refused(str(told))
        return connection


class _StompConnection(RoutedConnection, stomp.ConnectionListener):  # type: ignore[misc]
    """Its methods ``on_*`` are called by stomp.py's thread."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._changed = threading.Condition()
        self._seen: dict[str, dict[str, str]] = {}
        self._texts: deque[tuple[str, str]] = deque()
        self._receipts = count(1)
        self._client: Any = stomp.Connection12([(HOST, port)], reconnect_attempts_max=1)
        self._client.set_listener("", self)

    @property
    def port(self) -> int:
        return self._port

    def log_in(self, login: Login, client_id: str) -> dict[str, str] | None:
        """None when it is served, else the headers of the ERROR, and it is closed."""
        headers = {"client-id": client_id} if client_id else {}
        self._client.connect(login.user, login.password, headers=headers)
        self._wait_for("connected", "error", _CLOSED)
        if "connected" in self._seen:
            return None
        if "error" not in self._seen:
            raise Refused("the broker has closed the connection")
        self._client.transport.disconnect_socket()
        self._wait_for(_CLOSED)
        return self._seen["error"]

    def send(self, queue: str, text: str) -> None:
        receipt = f"r{next(self._receipts)}"
        self._client.send(
            queue, text, headers={"destination-type": "ANYCAST", "persistent": "true", "receipt": receipt}
        )
        self._wait_for(receipt)

    def receive(self, queue: str) -> str:
        receipt = f"r{next(self._receipts)}"
        headers = {"subscription-type": "ANYCAST"}
        self._client.subscribe(queue, id="s", ack="client-individual", headers=headers)
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._texts) > 0 or "error" in self._seen, PATIENCE_S / 2):
                raise NotShown(f"no message comes from {queue} at port {self._port}")
            if not self._texts:
                raise Refused(str(self._seen["error"]))
            text, mark = self._texts.popleft()
        self._client.ack(mark)
        # What came behind it goes back to the queue.
        self._client.unsubscribe("s", headers={"receipt": receipt})
        self._wait_for(receipt)
        self._texts.clear()
        return text

    def close(self) -> None:
        self._client.disconnect()
        self._wait_for(_CLOSED)

    def _wait_for(self, *names: str) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: any(name in self._seen for name in names), PATIENCE_S):
                raise NotShown(f"none of {', '.join(names)} comes from port {self._port}")

    def _note(self, name: str, headers: dict[str, str]) -> None:
        with self._changed:
            self._seen[name] = headers
            self._changed.notify_all()

    def on_connected(self, frame: Frame) -> None:
        self._note("connected", frame.headers)

    def on_error(self, frame: Frame) -> None:
        self._note("error", frame.headers)

    def on_receipt(self, frame: Frame) -> None:
        self._note(frame.headers["receipt-id"], frame.headers)

    def on_disconnected(self) -> None:
        self._note(_CLOSED, {})

    def on_message(self, frame: Frame) -> None:
        with self._changed:
            self._texts.append((frame.body, frame.headers["ack"]))
            self._changed.notify_all()
