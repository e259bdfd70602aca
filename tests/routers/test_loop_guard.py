"""Redirects in a circle are seen."""

# ROUTE-6

from delosmq.routers.loop_guard import LoopGuard
from tests.routers.support import at


def test_the_sixth_redirect_within_ten_seconds_is_one_too_many() -> None:
    guard = LoopGuard()
    assert [guard.redirected("k", "10.0.0.1", at(ms)) for ms in range(7)] == [*[False] * 5, True, False]


def test_slow_ones_and_those_of_others_do_not_count() -> None:
    guard = LoopGuard()
    assert not any(guard.redirected("k", "10.0.0.1", at(number * 2_000)) for number in range(100))
    guard = LoopGuard()
    assert not any(guard.redirected("k", f"10.0.0.{number}", at(0)) for number in range(100))
    assert not any(guard.redirected(f"k{number}", "10.0.0.1", at(0)) for number in range(100))
