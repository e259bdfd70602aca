"""The JMS sessions of one connection: consumers and producers belong to one, and end with it.

Source: TransportConnection of ActiveMQ Classic. Session -1 is there without a SessionInfo, for the client itself.
"""

from typing import Final

from delosmq.sessions.openwire import failures
from delosmq.wire.openwire.commands import SessionId

DEFAULT_SESSION: Final = -1


class SessionIds:
    """Those that the peer has opened."""

    def __init__(self, connection_id: str, limit: int) -> None:
        self._default: str = SessionId(connection_id, DEFAULT_SESSION).key()
        self._limit = limit
        self._open: set[str] = set()

    def add(self, session_id: SessionId | None) -> None:
        """Handles a SessionInfo; again is nothing.

        Raises:
            Refusal: it has no id, or there are too many.
        """
        if session_id is None:
            raise failures.field_missing("sessionId", "a SessionInfo")
        key = session_id.key()
        if key in self._open:
            return
        if len(self._open) >= self._limit:
            raise failures.too_many("sessions", self._limit)
        self._open.add(key)

    def require(self, what: str, connection_id: str, session_id: int) -> None:
        """For what is to belong to a session.

        Raises:
            Refusal: there is no such session.
        """
        key = SessionId(connection_id, session_id).key()
        if key not in self._open and key != self._default:
            raise failures.session_unknown(what, key)

    def remove(self, session_id: SessionId) -> None:
        """Handles the RemoveInfo of a session.

        Raises:
            Refusal: there is none.
        """
        key = session_id.key()
        if key not in self._open and key != self._default:
            raise failures.nothing_to_remove("session", key)
        self._open.discard(key)
