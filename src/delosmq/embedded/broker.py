"""A broker inside any Python process: ``with delosmq.Broker() as broker:``."""

import asyncio
import secrets
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Never, Self, TypeVar

from delosmq.composition import Accounts, ComposedBroker
from delosmq.embedded.arguments import (
    LOOPBACK,
    ROLE,
    check_arguments,
    check_distinct,
    check_http_port,
    check_http_tls,
    check_no_ports,
    chosen_settings,
    local_name,
    reachable,
    refuse_instance,
    refuse_unknown,
    tcp_url,
    with_port,
)
from delosmq.embedded.broker_thread import BrokerThread
from delosmq.engine.api import EngineEvents
from delosmq.model.errors import MisuseError
from delosmq.model.settings import BrokerSettings, TlsSettings, WebBind
from delosmq.security.passwords import HASH_BYTES, SALT_BYTES, unmatched_form
from delosmq.server.server_parts import Instruments
from delosmq.storage.journal.files import Files

T = TypeVar("T")
CALL_TIMEOUT_S: Final = 60.0
RANDOM_PASSWORD_BYTES: Final = 18
"""In digits: a hyphen in front would make an option of it on a command line."""
_HTTP: Final = ":http"


class Broker:
    """A broker on loopback and free ports, in a thread of its own; several may live in one process.

    Use it as a context manager, ``with`` or ``async with``. It is up when the block begins and gone when it ends.
    Started again, it has the same ports.

    Args:
        directory: where durable messages are kept; None keeps them in memory only, for as long as the broker runs. An
            instance directory of ``delosmq run`` is refused: its messages are in its directory ``data``.
        config: path of a broker.xml to be used instead of `default_settings`. Its journal-directory does not count, and
            the one user holds every role that it names.
        settings: the same as an object. What it leaves empty (acceptors, address-settings and so on) is as in
            `default_settings`.
        user, password: the login; a random password unless given.
        stomp_port, openwire_port: of the first acceptor that speaks it; 0 takes a free one, None what the settings say.
        http_port: 0 takes a free one; others contradict ``http=False``.
        http: False leaves the HTTP interface out (and its libraries unloaded).
        http_tls: has the HTTP interface speak TLS, with these PEM files; it contradicts ``http=False``.
        events: hears what the engine does, on the broker's thread.
        accept_loss: start although files of the journal are missing or damaged, without what was in them.
        name: by which clients of this process find it, ``vm://NAME``; one of its own unless given.
        ports: False opens none, neither for acceptors nor for HTTP: only clients of this process connect.

    Attributes:
        host, user, password: for clients.
        name: of the broker within this process.

    Raises:
        ConfigurationError: at once: an argument, a setting or the broker.xml is wrong. On entering: another broker uses
            the directory.
        StorageError: on entering: the directory's journal is damaged or belongs to another broker.
        LimitError: on entering: a port or the name is in use.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        config: Path | str | None = None,
        settings: BrokerSettings | None = None,
        user: str = "admin",
        password: str | None = None,
        stomp_port: int | None = None,
        openwire_port: int | None = None,
        http_port: int = 0,
        http: bool = True,
        http_tls: TlsSettings | None = None,
        events: EngineEvents | None = None,
        accept_loss: bool = False,
        name: str | None = None,
        ports: bool = True,
        **unknown: Never,
    ) -> None:
        refuse_unknown(unknown, Broker.__init__)
        check_arguments(
            {
                "directory": (directory, str | Path | None, "a path, or None for memory only"),
                "config": (config, str | Path | None, "the path of a broker.xml"),
                "settings": (settings, BrokerSettings | None, "a delosmq.model.settings.BrokerSettings"),
                "user": (user, str, "a text that is not empty"),
                "password": (password, str | None, "a text that is not empty; None makes a random one"),
                "http": (http, bool, "True or False"),
                "http_tls": (http_tls, TlsSettings | None, "a delosmq.model.settings.TlsSettings"),
                "events": (events, EngineEvents | None, "a delosmq.engine.base.events.EngineEvents"),
                "accept_loss": (accept_loss, bool, "True or False"),
                "name": (name, str | None, "a text that is not empty; None makes one"),
                "ports": (ports, bool, "True or False"),
            }
        )
        if not ports:
            check_no_ports({"stomp_port": stomp_port, "openwire_port": openwire_port, "http_port": http_port})
        check_http_port(http_port, http=http)
        check_http_tls(http_tls, http=http and ports)
        self.user = user
        self.password = secrets.token_hex(RANDOM_PASSWORD_BYTES) if password is None else password
        self._directory = None if directory is None else Path(directory)
        refuse_instance(self._directory)
        chosen = chosen_settings(config, settings)
        chosen = with_port(chosen, "STOMP", "stomp_port", stomp_port)
        chosen = with_port(chosen, "OPENWIRE", "openwire_port", openwire_port)
        journal = "" if self._directory is None else str(self._directory / "journal")
        self._settings = replace(chosen, journal=replace(chosen.journal, directory=journal))
        check_distinct({**{f"acceptor '{one.name}'": one.port for one in self._settings.acceptors}, "HTTP": http_port})
        self._http_port: int | None = http_port if http and ports else None
        self._http_tls = http_tls
        self._has_ports = ports
        self.name = local_name(name, self._settings.name)
        self.host = reachable(self._settings.acceptors[0].host) if self._settings.acceptors else LOOPBACK
        self._engine_events = events
        self._accept_loss = accept_loss
        self._instruments = Instruments()
        self._life: BrokerThread | None = None
        self._kept_ports: dict[str, int] = {}
        self._guard = threading.Lock()

    # -- what clients need ---------------------------------------------------------------------------------------

    @property
    def stomp_port(self) -> int:
        """Port of the first acceptor that speaks STOMP."""
        return self._port_of("STOMP")[1]

    @property
    def stomp_url(self) -> str:
        """The same as ``tcp://host:port``."""
        return tcp_url(*self._port_of("STOMP"))

    @property
    def openwire_port(self) -> int:
        """Port of the first acceptor that speaks OpenWire."""
        return self._port_of("OPENWIRE")[1]

    @property
    def openwire_url(self) -> str:
        """The same as ``tcp://host:port``, for an ActiveMQConnectionFactory."""
        return tcp_url(*self._port_of("OPENWIRE"))

    @property
    def url(self) -> str:
        """For the Python client: `openwire_url`, or `vm_url` of a broker without ports."""
        return self.openwire_url if self._has_ports else self.vm_url

    @property
    def vm_url(self) -> str:
        """``vm://NAME``: the Python client in this process connects by it without a socket."""
        return f"vm://{self.name}"

    @property
    def http_port(self) -> int:
        return int(self.http_url.rpartition(":")[2])

    @property
    def http_url(self) -> str:
        """Base of the HTTP interface, without a slash at its end."""
        url = self._running().http_url
        if not url:
            raise MisuseError("DMQ6022", "this broker runs without HTTP; leave out http=False or ports=False")
        return url

    def call(self, work: Coroutine[Any, Any, T], *, timeout_s: float | None = CALL_TIMEOUT_S) -> T:
        """Runs a coroutine on the broker's loop and gives its result; for tests and tools that look inside.

        Args:
            timeout_s: None waits for as long as it takes.
        """
        try:
            return self._begin_call(work).result(timeout_s)
        except CancelledError as error:
            raise _stopped_meanwhile() from error

    async def call_async(self, work: Coroutine[Any, Any, T]) -> T:
        """As `call`, for as long as it takes, without blocking the caller's loop."""
        future = self._begin_call(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError as error:
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                raise
            raise _stopped_meanwhile() from error

    def _begin_call(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        life = self._life
        if life is None or life.loop is None or life.composed is None:
            work.close()
            raise _not_running()
        return asyncio.run_coroutine_threadsafe(work, life.loop)

    @property
    def composed(self) -> ComposedBroker:
        """The parts of the running broker. Touch them on its loop only (`call`)."""
        return self._running()

    def _running(self) -> ComposedBroker:
        if self._life is None or self._life.composed is None:
            raise _not_running()
        return self._life.composed

    def _port_of(self, protocol: str) -> tuple[str, int]:
        composed = self._running()
        for acceptor in composed.settings.acceptors:
            if protocol in acceptor.protocols and acceptor.name in composed.ports:
                return reachable(acceptor.host), composed.ports[acceptor.name]
        raise MisuseError(
            "DMQ6021",
            f"this broker has no port for {protocol}; add an acceptor to its settings, or leave out ports=False",
        )

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Starts the broker; `stop` must follow. ``with`` does both."""
        life = self._begin()
        try:
            life.started.wait()
        except BaseException:  # Ctrl-C, while it starts
            self.stop()
            raise
        return self._begun(life)

    def stop(self) -> None:
        """Stops the broker; durable messages are synced. May be repeated.

        Raises:
            StorageError: the broker could not go on, or not everything could be synced; it is stopped all the same.
        """
        life = self._life
        if life is None:
            return
        life.ask_to_stop()
        life.join()
        self._ended(life)

    def restart(self) -> None:
        """Stops the broker and starts it again on the same ports. Without a directory it forgets its messages."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        life = self._begin()
        try:
            await life.started.reached()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self._begun(life)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        life = self._life
        if life is None:
            return
        life.ask_to_stop()
        cancelled: asyncio.CancelledError | None = None
        while not life.ended.is_set():
            # What is cancelled still waits: a broker that is left alone would keep its lock and its ports.
            try:
                await life.ended.reached()
            except asyncio.CancelledError as again:
                cancelled = again
        life.join()
        if cancelled is not None:
            with suppress(BaseException):
                self._ended(life)
            raise cancelled
        self._ended(life)

    def _begin(self) -> "BrokerThread":
        with self._guard:
            if self._life is not None:
                raise MisuseError("DMQ6024", "the broker runs already; stop it first, or make another one")
            settings, http = self._with_kept_ports()
            life = BrokerThread(
                settings,
                self._accounts(),
                directory=self._directory,
                http=http,
                events=self._engine_events,
                accept_loss=self._accept_loss,
                instruments=self._instruments,
                files=self._open_files(),
                name=self.name,
                ports=self._has_ports,
            )
            life.begin()
            self._life = life
        return life

    def _begun(self, life: "BrokerThread") -> Self:
        if life.composed is None:
            # It failed, or it was stopped by another thread before it was up.
            life.join()
            self._ended(life)
            raise MisuseError("DMQ6023", "the broker was stopped while it started; start it again")
        self._kept_ports = dict(life.composed.ports)
        if life.composed.http_url:
            self._kept_ports[_HTTP] = int(life.composed.http_url.rpartition(":")[2])
        return self

    def _ended(self, life: "BrokerThread") -> None:
        """Forgets a life that is over, and raises what ended it before it was asked to."""
        with self._guard:
            if self._life is life:
                self._life = None
        failure, life.failure = life.failure, None
        if failure is not None:
            raise failure

    def _open_files(self) -> Files | None:
        """What the journal of the next run writes by; None for the operating system's own."""
        return None

    def _with_kept_ports(self) -> tuple[BrokerSettings, WebBind | None]:
        kept = self._kept_ports
        acceptors = tuple(replace(one, port=kept.get(one.name, one.port)) for one in self._settings.acceptors)
        http = None if self._http_port is None else WebBind(LOOPBACK, kept.get(_HTTP, self._http_port), self._http_tls)
        return replace(self._settings, acceptors=acceptors), http

    def _accounts(self) -> Accounts:
        named = {
            role for match in self._settings.security_settings for held in match.permissions.values() for role in held
        }
        # No hash, which would take longer than all the rest of a start: this process knows the password.
        stored = unmatched_form(secrets.token_bytes(SALT_BYTES), secrets.token_bytes(HASH_BYTES))
        return Accounts({self.user: stored}, {self.user: frozenset({ROLE, *named})}, {self.user: self.password})


def _not_running() -> MisuseError:
    return MisuseError("DMQ6023", "the broker is not running; call its start(), or make it in a with block")


def _stopped_meanwhile() -> MisuseError:
    return MisuseError("DMQ6023", "the broker was stopped while it was asked; start it again")
