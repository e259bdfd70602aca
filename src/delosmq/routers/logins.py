"""Routers between a login and its session: the login port that asks them, and lets logins wait for a quorum."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from delosmq.model.ids import MonotonicNs
from delosmq.model.ports import Clock
from delosmq.routers.decision import Because, ConnectionRouter, Decision, Outcome, WaitUntil
from delosmq.routers.key import MOST_LETTERS, RouteRequest
from delosmq.routers.loop_guard import LoopGuard
from delosmq.routers.pool import TargetPool
from delosmq.routers.waiting_logins import WaitingLogins
from delosmq.sessions.login import ADMIT, WAIT, LoginAnswer, LoginPort, LoginRequest, redirect, refuse, turn_away

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
        """Connections with one key and client id, or of one host, were redirected over and over."""

    @abstractmethod
    def circled(self, router: ConnectionRouter, request: LoginRequest, decision: Decision) -> None:
        """A connection is refused, as its target would send it back."""


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
        self._loop_guard = LoopGuard()
        self._waiting = WaitingLogins(wake_at)
        # Decisions that are told once the cache of their router has them safe.
        self._settling: dict[LoginRequest, Decision] = {}
        for name, router in routers.items():
            if router.pool is not None:
                router.pool.on_change = partial(self._handle_change, name, router, router.pool)

    def decide(self, request: LoginRequest) -> LoginAnswer:
        if request not in self._waiting and request not in self._settling:
            answer = self._first.decide(request)
            if answer is not ADMIT:
                return answer
        router = self._routers.get(request.router)
        if router is None:
            return ADMIT
        now = self._clock.monotonic_ns()
        settled = self._settling.pop(request, None)
        if settled is not None:
            return self._answer(router, request, settled, now)
        since = self._waiting.since(request, now)
        try:
            found = router.route(_as_route_request(request), now, since)
        except BaseException:  # of a policy that is plugged in: the session refuses the login, and asks no more
            self._waiting.remove(request)
            raise
        if isinstance(found, WaitUntil):
            self._waiting.add(request, since, found.at)
            return WAIT
        if found.outcome is Outcome.UNAVAILABLE and now < since + LEAST_WAIT_NS:
            self._waiting.add(request, since, MonotonicNs(since + LEAST_WAIT_NS))
            return WAIT
        self._waiting.remove(request)
        if found.because in (Because.POLICY, Because.CACHED) and router.cache is not None:
            # The client is told where it belongs once that survives a crash, so that it belongs there ever after.
            self._settling[request] = found
            if not router.cache.settled(partial(self._ask_again, request)):
                return WAIT
            del self._settling[request]
        return self._answer(router, request, found, now)

    @property
    def waiting_count(self) -> int:
        """Logins that wait for a quorum, or for the end of the least wait."""
        return len(self._waiting)

    def withdraw(self, request: LoginRequest) -> None:
        if request in self._waiting:
            self._waiting.remove(request)
        elif self._settling.pop(request, None) is None:
            self._first.withdraw(request)

    def _ask_again(self, request: LoginRequest) -> None:
        if request in self._settling:
            request.ask_again()

    def handle_timer(self, now: MonotonicNs) -> None:
        """It is ``now``; may be called early."""
        self._waiting.handle_timer(now)

    def _handle_change(self, name: str, router: ConnectionRouter, pool: TargetPool) -> None:
        """A target became ready or was lost: those that may get another answer now are asked again."""
        ready = pool.ready_targets()
        # Without a quorum only a target that the cache has for a key is an answer.
        has_cached = bool(ready) and router.cache is not None and len(router.cache) > 0
        if pool.has_quorum(ready) or has_cached:
            self._waiting.wake(name, self._clock.monotonic_ns())

    def _answer(
        self, router: ConnectionRouter, request: LoginRequest, found: Decision, now: MonotonicNs
    ) -> LoginAnswer:
        router.counts[found.outcome] += 1
        target, connector = found.target, found.connector
        if target is not None and connector is not None:
            if router.pool is not None and router.pool.node_id in target.onward.get(found.key, ()):
                target.suspect(found.key, now)
                router.loops += 1
                self._listener.circled(router, request, found)
                # For good: another broker, or a later try, would only be the next round.
                return refuse(
                    "DMQ5512", "brokers redirected this connection in a circle; their operators have to mend that"
                )
            # A client id may be as long as a frame, and the guard keeps many.
            source = f"{request.source()} {request.client_id[:MOST_LETTERS]}"
            if self._loop_guard.redirected(found.key, source, now):
                self._listener.looped(router, request, found)
                target.suspect(found.key, now)
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
