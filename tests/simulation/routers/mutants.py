"""Routers that break one promise each: the histories must catch every one of them, or they prove nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from delosmq.model.declared.router import ConnectorSettings
from delosmq.model.ids import MonotonicNs
from delosmq.routers.consistent_hash import signed_hash
from delosmq.routers.decision import Because, ConnectionRouter, Decision, Outcome, WaitUntil
from delosmq.routers.key_cache import KeyCache
from delosmq.routers.logins import RoutedLogins
from delosmq.routers.policy import ConsistentHash, LeastConnections, RoundRobin
from delosmq.routers.pool import TargetPool
from delosmq.routers.target import RouterTarget
from delosmq.routers.target_watch import Action, Ask, TargetWatch
from delosmq.sessions.login import LoginRequest
from tests.simulation.routers.world import Parts


class KeepsLostTargets(TargetPool):
    """A target whose connection broke stays ready."""

    def failed(self, target: RouterTarget, trouble: str) -> None:
        target.trouble = trouble


class TellsNobody(TargetPool):
    """What waits for a quorum does not hear that a target became ready."""

    def checked(self, target: RouterTarget, node_id: str, active: bool, connection_count: int | None = None) -> None:
        tell, self.on_change = self.on_change, lambda: None
        super().checked(target, node_id, active, connection_count)
        self.on_change = tell


class KeepsRemovedTargets(TargetPool):
    """One that is no target any more stays in the pool."""

    def replace(self, connectors: Sequence[ConnectorSettings]) -> tuple[list[RouterTarget], list[RouterTarget]]:
        before = list(self.targets)
        added, removed = super().replace(connectors)
        self.targets = [*self.targets, *[one for one in before if one in removed]]
        return added, removed


class TakesAnyCount(TargetPool):
    """The quorum is not asked for."""

    def has_quorum(self, ready: Sequence[RouterTarget]) -> bool:
        return bool(ready)


class WaitsForEver(TargetWatch):
    """A target that does not answer is waited for."""

    def handle_timer(self, now: MonotonicNs) -> Action:
        before = vars(self).copy()
        action = super().handle_timer(now)
        if action is not None and not isinstance(action, Ask) and before["_step"].name in ("ASKING", "OPENING"):
            vars(self).update(before)
            self._due = now + 1_000_000_000_000
            return None
        return action


class BelievesNonsense(TargetWatch):
    """Whatever it says of itself, it is active."""

    def handle_answer(self, answer: object, now: MonotonicNs) -> Action:
        if self._asked == "Active":
            return super().handle_answer(True, now)
        return super().handle_answer(answer, now)


class AsksOnce(TargetWatch):
    """A target is asked once for each connection."""

    def handle_answer(self, answer: object, now: MonotonicNs) -> Action:
        action = super().handle_answer(answer, now)
        if action is None:
            self._due = now + 1_000_000_000_000
        return action


class ForgetsNothing(KeyCache):
    """Entries stay beyond their time."""

    def __init__(self, timeout_ms: int, *positional: object, **named: object) -> None:
        super().__init__(0, *positional, **named)  # type: ignore[arg-type]


class HasNoBound(KeyCache):
    """Keeps all keys there ever were."""

    def __init__(self, timeout_ms: int, store: object, *, most: int = 0) -> None:
        super().__init__(timeout_ms, store, most=1_000_000)  # type: ignore[arg-type]


class DropsTheNewest(KeyCache):
    """Above the bound the wrong entry goes: the one that was asked for last."""

    def put(self, key: str, node_id: str, now: MonotonicNs) -> None:
        if len(self) >= self._most and key not in self._entries:
            self._entries.popitem(last=True)
        super().put(key, node_id, now)


class TrustsTheCache(ConnectionRouter):
    """A target of the cache is taken, ready or not, in the pool or not."""

    def target_of(self, key: str, now: MonotonicNs, waits_since: MonotonicNs) -> Decision | WaitUntil:
        known: dict[str, RouterTarget] = vars(self).setdefault("known", {})
        found = super().target_of(key, now, waits_since)
        if isinstance(found, Decision) and found.target is not None:
            known[found.transformed] = found.target
        elif isinstance(found, Decision) and found.outcome is Outcome.UNAVAILABLE and found.transformed in known:
            target = known[found.transformed]
            return replace(found, outcome=Outcome.REDIRECT, because=Because.CACHED, target=target)
        return found


class FilterSearches(ConnectionRouter):
    """local-target-filter takes a part of the key for the whole."""

    def target_of(self, key: str, now: MonotonicNs, waits_since: MonotonicNs) -> Decision | WaitUntil:
        if self.local_target_filter is not None and self.local_target_filter.search(key):
            return Decision(Outcome.LOCAL, Because.LOCAL_FILTER, key, key)
        return super().target_of(key, now, waits_since)


class SleepsIn(RoutedLogins):
    """Nobody is asked again when the time is over."""

    def handle_timer(self, now: MonotonicNs) -> None:
        pass


class KeepsThoseWhoLeft(RoutedLogins):
    """Those that are gone are waited with."""

    def withdraw(self, request: LoginRequest) -> None:
        pass


class MovesAllKeys(ConsistentHash):
    """By the hash of the key and the count of targets, as one would at first."""

    def select(self, targets: Sequence[RouterTarget], key: str) -> RouterTarget | None:
        return targets[signed_hash(key) % len(targets)] if targets else None


class StaysWithTheFirst(RoundRobin):
    """The turn does not go on."""

    def chosen(self, target: RouterTarget) -> None:
        pass


class CountsNoneSent(LeastConnections):
    """All clients of a period go to one broker."""

    def _count(self, target: RouterTarget) -> float:
        return float("inf") if target.connection_count is None else float(target.connection_count)


MUTANTS: Final[dict[str, Parts]] = {
    "KeepsLostTargets": Parts(pool=KeepsLostTargets),
    "TellsNobody": Parts(pool=TellsNobody),
    "KeepsRemovedTargets": Parts(pool=KeepsRemovedTargets),
    "TakesAnyCount": Parts(pool=TakesAnyCount),
    "WaitsForEver": Parts(watch=WaitsForEver),
    "BelievesNonsense": Parts(watch=BelievesNonsense),
    "AsksOnce": Parts(watch=AsksOnce),
    "ForgetsNothing": Parts(cache=ForgetsNothing),
    "HasNoBound": Parts(cache=HasNoBound),
    "DropsTheNewest": Parts(cache=DropsTheNewest),
    "TrustsTheCache": Parts(router=TrustsTheCache),
    "FilterSearches": Parts(router=FilterSearches),
    "SleepsIn": Parts(logins=SleepsIn),
    "KeepsThoseWhoLeft": Parts(logins=KeepsThoseWhoLeft),
    "MovesAllKeys": Parts(policies={"CONSISTENT_HASH": MovesAllKeys}),
    "StaysWithTheFirst": Parts(policies={"ROUND_ROBIN": StaysWithTheFirst}),
    "CountsNoneSent": Parts(policies={"LEAST_CONNECTIONS": CountsNoneSent}),
}
