"""The watch over a target: what it answers may be nonsense."""

# ROUTE-3

import pytest

from delosmq.routers.decision import Decision, Outcome
from delosmq.routers.target_watch import Ask, Close, Open, TargetWatch
from tests.routers.support import at, policy, pool, router


@pytest.mark.parametrize("count", [-1, 10**400, 2**31, True, 1.5, "1", None, [1]])
def test_a_count_that_is_none_ends_the_readiness_and_harms_no_login(count: object) -> None:
    targets = pool(2, quorum_timeout_ms=0)
    one = router(policy=policy("LEAST_CONNECTIONS"), pool=targets)
    watch = TargetWatch(targets, targets.targets[0], "ConnectionCount", at(0))
    assert watch.handle_timer(at(0)) == Open()
    assert watch.handle_opened(at(0)) == Ask("NodeID")
    assert watch.handle_answer("node-0", at(0)) == Ask("Active")
    assert watch.handle_answer(True, at(0)) == Ask("ConnectionCount")
    assert watch.handle_answer(count, at(0)) == Close()
    assert targets.targets[0].trouble == "its ConnectionCount is no whole number from 0 to 2147483647"
    decided = one.target_of("k", at(0), at(0))
    assert isinstance(decided, Decision)
    assert (decided.outcome, decided.target) == (Outcome.REDIRECT, targets.targets[1])
