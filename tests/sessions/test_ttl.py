"""The TTL check (connection life): data since the last check starts the TTL afresh."""

from delosmq.model.ids import MonotonicNs
from delosmq.sessions.ttl import NEVER_MS, ConnectionTtl


def at(ms: int) -> MonotonicNs:
    return MonotonicNs(ms * 1_000_000)


# TTL-1, TTL-2
def test_a_silent_connection_fails_at_the_first_check_after_its_ttl() -> None:
    ttl = ConnectionTtl(5_000, 2_000, at(0))
    assert ttl.next_check_at == at(2_000)
    assert not ttl.check(at(2_000), True)
    assert not ttl.check(at(4_000), False)
    assert not ttl.check(at(6_000), False)
    assert ttl.check(at(8_000), False)


def test_data_counts_from_the_check_that_saw_it() -> None:
    ttl = ConnectionTtl(1_000, 2_000, at(0))
    for ms in range(2_000, 20_000, 2_000):
        assert not ttl.check(at(ms), True)
    assert ttl.check(at(20_000), False)


def test_without_a_ttl_nothing_fails() -> None:
    ttl = ConnectionTtl(NEVER_MS, 2_000, at(0))
    assert not ttl.check(at(10**9), False)
