"""A broker inside any Python process: ``with delosmq.Broker() as broker:``."""

import asyncio
import inspect
import logging
import secrets
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType, UnionType
from typing import Any, Final, Never

from delosmq.composition import Accounts, ComposedBroker, HttpBind, open_store
from delosmq.config.findings import nearest
from delosmq.engine.base.events import EngineEvents
from delosmq.model.errors import ConfigurationError, MisuseError, StorageError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import (
    MIB,
    AcceptorSettings,
    AddressDefinition,
    AddressMatch,
    BrokerSettings,
    JournalSettings,
    QueueSettings,
    SecurityMatch,
)
from delosmq.security.access import PERMISSIONS
from delosmq.security.passwords import HASH_BYTES, SALT_BYTES, unmatched_form
from delosmq.storage.lock import DirectoryLock

LOOPBACK: Final = "127.0.0.1"
ROLE: Final = "amq"
DEAD_LETTERS: Final = "DLQ"
# Three of them lie ready from the start: 64 MiB each, as under `delosmq run`, would be much for a test.
EMBEDDED_SEGMENT_BYTES: Final = 16 * MIB
CALL_TIMEOUT_S: Final = 60.0
DRAIN_S: Final = 5.0
LARGEST_PORT: Final = 65535
_HTTP: Final = ":http"
_WRONG_ARGUMENT: Final = "DMQ6025"


