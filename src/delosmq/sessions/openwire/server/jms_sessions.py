"""The JMS sessions of one connection: consumers and producers belong to one, and end with it.

Source: TransportConnection of ActiveMQ Classic. Session -1 is there without a SessionInfo, for the client itself.
"""

from typing import Final

from delosmq.sessions.openwire.server import errors as failures
from delosmq.wire.openwire.commands import SessionId

DEFAULT_SESSION: Final = -1


class SessionIds:
    """Those that the peer has opened."""

    def __init__(self, connection_id: str, limit: int) -> None:
        self._connection_id = connection_id
        self._default: str = SessionId(connection_id, DEFAULT_SESSION).key()
        self._limit = limit
        self._open: set[str] = set()

    def add(self, session_id: SessionId | None) -> None:
        """Handles a SessionInfo; again is nothing.

        Raises:
            Refusal: it has no id, or one of another connection; or there are too many.
        """
        if session_id is None:
            raise failures.field_missing("sessionId", "a SessionInfo")
        key = session_id.key()
        self.own("session", session_id.connection_id, key)
        if key in self._open:
            return
        if len(self._open) >= self._limit:
            raise failures.too_many("sessions", self._limit)
        self._open.add(key)

    def own(self, what: str, connection_id: str, key: str) -> None:
        """Refuses ids of other connections: all hear of ours by their ids.

        Raises:
            Refusal: DMQ5276.
        """
        if connection_id != self._connection_id:
            raise failures.foreign(what, key, self._connection_id)

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
