"""What a session has around it: who its peer is, the connection as its host, and what all sessions share."""

from abc import abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.api import EngineBroker
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Clock
from delosmq.security.access import AccessControl, LoginAttempt
from delosmq.sessions.login import ADMIT_ALL, LoginPort
from delosmq.sessions.management import ManagementPort, NoManagement
from delosmq.sessions.outbox import Gate, OutboxOwner
from delosmq.sessions.temporary_destinations import TemporaryDestinations

NO_TIMER: Final = MonotonicNs(0)


class SessionServices:
    """What all sessions of a broker share.

    Attributes:
        temporaries: temporary destinations of which other protocols' clients are told.
        logins: decides which user with a right password gets a session.
        management: carries out what is sent to the management address.
        node_id: 16 bytes by which brokers tell each other apart.
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
        logins: LoginPort = ADMIT_ALL,
        management: ManagementPort | None = None,
        node_id: bytes = bytes(16),
    ) -> None:
        self.broker = broker
        self.gate = gate
        self.clock = clock
        self.access = access
        self.conversions = conversions
        self.server_name = server_name
        self.logins = logins
        self.node_id = node_id
        self.management: ManagementPort = NoManagement() if management is None else management
        self.temporaries: TemporaryDestinations = TemporaryDestinations()

    def node_name(self) -> str:
        """The node id as peers write it."""
        digits = self.node_id.hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Peer:
    """The client at the other end.

    Attributes:
        name: address and port, as logged.
        connection_id: unique while the broker runs.
        user: that is logged in, "" before.
        sni_host: the server name that its TLS handshake asked for, "" for none.
        certificate: the distinguished name of the certificate that it showed and that was verified, "" for none.
    """

    def __init__(self, name: str, connection_id: str) -> None:
        self.name = name
        self.connection_id = connection_id
        self.user: str = ""
        self.sni_host: str = ""
        self.certificate: str = ""

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
