"""Faults that befall frames on their way: the connection is cut there, they are lost, or they come twice."""

import threading
from typing import Final

from delosmq.config.findings import nearest
from delosmq.model.errors import MisuseError
from delosmq.testing.dialogue import DELIVERY, FRAME_NAMES, CutFrame

WAIT_S: Final = 10.0

# What becomes of a frame, as the trace has it.
CUT_BEFORE: Final = "CUT BEFORE "
CUT_AFTER: Final = "CUT AFTER "
DROPPED: Final = "DROPPED "
TWICE: Final = "TWICE "
SURPLUS: Final = "NOT PASSED ON "
"""An acknowledgement of what the client got twice and has acknowledged before."""
UNHARMED: Final = ""

STOPPED: Final = frozenset({CUT_BEFORE, DROPPED, SURPLUS})
"""Fates of frames that do not arrive."""


class FrameFault:
    """What befalls one frame: the n-th of its kind, counted over all connections from now on.

    Attributes:
        happened: it has.
    """

    def __init__(self, fate: str, frame: str, number: int) -> None:
        """
        Raises:
            MisuseError: there is no such frame, or no such number.
        """
        __tracebackhide__ = True
        if frame not in FRAME_NAMES and frame != DELIVERY:
            raise MisuseError(
                "DMQ7207",
                f"neither STOMP nor OpenWire has a frame {frame!r}; name it as its protocol does, such as 'ACK' or"
                f" 'MessageAck'{nearest(str(frame), list(FRAME_NAMES))}",
            )
        if type(number) is not int or number < 1:
            raise MisuseError("DMQ7208", f"there is no {frame} number {number!r}; they count from 1")
        self.fate = fate
        self.frame = frame
        self.number = number
        self._seen = 0
        self._happened = threading.Event()

    @property
    def happened(self) -> bool:
        return self._happened.is_set()

    def wait(self, timeout_s: float = WAIT_S) -> None:
        """Waits until it has happened.

        Raises:
            AssertionError: it has not, within ``timeout_s``.
        """
        __tracebackhide__ = True
        if not self._happened.wait(timeout_s):
            raise AssertionError(
                f"{self.frame} number {self.number} did not come within {timeout_s:g} s: there were {self._seen}"
            )

    def __str__(self) -> str:
        return f"{self.fate}{self.frame} number {self.number}"

    def befalls(self, cut: CutFrame) -> bool:
        """Counts a frame; True for the one that is meant."""
        if cut.is_a(self.frame):
            self._seen += 1
            if self._seen == self.number:
                self._happened.set()
                return True
        return False
