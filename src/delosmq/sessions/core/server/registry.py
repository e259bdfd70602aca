"""The CORE sessions of one broker, by what must be theirs alone: their names, and metadata that is to be unique.

A name is never logged: who knows it may take the session over.
"""

from delosmq.sessions.core.server import errors
from delosmq.sessions.core.server.session_port import SessionPort


class SessionNames:
    """All of a broker."""

    def __init__(self) -> None:
        self._sessions: dict[str, SessionPort] = {}

    def check(self, name: str, user: str) -> None:
        """Whether a user may have a session of that name.

        Raises:
            CoreError: another user has it.
        """
        stale = self._sessions.get(name)
        if stale is not None and stale.user != user:
            raise errors.name_taken()

    def enter(self, session: SessionPort) -> None:
        """Makes a session known. One that has its name is ended: its client does not know of it any more."""
        stale = self._sessions.get(session.name)
        if stale is not None:
            stale.fail(errors.replaced(stale.peer.name))
        self._sessions[session.name] = session

    def leave(self, session: SessionPort) -> None:
        """It has ended."""
        if self._sessions.get(session.name) is session:
            del self._sessions[session.name]

    def check_unique(self, session: SessionPort, key: str, value: str) -> None:
        """Whether a session may be the only one with that metadata.

        Raises:
            CoreError: another one has it.
        """
        for other in self._sessions.values():
            if other is not session and other.metadata.get(key) == value:
                raise errors.metadata_taken(key, value)
