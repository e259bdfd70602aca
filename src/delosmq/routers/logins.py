"""Routers between a login and its session: the login port that asks them, and lets logins wait for a quorum."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Final

from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Clock
from delosmq.routers.decision import ConnectionRouter, Decision, Outcome, WaitUntil
from delosmq.routers.key import RouteRequest
from delosmq.routers.loop_guard import LoopGuard
from delosmq.sessions.login import ADMIT, WAIT, LoginAnswer, LoginPort, LoginRequest, redirect, turn_away

LEAST_WAIT_NS: Final = 250_000_000
"""A refusal for now takes at least so long: clients try again at once, and would do nothing else."""
_SHOWN_LETTERS: Final = 100
"""Of a key, which a peer may have made up."""


class RouterListener(ABC):
    """Hears of decisions; must return at once."""

    @abstractmethod
    def decided(self, router: ConnectionRouter, request: LoginRequest, decision: Decision) -> None:
        """A connection stays, goes elsewhere or is refused."""

    @abstractmethod
    def looped(self, router: ConnectionRouter, request: LoginRequest, decision: Decision) -> None:
        """A connection was redirected over and over; this time as well, if it has no client id."""


class RoutedLogins(LoginPort):
    """Asks the router that the acceptor of a login names, if it names one.

    Args:
        first: asked before; only whom it admits is routed.
        wake_at: has `handle_timer` called then; the last call counts.
    """

    def __init__(
        self,
        first: LoginPort,
        routers: Mapping[str, ConnectionRouter],
        clock: Clock,
        *,
        listener: RouterListener,
        wake_at: Callable[[MonotonicNs], None],
    ) -> None:
        self._first = first
        self._routers = routers
        self._clock = clock
        self._listener = listener
        self._wake_at = wake_at
        self._loop_guard = LoopGuard()
        # When each login that waits was asked for first, and when it is to be asked again at the latest.
        self._since: dict[LoginRequest, MonotonicNs] = {}
        self._due: dict[LoginRequest, MonotonicNs] = {}
        for router in routers.values():
            if router.pool is not None:
                router.pool.on_change = self.handle_change

    def decide(self, request: LoginRequest) -> LoginAnswer:
        if request not in self._since:
            answer = self._first.decide(request)
            if answer is not ADMIT:
                return answer
        router = self._routers.get(request.router)
        if router is None:
            return ADMIT
        now = self._clock.monotonic_ns()
        since = self._since.get(request, now)
        found = router.route(_as_route_request(request), now, since)
        if isinstance(found, WaitUntil):
            return self._wait(request, since, found.at)
        if found.outcome is Outcome.UNAVAILABLE and now < since + LEAST_WAIT_NS:
            return self._wait(request, since, MonotonicNs(since + LEAST_WAIT_NS))
        self._forget(request)
        return self._answer(router, request, found, now)

    @property
    def waiting_count(self) -> int:
        """Logins that wait for a quorum, or for the end of the least wait."""
        return len(self._since)

    def withdraw(self, request: LoginRequest) -> None:
        if request in self._since:
            self._forget(request)
        else:
            self._first.withdraw(request)

    def handle_timer(self, now: MonotonicNs) -> None:
        """It is ``now``; may be called early."""
        for request in [request for request, due in self._due.items() if due <= now]:
            del self._due[request]
            request.ask_again()
        if self._due:
            self._wake_at(min(self._due.values()))

    def handle_change(self) -> None:
        """A target became ready or was lost: all that wait are asked again."""
        waiting = list(self._due)
        self._due.clear()
        for request in waiting:
            request.ask_again()

    def _wait(self, request: LoginRequest, since: MonotonicNs, until: MonotonicNs) -> LoginAnswer:
        self._since[request] = since
        self._due[request] = until
        self._wake_at(min(self._due.values()))
        return WAIT

    def _forget(self, request: LoginRequest) -> None:
        self._since.pop(request, None)
        self._due.pop(request, None)

    def _answer(
        self, router: ConnectionRouter, request: LoginRequest, found: Decision, now: MonotonicNs
    ) -> LoginAnswer:
        router.counts[found.outcome] += 1
        connector = found.connector
        if connector is not None:
            source = f"{request.source()} {request.client_id}"
            if self._loop_guard.redirected(found.key, source, now):
                router.loops += 1
                self._listener.looped(router, request, found)
                # Of one client id it is one client, whom waiting here costs less than going round.
                if request.client_id:
                    return turn_away(
                        "DMQ5512", "brokers redirected this connection in a circle; their operators have to mend that"
                    )
        self._listener.decided(router, request, found)
        if connector is not None:
            return redirect(connector.host, connector.port, tls=connector.tls)
        if found.outcome is Outcome.LOCAL:
            return ADMIT
        if found.outcome is Outcome.USE_ANOTHER:
            return turn_away(
                "DMQ5510",
                f"this broker does not serve the key '{found.key[:_SHOWN_LETTERS]}' (connection router "
                f"'{router.name}'); connect to another broker",
            )
        return turn_away(
            "DMQ5511",
            f"connection router '{router.name}' finds no broker that is ready for this connection; try again later",
        )


def _as_route_request(request: LoginRequest) -> RouteRequest:
    return RouteRequest(request.client_id, request.login.user, request.login.roles, request.source(), request.sni_host)
