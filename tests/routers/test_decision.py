"""The order of a decision, against a second and naive model of it."""

# ROUTE-2, ROUTE-6

import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.declared.router import KeyType
from delosmq.routers.decision import Because, Decision, Outcome, WaitUntil
from delosmq.routers.key import RouteRequest
from tests.routers.support import HERE, at, policy, pool, router

FIRST, MODULO = "FIRST_ELEMENT", "CONSISTENT_HASH_MODULO"


def decide(key: str, **settings: object) -> Outcome:
    decided = router(**settings).route(RouteRequest(key), at(0), at(0))  # type: ignore[arg-type]
    assert isinstance(decided, Decision)
    return decided.outcome


@pytest.mark.parametrize(
    ("local", "key", "expected"),
    [
        ("^FOO.*", "FOO", Outcome.LOCAL),
        ("^FOO.*", "FOO_EU", Outcome.LOCAL),
        ("^FOO.*", "BAR", Outcome.USE_ANOTHER),
        ("FOO", "FOO_EU", Outcome.USE_ANOTHER),
        ("FOO|BAR", "BAR", Outcome.LOCAL),
        ("NULL|0", "", Outcome.LOCAL),
        ("0", "", Outcome.USE_ANOTHER),
        ("", "FOO", Outcome.USE_ANOTHER),
    ],
)
def test_a_local_partition_takes_the_keys_that_its_filter_takes_whole(local: str, key: str, expected: Outcome) -> None:
    assert decide(key, local=local) is expected


def test_the_key_filter_comes_first_and_the_local_filter_sees_what_it_found() -> None:
    assert decide("FOO_EU", key_filter="^.{3}", local="FOO") is Outcome.LOCAL


@pytest.mark.parametrize(("key", "shard"), [("AAA", "0"), ("BBB", "1"), ("FOO", "1"), ("BAR", "0")])
def test_shards_are_numbers_of_keys(key: str, shard: str) -> None:
    assert decide(key, policy=policy(MODULO, {"MODULO": "2"}), local=f"NULL|{shard}") is Outcome.LOCAL
    assert decide(key, policy=policy(MODULO, {"MODULO": "2"}), local=f"NULL|{1 - int(shard)}") is Outcome.USE_ANOTHER


def test_no_key_is_never_transformed() -> None:
    assert decide("", policy=policy(MODULO, {"MODULO": "1"}), local="NULL") is Outcome.LOCAL


def test_a_modulo_with_a_pool_finds_no_target() -> None:
    assert decide("AAA", policy=policy(MODULO, {"MODULO": "2"}), pool=pool(2)) is Outcome.UNAVAILABLE


def test_who_asks_how_the_broker_is_stays() -> None:
    one = router(policy=policy(FIRST), pool=pool(1), cluster_user="cluster")
    for request, because in (
        (RouteRequest("$.artemis.internal.router.client.1"), Because.MONITOR),
        (RouteRequest("x", user="cluster"), Because.CLUSTER_USER),
    ):
        assert one.route(request, at(0), at(0)) == Decision(Outcome.LOCAL, because)


def test_filters_that_are_changed_count_for_the_next_connection() -> None:
    one = router(local="FOO")
    one.local_target_filter = JavaRegex("BAR")
    decided = one.route(RouteRequest("BAR"), at(0), at(0))
    assert isinstance(decided, Decision)
    assert decided.outcome is Outcome.LOCAL


def test_an_explanation_has_each_step_of_the_order() -> None:
    targets = pool(2, quorum_size=2)
    one = router(key_filter="^.{3}", local="BAR", policy=policy("ROUND_ROBIN"), pool=targets, cache_timeout_ms=0)
    first, second = targets.targets
    assert isinstance(one.target_of("FOO", at(0), at(0)), Decision)
    told = one.explain("FOO_EU", at(0))
    assert (told.key, told.taken_here, told.cached_node_id, told.cached_ready) == ("FOO", False, "node-0", True)
    assert (told.ready, told.choice, told.decision.because) == ([first, second], second, Because.CACHED)
    targets.failed(first, "gone")
    told = one.explain("FOO_EU", at(0))
    assert (told.cached_node_id, told.cached_ready, told.ready) == ("node-0", False, [second])
    assert (told.choice, told.decision.because) == (second, Because.NO_QUORUM)
    assert (one.explain("BAR_1", at(0)).taken_here, one.explain("", at(0)).key) == (True, "NULL")
    assert one.explain("x" * 2_000, at(0)).key == "NULL"
    bare = router().explain("x", at(0))
    assert (bare.taken_here, bare.ready, bare.choice, bare.decision.because) == (None, (), None, Because.NO_POOL)
    by_address = router(key_type=KeyType.SOURCE_IP).explain("[::1]", at(0))
    assert by_address.key == "::1"


