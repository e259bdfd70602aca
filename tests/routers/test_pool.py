"""Pools: which targets are ready, and what waits for them."""

# ROUTE-3

from delosmq.routers.decision import Because, Decision, Outcome, WaitUntil
from delosmq.routers.key import RouteRequest
from delosmq.routers.pool import TargetPool
from tests.routers.support import HERE, at, policy, pool, router

ANY = RouteRequest("client")


def names(of: TargetPool) -> list[str]:
    return [target.name.partition(" (")[0] for target in of.ready_targets()]


def test_the_local_target_is_the_first() -> None:
    assert names(pool(2, local=True)) == ["this broker", "broker-1", "broker-2"]


def test_no_target_is_ready_before_it_was_asked() -> None:
    assert names(pool(2, local=True, up=False)) == []


def test_a_target_that_fails_or_is_not_active_is_not_ready_at_once() -> None:
    one = pool(2)
    one.failed(one.targets[0], "connection refused")
    assert names(one) == ["broker-2"]
    assert one.targets[0].trouble == "connection refused"
    one.checked(one.targets[1], "node-1", False)
    assert names(one) == []
    one.checked(one.targets[0], "node-0", True)
    assert names(one) == ["broker-1"]


def test_a_target_that_flaps_gets_what_comes_while_it_is_ready_and_nothing_else() -> None:
    targets = pool(2)
    one = router(policy=policy("FIRST_ELEMENT"), pool=targets, cache_timeout_ms=0)
    flaps, stays = targets.targets
    for turn in range(100):
        targets.failed(flaps, "gone")
        decided = one.target_of(f"down-{turn}", at(turn), at(turn))
        assert isinstance(decided, Decision)
        assert decided.target is stays
        targets.checked(flaps, "node-0", True)
        decided = one.target_of(f"up-{turn}", at(turn), at(turn))
        assert isinstance(decided, Decision)
        assert decided.target is flaps


def test_one_with_the_node_id_of_this_broker_is_this_broker() -> None:
    one = pool(2)
    one.checked(one.targets[0], HERE, True)
    decided = router(policy=policy("FIRST_ELEMENT"), pool=one).route(ANY, at(0), at(0))
    assert isinstance(decided, Decision)
    assert (decided.outcome, decided.connector) == (Outcome.LOCAL, None)


def test_two_connectors_to_one_broker_count_once() -> None:
    one = pool(3, local=True)
    one.checked(one.targets[1], HERE, True)
    one.checked(one.targets[3], "node-2", True)
    assert names(one) == ["this broker", "broker-2"]


def test_changes_are_told_and_nothing_else() -> None:
    told: list[int] = []
    one = pool(2)
    one.on_change = lambda: told.append(len(one.ready_targets()))
    one.checked(one.targets[0], "node-0", True, 7)
    assert told == []
    one.failed(one.targets[0], "gone")
    one.failed(one.targets[0], "still gone")
    assert told == [1]
    one.checked(one.targets[0], "another-node", True)
    assert told == [1, 2]


def test_a_connection_waits_for_the_quorum_and_gets_its_target_when_it_is_there() -> None:
    targets = pool(2, quorum_size=2)
    one = router(policy=policy("FIRST_ELEMENT"), pool=targets)
    targets.failed(targets.targets[1], "gone")
    assert one.route(ANY, at(10), at(10)) == WaitUntil(at(3_010), "client")
    assert one.route(ANY, at(2_000), at(10)) == WaitUntil(at(3_010), "client")
    targets.checked(targets.targets[1], "node-1", True)
    decided = one.route(ANY, at(2_001), at(10))
    assert isinstance(decided, Decision)
    assert (decided.outcome, decided.because) == (Outcome.REDIRECT, Because.POLICY)
    assert decided.connector is not None
    assert decided.connector.host == "10.0.0.1"


def test_what_waited_for_long_enough_is_refused_for_now() -> None:
    one = router(policy=policy("FIRST_ELEMENT"), pool=pool(2, quorum_size=3))
    decided = one.route(ANY, at(3_010), at(10))
    assert isinstance(decided, Decision)
    assert (decided.outcome, decided.because, decided.ready) == (Outcome.UNAVAILABLE, Because.NO_QUORUM, 2)


def test_without_a_timeout_nothing_waits() -> None:
    one = router(policy=policy("FIRST_ELEMENT"), pool=pool(1, up=False, quorum_timeout_ms=0))
    decided = one.route(ANY, at(0), at(0))
    assert isinstance(decided, Decision)
    assert decided.because is Because.NO_TARGET


def test_a_cached_target_is_taken_without_a_quorum() -> None:
    targets = pool(2, quorum_size=2)
    one = router(policy=policy("FIRST_ELEMENT"), pool=targets, cache_timeout_ms=0)
    one.route(ANY, at(0), at(0))
    targets.failed(targets.targets[1], "gone")
    decided = one.route(ANY, at(1), at(1))
    assert isinstance(decided, Decision)
    assert decided.because is Because.CACHED
    assert isinstance(one.route(RouteRequest("other"), at(1), at(1)), WaitUntil)
