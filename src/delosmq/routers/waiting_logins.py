"""Logins that wait for a quorum or the end of the least wait, and who is asked again when: few at once."""

from collections import OrderedDict
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

from delosmq.model.ids import MonotonicNs
from delosmq.sessions.login import LoginRequest

MOST_AT_ONCE: Final = 50
"""Logins asked again before others of the loop have their turn: each decides anew, and thousands may wait."""
_STALE_KEPT: Final = 1_000
"""Entries of the heap that count no more, before it is made anew."""


class WaitingLogins:
    """Logins by the router that has them wait.

    Args:
        wake_at: has `handle_timer` called then; the last call counts.
    """

    def __init__(self, wake_at: Callable[[MonotonicNs], None]) -> None:
        self._wake_at = wake_at
        self._since: dict[LoginRequest, MonotonicNs] = {}
        # When those are to be asked again at the latest that have not been since they began to wait; by router.
        self._due: dict[LoginRequest, MonotonicNs] = {}
        self._by_router: dict[str, dict[LoginRequest, None]] = {}
        # By time; an entry counts while it is that of `_due`. The number keeps logins from being compared.
        self._heap: list[tuple[MonotonicNs, int, LoginRequest]] = []
        self._number = 0
        self._woken: OrderedDict[LoginRequest, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._since)

    def __contains__(self, request: LoginRequest) -> bool:
        return request in self._since

    @property
    def kept(self) -> int:
        """Entries in its memory, those that count no more included."""
        return len(self._heap)

    def since(self, request: LoginRequest, now: MonotonicNs) -> MonotonicNs:
        """When it began to wait; ``now`` when it does not."""
        return self._since.get(request, now)

    def add(self, request: LoginRequest, since: MonotonicNs, until: MonotonicNs) -> None:
        """It waits, at the latest ``until``."""
        self._since[request] = since
        self._due[request] = until
        self._by_router.setdefault(request.router, {})[request] = None
        self._number += 1
        heappush(self._heap, (until, self._number, request))
        if len(self._heap) > 2 * len(self._due) + _STALE_KEPT:
            self._heap = [entry for entry in self._heap if self._due.get(entry[2]) == entry[0]]
            heapify(self._heap)
        if not self._woken:  # their alarm comes sooner
            self._arm()

    def remove(self, request: LoginRequest) -> None:
        """It waits no more."""
        self._since.pop(request, None)
        self._ask_no_more(request)

    def wake(self, router: str, now: MonotonicNs) -> None:
        """All that wait for ``router`` are asked again, some now and the others in turns to come."""
        self._woken.update(self._by_router.get(router, {}))
        self.handle_timer(now)

    def handle_timer(self, now: MonotonicNs) -> None:
        """It is ``now``; may be called early."""
        for _ in range(MOST_AT_ONCE):
            request = self._next(now)
            if request is None:
                break
            self._ask_no_more(request)
            request.ask_again()
        if self._woken:
            self._wake_at(now)
        else:
            self._arm()

    def _next(self, now: MonotonicNs) -> LoginRequest | None:
        """The next to be asked; None for none at this time."""
        for request in self._woken:
            return request
        due = self._first_due()
        return self._heap[0][2] if due is not None and due <= now else None

    def _first_due(self) -> MonotonicNs | None:
        while self._heap:
            due, _, request = self._heap[0]
            if self._due.get(request) == due:
                return due
            heappop(self._heap)
        return None

    def _arm(self) -> None:
        due = self._first_due()
        if due is not None:
            self._wake_at(due)

    def _ask_no_more(self, request: LoginRequest) -> None:
        self._woken.pop(request, None)
        if self._due.pop(request, None) is not None:
            waiting = self._by_router[request.router]
            del waiting[request]
            if not waiting:
                del self._by_router[request.router]