def test_an_explanation_changes_nothing() -> None:
    one = router(policy=policy("ROUND_ROBIN"), pool=pool(3), cache_timeout_ms=100)
    explained = [one.explain("a", at(0)).decision.target for _ in range(3)]
    assert len(set(explained)) == 1
    decided = one.route(RouteRequest("a"), at(0), at(0))
    assert isinstance(decided, Decision)
    assert decided.target is explained[0]
    assert one.explain("a", at(99)).decision.because is Because.CACHED
    assert one.explain("a", at(100)).decision.because is Because.POLICY


def test_a_key_that_is_asked_for_passes_no_key_filter() -> None:
    decided = router(key_filter="^.{3}", local="FOO").target_of("FOO_EU", at(0), at(0))
    assert isinstance(decided, Decision)
    assert decided.outcome is Outcome.USE_ANOTHER


# --- the second model


@dataclass
class World:
    """One router as the second model has it; everything in the words of the page."""

    value: str
    key_filter: str
    local_filter: str
    policy: str
    up: list[bool] | None
    local: bool
    quorum: int
    waited_ms: int
    timeout_ms: int
    cached: str
    monitor: bool


TEXTS = st.sampled_from(["", "FOO", "FOO_EU", "BAR", "AAA", "NULL", "x" * 1_025])
WORLDS = st.builds(
    World,
    value=TEXTS,
    key_filter=st.sampled_from(["", "^.{3}", "^F", "Z"]),
    local_filter=st.sampled_from(["", "^FOO.*", "FOO", "NULL|0", "1", "BAR"]),
    policy=st.sampled_from(["", FIRST, MODULO]),
    up=st.one_of(st.none(), st.lists(st.booleans(), min_size=1, max_size=3)),
    local=st.booleans(),
    quorum=st.integers(1, 4),
    waited_ms=st.sampled_from([0, 1, 99, 100, 101]),
    timeout_ms=st.sampled_from([0, 100]),
    cached=st.sampled_from(["", "node-0", "node-1", "gone", HERE]),
    monitor=st.booleans(),
)


def naive(world: World) -> str:
    """The page, step by step."""
    if world.monitor:
        return "local"
    key = world.value if 0 < len(world.value) <= 1_024 else "NULL"
    if key == world.value and world.key_filter:
        found = re.search(world.key_filter, key)
        key = "NULL" if found is None else found[0]
    if world.policy == MODULO and key != "NULL":
        # By the vectors of the page; NULL is a text like others only where it is no key.
        key = {"FOO": "1", "BAR": "0", "AAA": "0"}.get(key) or policy(MODULO, {"MODULO": "2"}).transform(key)
    if world.local_filter and re.fullmatch(world.local_filter, key):
        return "local"
    if not world.policy or world.up is None:
        return "use-another"
    nodes = [HERE] * world.local + [f"node-{n}" for n, up in enumerate(world.up, int(world.local)) if up]
    if world.cached in nodes:
        return "local" if world.cached == HERE else f"redirect {world.cached}"
    if len(nodes) < world.quorum:
        return "wait" if world.waited_ms < world.timeout_ms else "unavailable"
    if world.policy == MODULO:
        return "unavailable"
    return "local" if nodes[0] == HERE else f"redirect {nodes[0]}"


def routed(world: World) -> str:
    targets = None
    if world.up is not None:
        targets = pool(len(world.up), local=world.local, quorum_size=world.quorum, quorum_timeout_ms=world.timeout_ms)
        for target, up in zip(targets.targets[int(world.local) :], world.up, strict=True):
            if not up:
                targets.failed(target, "gone")
    properties = {"MODULO": "2"} if world.policy == MODULO else {}
    one = router(
        # A client id decides more than the key, the user's name does not.
        key_type=KeyType.USER_NAME,
        key_filter=world.key_filter,
        local=world.local_filter,
        policy=policy(world.policy, properties) if world.policy else None,
        pool=targets,
        cache_timeout_ms=0,
    )
    monitor = "$.artemis.internal.router.client.7" if world.monitor else ""
    if world.cached:
        assert one.cache is not None
        for key in ("NULL", "NUL", "FOO", "FOO_EU", "BAR", "AAA", "F", "0", "1"):
            one.cache.put(key, world.cached, at(0))
    decided = one.route(RouteRequest(monitor, user=world.value), at(world.waited_ms), at(0))
    if isinstance(decided, WaitUntil):
        assert decided.at == at(world.timeout_ms)
        return "wait"
    if decided.outcome is Outcome.REDIRECT:
        assert decided.target is not None
        assert decided.connector is decided.target.connector
        return f"redirect {decided.target.node_id}"
    assert decided.connector is None
    return str(decided.outcome.value)


@given(WORLDS)
def test_the_order_is_that_of_the_page(world: World) -> None:
    assert routed(world) == naive(world)
