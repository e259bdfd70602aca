"""What a session sent and its client has not confirmed: it is sent again when the client comes back.

Source: ChannelImpl of artemis-core-client: both sides number the packets of a session that count, the first one 0. What
a broker sends counts, but for its own confirmations. Here the room is bounded: beyond it the oldest go, and a client
that lacks those can't come back to its session.
"""

from collections import deque
from typing import Final

from delosmq.model.ids import Position
from delosmq.sessions.stream import Entry, size_of
from delosmq.wire.core.packet import MOST_INT

MOST_OF_SESSION_BYTES: Final = 16 * 1024 * 1024
MOST_BYTES: Final = 128 * 1024 * 1024
"""Of one session, and of all of a broker."""
_INT_VALUES: Final = 1 << 32


def as_int(number: int) -> int:
    """A number of a packet as Java has it, which begins anew behind the largest int."""
    low = number % _INT_VALUES
    return low if low <= MOST_INT else low - _INT_VALUES


class ReplayRoom:
    """What all sessions of a broker keep.

    Attributes:
        used_bytes: of `MOST_BYTES`.
    """

    def __init__(self) -> None:
        self.used_bytes: int = 0


class ReplayCache:
    """What one session has sent and its client has not confirmed, in the order in which it leaves."""

    def __init__(self, room: ReplayRoom) -> None:
        self._room = room
        self._entries: deque[tuple[int, Entry]] = deque()
        self._bytes: int = 0
        # The number of the oldest.
        self._first: int = 0

    def add(self, position: Position, entry: Entry) -> None:
        """Keeps what is on its way; it may leave once all up to ``position`` is synced."""
        size = size_of(entry)
        self._entries.append((position, entry))
        self._bytes += size
        self._room.used_bytes += size
        while self._entries and (self._bytes > MOST_OF_SESSION_BYTES or self._room.used_bytes > MOST_BYTES):
            self._drop_first()

    def confirm(self, number: int) -> None:
        """The client has all up to a number."""
        for _ in range(min(as_int(number + 1 - self._first), len(self._entries))):
            self._drop_first()

    def reaches(self, number: int) -> bool:
        """Whether all is here that follows a number, which the client had last."""
        return 0 <= as_int(number + 1 - self._first) <= len(self._entries)

    def entries(self) -> list[tuple[int, Entry]]:
        """All, with their positions."""
        return list(self._entries)

    def kept_bytes(self) -> int:
        return self._bytes

    def clear(self) -> None:
        """The session has ended."""
        self._room.used_bytes -= self._bytes
        self._bytes = 0
        self._entries.clear()

    def _drop_first(self) -> None:
        size = size_of(self._entries.popleft()[1])
        self._bytes -= size
        self._room.used_bytes -= size
        self._first += 1
