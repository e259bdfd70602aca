"""The ids that a peer chooses: which of them are allowed, and which JMS sessions are open.

Java's strings may hold surrogates without a partner, which no other protocol and no record of the broker can carry.
Consumers and producers belong to a session and end with it; session -1 is there without a SessionInfo, for the client
itself. Source: TransportConnection of ActiveMQ Classic.
"""

from typing import Final

from delosmq.sessions.openwire.server import errors
from delosmq.wire.openwire.modified_utf8 import is_well_formed
from delosmq.wire.openwire.structures import SessionId

DEFAULT_SESSION: Final = -1

LONGEST_ID: Final = 1_024
"""Characters, or bytes of an id that is no text. Of the ids that clients make themselves, none comes near."""
_LARGEST_COMMAND_ID: Final = (1 << 31) - 1


def following(command_id: int) -> int:
    """The id of our next command. They begin anew where 32 bits with a sign end."""
    return command_id + 1 & _LARGEST_COMMAND_ID


def check_id(what: str, value: str) -> None:
    """Refuses a name or id that can't be kept.

    Raises:
        OpenWireError: DMQ5275.
    """
    if len(value) > LONGEST_ID:
        raise errors.id_wrong(what, value, f"it has {len(value)} characters, and {LONGEST_ID} may be")
    if not is_well_formed(value):
        raise errors.id_wrong(what, value, "it holds a surrogate without its partner")


def check_bytes(what: str, value: bytes) -> None:
    """The same for an id that is no text.

    Raises:
        OpenWireError: DMQ5275.
    """
    if len(value) > LONGEST_ID:
        raise errors.id_wrong(what, "", f"it has {len(value)} bytes, and {LONGEST_ID} may be")


class SessionIds:
    """The JMS sessions that the peer has opened."""

    def __init__(self, connection_id: str, limit: int) -> None:
        self._connection_id = connection_id
        self._default: str = SessionId(connection_id, DEFAULT_SESSION).key()
        self._limit = limit
        self._open: set[str] = set()

    def add(self, session_id: SessionId | None) -> None:
        """Handles a SessionInfo; again is nothing.

        Raises:
            OpenWireError: it has no id, or one of another connection; or there are too many.
        """
        if session_id is None:
            raise errors.field_missing("sessionId", "a SessionInfo")
        key = session_id.key()
        self.own("session", session_id.connection_id, key)
        if key in self._open:
            return
        if len(self._open) >= self._limit:
            raise errors.too_many("sessions", self._limit)
        self._open.add(key)

    def own(self, what: str, connection_id: str, key: str) -> None:
        """Refuses ids of other connections: all hear of ours by their ids.

        Raises:
            OpenWireError: DMQ5276.
        """
        if connection_id != self._connection_id:
            raise errors.foreign(what, key, self._connection_id)

    def require(self, what: str, connection_id: str, session_id: int) -> None:
        """For what is to belong to a session.

        Raises:
            OpenWireError: there is no such session.
        """
        key = SessionId(connection_id, session_id).key()
        if key not in self._open and key != self._default:
            raise errors.session_unknown(what, key)

    def remove(self, session_id: SessionId) -> None:
        """Handles the RemoveInfo of a session.

        Raises:
            OpenWireError: there is none.
        """
        key = session_id.key()
        if key not in self._open and key != self._default:
            raise errors.nothing_to_remove("session", key)
        self._open.discard(key)
