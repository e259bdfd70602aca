"""Sessions on a real engine without sockets: time, syncs and the peer's reading are in the test's hand."""

from typing import Generic, Protocol, TypedDict, TypeVar, Unpack

from delosmq.engine.base.events import EngineEvents, events_for
from delosmq.engine.broker import EngineBroker
from delosmq.engine.log.log import Batch, Store
from delosmq.engine.queues.queue import Queue
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError, StorageError
from delosmq.model.ids import MonotonicNs, Position
from delosmq.model.settings import (
    AcceptorSettings,
    AddressMatch,
    BrokerSettings,
    QueueSettings,
    SecurityMatch,
)
from delosmq.security.access import PERMISSIONS, AccessControl, LoginAttempt
from delosmq.sessions.host import NO_TIMER, Peer, SessionHost, SessionServices
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.outbox import Gate
from delosmq.sessions.stomp.server.protocol import StompProtocol
from delosmq.storage.memory import MemoryStore
from delosmq.wire.stomp.conversion import StompConversion
from delosmq.wire.stomp.decoder import StompDecoder, StompFrame
from delosmq.wire.stomp.heads import StompLimits
from delosmq.wire.stomp.versions import V12
from tests.engine.support import CountingRandom, ManualClock

Peering = TypeVar("Peering", bound="Connected")
NS_PER_MS = 1_000_000
USER = "anna"
OTHER = "bert"
"""With the same password."""
PASSWORD = "correct horse"

EVERYTHING = SecurityMatch("#", {permission: frozenset({"all"}) for permission in PERMISSIONS})
ACCEPTOR = AcceptorSettings(
    "stomp", "localhost", 0, ("STOMP",), anycast_prefixes=("/queue/",), multicast_prefixes=("/topic/",)
)


class FillingStore(MemoryStore):
    """Takes batches until it is full."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False

    def append(self, batch: Batch) -> None:
        if self.full:
            raise StorageError("DMQ3999", "no room left")
        super().append(batch)


class Host(SessionHost):
    """What a session asked for."""

    def __init__(self) -> None:
        self.wanted = 0
        self.attempts: list[tuple[LoginAttempt, str]] = []
        self.wakes = 0
        self.reasons: list[BrokerError | None] = []
        self.reports: list[BrokerError] = []

    def write_wanted(self) -> None:
        self.wanted += 1

    def verify(self, attempt: LoginAttempt, password: str) -> None:
        self.attempts.append((attempt, password))

    def wake_soon(self) -> None:
        self.wakes += 1

    def report(self, trouble: BrokerError) -> None:
        self.reports.append(trouble)

    def finish(self, reason: BrokerError | None) -> None:
        self.reasons.append(reason)

    @property
    def finished(self) -> bool:
        return bool(self.reasons)

    @property
    def reason(self) -> BrokerError | None:
        (reason,) = self.reasons
        return reason


class Connected(Protocol):
    """The peer of one session of any protocol."""

    host: Host

    @property
    def session(self) -> SessionMachine: ...

    def write(self) -> bool:
        """What the server does at the end of a tick, when the peer reads. True when there may be more to do."""


class Options(TypedDict, total=False):
    """What a test may want of a bench."""

    queues: tuple[QueueSettings, ...]
    address_settings: dict[str, dict[str, object]] | None
    security: tuple[SecurityMatch, ...]
    hold: bool
    ttl_override_ms: int
    temporary_namespace: str
    store: Store | None
    size_per_user: int


class Audit(EngineEvents):
    """Notes what clients made and deleted."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def created_by_client(self, queue: str, address: str, user: str, lasting: bool) -> None:
        self.told.append(("created" if lasting else "passing", queue, address, user))

    def deleted_by_client(self, queue: str, address: str, user: str, messages: int) -> None:
        self.told.append(("deleted", queue, address, user, messages))

    def deleted_unused(self, queue: str, address: str, messages: int) -> None:
        self.told.append(("unused", queue, address, messages))


