"""One run of an embedded broker, in a thread of its own."""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from delosmq.composition import Accounts, ComposedBroker, open_store
from delosmq.engine.api import EngineEvents
from delosmq.model.errors import MisuseError, StorageError
from delosmq.model.settings import BrokerSettings, WebBind
from delosmq.server.server_parts import Instruments
from delosmq.storage.journal.files import Files
from delosmq.storage.lock import DirectoryLock

DRAIN_S: Final = 5.0


class OneTimeEvent:
    """An event that happens once, for which threads and coroutines wait."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._guard = threading.Lock()
        self._waiting: list[Callable[[], object]] = []

    def set(self) -> None:
        with self._guard:
            self._event.set()
            waiting, self._waiting = self._waiting, []
        for tell in waiting:
            with suppress(RuntimeError):  # nothing waits in a loop that is closed
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


class BrokerThread:
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
        http: WebBind | None,
        events: EngineEvents | None,
        accept_loss: bool,
        instruments: Instruments,
        files: Files | None,
        name: str,
        ports: bool,
    ) -> None:
        self.started = OneTimeEvent()
        self.ended = OneTimeEvent()
        self.composed: ComposedBroker | None = None
        self.failure: BaseException | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self._settings = settings
        self._accounts = accounts
        self._directory = directory
        self._http = http
        self._events = events
        self._accept_loss = accept_loss
        self._instruments = instruments
        self._files = files
        self._name = name
        self._ports = ports
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
        store = open_store(
            self._settings, sync_process=False, accept_loss=self._accept_loss, logger=logger, files=self._files
        )
        try:
            composed = ComposedBroker(
                self._settings,
                self._accounts,
                store,
                http=self._http,
                logger=logger,
                events=self._events,
                instruments=self._instruments,
                local_name=self._name,
                ports=self._ports,
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
