"""What a connection router decides: a connection stays, goes elsewhere, is refused, or waits.

Source: Artemis, ConnectionRouter.getTarget.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.declared.router import NULL_KEY, ConnectorSettings
from delosmq.model.ids import MonotonicNs
from delosmq.routers.key import KeyResolver, RouteRequest
from delosmq.routers.key_cache import KeyCache
from delosmq.routers.policy import RouterPolicy
from delosmq.routers.pool import TargetPool
from delosmq.routers.target import RouterTarget

MONITOR_PREFIX: Final = "$.artemis.internal.router.client."
"""Client ids that begin so are those of brokers that ask how this one is."""
_NS_PER_MS: Final = 1_000_000


class Outcome(Enum):
    LOCAL = "local"
    REDIRECT = "redirect"
    USE_ANOTHER = "use-another"
    """Refused for good: this broker is not the one for that key."""
    UNAVAILABLE = "unavailable"
    """Refused for now: no target is ready, or too few."""


class Because(Enum):
    """Which step of the order decided."""

    MONITOR = "its client id is that of a broker that asks how this one is"
    CLUSTER_USER = "it is logged in as the cluster user"
    LOCAL_FILTER = "local-target-filter takes the key"
    NO_POOL = "the router has no policy or no pool, and local-target-filter does not take the key"
    CACHED = "the cache has the target of the key, and it is ready"
    POLICY = "the policy chose it"
    NO_QUORUM = "fewer targets are ready than quorum-size"
    NO_TARGET = "no target is ready"
    POLICY_NONE = "the policy chose none of the targets that are ready"


@dataclass(frozen=True)
class Decision:
    """What becomes of a connection, and why.

    Attributes:
        key: as it was taken from the connection; "" when the decision came before it.
        transformed: what the policy made of it.
        target: None when it is refused, and when it is local without being one of the pool.
        ready: how many targets were.
    """

    outcome: Outcome
    because: Because
    key: str = ""
    transformed: str = ""
    target: RouterTarget | None = None
    ready: int = 0

    @property
    def connector(self) -> ConnectorSettings | None:
        """Where to connect; None unless it is redirected."""
        return self.target.connector if self.outcome is Outcome.REDIRECT and self.target is not None else None


@dataclass(frozen=True)
class Explanation:
    """What each step of a decision comes to, those that do not count this time included.

    Attributes:
        key: what key-filter makes of the value.
        taken_here: whether local-target-filter takes what the policy made of the key; None without one.
        cached_node_id: "" for none in the cache; cached_ready: whether a target that is ready has it.
        ready: the targets that are.
        choice: the policy's among them, quorum or not; None for none.
    """

    decision: Decision
    key: str
    taken_here: bool | None
    cached_node_id: str
    cached_ready: bool
    ready: Sequence[RouterTarget]
    choice: RouterTarget | None


@dataclass(frozen=True)
class WaitUntil:
    """Too few targets are ready: ask again when that changes, at the latest ``at``."""

    at: MonotonicNs
    key: str


class ConnectionRouter:
    """One router.

    Args:
        cluster_user: never routed; "" for none.

    Attributes:
        local_target_filter: keys that it takes whole stay here; None for none. May be set while the broker runs.
        cache, policy, pool: None without; policy_name: as broker.xml has it, "" without.
        persists_cache: whether what the cache holds is to survive the broker.
        counts: connections so decided since the broker started.
        loops: connections refused because they would have gone in a circle.
    """

    def __init__(
        self,
        name: str,
        resolver: KeyResolver,
        *,
        local_target_filter: JavaRegex | None = None,
        policy: RouterPolicy | None = None,
        pool: TargetPool | None = None,
        cache: KeyCache | None = None,
        cluster_user: str = "",
        policy_name: str = "",
    ) -> None:
        self.name = name
        self.resolver = resolver
        self.local_target_filter = local_target_filter
        self.policy = policy
        self.pool = pool
        self.cache = cache
        self.policy_name = policy_name
        self.counts: dict[Outcome, int] = dict.fromkeys(Outcome, 0)
        self.loops: int = 0
        self.persists_cache = False
        self._cluster_user = cluster_user

    def route(self, request: RouteRequest, now: MonotonicNs, waits_since: MonotonicNs) -> Decision | WaitUntil:
        """Decides on a connection.

        Args:
            waits_since: when it was asked first.
        """
        if request.client_id.startswith(MONITOR_PREFIX):
            return Decision(Outcome.LOCAL, Because.MONITOR)
        if self._cluster_user and request.user == self._cluster_user:
            return Decision(Outcome.LOCAL, Because.CLUSTER_USER)
        return self.target_of(self.resolver.resolve(request), now, waits_since)

    def target_of(self, key: str, now: MonotonicNs, waits_since: MonotonicNs) -> Decision | WaitUntil:
        """Decides on a key; key-filter is not asked."""
        found = self._decide(key, now, asks_cache=True)
        pool = self.pool
        if isinstance(found, Decision):
            if found.because in (Because.NO_QUORUM, Because.NO_TARGET) and pool is not None:
                until = MonotonicNs(waits_since + pool.settings.quorum_timeout_ms * _NS_PER_MS)
                if now < until and not pool.has_quorum(pool.ready_targets()):
                    return WaitUntil(until, key)
            if found.because is Because.POLICY and found.target is not None and self.policy is not None:
                self.policy.chosen(found.target)
                if self.cache is not None:
                    self.cache.put(found.transformed, found.target.node_id, now)
            if found.target is not None:
                found.target.sent += 1
        return found

    def explain(self, value: str, now: MonotonicNs) -> Explanation:
        """What would be decided now on a connection with this value, without waiting; changes nothing."""
        key = self.resolver.key_of(value)
        decided = self._decide(key, now, asks_cache=False)
        transformed, local_filter = decided.transformed, self.local_target_filter
        cached = None if self.cache is None else self.cache.peek(transformed, now)
        ready = () if self.pool is None else self.pool.ready_targets()
        return Explanation(
            decided,
            key,
            taken_here=None if local_filter is None else local_filter.fullmatch(transformed),
            cached_node_id=cached or "",
            cached_ready=any(one.node_id == cached for one in ready),
            ready=ready,
            choice=self.policy.select(ready, transformed) if self.policy is not None and ready else None,
        )

    def _decide(self, key: str, now: MonotonicNs, *, asks_cache: bool) -> Decision:
        transformed = key
        if self.policy is not None and key != NULL_KEY:
            transformed = self.policy.transform(key)
        decided = Decision(Outcome.LOCAL, Because.LOCAL_FILTER, key, transformed)
        if self.local_target_filter is not None and self.local_target_filter.fullmatch(transformed):
            return decided
        if self.pool is None or self.policy is None:
            return replace(decided, outcome=Outcome.USE_ANOTHER, because=Because.NO_POOL)
        ready = self.pool.ready_targets()
        decided = replace(decided, ready=len(ready))
        if self.cache is not None:
            look_up = self.cache.get if asks_cache else self.cache.peek
            node_id = look_up(transformed, now)
            target = None if node_id is None else self.pool.ready_target(node_id)
            if target is not None:
                return self._to(self.pool, target, decided, Because.CACHED)
        return self._chosen(self.pool, self.policy, ready, decided)

    def _chosen(
        self, pool: TargetPool, policy: RouterPolicy, ready: Sequence[RouterTarget], decided: Decision
    ) -> Decision:
        if not pool.has_quorum(ready):
            because = Because.NO_QUORUM if ready else Because.NO_TARGET
            return replace(decided, outcome=Outcome.UNAVAILABLE, because=because)
        target = policy.select(ready, decided.transformed)
        if target is None:
            return replace(decided, outcome=Outcome.UNAVAILABLE, because=Because.POLICY_NONE)
        return self._to(pool, target, decided, Because.POLICY)

    def _to(self, pool: TargetPool, target: RouterTarget, decided: Decision, because: Because) -> Decision:
        outcome = Outcome.LOCAL if pool.is_local(target) else Outcome.REDIRECT
        return replace(decided, outcome=outcome, because=because, target=target)
