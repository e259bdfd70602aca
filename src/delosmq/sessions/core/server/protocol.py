"""CORE as the server registers it."""

from delosmq.model.ids import MonotonicNs
from delosmq.model.protocol_names import CORE
from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.core.server.connection import CoreConnection
from delosmq.sessions.core.server.registry import SessionNames
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.protocol import Protocol
from delosmq.sessions.protocol_session import ProtocolSession
from delosmq.wire.core.conversion import FAMILY, CoreConversion
from delosmq.wire.core.decoder import detect


class CoreProtocol(Protocol):
    """CORE, versions 129 to 136 of its wire, of one broker.

    Attributes:
        names: of its sessions.
    """

    def __init__(self, acceptors: tuple[AcceptorSettings, ...] = ()) -> None:
        self.name = CORE
        self.family = FAMILY
        self.conversion = CoreConversion()
        self.names: SessionNames = SessionNames()

    def detect(self, start: bytes) -> int:
        return detect(start)

    def begin(self, machine: SessionMachine, now: MonotonicNs) -> ProtocolSession:
        return CoreConnection(machine, self.names, now)