def default_settings() -> BrokerSettings:
    """What an embedded broker does unless told otherwise: STOMP with ``/queue/`` and ``/topic/``, OpenWire, dead
    letters in ``DLQ``."""
    return BrokerSettings(
        acceptors=(
            AcceptorSettings(
                name="stomp",
                host=LOOPBACK,
                port=0,
                protocols=("STOMP",),
                anycast_prefixes=("/queue/",),
                multicast_prefixes=("/topic/",),
            ),
            AcceptorSettings(name="openwire", host=LOOPBACK, port=0, protocols=("OPENWIRE",)),
        ),
        addresses=(AddressDefinition(DEAD_LETTERS, frozenset({ANYCAST})),),
        queues=(QueueSettings(DEAD_LETTERS, DEAD_LETTERS),),
        address_settings=(
            AddressMatch(
                "#",
                {
                    "dead_letter_address": DEAD_LETTERS,
                    "default_address_routing_type": MULTICAST,
                },
            ),
        ),
        security_settings=(SecurityMatch("#", {name: frozenset({ROLE}) for name in PERMISSIONS}),),
        journal=JournalSettings(file_size_bytes=EMBEDDED_SEGMENT_BYTES),
    )


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
        events: hears what the engine does, on the broker's thread.
        accept_loss: start although files of the journal are missing or damaged, without what was in them.

    Attributes:
        host, user, password: for clients.

    Raises:
        ConfigurationError: at once: an argument, a setting or the broker.xml is wrong. On entering: another broker uses
            the directory.
        StorageError: on entering: the directory's journal is damaged or belongs to another broker.
        LimitError: on entering: a port is in use.
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
        events: EngineEvents | None = None,
        accept_loss: bool = False,
        **unknown: Never,
    ) -> None:
        _refuse_unknown(unknown)
        _check_arguments(
            {
                "directory": (directory, str | Path | None, "a path, or None for memory only"),
                "config": (config, str | Path | None, "the path of a broker.xml"),
                "settings": (settings, BrokerSettings | None, "a delosmq.model.settings.BrokerSettings"),
                "user": (user, str, "a text that is not empty"),
                "password": (password, str | None, "a text that is not empty; None makes a random one"),
                "http": (http, bool, "True or False"),
                "events": (events, EngineEvents | None, "a delosmq.engine.base.events.EngineEvents"),
                "accept_loss": (accept_loss, bool, "True or False"),
            }
        )
        _check_port("http_port", http_port)
        if http_port and not http:
            raise ConfigurationError(
                _WRONG_ARGUMENT, f"Broker has both http=False and http_port={http_port}; leave out one of them"
            )
        self.user = user
        self.password = secrets.token_urlsafe(18) if password is None else password
        self._directory = None if directory is None else Path(directory)
        _refuse_instance(self._directory)
        chosen = _chosen_settings(config, settings)
        chosen = _with_port(chosen, "STOMP", "stomp_port", stomp_port)
        chosen = _with_port(chosen, "OPENWIRE", "openwire_port", openwire_port)
        journal = "" if self._directory is None else str(self._directory / "journal")
        self._settings = replace(chosen, journal=replace(chosen.journal, directory=journal))
        _check_distinct({**{f"acceptor '{one.name}'": one.port for one in self._settings.acceptors}, "HTTP": http_port})
        self._http_port: int | None = http_port if http else None
        self.host = _reachable(self._settings.acceptors[0].host) if self._settings.acceptors else LOOPBACK
        self._engine_events = events
        self._accept_loss = accept_loss
        self._life: _Life | None = None
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
        return _tcp_url(*self._port_of("STOMP"))

    @property
    def openwire_port(self) -> int:
        """Port of the first acceptor that speaks OpenWire."""
        return self._port_of("OPENWIRE")[1]

    @property
    def openwire_url(self) -> str:
        """The same as ``tcp://host:port``, for an ActiveMQConnectionFactory."""
        return _tcp_url(*self._port_of("OPENWIRE"))

    @property
    def http_port(self) -> int:
        """Port of the HTTP interface."""
        return int(self.http_url.rpartition(":")[2])

    @property
    def http_url(self) -> str:
        """Base of the HTTP interface, without a slash at its end."""
        url = self._running().http_url
        if not url:
            raise MisuseError("DMQ6022", "this broker runs without HTTP; leave out http=False")
        return url

    def call(self, work: "Coroutine[Any, Any, Any]") -> Any:
        """Runs a coroutine on the broker's loop and gives its result; for tests and tools that look inside."""
        self._running()
        assert self._life is not None
        assert self._life.loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._life.loop).result(CALL_TIMEOUT_S)

    @property
    def composed(self) -> ComposedBroker:
        """The parts of the running broker. Touch them on its loop only (`call`)."""
        return self._running()

    def _running(self) -> ComposedBroker:
        if self._life is None or self._life.composed is None:
            raise MisuseError("DMQ6023", "the broker is not running; use it as a context manager: with Broker() as b")
        return self._life.composed

    def _port_of(self, protocol: str) -> tuple[str, int]:
        composed = self._running()
        for acceptor in composed.settings.acceptors:
            if protocol in acceptor.protocols:
                return _reachable(acceptor.host), composed.ports[acceptor.name]
        raise MisuseError("DMQ6021", f"this broker has no acceptor for {protocol}; add one to its settings")

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> "Broker":
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

    def __enter__(self) -> "Broker":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> "Broker":
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

    def _begin(self) -> "_Life":
        with self._guard:
            if self._life is not None:
                raise MisuseError("DMQ6024", "the broker runs already; stop it first, or make another one")
            settings, http = self._with_kept_ports()
            life = _Life(
                settings,
                self._accounts(),
                directory=self._directory,
                http=http,
                events=self._engine_events,
                accept_loss=self._accept_loss,
            )
            life.begin()
            self._life = life
        return life

    def _begun(self, life: "_Life") -> "Broker":
        if life.composed is None:
            # It failed, or it was stopped by another thread before it was up.
            life.join()
            self._ended(life)
            raise MisuseError("DMQ6023", "the broker was stopped while it started; start it again")
        self._kept_ports = dict(life.composed.ports)
        if life.composed.http_url:
            self._kept_ports[_HTTP] = int(life.composed.http_url.rpartition(":")[2])
        return self

    def _ended(self, life: "_Life") -> None:
        """Forgets a life that is over, and raises what ended it before it was asked to."""
        with self._guard:
            if self._life is life:
                self._life = None
        failure, life.failure = life.failure, None
        if failure is not None:
            raise failure

    def _with_kept_ports(self) -> tuple[BrokerSettings, HttpBind | None]:
        kept = self._kept_ports
        acceptors = tuple(replace(one, port=kept.get(one.name, one.port)) for one in self._settings.acceptors)
        http = None if self._http_port is None else HttpBind(LOOPBACK, kept.get(_HTTP, self._http_port))
        return replace(self._settings, acceptors=acceptors), http

    def _accounts(self) -> Accounts:
        named = {
            role for match in self._settings.security_settings for held in match.permissions.values() for role in held
        }
        # No hash, which would take longer than all the rest of a start: this process knows the password.
        stored = unmatched_form(secrets.token_bytes(SALT_BYTES), secrets.token_bytes(HASH_BYTES))
        return Accounts({self.user: stored}, {self.user: frozenset({ROLE, *named})}, {self.user: self.password})


