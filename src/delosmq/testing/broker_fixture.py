"""A broker under test: its clock can be turned, its queues looked at, and it can crash."""

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, TypeVar, Unpack

from delosmq.embedded.broker import Broker
from delosmq.embedded.broker_thread import BrokerThread
from delosmq.model.errors import MisuseError
from delosmq.model.protocol_names import OPENWIRE, STOMP
from delosmq.model.settings import BrokerSettings, TlsSettings
from delosmq.server.server_parts import Instruments
from delosmq.storage.journal.files import Files
from delosmq.testing.dialogue import DELIVERY
from delosmq.testing.frame_faults import CUT_AFTER, CUT_BEFORE, DROPPED, TWICE, FrameFault
from delosmq.testing.frame_recorder import FrameRecorder
from delosmq.testing.frame_tap import FrameTap
from delosmq.testing.queue_view import QueueView, names_of, on_broker
from delosmq.testing.replay import PlayedLogin, replay
from delosmq.testing.synced_files import SyncedFiles
from delosmq.testing.trace import Trace, TracedEvents
from delosmq.testing.turnable_clock import TimeKeeper, TurnableClock
from delosmq.testing.watched_ticker import WatchedTicker, Watchers

if TYPE_CHECKING:
    from delosmq.client import ClientConnection
    from delosmq.client.aio import Connecting
    from delosmq.client.options.connect_options import ConnectOptions

T = TypeVar("T")
CRASH: Final = "DMQ7204"


class BrokerOptions(TypedDict, total=False):
    """Arguments of `BrokerFixture`, as those of `delosmq.Broker`."""

    config: Path | str | None
    settings: BrokerSettings | None
    user: str
    password: str | None
    stomp_port: int | None
    openwire_port: int | None
    http_port: int
    http: bool
    http_tls: TlsSettings | None
    name: str | None
    ports: bool


