"""Connections that are not logged in after ``handshake-timeout``, and the few of them that may stay.

A client of ActiveMQ with ``failover:(...)?backup=true`` keeps a connection to another broker for when its own breaks:
it agrees on the wire format, shows by its keep-alives that it is there, and logs in when it is needed. Classic and
Artemis leave it for as long as it likes. Here it may stay, too; but anyone can open such connections, so few may.

Source: FailoverTransport of ActiveMQ's client (buildBackups), InactivityMonitor of Classic (a WireFormatInfo ends its
check for a first command), ProtocolHandler of Artemis (the first bytes end ``handshake-timeout``);
docs/decisions/0063.
"""

from typing import Final

from delosmq.model.errors import PeerError
from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.machine import VERIFYING, SessionMachine

_ONE_IN: Final = 10
_WITHOUT_A_LIMIT: Final = 100
"""Of an acceptor that serves any number of connections."""


class SpareConnections:
    """Those of one acceptor."""

    def __init__(self, acceptor: AcceptorSettings) -> None:
        self._acceptor = acceptor
        allowed = acceptor.connections_allowed
        self._most: int = _WITHOUT_A_LIMIT if allowed < 0 else allowed // _ONE_IN
        self._spares: set[object] = set()

    def keeps(self, connection: object, session: SessionMachine | None) -> bool:
        """Whether a connection may stay for another ``handshake-timeout`` though it is not logged in."""
        if session is None or session.state == VERIFYING or not session.session.may_wait_to_log_in():
            # A spare that is needed now has the time of every other connection.
            return self.remove(connection)
        if connection not in self._spares and len(self._spares) >= self._most:
            return False
        self._spares.add(connection)
        return True

    def remove(self, connection: object) -> bool:
        """It has logged in, or is gone. Whether it was one of them."""
        known = connection in self._spares
        self._spares.discard(connection)
        return known

    def too_late(self, peer: str, session: SessionMachine | None, awaited: str | None) -> PeerError:
        """What a connection is told that may not stay.

        Args:
            awaited: what a layer below the session waits for; None when it waits for nothing.
        """
        if session is not None and session.state == VERIFYING:
            awaited = "its login is not decided yet; let the client try again later, or raise handshake-timeout"
        elif session is not None and session.session.may_wait_to_log_in():
            awaited = (
                f"as many spare connections as the acceptor keeps ({self._most}, by its connectionsAllowed) are there;"
                " log in, or raise connectionsAllowed"
            )
        elif session is not None and not awaited:
            awaited = f"send {session.session.login_command()} right after connecting"
        return PeerError(
            "DMQ6703",
            f"{peer} did not finish its handshake within {self._acceptor.handshake_timeout_s} s:"
            f" {awaited or 'send CONNECT right after connecting'}.",
        )
