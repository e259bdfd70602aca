"""The credit of a CORE consumer: bytes of whole frames, which its client gives and takes back.

Source: ServerConsumerImpl.receiveCredits of Artemis: 0 before the first; it may become negative; acknowledgements give
nothing back.
"""

from typing import Final

from delosmq.engine.api import Credit

UNLIMITED_CREDIT: Final = -1
NO_CREDIT: Final = 0


class FrameCredit(Credit):
    """What one consumer may be sent.

    Attributes:
        asked: the client has asked to be told when there is nothing more for it.
    """

    def __init__(self) -> None:
        self._room: int = 0
        self._unlimited: bool = False
        self.asked: bool = False

    def give(self, count: int) -> None:
        """The client takes so many bytes more; `UNLIMITED_CREDIT` is any, `NO_CREDIT` takes back what is left."""
        self._unlimited = count == UNLIMITED_CREDIT
        if count == NO_CREDIT:
            self._room = 0
        elif count > 0:
            self._room += count

    def spend(self, frame_bytes: int) -> None:
        """A frame is on its way."""
        self._room -= frame_bytes

    def has_room(self) -> bool:
        return self._unlimited or self._room > 0

    def is_asked(self) -> bool:
        return self.asked

    def taken(self, size_bytes: int) -> None:
        pass  # its frame counts, of which the engine knows nothing

    def settled(self, size_bytes: int) -> None:
        pass

    def rolled_back(self, size_bytes: int) -> None:
        pass
