"""How another thread has a loop look at what it was given, at little cost when much is given at a time."""

from collections.abc import Callable


class WakeUp:
    """Has a function called in a loop soon; once for all that ask before it begins.

    It may be asked for by several threads, and in the midst of being asked for, by a signal handler.

    Args:
        schedule: has a function called in the loop.
    """

    def __init__(self, schedule: Callable[[Callable[[], None]], object], function: Callable[[], object]) -> None:
        self._schedule = schedule
        self._function = function
        self._turn = 0
        self._asked_in = -1

    def ask(self) -> None:
        turn = self._turn
        if self._asked_in != turn:
            self._schedule(self._call)
            # Noted after the call is scheduled: when an exception interrupts the caller before that, the turn is not
            # noted, and the next caller schedules the call. A noted turn means that a scheduled call has not begun.
            self._asked_in = turn

    def _call(self) -> None:
        self._turn += 1
        self._function()