class _Moment:
    """Something that happens once, for which threads and coroutines wait."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._guard = threading.Lock()
        self._waiting: list[Callable[[], object]] = []

    def set(self) -> None:
        with self._guard:
            self._event.set()
            waiting, self._waiting = self._waiting, []
        for tell in waiting:
            with suppress(RuntimeError):  # a loop that is closed has nobody waiting
                tell()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self) -> None:
        self._event.wait()

    async def reached(self) -> None:
        """As `wait`, without blocking the caller's loop."""
        loop = asyncio.get_running_loop()
        here = asyncio.Event()
        with self._guard:
            if self._event.is_set():
                return
            self._waiting.append(lambda: loop.call_soon_threadsafe(here.set))
        await here.wait()


class _Life:
    """One run of a broker: its thread, from start to end.

    Attributes:
        started: it is up, or has failed.
        ended: its lock and its ports are free again.
        composed: while it is up.
        failure: what ended it without being asked to.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        accounts: Accounts,
        *,
        directory: Path | None,
        http: HttpBind | None,
        events: EngineEvents | None,
        accept_loss: bool,
    ) -> None:
        self.started = _Moment()
        self.ended = _Moment()
        self.composed: ComposedBroker | None = None
        self.failure: BaseException | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self._settings = settings
        self._accounts = accounts
        self._directory = directory
        self._http = http
        self._events = events
        self._accept_loss = accept_loss
        self._lock: DirectoryLock | None = None
        self._stop: asyncio.Event | None = None
        self._stop_asked = False
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="delosmq-broker", daemon=True)

    def begin(self) -> None:
        """Starts the thread; `started` says when the broker is up."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """From any thread but the broker's own; `ended` says when it has stopped. May be repeated."""
        if threading.current_thread() is self._thread:
            raise MisuseError("DMQ6026", "the broker's own thread can't stop it; call stop() on another thread")
        with self._guard:
            self._stop_asked = True
            if self._stop is not None and self.loop is not None and not self.ended.is_set():
                with suppress(RuntimeError):  # its loop is closed: it ends by itself
                    self.loop.call_soon_threadsafe(self._stop.set)

    def join(self) -> None:
        """Waits for the end of the thread."""
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self.failure = error
        finally:
            self.composed = None
            if self._lock is not None:
                self._lock.release()
            self.started.set()
            self.ended.set()

    async def _serve(self) -> None:
        stop = asyncio.Event()
        with self._guard:
            self.loop = asyncio.get_running_loop()
            self._stop = stop
        logger = logging.getLogger("delosmq")
        if self._directory is not None:
            self._lock = DirectoryLock(self._directory)
        store = open_store(self._settings, sync_process=False, accept_loss=self._accept_loss, logger=logger)
        try:
            composed = ComposedBroker(
                self._settings, self._accounts, store, http=self._http, logger=logger, events=self._events
            )
        except BaseException:
            store.close(0.0)
            raise
        try:
            await self._start(composed)
            if not self._stop_asked:
                self.composed = composed
                self.started.set()
                waits = {asyncio.create_task(stop.wait()), asyncio.create_task(composed.failed.wait())}
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()
        except BaseException:
            with suppress(StorageError):  # what went wrong first is told
                await composed.stop(DRAIN_S)
            raise
        await composed.stop(DRAIN_S)
        if composed.failure is not None:
            raise composed.failure

    async def _start(self, composed: ComposedBroker) -> None:
        """All steps of a start, or those up to the moment when it is not wanted any more."""
        if not self._stop_asked:
            composed.recover()
        if not self._stop_asked:
            await composed.start()
        if not self._stop_asked:
            await composed.start_http()


# -- arguments -------------------------------------------------------------------------------------------------------


