"""Connection routers: how they stand, where a key belongs and why, and filters that change while the broker runs."""

from collections.abc import Mapping
from dataclasses import dataclass

from delosmq.engine.api import EngineBroker
from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.declared.router import NULL_KEY
from delosmq.model.errors import MisuseError, NotFoundError
from delosmq.model.ids import MonotonicNs
from delosmq.routers.decision import Because, ConnectionRouter, Decision, Outcome, WaitUntil
from delosmq.routers.key import MOST_LETTERS
from delosmq.routers.target import RouterTarget
from delosmq.security.access import MANAGE, AccessControl, Login


@dataclass(frozen=True)
class TargetStatus:
    """A target as it stands.

    Attributes:
        local: whether it is this broker.
        connection_count: at the last check; -1 when it is not known.
        trouble: why it is not ready; "" when it is.
    """

    name: str
    host: str
    port: int
    local: bool
    node_id: str
    ready: bool
    connection_count: int
    trouble: str


@dataclass(frozen=True)
class RouterStatus:
    """A router as it stands.

    Attributes:
        key_filter, local_target_filter: "" for none; policy: "" for none.
        cached_keys: -1 without a cache.
        quorum_size: 0 without a pool.
        local, redirected, use_another, unavailable: connections so decided since the broker started.
        loops: connections refused because they would have gone in a circle.
    """

    name: str
    key_type: str
    key_filter: str
    local_target_filter: str
    policy: str
    cached_keys: int
    quorum_size: int
    ready_targets: int
    targets: list[TargetStatus]
    local: int
    redirected: int
    use_another: int
    unavailable: int
    loops: int


@dataclass(frozen=True)
class RouteStatus:
    """Where a key belongs, and why.

    Attributes:
        transformed: what the policy made of the key.
        outcome: local, redirect, use-another or unavailable.
        connector, host, port: where a client is sent; "" and 0 when it isn't.
        node_id: of the target; "" for none.
        onward: the node ids of the brokers to which that one would send the key on, as far as it was asked: it is while
            clients with the key seem to go in a circle.
    """

    router: str
    key: str
    transformed: str
    outcome: str
    because: str
    connector: str
    host: str
    port: int
    node_id: str
    ready_targets: int
    onward: list[str]


@dataclass(frozen=True)
class RouteExplanation:
    """Where a connection belongs, step by step.

    Attributes:
        value: what the key is taken from; "" for a connection that has none.
        key: what key-filter makes of it; transformed: what the policy makes of that.
        taken_here: whether local-target-filter takes that whole; null without one.
        cached_node_id: of the target that the cache has for it; "" for none. cached_ready: whether that is ready.
        ready: the targets that are.
        choice: the node id of the one that the policy chooses among them; "" for none.
        outcome, because, connector, host, port, node_id: as in the answer of ``target``.
    """

    router: str
    key_type: str
    value: str
    key_filter: str
    key: str
    policy: str
    transformed: str
    local_target_filter: str
    taken_here: bool | None
    cached_node_id: str
    cached_ready: bool
    quorum_size: int
    ready: list[TargetStatus]
    choice: str
    outcome: str
    because: str
    connector: str
    host: str
    port: int
    node_id: str


