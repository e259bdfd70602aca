"""Redirects in a circle: brokers that each think a connection belongs to the other."""

from collections import OrderedDict, deque
from typing import Final

from delosmq.model.ids import MonotonicNs

MOST_REDIRECTS: Final = 5
WITHIN_NS: Final = 10_000_000_000
MOST_SOURCES: Final = 10_000
"""With more, the one that was not redirected for longest is forgotten."""


class LoopGuard:
    """Counts redirects of each key and source: neither brokers nor protocols count hops."""

    def __init__(self) -> None:
        self._redirects: OrderedDict[tuple[str, str], deque[MonotonicNs]] = OrderedDict()

    def redirected(self, key: str, source: str, now: MonotonicNs) -> bool:
        """Whether ``source`` was redirected with ``key`` more than five times within ten seconds, this time included;
        after that it is counted anew."""
        times = self._redirects.setdefault((key, source), deque())
        self._redirects.move_to_end((key, source))
        while times and times[0] <= now - WITHIN_NS:
            times.popleft()
        times.append(now)
        if len(times) > MOST_REDIRECTS:
            del self._redirects[key, source]
            return True
        while len(self._redirects) > MOST_SOURCES:
            self._redirects.popitem(last=False)
        return False
