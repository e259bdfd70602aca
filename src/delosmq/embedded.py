"""A broker inside any Python process: ``with delosmq.Broker() as broker:``."""

import asyncio
import logging
import secrets
import threading
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from delosmq.composition import Accounts, ComposedBroker, HttpBind, open_store
from delosmq.config.lock import DirectoryLock
from delosmq.engine.events import EngineEvents
from delosmq.model.errors import MisuseError
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
from delosmq.security.passwords import SALT_BYTES, hash_password

LOOPBACK: Final = "127.0.0.1"
ROLE: Final = "amq"
# Three of them lie ready from the start: 64 MiB each, as under `delosmq run`, would be much for a test.
EMBEDDED_SEGMENT_BYTES: Final = 16 * MIB
START_TIMEOUT_S: Final = 60.0
DRAIN_S: Final = 5.0


def default_settings() -> BrokerSettings:
    """What an embedded broker does unless told otherwise: STOMP, ``/queue/``, ``/topic/``, dead letters in ``DLQ``."""
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
        ),
        addresses=(AddressDefinition("DLQ", frozenset({ANYCAST})),),
        queues=(QueueSettings("DLQ", "DLQ"),),
        address_settings=(
            AddressMatch(
                "#",
                {
                    "dead_letter_address": "DLQ",
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

    Args:
        directory: where durable messages are kept; None keeps them in memory only, for as long as the broker lives.
        settings: replaces `default_settings`; the journal's directory is taken from ``directory``.
        user, password: the login; a random password unless given.
        http: False leaves the HTTP interface out (and its libraries unloaded).
        events: hears what the engine does, on the broker's thread.

    Attributes:
        host, user, password: for clients.

    Raises:
        StorageError: on entering: the directory's journal is damaged or belongs to another broker.
        ConfigurationError: on entering: another broker uses the directory.
        LimitError: on entering: a port in ``settings`` can't be had.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        settings: BrokerSettings | None = None,
        user: str = "admin",
        password: str | None = None,
        http: bool = True,
        events: EngineEvents | None = None,
    ) -> None:
        self.host = LOOPBACK
        self.user = user
        self.password = secrets.token_urlsafe(18) if password is None else password
        self._directory = None if directory is None else Path(directory)
        chosen = settings if settings is not None else default_settings()
        journal = "" if self._directory is None else str(self._directory / "journal")
        self._settings = replace(chosen, journal=replace(chosen.journal, directory=journal))
        self._http = HttpBind(LOOPBACK, 0) if http else None
        self._engine_events = events
        self._composed: ComposedBroker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock: DirectoryLock | None = None
        self._stop_wanted: asyncio.Event | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None

    # -- what clients need ---------------------------------------------------------------------------------------

    @property
    def stomp_port(self) -> int:
        """Port of the first acceptor that speaks STOMP."""
        composed = self._running()
        for acceptor in composed.settings.acceptors:
            if "STOMP" in acceptor.protocols:
                return composed.ports[acceptor.name]
        raise MisuseError("DMQ6021", "this broker has no acceptor for STOMP; add one to its settings")

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
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_TIMEOUT_S)

    @property
    def composed(self) -> ComposedBroker:
        """The parts of the running broker. Touch them on its loop only (`call`)."""
        return self._running()

    def _running(self) -> ComposedBroker:
        if self._composed is None:
            raise MisuseError("DMQ6023", "the broker is not running; use it as a context manager: with Broker() as b")
        return self._composed

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> "Broker":
        """Starts the broker; `stop` must follow. ``with`` does both."""
        if self._thread is not None:
            raise MisuseError("DMQ6024", "the broker runs already; make another one")
        self._started.clear()
        self._failure = None
        self._thread = threading.Thread(target=self._run, name="delosmq-broker", daemon=True)
        self._thread.start()
        self._started.wait()
        self._raise_failure()
        return self

    def stop(self) -> None:
        """Stops the broker; durable messages are synced. May be repeated."""
        thread, loop, wanted = self._thread, self._loop, self._stop_wanted
        if thread is None:
            return
        if loop is not None and wanted is not None and not loop.is_closed():
            loop.call_soon_threadsafe(wanted.set)
        self._end()
        self._raise_failure()

    def _raise_failure(self) -> None:
        failure = self._failure
        if failure is not None:
            self._end()
            raise failure

    def _end(self) -> None:
        if self._thread is not None:
            self._thread.join()
        self._thread = None
        self._composed = None
        self._loop = None

    def __enter__(self) -> "Broker":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> "Broker":
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    # -- the broker's thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop_wanted = asyncio.Event()
        logger = logging.getLogger("delosmq")
        if self._directory is not None:
            self._lock = DirectoryLock(self._directory)
        accounts = Accounts(
            {self.user: hash_password(self.password, secrets.token_bytes(SALT_BYTES))}, {self.user: frozenset({ROLE})}
        )
        store = open_store(self._settings, sync_process=False, logger=logger)
        composed = ComposedBroker(
            self._settings, accounts, store, http=self._http, logger=logger, events=self._engine_events
        )
        try:
            composed.recover()
            await composed.start()
            await composed.start_http()
            self._composed = composed
            self._started.set()
            stop = asyncio.create_task(self._stop_wanted.wait())
            failed = asyncio.create_task(composed.failed.wait())
            await asyncio.wait({stop, failed}, return_when=asyncio.FIRST_COMPLETED)
            stop.cancel()
            failed.cancel()
        finally:
            await composed.stop(DRAIN_S)
        if composed.failure is not None:
            raise composed.failure
