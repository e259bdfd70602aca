"""A whole broker behind real sockets, and clients other people wrote."""

import asyncio
import base64
import contextlib
import itertools
import logging
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import stomp
from stomp.utils import Frame

from delosmq.composition import Accounts, ComposedBroker
from delosmq.engine.base.events import EngineEvents
from delosmq.model.settings import BrokerSettings, WebBind
from delosmq.security.certificates import CertificateUsers
from delosmq.security.passwords import SALT_BYTES, hash_password
from delosmq.storage.port import ServedStore
from tests.patience import PATIENCE_S

HOST = "127.0.0.1"
CONNECTIONS = {"1.0": stomp.Connection10, "1.1": stomp.Connection11, "1.2": stomp.Connection12}


@dataclass(frozen=True)
class User:
    name: str
    password: str
    roles: frozenset[str]


ADMIN = User("admin", "an admin's secret", frozenset({"amq"}))
GUEST = User("guest", "a guest's secret", frozenset({"guests"}))


class RunningBroker:
    """A composed broker on a loop in a thread of its own.

    Args:
        open_store: called on that thread, before the loop serves anybody.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        open_store: Callable[[], ServedStore],
        events: EngineEvents | None = None,
        *,
        certificates: CertificateUsers | None = None,
    ) -> None:
        self._settings = settings
        self._open_store = open_store
        self._events = events
        self._certificates = certificates
        self._started = threading.Event()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="broker-under-test", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self.composed: ComposedBroker | None = None

    def __enter__(self) -> "RunningBroker":
        self._thread.start()
        self._started.wait(PATIENCE_S)
        if self._error is not None:
            raise self._error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stop is not None and not self._ended.is_set():
            with contextlib.suppress(RuntimeError):  # the loop ended by itself just now
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the broker does not end"

    @property
    def port(self) -> int:
        assert self.composed is not None
        return next(iter(self.composed.ports.values()))

    @property
    def http_url(self) -> str:
        assert self.composed is not None
        return self.composed.http_url

    def get(self, path: str) -> tuple[int, str]:
        """GET over HTTP: status and body."""
        login = base64.b64encode(f"{ADMIN.name}:{ADMIN.password}".encode()).decode()
        request = urllib.request.Request(self.http_url + path, headers={"Authorization": f"Basic {login}"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def get_until(self, path: str, status: int) -> str:
        """Asks until the answer has this status; gives its body."""
        end = time.monotonic() + PATIENCE_S
        while True:
            found, body = self.get(path)
            if found == status:
                return body
            assert time.monotonic() < end, f"{path} answers {found}, not {status}: {body}"

    def wait_ended(self) -> BaseException | None:
        """Waits until the broker has stopped by itself; gives its reason."""
        assert self._ended.wait(PATIENCE_S), "the broker goes on"
        assert self.composed is not None
        return self.composed.failure

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._started.set()
            self._ended.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        salt = bytes(SALT_BYTES)
        accounts = Accounts(
            {user.name: hash_password(user.password, salt) for user in (ADMIN, GUEST)},
            {user.name: user.roles for user in (ADMIN, GUEST)},
            certificates=self._certificates,
        )
        store = self._open_store()
        composed = ComposedBroker(
            self._settings,
            accounts,
            store,
            http=WebBind(HOST, 0),
            logger=logging.getLogger("delosmq.e2e"),
            events=self._events,
        )
        try:
            composed.recover()
            await composed.start()
            await composed.start_http()
            self.composed = composed
            self._started.set()
            waits = [asyncio.ensure_future(self._stop.wait()), asyncio.ensure_future(composed.failed.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        finally:
            await composed.stop(2.0)


class Inbox(stomp.ConnectionListener):  # type: ignore[misc]
    """Everything that arrives, and a way to wait for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.messages: list[Frame] = []
        self.receipts: list[str] = []
        self.errors: list[Frame] = []
        self.connected: dict[str, str] = {}
        self.heart_beats = 0
        self.silences = 0
        self.closed = False

    def wait(self, what: Callable[["Inbox"], bool], say: str = "") -> None:
        """Waits until ``what`` is true of this inbox."""
        with self._changed:
            done = self._changed.wait_for(lambda: what(self), PATIENCE_S)
        assert done, say or f"never came: {self.messages} {self.receipts} {self.errors} closed: {self.closed}"

    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        with self._changed:
            yield
            self._changed.notify_all()

    def on_connected(self, frame: Frame) -> None:
        with self._change():
            self.connected = frame.headers

    def on_message(self, frame: Frame) -> None:
        with self._change():
            self.messages.append(frame)

    def on_receipt(self, frame: Frame) -> None:
        with self._change():
            self.receipts.append(frame.headers["receipt-id"])

    def on_error(self, frame: Frame) -> None:
        with self._change():
            self.errors.append(frame)

    def on_heartbeat(self) -> None:
        with self._change():
            self.heart_beats += 1

    def on_heartbeat_timeout(self) -> None:
        with self._change():
            self.silences += 1

    def on_disconnected(self) -> None:
        with self._change():
            self.closed = True


