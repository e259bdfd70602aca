"""Limits and ends of lease groups: how much one lease and one group have, what keeps a group, and when it ends."""

from collections.abc import Callable

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.leases.lease import FENCED, ROWS_PER_SLICE, LeaseError
from delosmq.model.declared.lease_life import LIVE_WINDOW_MS
from tests.engine.support import Bench, anycast
from tests.engine.test_leases import Reader, condition_of


class Told(EngineEvents):
    def __init__(self) -> None:
        self.told: list[str] = []

    def lease_group_expiring(self, group: str, in_ms: int) -> None:
        self.told.append(f"{group} ends in {in_ms}")

    def lease_group_expired(self, group: str) -> None:
        self.told.append(f"{group} expired")

    def lease_group_ended(self, group: str, returned: int) -> None:
        self.told.append(f"{group} ended")


def bench_of(bodies: str, events: EngineEvents | None = None, **core: object) -> Bench:
    bench = Bench(queues=(anycast("q"),), events=events, core=core)
    bench.send("q", bodies)
    return bench


def test_a_lease_has_no_more_rows_and_bytes_than_the_broker_allows() -> None:
    reader = Reader(bench_of("a b c d", lease_max_rows=3))
    assert [reader.take(0), reader.take(1)] == ["a b c", "d"]
    reader = Reader(bench_of("aa bb cc dd", lease_max_bytes=5))
    assert [reader.take(0), reader.take(1)] == ["aa bb cc", "dd"]


def test_a_group_holds_no_more_rows_and_bytes_than_the_broker_allows() -> None:
    reader = Reader(bench_of("a b c d", leased_max_rows=3))
    assert [reader.take(0), reader.take(1)] == ["a b c", "d"]
    reader = Reader(bench_of("aa bb cc dd", leased_max_bytes=3))
    assert [reader.take(0), reader.take(1)] == ["aa bb", "cc dd"]


def test_what_is_acknowledged_and_not_worked_off_counts_to_its_group() -> None:
    count = 2 * ROWS_PER_SLICE
    bench = bench_of(" ".join("x" * 2 * count), leased_max_rows=count)
    reader = Reader(bench)
    assert len(reader.take(0).split()) == count
    leases = bench.broker.leases
    epoch = reader.epoch
    assert leases.request("g", after=1, max_rows=count, max_bytes=count, epoch=epoch, until=None) is None
    assert (reader.group.held_count, reader.group.building, reader.group.collecting) == (count, [], True)
    held = []
    while (lease := leases.request("g", after=1, max_rows=count, max_bytes=count, epoch=epoch, until=None)) is None:
        held.append(reader.group.held_count)
        bench.broker.tick()
    assert max(held) <= count
    assert lease.number == 2


def test_only_calls_with_the_epoch_of_the_run_are_signs_of_its_life() -> None:
    bench = bench_of("a")
    first = Reader(bench)
    reader = Reader(bench, incarnation=first.group.incarnation)
    reader.take(0)
    leases = bench.broker.leases
    strangers: list[Callable[[], object]] = [
        lambda: leases.rows("g", 1, 0, 1),
        lambda: leases.rows("g", 1, 0, 1, first.epoch),
        lambda: leases.describe("g", 0, 1),
        lambda: leases.note_reading(reader.group, first.epoch),
    ]
    own: list[Callable[[], object]] = [
        lambda: leases.rows("g", 1, 0, 1, reader.epoch),
        lambda: leases.describe("g", 0, 1, reader.epoch),
        lambda: leases.note_reading(reader.group, reader.epoch),
        lambda: leases.touch("g", reader.epoch),
        lambda: leases.acknowledge("g", 0, reader.epoch),
    ]
    for calls, silent_ms in ((strangers, 5), (own, 0)):
        for call in calls:
            leases.touch("g", reader.epoch)
            bench.clock.now_ms += 5
            call()
            assert leases.silent_ms(reader.group) == silent_ms


def test_a_run_that_was_replaced_can_not_keep_its_group() -> None:
    bench = bench_of("a")
    old = Reader(bench)
    Reader(bench, incarnation=old.group.incarnation)
    with pytest.raises(LeaseError) as fenced:
        bench.broker.leases.touch("g", old.epoch)
    assert condition_of(fenced) == FENCED


def test_a_first_batch_that_is_slow_to_begin_keeps_its_group_by_touching_it() -> None:
    bench = bench_of("a")
    reader = Reader(bench)
    reader.take(0)
    for _ in range(100):
        bench.clock.now_ms += LIVE_WINDOW_MS
        bench.broker.leases.touch("g", reader.epoch)
    with pytest.raises(LeaseError, match="DMQ2403"):
        Reader(bench, "another")


def test_the_end_of_a_group_is_told_before_once_and_when_it_comes() -> None:
    told = Told()
    bench = bench_of("a", events=told, lease_retention_ms=7_000)
    reader = Reader(bench)
    groups = bench.broker.lease_groups
    bench.clock.now_ms += 6_000
    assert (groups.end_overdue(), told.told) == ([], [])
    bench.clock.now_ms += 1
    for _ in range(2):
        assert groups.end_overdue() == []
    assert (told.told, bench.broker.leases.expires_in_ms(reader.group)) == (["g ends in 999"], 999)
    bench.broker.leases.touch("g", reader.epoch)
    bench.clock.now_ms += 6_001
    assert groups.end_overdue() == []
    bench.clock.now_ms += 1_000
    assert groups.end_overdue() == ["g"]
    assert told.told == ["g ends in 999", "g ends in 999", "g expired", "g ended"]


def test_ended_groups_are_counted_by_why_they_ended() -> None:
    bench = bench_of("a", lease_retention_ms=7_000)
    for end in (
        lambda: bench.broker.lease_groups.release("g"),
        lambda: bench.later(7_001) or bench.broker.lease_groups.end_overdue(),
        lambda: bench.broker.resources.delete_queue("q"),
    ):
        Reader(bench)
        end()
    assert bench.broker.leases.ended == {"released": 1, "expired": 1, "queue deleted": 1}