class BrokerFixture(Broker, TimeKeeper):
    """A broker on loopback and free ports, for tests. Use it as a context manager, ``with`` or ``async with``.

    Args:
        directory: where durable messages are kept; None keeps them in memory, for as long as the broker runs.
        options: as those of `delosmq.Broker`. The HTTP interface is there with ``http=True`` only, as its libraries
            take half a second to load.

    Attributes:
        clock: the broker's, which goes as the machine's until it is turned.
        trace: what passed: connections, frames, events.
        watchers: called on the broker's thread after whatever has changed; they return at once.
    """

    def __init__(self, directory: Path | str | None = None, **options: Unpack[BrokerOptions]) -> None:
        options.setdefault("http", False)
        self.trace = Trace()
        super().__init__(directory, events=TracedEvents(self.trace), **options)
        self.clock = TurnableClock(self)
        self.watchers: Watchers = []
        self._tap = FrameTap(self.trace)
        self._instruments = Instruments(self.clock, partial(WatchedTicker, self.watchers), self._tap)
        self._files: SyncedFiles | None = None
        self._is_silent = False
        self._turned = False

    def __repr__(self) -> str:
        return f"<BrokerFixture '{self.name}', {'stopped' if self._life is None else 'running'}>"

    # -- clients -----------------------------------------------------------------------------------------------------

    def connect(self, url: str | None = None, **options: "Unpack[ConnectOptions]") -> "ClientConnection":
        """A blocking connection which delivers messages; close it, or make it in a with block.

        Args:
            url: None for `url`; with options or ``failover:`` for clients that need them.
            options: as `delosmq.client.connect` takes them, such as ``client_id``; user and password are the broker's
                unless they are said here.
        """
        from delosmq.client import connect

        return connect(url or self.url, **self._with_login(options))

    def connect_async(self, url: str | None = None, **options: "Unpack[ConnectOptions]") -> "Connecting":
        """The same for asyncio: ``async with broker.connect_async() as client``."""
        from delosmq.client import aio

        return aio.connect(url or self.url, **self._with_login(options))

    def _with_login(self, options: "ConnectOptions") -> "ConnectOptions":
        options.setdefault("user", self.user)
        options.setdefault("password", self.password)
        return options

    # -- looking -----------------------------------------------------------------------------------------------------

    def queue(self, name: str) -> QueueView:
        """A queue to be looked at or waited for, whether it exists yet or not."""
        return QueueView(self, name, self.watchers)

    @property
    def queue_names(self) -> list[str]:
        """Of the queues that there are, in order, without `advisory_queue_names`."""
        return on_broker(self, partial(names_of, self, advisories=False))

    @property
    def advisory_queue_names(self) -> list[str]:
        """Of those in which clients of OpenWire hear of what happens at the broker: ``ActiveMQ.Advisory.*``."""
        return on_broker(self, partial(names_of, self, advisories=True))

    @property
    def connection_count(self) -> int:
        """Clients that are connected by STOMP or OpenWire."""
        return on_broker(self, lambda: len(self.composed.connections))

    # -- recording ---------------------------------------------------------------------------------------------------

    @contextmanager
    def recording(self, path: Path | str) -> Iterator[None]:
        """Writes what passes over the connections that are made in the block to a file, which `replay` reads. Bodies
        and headers are in it as they are, passwords are not."""
        recorder = FrameRecorder()
        self._tap.recorder = recorder
        try:
            yield
        finally:
            self._tap.recorder = None
            Path(path).write_text(recorder.text, "ascii")

    def replay(self, path: Path | str) -> None:
        """Does what the clients of a recording did, in the same order, and waits for what they got. Ids that the broker
        gives, user and password are this broker's.

        Raises:
            AssertionError: the broker does not send what is in the recording; the message names its line.
            MisuseError: the file is no recording.
        """
        __tracebackhide__ = True
        ports = {STOMP: lambda: self.stomp_port, OPENWIRE: lambda: self.openwire_port}
        replay(Path(path), PlayedLogin(self.host, lambda protocol: ports[protocol](), self.user, self.password))

    # -- faults ------------------------------------------------------------------------------------------------------

    def cut_connections(self) -> int:
        """Breaks the connections of all clients, as a network does that fails; they may connect again at once. Gives
        how many there were."""

        def cut() -> int:
            connections = self.composed.connections
            for connection in connections:
                connection.abort()
            return len(connections)

        return on_broker(self, cut)

    def cut_connection(self, *, before: str | None = None, after: str | None = None, number: int = 1) -> FrameFault:
        """Has the connection be cut over which the n-th frame of a kind comes, from now on, on any connection.

        Args:
            before: the kind, as STOMP or OpenWire names it (``ACK``, ``MessageAck``); that frame arrives no more.
            after: the same, and that frame arrives still. Name one of both.
            number: n.

        Raises:
            MisuseError: there is no such frame or number; both or none of ``before`` and ``after`` are named.
        """
        __tracebackhide__ = True
        if (before is None) == (after is None):
            raise MisuseError("DMQ7209", "cut_connection takes either before= or after=, with the name of a frame")
        return self._order(CUT_BEFORE, before, number) if after is None else self._order(CUT_AFTER, after, number)

    def drop_frame(self, frame: str, *, number: int = 1) -> FrameFault:
        """Has the n-th frame of a kind be lost, from now on, on any connection: it arrives not, and its sender goes on.

        Args:
            frame: the kind, as STOMP or OpenWire names it (``ACK``, ``RECEIPT``, ``MessageAck``, ``Response``).

        Raises:
            MisuseError: there is no such frame or number.
        """
        __tracebackhide__ = True
        return self._order(DROPPED, frame, number)

    def deliver_twice(self, *, number: int = 1) -> FrameFault:
        """Has the n-th delivery arrive twice, from now on, at any client. The second acknowledgement of it is answered
        and has no effect."""
        __tracebackhide__ = True
        return self._order(TWICE, DELIVERY, number)

    def cancel_faults(self) -> None:
        """Takes back all that was ordered for frames and has not happened yet."""
        self._tap.faults.clear()

    def _order(self, fate: str, frame: str | None, number: int) -> FrameFault:
        __tracebackhide__ = True
        fault = FrameFault(fate, str(frame), number)
        self._tap.faults.append(fault)
        self.trace.note(f"the test orders {fault}")
        return fault

    @contextmanager
    def refusing_connections(self) -> Iterator[None]:
        """Lets no client connect in the block, as if nothing listened; those that are connected stay."""

        async def accept_again() -> None:
            for listener in self.composed.listeners:
                await listener.accept_again()

        async def refuse() -> None:
            for listener in self.composed.listeners:
                await listener.refuse_new()

        self.call(refuse())
        run = self._life
        try:
            yield
        finally:
            if self._life is run:  # else it was started anew, and listens
                self.call(accept_again())

    @contextmanager
    def silent(self) -> Iterator[None]:
        """The broker does nothing in the block, like a process that is stopped: who connects is neither refused nor
        answered. It can't be asked for anything either."""
        silent, goes_on = threading.Event(), threading.Event()

        async def wait() -> None:
            silent.set()
            goes_on.wait()

        done = self._begin_call(wait())
        silent.wait()
        self._is_silent = True
        try:
            yield
        finally:
            self._is_silent = False
            goes_on.set()
            done.result()

    @contextmanager
    def slow(self, turn_s: float) -> Iterator[None]:
        """Each turn in which the broker does anything takes so much longer in the block, as on a busy machine."""

        def dawdle() -> None:
            time.sleep(turn_s)

        self.watchers.append(dawdle)
        try:
            yield
        finally:
            self.watchers.remove(dawdle)

    @property
    def disk(self) -> SyncedFiles:
        """What its journal writes to since the last start, for faults of it.

        Raises:
            MisuseError: the broker is in memory, or was not started yet.
        """
        if self._files is None:
            raise MisuseError("DMQ7205", "this broker has no journal; start one with a directory (durable_broker)")
        return self._files

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """A disk without room for another file of the journal in the block: durable messages are not taken.

        Raises:
            MisuseError: the broker is in memory, or was not started yet.
        """

        def fill(full: bool) -> None:
            self.composed.broker.set_storage_low(full)
            self.composed.broker.set_storage_full(full)
            self.composed.ticker.schedule()

        _ = self.disk  # or it is refused
        on_broker(self, lambda: fill(True))
        run = self._life
        try:
            yield
        finally:
            if self._life is run:
                on_broker(self, lambda: fill(False))

    def crash(self) -> None:
        """Ends the broker as a power cut does: clients are told nothing, and of the journal only what was synced stays.
        `start` brings it back on the same ports."""
        life = self._life
        self.trace.note("the test has the broker crash")
        on_broker(self, self._break_off)
        assert life is not None
        life.join()
        try:
            self._ended(life)
        except MisuseError as error:
            if error.code != CRASH:
                raise

    def reset(self) -> None:
        """Makes it a new broker on the same ports: connections end, queues and messages are gone, the clock is right.
        A journal stays."""
        with suppress(MisuseError):  # it does not run
            self.cut_connections()  # a client that does not close its end would have `stop` wait
        self.stop()
        self.clock.reset()
        self._tap.reset()
        self.trace.clear()
        self._turned = False
        self.start()

    def _begin_call(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._is_silent:
            work.close()
            raise MisuseError("DMQ7206", "the broker is silent and can't be asked; leave the block of silent() first")
        return super()._begin_call(work)

    def _break_off(self) -> None:
        self.composed.break_off(MisuseError(CRASH, "the broker was made to crash by its test; start it again"))
        if self._files is not None:
            self._files.cut()

    def _open_files(self) -> Files | None:
        self._files = None if self._directory is None else SyncedFiles(self._directory / "journal")
        return self._files

    # -- for the clock -----------------------------------------------------------------------------------------------

    def turn(self, ns: int, *, silent_clients: bool) -> None:
        self.trace.note(f"the test turns the clock by {timedelta(microseconds=ns // 1_000)}")
        self._turned = True
        if self._life is None:
            self.clock.jump(ns)
        else:
            self.call(self.clock.pass_time(ns, silent_clients=silent_clients), timeout_s=None)
            self._turn_clients()

    def _turn_clients(self) -> None:
        """Those of `delosmq.client` in this process go as the broker's clock, once that was turned."""
        if self._turned:
            from delosmq.client.transport import links  # tests with other clients load none of it

            settings, _ = self._with_kept_ports()
            places = [links.place_of(one.host, one.port) for one in settings.acceptors if one.port]
            for place in (*places, (self.name, 0)):
                links.turn_clocks(place, 0 if self._life is None else self.clock.ahead_ns)

    def _begun(self, life: BrokerThread) -> Self:
        super()._begun(life)
        self.trace.note("the broker has started")
        self._turn_clients()
        return self

    def _ended(self, life: BrokerThread) -> None:
        try:
            super()._ended(life)
        finally:
            self.trace.note("the broker has stopped")
            self._turn_clients()  # a broker of another test may get the port

    async def settle(self) -> None:
        ticker = self.composed.ticker
        while ticker.scheduled and ticker.running:  # noqa: ASYNC110 - each turn of this loop is a tick
            await asyncio.sleep(0)

    def hear_clients(self) -> None:
        for connection in self.composed.connections:
            connection.receive(b"")  # as little as any sign of life