class RouterControl:
    """The connection routers of one broker, for those who hold ``manage`` on the management address.

    Raises:
        PermissionDeniedError: by each call: the user does not.
        NotFoundError: by each call that names a router: there is none of that name.
    """

    def __init__(self, routers: Mapping[str, ConnectionRouter], access: AccessControl, broker: EngineBroker) -> None:
        self._routers = routers
        self._access = access
        self._clock = broker.clock
        self._address = broker.settings.management_address

    def all(self, login: Login) -> list[RouterStatus]:
        self._access.require(login, self._address, MANAGE)
        return [_status(router) for router in self._routers.values()]

    def measured(self, login: Login) -> list[RouterStatus]:
        """As `all`; none for those who may not look."""
        return self.all(login) if self._access.check(login.roles, self._address, MANAGE) else []

    def get(self, login: Login, name: str) -> RouterStatus:
        return _status(self.find(login, name))

    def find(self, login: Login, name: str) -> ConnectionRouter:
        self._access.require(login, self._address, MANAGE)
        router = self._routers.get(name)
        if router is None:
            known = ", ".join(f"'{one}'" for one in self._routers) or "none"
            raise NotFoundError("DMQ6190", f"there is no connection router '{name}'; there are: {known}")
        return router

    def target(self, login: Login, name: str, key: str) -> RouteStatus:
        """Decides on a key as on a connection with it, and remembers that likewise, but does not wait for a quorum and
        does not ask key-filter."""
        router = self.find(login, name)
        key = _bounded(key)
        now = self._clock.monotonic_ns()
        timeout_ns = 0 if router.pool is None else router.pool.settings.quorum_timeout_ms * 1_000_000
        found = router.target_of(key, now, MonotonicNs(now - timeout_ns))
        if isinstance(found, WaitUntil):
            found = Decision(Outcome.UNAVAILABLE, Because.NO_QUORUM, key, key)
        if found.target is not None:
            found.target.asked_for(key, now)
        return _route(router, found)

    def explain(self, login: Login, name: str, value: str) -> RouteExplanation:
        """What would be decided on a connection with this value, step by step; changes nothing."""
        router = self.find(login, name)
        found = router.explain(value, self._clock.monotonic_ns())
        status, route, pool = _status(router), _route(router, found.decision), router.pool
        return RouteExplanation(
            router=name,
            key_type=status.key_type,
            value=value,
            key_filter=status.key_filter,
            key=found.key,
            policy=status.policy,
            transformed=route.transformed,
            local_target_filter=status.local_target_filter,
            taken_here=found.taken_here,
            cached_node_id=found.cached_node_id,
            cached_ready=found.cached_ready,
            quorum_size=status.quorum_size,
            ready=[] if pool is None else [_target(one, pool.is_local(one)) for one in found.ready],
            choice="" if found.choice is None else found.choice.node_id,
            outcome=route.outcome,
            because=route.because,
            connector=route.connector,
            host=route.host,
            port=route.port,
            node_id=route.node_id,
        )

    def change(
        self, login: Login, name: str, *, key_filter: str | None = None, local_target_filter: str | None = None
    ) -> RouterStatus:
        """Changes filters for connections to come, until a restart; "" for none, None leaves one as it is.

        Raises:
            MisuseError: one is no regular expression.
        """
        router = self.find(login, name)
        compiled = [None if not text else _compiled(text) for text in (key_filter, local_target_filter)]
        if key_filter is not None:
            router.resolver.key_filter = compiled[0]
        if local_target_filter is not None:
            router.local_target_filter = compiled[1]
        return _status(router)


def _bounded(key: str) -> str:
    """As from a connection: one that is too long is none."""
    return key if len(key) <= MOST_LETTERS else NULL_KEY


def _compiled(text: str) -> JavaRegex:
    try:
        return JavaRegex(text)
    except ValueError as rule:
        raise MisuseError("DMQ6191", f"a filter of a connection router must be {rule}") from None


def _status(router: ConnectionRouter) -> RouterStatus:
    pool = router.pool
    local_filter, key_filter = router.local_target_filter, router.resolver.key_filter
    return RouterStatus(
        name=router.name,
        key_type=router.resolver.key_type.value,
        key_filter="" if key_filter is None else key_filter.pattern,
        local_target_filter="" if local_filter is None else local_filter.pattern,
        policy=router.policy_name,
        cached_keys=-1 if router.cache is None else len(router.cache),
        quorum_size=0 if pool is None else pool.settings.quorum_size,
        ready_targets=0 if pool is None else len(pool.ready_targets()),
        targets=[] if pool is None else [_target(target, pool.is_local(target)) for target in pool.targets],
        local=router.counts[Outcome.LOCAL],
        redirected=router.counts[Outcome.REDIRECT],
        use_another=router.counts[Outcome.USE_ANOTHER],
        unavailable=router.counts[Outcome.UNAVAILABLE],
        loops=router.loops,
    )


def _target(target: RouterTarget, local: bool) -> TargetStatus:
    one = target.connector
    return TargetStatus(
        name="local" if one is None else one.name,
        host="" if one is None else one.host,
        port=0 if one is None else one.port,
        local=local,
        node_id=target.node_id,
        ready=target.ready,
        connection_count=-1 if target.connection_count is None else target.connection_count,
        trouble=target.trouble,
    )


def _route(router: ConnectionRouter, found: Decision) -> RouteStatus:
    connector = found.connector
    return RouteStatus(
        router=router.name,
        key=found.key,
        transformed=found.transformed,
        outcome=found.outcome.value,
        because=found.because.value,
        connector="" if connector is None else connector.name,
        host="" if connector is None else connector.host,
        port=0 if connector is None else connector.port,
        node_id="" if found.target is None else found.target.node_id,
        ready_targets=found.ready,
        onward=[] if found.target is None else list(found.target.onward.get(found.key, ())),
    )
