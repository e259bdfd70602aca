"""The port between server and sessions: what every protocol brings and what every session may ask for.

A session is a machine without IO: bytes and times in; bytes into its outbox, and a few requests to its host. It never
blocks. While something it asked for is outstanding it decodes no further frame.
"""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.api import NO_EVENTS, EngineBroker, EngineEvents
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Clock
from delosmq.model.settings import AcceptorSettings, AddressMatch
from delosmq.security.access import AccessControl, LoginAttempt
from delosmq.sessions.outbox import Gate, Outbox, OutboxOwner
from delosmq.sessions.temporary_destinations import TemporaryDestinations

NO_TIMER: Final = MonotonicNs(0)


class SessionServices:
    """What all sessions of a broker share.

    Attributes:
        temporaries: temporary destinations of which other protocols' clients are told.
    """

    def __init__(
        self,
        broker: EngineBroker,
        gate: Gate,
        *,
        clock: Clock,
        access: AccessControl,
        conversions: Conversions,
        server_name: str,
    ) -> None:
        self.broker = broker
        self.gate = gate
        self.clock = clock
        self.access = access
        self.conversions = conversions
        self.server_name = server_name
        self.temporaries: TemporaryDestinations = TemporaryDestinations()


class Peer:
    """Who is at the other end.

    Attributes:
        name: address and port, for people.
        connection_id: unique while the broker runs.
        user: who is logged in, "" before.
    """

    def __init__(self, name: str, connection_id: str) -> None:
        self.name = name
        self.connection_id = connection_id
        self.user: str = ""

    def host(self) -> str:
        """The address without the port."""
        return self.name.rpartition(":")[0] or self.name


@mypyc_attr(allow_interpreted_subclasses=True)
class SessionHost(OutboxOwner):
    """The connection as its session sees it."""

    @abstractmethod
    def verify(self, attempt: LoginAttempt, password: str) -> None:
        """Have the password checked; `Session.resume` follows with the answer."""

    @abstractmethod
    def wake_soon(self) -> None:
        """Call `Session.handle_timer` in the next turn of the loop: there is work that can't be done here."""

    @abstractmethod
    def report(self, trouble: BrokerError) -> None:
        """Something went wrong that the peer is not told, or is not there to be told; for the log."""

    @abstractmethod
    def finish(self, reason: BrokerError | None) -> None:
        """The session is over: send what its outbox holds for replies, for a bounded time, then close the socket.

        Args:
            reason: why, when it was not the peer's wish; for the log.
        """


@mypyc_attr(allow_interpreted_subclasses=True)
class Session(ABC):
    """One connection's machine.

    Attributes:
        outbox: what it has to send.
        reading: False while the server must not read from the peer (back-pressure, or an answer is outstanding).
        established: True once the handshake of the protocol is done.
    """

    outbox: Outbox
    reading: bool
    established: bool

    @abstractmethod
    def receive(self, chunk: bytes, now: MonotonicNs) -> None:
        """Bytes from the peer."""

    @abstractmethod
    def held_bytes(self) -> int:
        """What was read and is not decoded yet: part of a frame, or frames that wait."""

    @abstractmethod
    def forget_input(self) -> None:
        """The session is over, and what it read and did not decode of no use: frees it."""

    @abstractmethod
    def resume(self, verified: bool, now: MonotonicNs) -> None:
        """The answer to `SessionHost.verify`."""

    @abstractmethod
    def next_timer(self) -> MonotonicNs:
        """When to call `handle_timer`; `NO_TIMER` for never."""

    @abstractmethod
    def handle_timer(self, now: MonotonicNs) -> None:
        """It is ``now``; may be called early."""

    @abstractmethod
    def handle_written(self, now: MonotonicNs) -> bool:
        """The outbox was written, all or in part. True when the engine has new work."""

    @abstractmethod
    def fail(self, error: BrokerError) -> None:
        """Tell the peer why, then `SessionHost.finish`."""

    @abstractmethod
    def handle_eof(self) -> None:
        """The peer will send nothing more: give back what it held, let its replies leave, then `SessionHost.finish`."""

    def rights_changed(self) -> None:  # noqa: B027 - not every protocol remembers what was granted
        """Users, roles or permissions were reloaded: what was found out about them counts no more."""

    @abstractmethod
    def connection_lost(self) -> None:
        """The peer is gone: give back what it held. Nothing is called after this."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Protocol(ABC):
    """What a protocol registers with the server; nothing else in the tree lists protocols.

    Attributes:
        name: as in ``protocols=`` of an acceptor.
        websocket_subprotocols: by which WebSocket clients ask for it; empty when it isn't spoken there.
        events: hears what the engine tells, from before the first connection on.
        address_settings: for addresses of its own; what broker.xml says of them counts more.
    """

    name: str
    websocket_subprotocols: tuple[str, ...] = ()
    events: EngineEvents = NO_EVENTS
    address_settings: tuple[AddressMatch, ...] = ()

    @abstractmethod
    def detect(self, start: bytes) -> int:
        """Whether a connection that begins with ``start`` speaks it: see `delosmq.wire.first_bytes`."""

    @abstractmethod
    def open(
        self, host: SessionHost, peer: Peer, acceptor: AcceptorSettings, services: SessionServices, now: MonotonicNs
    ) -> Session:
        """A session for a connection that was detected."""
