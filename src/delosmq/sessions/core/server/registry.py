"""The CORE sessions of one broker, by what must be theirs alone: their names, and metadata that is to be unique; and
those that wait for their client.

A name is never logged: who knows it may take the session over.
"""

from abc import abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.api import Timer
from delosmq.model.errors import BrokerError
from delosmq.sessions.core.server import errors
from delosmq.sessions.core.server.reattach.replay_cache import ReplayRoom
from delosmq.sessions.core.server.session_port import SessionPort

MOST_DETACHED: Final = 10_000
MOST_DETACHED_BYTES: Final = 256 * 1024 * 1024
"""Sessions that wait for their clients, and what all of them take. Beyond that those go that have waited longest."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DetachedConnection(Timer):
    """The sessions of a connection that was lost, and the appointments by which they go on.

    Attributes:
        count: how many they were. size_bytes: what they took.
    """

    def __init__(self, count: int, size_bytes: int) -> None:
        self.count = count
        self.size_bytes = size_bytes

    @abstractmethod
    def end(self, reason: BrokerError | None) -> None:
        """Ends those whose client has not come back."""


class SessionNames:
    """All of a broker.

    Attributes:
        room: what they keep for clients that come back.
        most_detached: sessions that may wait for their clients.
    """

    def __init__(self) -> None:
        self.room: ReplayRoom = ReplayRoom()
        self.most_detached: int = MOST_DETACHED
        self._sessions: dict[str, SessionPort] = {}
        # In the order in which they were lost.
        self._detached: dict[DetachedConnection, None] = {}
        self._detached_count: int = 0
        self._detached_bytes: int = 0

    def check(self, name: str, user: str) -> None:
        """Whether a user may have a session of that name.

        Raises:
            CoreError: another user has it.
        """
        stale = self._sessions.get(name)
        if stale is not None and stale.user != user:
            raise errors.name_taken()

    def find(self, name: str) -> SessionPort | None:
        """The session of that name; None for none."""
        return self._sessions.get(name)

    def add_detached(self, connection: DetachedConnection) -> None:
        """The sessions of a connection wait for their client."""
        self._detached[connection] = None
        self._detached_count += connection.count
        self._detached_bytes += connection.size_bytes
        while self._detached_count > self.most_detached or self._detached_bytes > MOST_DETACHED_BYTES:
            oldest = next(iter(self._detached))
            self.remove_detached(oldest)
            oldest.end(errors.too_many_detached(oldest.count, self.most_detached, MOST_DETACHED_BYTES))

    def remove_detached(self, connection: DetachedConnection) -> None:
        """They do not wait any more."""
        if connection in self._detached:
            del self._detached[connection]
            self._detached_count -= connection.count
            self._detached_bytes -= connection.size_bytes

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
