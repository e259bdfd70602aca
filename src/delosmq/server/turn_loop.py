"""The event loop of `delosmq run`: asyncio's own, with a selector that tells how many sockets a turn has brought.

Frames of one turn share one tick, so a tick runs in the turn behind. When a turn has brought one socket only there is
nothing to share with: the tick may follow at once, and one message at a time costs half the turns.
"""

import asyncio
import selectors


class TurnSelector(selectors.DefaultSelector):
    """The system's best selector.

    Attributes:
        ready: how many sockets were ready in the turn under way.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ready = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(timeout)
        self.ready = len(found)
        return found


class TurnLoop(asyncio.SelectorEventLoop):
    """A loop that knows its selector."""

    def __init__(self) -> None:
        self.turn = TurnSelector()
        super().__init__(self.turn)


def turn_of(loop: asyncio.AbstractEventLoop) -> TurnSelector | None:
    """What counts for this loop; None when nothing does: every tick then waits for the next turn."""
    return loop.turn if isinstance(loop, TurnLoop) else None
