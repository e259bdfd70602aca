"""The port between the machine of a session and its protocol."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs
from delosmq.security.access import Login
from delosmq.sessions.host import NO_TIMER
from delosmq.sessions.parked_sends import ParkedSends
from delosmq.sessions.ttl import Liveness
from delosmq.wire.decoder import FrameDecoder


@mypyc_attr(allow_interpreted_subclasses=True)
class ProtocolSession(ABC):
    """What a protocol brings to one session: what its frames mean, and how its answers are written.

    Attributes:
        decoder: of what its peer sends.
        liveness: how long its peer may be silent.
        parked_sends: its sends that wait for space; None before the login.
    """

    def __init__(self, decoder: FrameDecoder, liveness: Liveness) -> None:
        self.decoder = decoder
        self.liveness = liveness
        self.parked_sends: ParkedSends | None = None

    def parked_bytes(self) -> int:
        """What of its peer waits for space, in bytes: with much of it the connection is not read."""
        return 0 if self.parked_sends is None else self.parked_sends.parked_bytes

    def held_bytes(self) -> int:
        """What it keeps of messages that are not complete, in bytes."""
        return 0

    @abstractmethod
    def handle(self, frame: object, now: MonotonicNs) -> bool:
        """Carries out one frame. True when its kind takes no time worth a look at the clock, as a rule.

        Raises:
            BrokerError: it can't be carried out; `refuse` follows.
        """

    @abstractmethod
    def refuse(self, frame: object, error: BrokerError) -> None:
        """Tells the peer what is wrong with a frame, and ends the session if that is how it is with such errors."""

    @abstractmethod
    def admit(self, login: Login, now: MonotonicNs) -> None:
        """Begins the session of ``login``, and tells the peer.

        Raises:
            BrokerError: it gets none after all; nothing has changed. `refuse_login` follows.
        """

    @abstractmethod
    def refuse_login(self, error: BrokerError | None) -> None:
        """Tells the peer why it gets no session; None for a wrong user or password."""

    @abstractmethod
    def send_error(self, error: BrokerError, receipt: str) -> None:
        """Tells the peer why its session ends now.

        Args:
            receipt: what a frame that can't be carried out asked for; "" for none.
        """

    @abstractmethod
    def give_up(self) -> None:
        """Gives back all that the peer held: the session has ended. Called once."""

    def lose(self) -> None:
        """The connection is lost, with a peer that did not end the session. Called once, and not after `give_up`."""
        self.give_up()

    @abstractmethod
    def half_closed(self) -> None:
        """The peer will send nothing more: ends the session, now or after what is under way."""

    @abstractmethod
    def go_on(self, now: MonotonicNs) -> None:
        """Goes on with what is parked or due, in a turn of its own.

        Raises:
            StorageError: that can't be recorded; the session fails.
        """

    @abstractmethod
    def handle_written(self) -> bool:
        """The outbox was written, all or in part. True when the engine has new work.

        Raises:
            StorageError: what follows can't be recorded; the session fails.
        """

    @abstractmethod
    def beat(self) -> None:
        """Shows the peer that the server is there."""

    def login_command(self) -> str:
        """By which its peers log in."""
        return "CONNECT"

    def may_wait_to_log_in(self) -> bool:
        """Whether the peer may be there for later use now, without a login: how it would be one is agreed, and its
        silence would be noticed."""
        return False

    def next_timer(self) -> MonotonicNs:
        """When `go_on` is due by the clock; `NO_TIMER` for never."""
        return NO_TIMER

    def rights_changed(self) -> None:  # noqa: B027 - not every protocol remembers what was granted
        """Users, roles or permissions were reloaded: what was found out about them counts no more."""
