"""The routers that a configuration names."""

from collections.abc import Callable, Mapping

from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.settings import ConnectionRouterSettings
from delosmq.routers.decision import ConnectionRouter
from delosmq.routers.key import KeyResolver
from delosmq.routers.key_cache import KeyCache, NoStore
from delosmq.routers.policy import MakePolicy, make_policy
from delosmq.routers.pool import TargetPool


def make_routers(
    settings: tuple[ConnectionRouterSettings, ...],
    *,
    cluster_user: str,
    random_start: Callable[[], int],
    plugged_in: Mapping[str, MakePolicy],
) -> dict[str, ConnectionRouter]:
    """By their names.

    Args:
        random_start: a number of at least 0, another one each time.
        plugged_in: policies of other packages, by their names.

    Raises:
        ConfigurationError: a policy can't be made.
    """
    routers = {
        one.name: ConnectionRouter(
            one.name,
            KeyResolver(one.key_type, JavaRegex(one.key_filter) if one.key_filter else None),
            local_target_filter=JavaRegex(one.local_target_filter) if one.local_target_filter else None,
            policy=None if one.policy is None else make_policy(one.policy, random_start(), plugged_in),
            pool=None if one.pool is None else TargetPool(one.pool),
            cache=None if one.cache is None else KeyCache(one.cache.timeout_ms, NoStore()),
            cluster_user=cluster_user,
            policy_name="" if one.policy is None else one.policy.name,
        )
        for one in settings
    }
    for one in settings:
        routers[one.name].persists_cache = one.cache is not None and one.cache.persisted
    return routers
