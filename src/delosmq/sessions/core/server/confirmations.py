"""What a session tells its client of the packets that it has handled, so that the client need not keep them.

Source: ChannelImpl of artemis-core-client: both sides number the packets that count, the first one 0. A packet that is
refused counts as well here, once its refusal is on its way: else both sides would count differently.
"""

from typing import Final

from delosmq.wire.core.packet import (
    CREATESESSION,
    CREATESESSION_V2,
    PACKETS_CONFIRMED,
    PING,
    REATTACH_SESSION,
    REATTACH_SESSION_RESP,
    SESS_ADD_METADATA,
    SESS_ADD_METADATA2,
    SESS_UNIQUE_ADD_METADATA,
    Packet,
)

NO_WINDOW: Final = -1
_NEVER_COUNTED: Final = frozenset(
    (PING, PACKETS_CONFIRMED, CREATESESSION, CREATESESSION_V2, REATTACH_SESSION, REATTACH_SESSION_RESP)
)
_METADATA: Final = frozenset((SESS_ADD_METADATA, SESS_ADD_METADATA2, SESS_UNIQUE_ADD_METADATA))


class Confirmations:
    """Counts the packets that come for one session.

    Attributes:
        window_bytes: of the client; `NO_WINDOW` when neither side keeps anything.
        last: the number of the last one that was handled; -1 before the first.
    """

    def __init__(self, window_bytes: int) -> None:
        self.window_bytes = window_bytes
        self._bytes: int = 0
        self._told: int = -1
        self.last: int = -1
        # The number of the one that came last, and the highest that ever came.
        self._number: int = -1
        self._received: int = -1

    def is_new(self, packet: Packet) -> bool:
        """A packet comes. False when it has come before, by an earlier connection."""
        if self.window_bytes < 0 or not _is_counted(packet):
            return True
        self._number += 1
        if self._number <= self._received:
            return False
        self._received = self._number
        return True

    def handled(self, packet: Packet) -> bool:
        """A packet was carried out, or refused. Whether it is time to tell."""
        if self.window_bytes < 0 or not _is_counted(packet):
            return False
        self.last += 1
        self._bytes += packet.size_bytes
        return self._bytes >= self.window_bytes

    def pending(self) -> bool:
        """Whether there is something to tell."""
        return self.last > self._told

    def take(self) -> int:
        """The number to tell."""
        self._told = self.last
        self._bytes = 0
        return self.last

    def resume(self, *, waits: bool) -> int:
        """The client comes back; gives the number of the last packet that it need not send again.

        Args:
            waits: some of what came is not carried out yet, so that the client is to keep what it was not told about.
                It will send that again, which is left out then.
        """
        if not waits:
            self.take()
        self._number = self._told
        return self._told


def _is_counted(packet: Packet) -> bool:
    code = packet.code
    if code in _METADATA:
        return packet.requires_response
    return code not in _NEVER_COUNTED
