"""Large messages to the broker, which come in parts: headers, then the body.

The store keeps whole messages, so a body is gathered here, within a bound for all sessions of the connection.
Source: ServerSessionImpl.sendLarge, sendContinuations of Artemis.
"""

from typing import Final

from delosmq.sessions.core.server import errors
from delosmq.wire.core.message import CoreMessage
from delosmq.wire.core.message_packets import SessionSendContinuation, SessionSendLarge

_AT_ONCE: Final = 4


class GatheredBytes:
    """How much the sessions of a connection have gathered of large messages.

    Attributes:
        largest_bytes: of one message; all of them together may have `_AT_ONCE` times as much.
    """

    def __init__(self, largest_bytes: int) -> None:
        self.largest_bytes = largest_bytes
        self.limit: int = _AT_ONCE * largest_bytes
        self.count: int = 0


class LargeMessage:
    """The one that a session has under way, if any.

    Attributes:
        gathered: what all of the connection have.
    """

    def __init__(self, gathered: GatheredBytes) -> None:
        self._gathered = gathered
        self._headers: CoreMessage | None = None
        self._body: bytearray = bytearray()
        self._refused: bool = False

    def begin(self, packet: SessionSendLarge) -> None:
        """The headers of one; another that was under way is dropped."""
        self.drop()
        self._headers = packet.message

    def add(self, packet: SessionSendContinuation) -> CoreMessage | None:
        """A part of the body; gives the whole message with the last one.

        Raises:
            CoreError: none is under way, or it is too large. The latter is said with its last part, to which alone
                clients want an answer.
        """
        message = self._headers
        if message is None:
            raise errors.part_without_start()
        size = len(packet.body)
        gathered = self._gathered
        if len(self._body) + size > gathered.largest_bytes or gathered.count + size > gathered.limit:
            self._refused = True
            self._release()
        if not self._refused:
            self._body += packet.body
            gathered.count += size
        if packet.continues:
            return None
        refused = self._refused
        message.body = bytes(self._body)
        self.drop()
        if refused:
            raise errors.large_message_too_large(gathered.largest_bytes)
        return message

    def drop(self) -> None:
        """Forgets what is under way."""
        self._release()
        self._headers = None
        self._refused = False

    def move(self, gathered: GatheredBytes) -> None:
        """The session has another connection, and ``gathered`` is what all sessions of that have."""
        self._gathered.count -= len(self._body)
        gathered.count += len(self._body)
        self._gathered = gathered

    def _release(self) -> None:
        self._gathered.count -= len(self._body)
        self._body = bytearray()
