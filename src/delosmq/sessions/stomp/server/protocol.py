"""STOMP as the server registers it."""

from typing import Final

from delosmq.model.ids import MonotonicNs
from delosmq.model.protocol_names import STOMP
from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.machine import SessionMachine
from delosmq.sessions.protocol import Protocol
from delosmq.sessions.protocol_session import ProtocolSession
from delosmq.sessions.stomp.server.session import StompSession
from delosmq.wire.first_bytes import match_first_line
from delosmq.wire.stomp.conversion import StompConversion

# Every command a client may send: one that comes before CONNECT is answered with an ERROR, not with silence.
_FIRST_LINES: Final = frozenset(
    (
        b"CONNECT",
        b"STOMP",
        b"SEND",
        b"SUBSCRIBE",
        b"UNSUBSCRIBE",
        b"ACK",
        b"NACK",
        b"BEGIN",
        b"COMMIT",
        b"ABORT",
        b"DISCONNECT",
    )
)

# All mean STOMP; its version is agreed in CONNECT. Source: STOMP over WebSocket, as Artemis and stomp.js speak it.
WEBSOCKET_SUBPROTOCOLS: Final = ("v12.stomp", "v11.stomp", "v10.stomp")


class StompProtocol(Protocol):
    """STOMP 1.0, 1.1 and 1.2."""

    def __init__(self, acceptors: tuple[AcceptorSettings, ...] = ()) -> None:
        """
        Args:
            acceptors: its messages may have their prefixes.
        """
        self.name = STOMP
        self.family = "stomp"
        # In the order of the acceptors, each once.
        anycast = dict.fromkeys(prefix for acceptor in acceptors for prefix in acceptor.anycast_prefixes)
        multicast = dict.fromkeys(prefix for acceptor in acceptors for prefix in acceptor.multicast_prefixes)
        self.conversion = StompConversion(tuple(anycast), tuple(multicast))
        self.websocket_subprotocols = WEBSOCKET_SUBPROTOCOLS

    def detect(self, start: bytes) -> int:
        return match_first_line(start, _FIRST_LINES)

    def begin(self, machine: SessionMachine, now: MonotonicNs) -> ProtocolSession:
        return StompSession(machine, now)
