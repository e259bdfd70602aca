"""Routers and targets for tests."""

from collections.abc import Mapping

from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.declared.router import ConnectorSettings, KeyType, RouterPolicySettings, TargetPoolSettings
from delosmq.model.ids import MonotonicNs
from delosmq.routers.decision import ConnectionRouter
from delosmq.routers.key import KeyResolver
from delosmq.routers.key_cache import KeyCache, KeyCacheStore, NoStore
from delosmq.routers.policy import RouterPolicy, make_policy
from delosmq.routers.pool import TargetPool
from delosmq.routers.target import RouterTarget

MS = 1_000_000
HERE = "node-here"


def at(ms: int) -> MonotonicNs:
    return MonotonicNs(ms * MS)


def connector(number: int) -> ConnectorSettings:
    return ConnectorSettings(f"broker-{number}", f"10.0.0.{number}", 61616)


def policy(name: str, properties: Mapping[str, str] | None = None, start: int = 0) -> RouterPolicy:
    return make_policy(RouterPolicySettings(name, tuple((properties or {}).items())), start, {})


def ready(*node_ids: str) -> list[RouterTarget]:
    """Targets of these brokers, all ready."""
    targets = [RouterTarget(connector(number), node_id) for number, node_id in enumerate(node_ids, 1)]
    for target in targets:
        target.ready = True
    return targets


def pool(
    targets: int, *, local: bool = False, quorum_size: int = 1, quorum_timeout_ms: int = 3_000, up: bool = True
) -> TargetPool:
    """A pool of ``targets`` brokers beside this one, all ready or none."""
    settings = TargetPoolSettings(
        tuple(connector(number) for number in range(1, targets + 1)),
        local_target_enabled=local,
        quorum_size=quorum_size,
        quorum_timeout_ms=quorum_timeout_ms,
    )
    made = TargetPool(settings)
    made.begin(HERE)
    for number, target in enumerate(made.targets):
        if up:
            made.checked(target, target.node_id or f"node-{number}", True)
    return made


def router(
    *,
    key_type: KeyType = KeyType.CLIENT_ID,
    key_filter: str = "",
    local: str = "",
    policy: RouterPolicy | None = None,
    pool: TargetPool | None = None,
    cache_timeout_ms: int | None = None,
    store: KeyCacheStore | None = None,
    cluster_user: str = "",
) -> ConnectionRouter:
    return ConnectionRouter(
        "r",
        KeyResolver(key_type, JavaRegex(key_filter) if key_filter else None),
        local_target_filter=JavaRegex(local) if local else None,
        policy=policy,
        pool=pool,
        cache=None if cache_timeout_ms is None else KeyCache(cache_timeout_ms, store or NoStore()),
        cluster_user=cluster_user,
    )