class Client:
    """One connection of stomp.py."""

    def __init__(
        self,
        port: int,
        version: str,
        *,
        user: User = ADMIN,
        heartbeats: tuple[int, int] = (0, 0),
        wait: bool = True,
        **options: Any,
    ) -> None:
        if version != "1.0":
            options["heartbeats"] = heartbeats
        self.version = version
        self.inbox = Inbox()
        self.connection = CONNECTIONS[version]([(HOST, port)], reconnect_attempts_max=1, **options)
        self.connection.set_listener("inbox", self.inbox)
        self._receipts = itertools.count(1)
        self.connection.connect(user.name, user.password, wait=wait)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()

    def drop(self) -> None:
        """Closes the socket without a word."""
        self.connection.transport.disconnect_socket()
        self.inbox.wait(lambda inbox: inbox.closed, "stomp.py does not notice that its socket is closed")

    def receipt(self) -> str:
        return f"r{next(self._receipts)}"

    def confirmed(self, receipt: str) -> None:
        self.inbox.wait(lambda inbox: receipt in inbox.receipts, f"no receipt {receipt}: {self.inbox.errors}")

    def send(self, destination: str, body: str | bytes, *, persistent: bool = True, **headers: Any) -> None:
        """Sends and waits for the receipt."""
        receipt = self.receipt()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named |= {"receipt": receipt, "persistent": "true" if persistent else "false"}
        self.connection.send(destination, body, headers=named)
        self.confirmed(receipt)

    def subscribe(self, destination: str, ack: str = "auto", key: str = "s", **headers: str) -> None:
        receipt = self.receipt()
        self.connection.subscribe(destination, key, ack=ack, headers={"receipt": receipt, **headers})
        self.confirmed(receipt)

    def bodies(self, count: int) -> list[Any]:
        """The bodies of the first ``count`` messages, once they are there."""
        self.inbox.wait(lambda inbox: len(inbox.messages) >= count)
        return [frame.body for frame in self.inbox.messages[:count]]

    def acknowledge(self, message: Frame, command: str = "ack") -> None:
        """ACK or NACK as this version names deliveries; waits for the receipt."""
        receipt = self.receipt()
        call = getattr(self.connection, command)
        if self.version == "1.0":
            call(message.headers["message-id"], receipt=receipt)
        elif self.version == "1.1":
            call(message.headers["message-id"], message.headers["subscription"], receipt=receipt)
        else:
            call(message.headers["ack"], receipt=receipt)
        self.confirmed(receipt)

    def nothing_more_comes(self, destination: str, received: int) -> None:
        """What was sent to ``destination`` before has arrived, or never will: a marker sent now comes next."""
        self.send(destination, "marker", persistent=False, priority=0)
        assert self.bodies(received + 1)[received] in ("marker", b"marker")

    def error(self) -> Frame:
        self.inbox.wait(lambda inbox: bool(inbox.errors), "no ERROR came")
        self.inbox.wait(lambda inbox: inbox.closed, "the connection stays open after ERROR")
        return self.inbox.errors[0]


class RawPeer:
    """A socket and bytes: for what no client sends."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=PATIENCE_S)
        self.received = b""

    def __enter__(self) -> "RawPeer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def connect(self, *headers: str, user: User = ADMIN, version: str = "1.2") -> None:
        lines = [f"accept-version:{version}", "host:x", f"login:{user.name}", f"passcode:{user.password}", *headers]
        self.send("CONNECT\n" + "\n".join(lines) + "\n\n\0")
        self.until(b"CONNECTED")

    def send(self, text: str | bytes) -> None:
        self.socket.sendall(text.encode() if isinstance(text, str) else text)

    def until(self, wanted: bytes) -> bytes:
        """Reads until ``wanted`` came."""
        while wanted not in self.received:
            chunk = self.socket.recv(65536)
            assert chunk, f"closed before {wanted!r}: {self.received!r}"
            self.received += chunk
        return self.received

    def until_closed(self) -> bytes:
        """Reads what comes until the broker closes the connection."""
        with contextlib.suppress(ConnectionResetError):
            while chunk := self.socket.recv(65536):
                self.received += chunk
        return self.received