def _refuse_unknown(unknown: dict[str, Any]) -> None:
    for name in unknown:
        known = [argument for argument in inspect.signature(Broker.__init__).parameters if argument != "self"]
        raise ConfigurationError(_WRONG_ARGUMENT, f"Broker has no argument {name!r}{nearest(name, known)}")


def _check_arguments(arguments: dict[str, tuple[object, type | UnionType, str]]) -> None:
    for name, (value, kind, rule) in arguments.items():
        if not isinstance(value, kind) or value == "":
            raise ConfigurationError(_WRONG_ARGUMENT, f"{name} of Broker is {value!r}; it must be {rule}")


def _refuse_instance(directory: Path | None) -> None:
    """What `delosmq run` keeps lies below data/, so that a broker right here would begin with nothing."""
    if directory is not None and (directory / "etc" / "broker.xml").exists():
        data = directory / "data"
        raise ConfigurationError(
            _WRONG_ARGUMENT,
            f"directory of Broker is {str(directory)!r}, an instance directory of `delosmq run`; for its messages name"
            f" directory={str(data)!r} and config={str(directory / 'etc' / 'broker.xml')!r}, or take a directory of its"
            " own",
        )


def _chosen_settings(config: Path | str | None, settings: BrokerSettings | None) -> BrokerSettings:
    if config is None and settings is None:
        return default_settings()
    if config is not None and settings is not None:
        raise ConfigurationError(_WRONG_ARGUMENT, "Broker has both config= and settings=; leave out one of them")
    if settings is not None:
        from delosmq.config.settings_check import check_settings

        check_settings(settings)
        return _completed(settings)
    from delosmq.config.broker_xml.load import load_broker_xml

    loaded = load_broker_xml(Path(config or ""))
    for notice in loaded.notices:
        logging.getLogger("delosmq").warning(notice)
    return replace(
        loaded.settings, security_settings=loaded.settings.security_settings or default_settings().security_settings
    )


def _completed(settings: BrokerSettings) -> BrokerSettings:
    """Settings with those of `default_settings` where they say nothing, so that naming one part loses no other."""
    standard = default_settings()
    addresses, queues = settings.addresses, settings.queues
    if not settings.address_settings and all(queue.name != DEAD_LETTERS for queue in queues):
        # The address-settings that are filled in name this queue.
        addresses = (*standard.addresses, *(one for one in addresses if one.name != DEAD_LETTERS))
        queues = (*standard.queues, *queues)
    return replace(
        settings,
        acceptors=settings.acceptors or standard.acceptors,
        addresses=addresses,
        queues=queues,
        address_settings=settings.address_settings or standard.address_settings,
        security_settings=settings.security_settings or standard.security_settings,
        journal=standard.journal if settings.journal == JournalSettings() else settings.journal,
    )


def _with_port(settings: BrokerSettings, protocol: str, argument: str, port: int | None) -> BrokerSettings:
    """The settings with ``port`` for the first acceptor that speaks ``protocol``; None changes nothing."""
    if port is None:
        return settings
    _check_port(argument, port)
    acceptors = list(settings.acceptors)
    for number, acceptor in enumerate(acceptors):
        if protocol in acceptor.protocols:
            acceptors[number] = replace(acceptor, port=port)
            return replace(settings, acceptors=tuple(acceptors))
    raise ConfigurationError(_WRONG_ARGUMENT, f"{argument} is given, and no acceptor of the settings speaks {protocol}")


def _check_port(argument: str, port: object) -> None:
    if type(port) is not int or not 0 <= port <= LARGEST_PORT:
        raise ConfigurationError(
            _WRONG_ARGUMENT, f"{argument} of Broker is {port!r}; it must be a port from 0 to {LARGEST_PORT}"
        )


def _check_distinct(ports: dict[str, int]) -> None:
    named: dict[int, str] = {}
    for name, port in ports.items():
        if port and port in named:
            raise ConfigurationError(
                _WRONG_ARGUMENT, f"port {port} is given to {named[port]} and to {name}; give each a port of its own"
            )
        named[port] = name


def _reachable(host: str) -> str:
    """Where a client on this machine finds what listens on ``host``."""
    return {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)


def _tcp_url(host: str, port: int) -> str:
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