class Bench(Generic[Peering]):
    """One engine, its gate, and any number of clients.

    With ``hold`` nothing is synced until `sync` is called.
    """

    def __init__(
        self,
        acceptor: AcceptorSettings,
        conversions: Conversions,
        events: EngineEvents,
        *,
        queues: tuple[QueueSettings, ...] = (),
        address_settings: dict[str, dict[str, object]] | None = None,
        security: tuple[SecurityMatch, ...] = (EVERYTHING,),
        hold: bool = False,
        ttl_override_ms: int = -1,
        temporary_namespace: str = "",
        store: Store | None = None,
        size_per_user: int = -1,
    ) -> None:
        self.clock = ManualClock()
        self.store: Store = store if store is not None else MemoryStore()
        self.audit = Audit()
        self.gate = Gate()
        self.acceptor = acceptor
        self.hold = hold
        matches = tuple(AddressMatch(match, fields) for match, fields in (address_settings or {}).items())
        self.broker = EngineBroker(
            BrokerSettings(
                queues=queues,
                address_settings=matches,
                connection_ttl_override_ms=ttl_override_ms,
                temporary_queue_namespace=temporary_namespace,
                max_destinations_size_per_user=size_per_user,
            ),
            self.store,
            clock=self.clock,
            random=CountingRandom(),
            events=events_for([events, self.audit]),
            conversions=conversions,
        )
        self.gate.on_synced(self.broker.start())
        users = (USER, OTHER)
        access = AccessControl(
            dict.fromkeys(users, "stored"),
            dict.fromkeys(users, frozenset({"all"})),
            security,
            cache_key=b"k" * 32,
        )
        for user in users:
            # Verified once, so that later logins need no hash.
            access.finish(access.attempt(user, PASSWORD), True)
        self.services = SessionServices(
            self.broker, self.gate, clock=self.clock, access=access, conversions=conversions, server_name="DelosMQ/test"
        )
        self.clients: list[Peering] = []

    @property
    def now(self) -> MonotonicNs:
        return self.clock.monotonic_ns()

    def queue(self, name: str) -> Queue:
        return self.broker.queues[name]

    def sync(self, position: int | None = None) -> None:
        """The store reports that it is synced."""
        self.gate.on_synced(self.broker.log.position if position is None else Position(position))

    def tick(self) -> None:
        """As the server's ticker does it, until nothing is left to do."""
        for _ in range(1_000):
            again = self.broker.tick()
            if not self.hold:
                self.sync()
            for client in self.clients:
                again = client.write() or again
            if not again:
                return
        raise AssertionError("the broker never comes to rest")

    def pass_time(self, ms: int) -> None:
        """Lets time go by, with every timer at its moment."""
        until = self.clock.now_ms + ms
        while True:
            timers: list[int] = [client.session.next_timer() for client in self.clients if not client.host.finished]
            timers.append(self.broker.next_timer_at)
            due = min((at for at in timers if at != NO_TIMER), default=0)
            due_ms = -(-due // NS_PER_MS)
            if due == 0 or due_ms > until:
                break
            self.clock.now_ms = max(self.clock.now_ms, due_ms)
            for client in self.clients:
                if not client.host.finished:
                    client.session.handle_timer(self.now)
            self.tick()
        self.clock.now_ms = until
        self.tick()


class StompBench(Bench["Client"]):
    """A bench with clients of STOMP."""

    def __init__(self, *, acceptor: AcceptorSettings = ACCEPTOR, **options: Unpack[Options]) -> None:
        super().__init__(acceptor, Conversions({"stomp": StompConversion()}), EngineEvents(), **options)

    def connect(self, version: str = "1.2", headers: str = "", *, user: str = USER) -> "Client":
        """A client that is connected and has read its CONNECTED."""
        client = Client(self)
        client.send(
            f"CONNECT\naccept-version:{version}\nhost:h\nlogin:{user}\npasscode:{PASSWORD}\n{headers}\n\0".encode()
        )
        client.version = {"1.0": 10, "1.1": 11, "1.2": 12}[version]
        (connected,) = client.take()
        assert connected.command == "CONNECTED"
        return client


class Client:
    """The peer of one session."""

    def __init__(self, bench: StompBench, acceptor: AcceptorSettings | None = None) -> None:
        self.bench = bench
        self.host = Host()
        self.session = StompProtocol().open(
            self.host,
            Peer("10.0.0.1:5000", f"c{len(bench.clients) + 1}"),
            acceptor or bench.acceptor,
            bench.services,
            bench.now,
        )
        self.raw = b""
        self.version = V12
        self.reads = True
        bench.clients.append(self)

    def is_read(self) -> bool:
        """Whether the session wants bytes."""
        return self.session.reading

    def send(self, chunk: bytes | str) -> None:
        """Bytes from the peer, and the tick that follows."""
        self.feed(chunk)
        self.bench.tick()

    def feed(self, chunk: bytes | str) -> None:
        """Bytes from the peer, and nothing else."""
        self.session.receive(chunk.encode() if isinstance(chunk, str) else chunk, self.bench.now)

    def frame(self, command: str, *headers: str, body: str = "") -> None:
        """One frame from the peer."""
        self.send("\n".join((command, *headers)) + f"\n\n{body}\0")

    def write(self) -> bool:
        """What the server does at the end of a tick, when the peer reads."""
        if not self.reads:
            return False
        outbox = self.session.outbox
        while chunk := outbox.take():
            self.raw += chunk
            outbox.confirm_written()
        touched = self.session.handle_written(self.bench.now)
        if self.host.wakes:
            self.host.wakes = 0
            self.session.handle_timer(self.bench.now)
            touched = True
        return touched

    def take(self) -> list[StompFrame]:
        """The frames received since the last call."""
        decoder = StompDecoder(StompLimits())
        decoder.version = self.version
        frames = []
        frame = decoder.next_frame(self.take_raw())
        while frame is not None:
            frames.append(frame)
            frame = decoder.next_frame()
        return frames

    def receipts(self) -> list[str]:
        """The ids of the RECEIPTs received since the last call."""
        return [frame.headers["receipt-id"] for frame in self.take() if frame.command == "RECEIPT"]

    def take_raw(self) -> bytes:
        """The bytes received since the last call."""
        raw = self.raw
        self.raw = b""
        return raw

    def take_bodies(self) -> str:
        """The bodies of the MESSAGEs received since the last call."""
        return " ".join(frame.body.decode() for frame in self.take() if frame.command == "MESSAGE")

    def error(self) -> StompFrame:
        """The ERROR that was the last thing received."""
        frame = self.take()[-1]
        assert frame.command == "ERROR", frame
        assert self.host.finished
        return frame
