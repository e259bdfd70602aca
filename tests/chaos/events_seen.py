"""What clients did and were told over all lives of a broker, in the order in which they noticed it."""

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.patience import PATIENCE_S

SENT: Final = "sent"
CONFIRMED: Final = "confirmed"
"""A receipt came for what was sent."""
ABANDONED: Final = "abandoned"
"""It was sent in a transaction that was aborted."""
DELIVERED: Final = "delivered"
ANSWERED: Final = "answered"
"""An ACK was written."""
SETTLED: Final = "settled"
"""Its receipt came."""
REFUSED: Final = "refused"
"""A NACK was written."""
REFUSAL_CONFIRMED: Final = "refusal confirmed"
FOUND: Final = "found"
"""A queue held it when it was looked at between two kills."""
LOOKED: Final = "looked"
"""The end of such a look."""
TAKEN: Final = "taken"
"""All that the look found was acknowledged, with a receipt."""

BACKLOG: Final = 150
"""Producers wait for consumers who are this far behind."""


class Happening(NamedTuple):
    """One thing that a client did or saw.

    Attributes:
        queue: what a consumer reads; for what was sent the name of the load.
        message_id: what the broker calls it.
        at_ms: when it came; of what was sent: when it may come at the earliest.
    """

    what: str
    queue: str
    number: int
    life: int = 0
    client: str = ""
    message_id: str = ""
    group: str = ""
    size: int = 0
    at_ms: int = 0


class Record:
    """All happenings, for clients in many threads.

    Attributes:
        happened: the oldest first.
        wrong: sentences about what must not be.
        last: the last life: consumers leave nothing unanswered.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.happened: list[Happening] = []
        self.wrong: list[str] = []
        self.life = 0
        self.last = False
        self.confirmed: dict[str, set[int]] = defaultdict(set)
        self.unconfirmed: dict[str, set[int]] = defaultdict(set)
        self.answered: dict[str, set[int]] = defaultdict(set)
        self._open: dict[str, set[int]] = defaultdict(set)
        self._newest: dict[str, int] = defaultdict(int)

    def new_number(self, load: str) -> int:
        with self.changed:
            self._newest[load] += 1
            return self._newest[load]

    def newest(self, load: str) -> int:
        """The number given out last; 0 for none."""
        with self.changed:
            return self._newest[load]

    def begin_life(self, life: int) -> None:
        with self.changed:
            self.life = life
            self._open.clear()

    def note(self, what: str, queue: str, number: int, **more: Any) -> None:
        with self.changed:
            self.happened.append(Happening(what, queue, number, self.life, **more))
            if what == SENT and number not in self.confirmed[queue]:
                self.unconfirmed[queue].add(number)
            elif what == CONFIRMED:
                self.confirmed[queue].add(number)
                self.unconfirmed[queue].discard(number)
            elif what == DELIVERED:
                self._open[queue].add(number)
            elif what == ANSWERED:
                self.answered[queue].add(number)
            elif what in (SETTLED, REFUSAL_CONFIRMED):
                self._open[queue].discard(number)
            self.changed.notify_all()

    def nothing_open(self) -> bool:
        """Whether all that was delivered in this life is settled."""
        return not any(self._open.values())

    def wait(self, what: Callable[[], bool]) -> bool:
        """Until it is so, or something is wrong."""
        with self.changed:
            return self.changed.wait_for(lambda: bool(self.wrong) or what(), PATIENCE_S)

    def wait_for_consumers(self, load: str, queues: tuple[str, ...]) -> None:
        """Until they have caught up, or are as dead as the broker."""
        with self.changed:
            self.changed.wait_for(lambda: self._are_close(load, queues), 1.0)

    def _are_close(self, load: str, queues: tuple[str, ...]) -> bool:
        confirmed = len(self.confirmed[load])
        return all(confirmed - len(self.answered[queue]) < BACKLOG for queue in queues)
