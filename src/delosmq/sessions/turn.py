"""How long the frames of one connection may keep others waiting.

One read brings thousands of frames, and one frame may stand for much: an acknowledgement of a thousand messages, a
message for a thousand subscribers. What a turn leaves undecoded has the next one, behind those of all others.
"""

from typing import Final

from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Clock

_TURN_NS: Final = 5_000_000
"""What a turn may take, but for its last frames."""
BRIEF_AT_ONCE: Final = 16
"""Frames that are brief as a rule, between two looks at the clock."""


class Turn:
    """The turn of one connection.

    Attributes:
        over: it was too long: nothing is decoded until `SessionHost.wake_soon` has brought the next one.
    """

    def __init__(self, clock: Clock) -> None:
        self.over: bool = False
        self._clock = clock
        self._until: MonotonicNs = MonotonicNs(0)
        self._unlooked: int = 0

    def begin(self) -> None:
        """Before the first frame."""
        self.over = False
        self._until = MonotonicNs(self._clock.monotonic_ns() + _TURN_NS)
        self._unlooked = 0

    def ends(self, *, brief: bool) -> bool:
        """Behind each frame: whether the turn is over.

        Args:
            brief: as a rule it takes no time worth a look at the clock.
        """
        self._unlooked += 1
        if brief and self._unlooked < BRIEF_AT_ONCE:
            return False
        self._unlooked = 0
        self.over = self._clock.monotonic_ns() > self._until
        return self.over
